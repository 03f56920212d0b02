"""Lists on real sets, by the figures of the same models elsewhere; means over three splits."""

from statistics import fmean
from typing import Any

import pytest

import simulation
from tests.paths import DATA

MSWEB, MOVIELENS = DATA / "msweb", DATA / "ml-100k"
VISITS = {"kind": "msweb", "path": str(MSWEB), "min_items": 3}
POSITIVES = {"kind": "movielens-100k", "path": str(MOVIELENS), "positive": ">= 4", "min_items": 5}


def ndcg(preset: str, dataset: dict[str, Any], test_fraction: float) -> float:
    split = {"kind": "user-holdout", "test_fraction": test_fraction}
    reached = []
    for seed in (1, 2, 3):
        run = simulation.run(
            preset,
            dataset=dataset,
            split=split,
            simulation={"backend": "local"},
            overrides=[f"seed={seed}"],
            page=False,
        )
        reached.append(run.summary["accuracy"]["ndcg_at_10"])
    return fmean(reached)


@pytest.mark.thorough
@pytest.mark.skipif(not MSWEB.is_dir(), reason=f"the visits are not in {MSWEB}")
@pytest.mark.parametrize(("name", "expected"), [("popularity", 0.389), ("ease", 0.554)])
def test_visits(name: str, expected: float) -> None:
    assert ndcg(name, VISITS, 0.3) == pytest.approx(expected, abs=0.005)


@pytest.mark.thorough
@pytest.mark.skipif(not MOVIELENS.is_dir(), reason=f"the ratings are not in {MOVIELENS}")
@pytest.mark.parametrize(("name", "expected"), [("popularity", 0.152), ("ease", 0.316)])
def test_films_with_four_stars(name: str, expected: float) -> None:
    assert ndcg(name, POSITIVES, 0.2) == pytest.approx(expected, abs=0.004)


@pytest.mark.thorough
@pytest.mark.skipif(not MOVIELENS.is_dir(), reason=f"the ratings are not in {MOVIELENS}")
def test_content_beats_popularity_by_half() -> None:
    assert ndcg("popularity-by-content", {**POSITIVES, "items": True}, 0.2) > 0.21
