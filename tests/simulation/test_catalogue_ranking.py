"""Rankings over the catalogue, from the configuration to the files and tables of a run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulation import run
from simulation.configuration.loading import load
from simulation.console.results import results_table
from simulation.pages.run_sections import ranking_sections
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import read_summary
from tests.simulation.conftest import presets


def test_a_run_stores_and_shows_what_it_ranked(tmp_path: Path, tiny: dict[str, Any]) -> None:
    plain = run(tiny, page=False).summary["accuracy"]
    tiny["evaluation"] = {"ranking": {"cutoffs": [3, 5]}, "relevant_from": 3}
    result = run(tiny, tmp_path, page=False)
    written = json.loads((tmp_path / "summary.json").read_text())["accuracy"]
    assert written == result.summary["accuracy"]
    assert written["rmse"] == plain["rmse"]
    assert "ranking" not in plain
    ranking = written["ranking"]
    tested, liked = (result.predictions["user"][result.predictions["rating"] >= low] for low in (1, 3))
    assert ranking["users"] == np.unique(liked).size < np.unique(tested).size + 1
    assert set(ranking["ndcg_at"]) == {"3", "5"}
    assert 0 < ranking["recall_at"]["3"] <= ranking["recall_at"]["5"] <= 1
    assert read_summary(tmp_path).accuracy.metrics()["ranking_ndcg_at_3"] == ranking["ndcg_at"]["3"]
    assert any("at least 3" in note for note in result.summary["privacy"]["notes"])


def test_a_sample_has_a_name_of_its_own(tiny: dict[str, Any]) -> None:
    tiny["evaluation"] = {"ranking": {"candidates": "sampled", "negatives": 4, "cutoffs": [3]}}
    accuracy = run(tiny, page=False).summary["accuracy"]
    assert "ranking" not in accuracy
    sampled = accuracy["sampled_ranking"]
    assert (sampled["negatives"], sampled["seed"]) == (4, 0)
    tiny["evaluation"]["ranking"] = {"cutoffs": [3]}
    # Fewer items compete.
    assert sampled["recall_at"]["3"] > run(tiny, page=False).summary["accuracy"]["ranking"]["recall_at"]["3"]


@pytest.mark.parametrize("name", ["optimal-on-device", "one-bit-clear", "x-map"])
def test_every_kind_of_protocol_is_ranked(name: str) -> None:
    config = {**presets()[name], "evaluation": {"ranking": {"cutoffs": [5]}}}
    ranking = run(config, page=False).summary["accuracy"]["ranking"]
    assert 0 <= ranking["ndcg_at"]["5"] <= ranking["hit_rate_at"]["5"] <= 1
    assert ranking["coverage_at"]["5"] > 0


def test_tables_and_pages_show_the_first_cutoff_and_all_of_them(tiny: dict[str, Any]) -> None:
    tiny["evaluation"] = {"ranking": {"cutoffs": [3, 5]}}
    result = run(tiny, page=False)
    (section,) = ranking_sections(RunFiles.of(result.record))
    page = str(section.content[1])
    assert "at 3" in page
    assert "at 5" in page
    assert page.count("<tr") == 1 + 6
    headings = [
        str(column.header).replace("\n", " ") for column in results_table(result.summary).table.columns
    ]
    assert {"NDCG at 3, catalogue", "Recall at 3, catalogue"} <= set(headings)
    assert not any("at 5" in heading for heading in headings)


@pytest.mark.parametrize(
    ("ranking", "key", "accepted"),
    [
        ("{candidates: sampled}", "negatives", "a number of items, with sampled candidates"),
        ("{negatives: 5}", "negatives", "nothing, unless candidates are sampled"),
        ("{cutoffs: [5, 5]}", "cutoffs", "different lengths"),
        ("{cutoffs: []}", "cutoffs", "at least 1 item"),
        ("{cutoffs: [0]}", "cutoffs", "at least 1"),
    ],
)
def test_rankings_that_cannot_be_are_refused(
    tiny: dict[str, Any], ranking: str, key: str, accepted: str
) -> None:
    with pytest.raises(ValueError, match=rf"evaluation\.ranking\.{key}.*{accepted}"):
        load(tiny, [f"evaluation.ranking={ranking}"])
