"""Code of somebody's own that changes between a run and the run that continues it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import compare, load, run

MODULE = """
from dprec.mechanisms import Mechanism, RandomizedResponse

class Own(RandomizedResponse):
    def channel(self, scale, epsilon):
        return super().channel(scale, {share} * epsilon)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that writes a module with a mechanism that spends a share of its budget."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def written(share: float) -> None:
        (tmp_path / "own_changing.py").write_text(MODULE.format(share=share))
        sys.modules.pop("own_changing", None)
        importlib.invalidate_caches()

    return written


def message(values: dict[str, Any], go: Callable[..., object], folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        go(values, folder, resume=True, page=False)
    return str(caught.value)


def test_a_run_does_not_go_on_with_other_code(
    tmp_path: Path, tiny: dict[str, Any], write: Callable[[float], None]
) -> None:
    tiny["simulation"] = {"backend": "local"}
    tiny["protocol"]["mechanism"] = {"kind": "own_changing:Own"}
    write(0.5)
    first = run(tiny, tmp_path / "run", page=False)
    config = load(tmp_path / "run" / "config.yaml")
    assert config == load(tiny)
    again = run(tiny, tmp_path / "run", resume=True, page=False)
    assert again.summary["accuracy"] == first.summary["accuracy"]
    before = config.sources["own_changing:Own"]
    write(0.25)
    now = load(tiny).sources["own_changing:Own"]
    assert message(tiny, run, tmp_path / "run") == (
        f"{tmp_path / 'run' / 'config.yaml'}: sources.own_changing:Own: {before!r} there and {now!r} now; "
        "accepted: the configuration it began with, or a new directory"
    )
    other = run(tmp_path / "run" / "config.yaml", tmp_path / "other", page=False)
    assert other.summary["accuracy"] != first.summary["accuracy"]


def test_a_comparison_does_not_go_on_with_other_code(
    tmp_path: Path, tiny: dict[str, Any], write: Callable[[float], None]
) -> None:
    protocol = {**tiny["protocol"], "mechanism": {"kind": "own_changing:Own"}}
    values = {
        "name": "mine",
        "dataset": tiny["dataset"],
        "split": tiny["split"],
        "epsilons": [1.0],
        "protocols": [{"name": "own", "protocol": protocol}],
        "baselines": False,
        "simulation": {"backend": "local"},
    }
    write(0.5)
    first = compare(values, tmp_path / "out", page=False)
    assert compare(tmp_path / "out" / "comparison.yaml", tmp_path / "out", resume=True, page=False).rows == (
        first.rows
    )
    write(0.25)
    assert "comparison.yaml: sources.own_changing:Own: " in message(values, compare, tmp_path / "out")
