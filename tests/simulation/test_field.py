"""What the field's usual evaluation gives away, and where its sampled rankings mislead, on real ratings."""

import re
from pathlib import Path

import numpy as np
import pytest

from docs.tables.field import least_bytes
from dprec.datasets import MovieLens100K, selected
from dprec.splits import LeaveOneOut
from simulation import compare, run
from simulation.analysis.protocol_results import results_of
from simulation.analysis.samples import reversed_by_samples
from tests.paths import DATA, ROOT

ML_100K, STEAM = DATA / "ml-100k", DATA / "steam" / "users.dat"
RANKING = {"candidates": "sampled", "negatives": 99}


def sampled(preset: str, **changes: str) -> dict[str, float]:
    """Return hit rate and NDCG at 10 among 99 others, of the last items of MovieLens 100K."""
    summary = run(
        preset,
        dataset={"kind": "movielens-100k", "path": str(ML_100K), "positive": ">= 1"},
        split={"kind": "leave-one-out"},
        evaluation={"ranking": RANKING},
        simulation={"backend": "local"},
        overrides=[f"protocol.{name}={value}" for name, value in changes.items()],
    ).summary
    told = any("which items they are tested on" in note for note in summary["privacy"]["notes"])
    assert told is (changes.get("spares_tested") == "true")
    found = summary["accuracy"]["sampled_ranking"]
    return {"hits": found["hit_rate_at"]["10"], "gain": found["ndcg_at"]["10"]}


@pytest.mark.skipif(not ML_100K.is_dir(), reason=f"{ML_100K} is absent; set DPREC_DATA to its folder")
@pytest.mark.thorough
def test_a_device_that_learns_nothing_finds_what_it_is_never_let_draw() -> None:
    told, fair = (sampled("counted-negatives", spares_tested=spares) for spares in ("true", "false"))
    assert told["hits"] == 1.0
    assert told["gain"] == pytest.approx(0.979, abs=0.005)
    # One hundred candidates in random order: .1, with a standard error of .0098.
    assert fair["hits"] == pytest.approx(0.1, abs=5 * 0.0098)


@pytest.mark.skipif(not ML_100K.is_dir(), reason=f"{ML_100K} is absent; set DPREC_DATA to its folder")
@pytest.mark.thorough
def test_the_page_says_what_item_sets_take_at_least() -> None:
    data = selected(MovieLens100K(path=str(ML_100K), positive=">= 1"))
    train, _ = LeaveOneOut(ties="first").split(data, 0)
    assert least_bytes(np.array([2]), 4) == pytest.approx(np.log2(6) / 8)
    page = (ROOT / "docs" / "field.md").read_text()
    found = re.search(
        r"A set of items\s+costs <!-- row: .* -->(\d+)<!-- --> bytes, about the mean entropy", page
    )
    assert found is not None
    assert least_bytes(train.counts, train.n_items) == pytest.approx(float(found[1]), abs=1)


@pytest.mark.skipif(not STEAM.is_file(), reason=f"{STEAM} is absent; set DPREC_DATA to its folder")
@pytest.mark.thorough
def test_a_sample_puts_popularity_before_the_table_that_is_twice_as_good(tmp_path: Path) -> None:
    found = compare(
        "compare-reversal",
        tmp_path / "reversal",
        overrides=[f"dataset.path={STEAM}", "epsilons=[1.0]", "simulation.backend=local"],
    )
    results = {result.name: result for result in results_of(found.rows)}
    table, popular = results["gram-central"], results["popularity-central"]
    whole, among = "ranking_hit_rate_at_10", "sampled_ranking_hit_rate_at_10"
    assert table.mean(whole) > 1.5 * popular.mean(whole)
    assert table.mean(among) < popular.mean(among) - 0.05
    told = [note for note in reversed_by_samples(list(results.values())) if "by hit rate" in note]
    assert len(told) == 1
    assert "none of them beyond chance" not in told[0]
