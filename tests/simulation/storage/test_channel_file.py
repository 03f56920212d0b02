"""channel.npz: what comes back is the channel that the devices used, or a clear error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.privacy.calibration import PrivacyBudget
from dprec.ratings import RatingScale
from dprec.reports import DeviceChannel
from simulation import run
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from simulation.storage.run_files import read_channel, read_run, write_channel


def device(kind: str = "bounded-laplace") -> DeviceChannel:
    mechanism = MECHANISMS[kind](kind=kind)
    budget = PrivacyBudget(epsilon=2.0, per="user")
    scale = RatingScale.evenly(1.0, 5.0, 1.0)
    made = mechanism.family(budget, scale, 200).device_channel(np.array([3, 5, 9]))
    assert made is not None
    return made


@pytest.mark.parametrize("kind", ["bounded-laplace", "zheng-randomized-response", "laplace"])
def test_the_channel_comes_back_to_the_last_draw(tmp_path: Path, kind: str) -> None:
    written = device(kind)
    write_channel(tmp_path, written)
    read = read_channel(tmp_path)
    assert (read.cells, read.per_user) == (written.cells, written.per_user)
    assert read.channel.weights.dtype == np.uint64
    np.testing.assert_array_equal(read.channel.weights, written.channel.weights)
    np.testing.assert_array_equal(read.channel.inputs, written.channel.inputs)
    np.testing.assert_array_equal(read.channel.values, written.channel.values)


def test_no_file_no_channel(tmp_path: Path, tiny: dict[str, Any]) -> None:
    tiny["protocol"] = {**tiny["protocol"], "privacy": None, "mechanism": {"kind": "none"}}
    run(tiny, tmp_path, page=False)
    assert not (tmp_path / "channel.npz").exists()
    assert read_run(tmp_path).channel is None


def one_draw_more(arrays: dict[str, Any]) -> None:
    arrays["weights"][0, 0] += np.uint64(1)


def around_the_clock(arrays: dict[str, Any]) -> None:
    # Sums to 2**60 only where the sum overflows.
    arrays["weights"][0] = np.uint64(0)
    arrays["weights"][0, :2] = np.uint64(2**63), np.uint64(2**63 + 2**60)


CHANGES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (one_draw_more, "weights"),
    (around_the_clock, "weights"),
    (lambda arrays: arrays.update(weights=arrays["weights"].astype(np.float64)), "weights"),
    (lambda arrays: arrays.update(weights=arrays["weights"][:, 1:]), "weights"),
    (lambda arrays: arrays.update(inputs=arrays["inputs"][::-1]), "inputs"),
    (lambda arrays: arrays.update(values=np.full_like(arrays["values"], np.inf)), "values"),
    (lambda arrays: arrays.update(cells=np.int64(0)), "cells"),
    (lambda arrays: arrays.pop("per_user"), "per_user"),
    (lambda arrays: arrays.update(values=arrays["values"].astype(object)), ""),
]


@pytest.mark.parametrize(("change", "named"), CHANGES)
def test_what_is_not_a_channel_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], named: str
) -> None:
    write_channel(tmp_path, device())
    with np.load(tmp_path / "channel.npz") as file:
        arrays = {name: file[name].copy() for name in file.files}
    change(arrays)
    np.savez(tmp_path / "channel.npz", **arrays)
    with pytest.raises(InputError) as caught:
        read_channel(tmp_path)
    assert caught.value.where == str(tmp_path / "channel.npz") + (f": {named}" if named else "")


@pytest.mark.parametrize("content", [b"", b"not a channel", b"PK\x03\x04"])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "channel.npz").write_bytes(content)
    with pytest.raises(InputError, match="truncated or damaged"):
        read_channel(tmp_path)


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    write_channel(tmp_path, device())
    path = tmp_path / "channel.npz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="truncated or damaged"):
        read_channel(tmp_path)


def test_a_level_that_no_test_rating_has_is_in_the_channel_and_on_the_page(
    tmp_path: Path, tiny: dict[str, Any]
) -> None:
    data = tmp_path / "ratings.csv"
    # One rating alone is a 4, and the split leaves it in the training ratings.
    rows = [(user, item, (1, 2, 3, 5)[(user + item) % 4]) for user in range(20) for item in range(10)]
    rows[0] = (0, 0, 4)
    data.write_text("\n".join(["user,item,rating", *(f"{u},{i},{r}" for u, i, r in rows)]))
    tiny["dataset"] = {"kind": "csv", "path": str(data), "low": 1, "high": 5}
    _, test = load_ratings(parse_config(tiny))
    assert 4 not in test.values
    result = run(tiny, tmp_path / "run")
    assert result.summary["dataset"]["levels"] == [1, 2, 3, 4, 5]
    stored = read_channel(tmp_path / "run")
    assert stored.channel.inputs.tolist() == [1, 2, 3, 4, 5]
    assert stored.channel.epsilon == pytest.approx(1.0, rel=1e-3)
    assert "for each of 5 true ratings" in (tmp_path / "run" / "report.html").read_text()


def test_x_map_with_noise_on_the_device_shows_its_mechanism(tmp_path: Path, tiny: dict[str, Any]) -> None:
    tiny["dataset"] = {"kind": "synthetic-domains", "users": 40, "items": 60, "ratings": 800}
    tiny["split"] = {"kind": "cold-start", "test_fraction": 0.4}
    tiny["protocol"] = {
        "kind": "x-map",
        "privacy": {"epsilon": 1.0, "per": "rating"},
        "mechanism": {"kind": "laplace"},
        "replacement": {"selection": "best"},
    }
    run(tiny, tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "What the mechanism sends" in page
    assert "no mechanism that maps a rating" not in page
    stored = read_channel(tmp_path / "run")
    assert stored.channel.epsilon == pytest.approx(1.0, rel=1e-3)
