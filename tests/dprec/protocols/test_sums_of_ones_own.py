"""A protocol of sums from a user's file goes wherever ours go, and what it adds is bounded here."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.federated import ContractError
from simulation import audit, compare, run
from tests import make
from tests.documents.pages import write_files
from tests.item_histogram import HistogramDevice, ItemHistogram
from tests.make import STARS, small_run
from tests.paths import ROOT
from tests.summing import contributions, dense, played

OWN = "tests.item_histogram:ItemHistogram"
BUDGET = {"epsilon": 4.0, "per": "user", "composition": "pld", "delta": 1e-5}
VALUES: dict[str, Any] = small_run(
    {"kind": OWN, "privacy": BUDGET, "aggregation": {"kind": "secure-aggregation", "colluders": 1}},
    name="item-histogram",
)


def test_it_is_what_the_documentation_shows(tmp_path: Path) -> None:
    write_files("docs/methods.md", tmp_path)
    shown = (tmp_path / "item_histogram.py").read_text(encoding="utf-8")
    assert shown == f"# item_histogram.py\n{(ROOT / 'tests/item_histogram.py').read_text(encoding='utf-8')}"


def test_it_runs_and_what_it_promises_is_proved() -> None:
    found = run(
        {**VALUES, "attacks": [{"kind": kind} for kind in ("membership", "promotion", "reconstruction")]},
        page=False,
    )
    privacy = found.summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("proved", "secure-aggregation")
    assert privacy["epsilon_composed"]["max"] == pytest.approx(4.0, rel=0.02)
    reached = found.summary["attacks"]
    assert 0 <= reached["membership_auc"]["value"] <= 1
    # Nothing bounds what one malicious user adds to a masked sum.
    assert reached["target_rank"]["value"] < reached["target_rank"]["baseline"]
    assert np.isfinite(found.predictions["prediction"]).all()


@pytest.mark.parametrize("aggregation", ["central", "secure-aggregation", "shuffle"])
def test_it_is_audited_whoever_adds_up(aggregation: str) -> None:
    found = audit(
        {**VALUES, "protocol": {**VALUES["protocol"], "aggregation": {"kind": aggregation}}}, trials=2000
    )
    assert found.holds
    exact = [finding for finding in found.findings if finding.exact]
    assert exact[0].at_least == pytest.approx(4.0, rel=0.01)
    assert not found.declared_by


def test_it_is_compared_beside_what_sends_nothing(tmp_path: Path) -> None:
    parts = {key: VALUES[key] for key in ("dataset", "split", "simulation")}
    mine = {"name": "mine", "protocol": VALUES["protocol"]}
    both = {"name": "both", **parts, "epsilons": [4.0], "protocols": [mine, "nothing-sent"]}
    rows = {row["name"]: row for row in compare(both, tmp_path / "out", page=False).rows}
    assert rows["mine"]["status"] == "proved"
    assert rows["mine"]["completion"] == "item-histogram"
    assert rows["mine"]["rmse"] > 0 < rows["nothing-sent"]["rmse"]


@dataclass(frozen=True, eq=False)
class Loud(HistogramDevice):
    """Numbers of a norm of 10, every other of them negative."""

    def cells(self, profiles: Any, release: Any, words: Any) -> Any:
        indptr, rows, numbers = super().cells(profiles, release, words)
        return indptr, rows, 10 * numbers * np.where(rows % 2, 1, -1)


@dataclass(frozen=True, eq=False)
class Mixing(HistogramDevice):
    """Numbers that depend on who else is computed."""

    def cells(self, profiles: Any, release: Any, words: Any) -> Any:
        indptr, rows, numbers = super().cells(profiles, release, words)
        return indptr, rows, numbers / len(indptr)


class MixingHistogram(ItemHistogram):
    """A protocol whose devices mix users."""

    def device(self, received: bytes, n_items: int, scale: Any) -> Any:
        return Mixing(**vars(super().device(received, n_items, scale)))


def test_code_that_mixes_users_ends_a_run_and_is_named() -> None:
    kind = f"{__name__}:MixingHistogram"
    with pytest.raises(ContractError, match="contributions of one user computed alone are"):
        run({**VALUES, "protocol": {**VALUES["protocol"], "kind": kind}}, page=False)


def test_no_device_from_outside_adds_anything_but_cells() -> None:
    with pytest.raises(TypeError, match="define cells, which are bounded"):

        class Own(HistogramDevice):
            def contributions(self, profiles: Any, layout: Any, random: Any) -> Any:
                return None


@pytest.mark.parametrize("negative", [False, True])
def test_what_is_too_long_or_has_a_forbidden_sign_is_cut_by_the_base(negative: bool) -> None:
    people = make.profiles(make.random_ratings(30, 12))
    loud = Loud(STARS, np.full(12, 3.0, dtype="<f4"))
    # Whatever the release says of them.
    layout = replace(loud.release(1), negative=negative, bounded=False)
    own = contributions(loud, people, layout)
    rows = dense(own, layout)
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(1, abs=1e-8)
    assert (rows**2).sum(axis=1).max() <= 1 + 1e-9
    assert bool(rows.min() < 0) is negative
    _, total = layout.added_up(own.encode(layout))
    np.testing.assert_allclose(total[:, 0] * 2.0**-36, rows.sum(axis=0), atol=1e-9)


def test_without_noise_the_means_are_those_of_the_ratings() -> None:
    ratings = make.random_ratings(200, 12)
    _, devices = played(ItemHistogram(prior=0.0), make.profiles(ratings))
    weights = 1 / np.sqrt(ratings.counts)[ratings.users]
    sums = np.bincount(ratings.items, weights * ratings.values) / np.bincount(ratings.items, weights)
    np.testing.assert_allclose(devices[-1].means, sums, atol=1e-5)
