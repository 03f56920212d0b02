"""Comparisons on other ratings: a file, or ratings in memory, with what suits them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dprec.errors import InputError
from simulation import compare
from simulation.comparison.planning import load_comparison
from simulation.comparison.running import run_comparison
from tests.refusals import refused_at

HOLDOUT = {"kind": "holdout", "test_fraction": 0.2}


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """Write a file of ratings from 1 to 5."""
    path = tmp_path / "my ratings.csv"
    rng = np.random.default_rng(3)
    cells = rng.permutation(12 * 9)[:80]
    lines = [
        f"u{cell // 9},i{cell % 9},{star}" for cell, star in zip(cells, rng.integers(1, 6, 80), strict=True)
    ]
    path.write_text("\n".join(["user,item,rating", *lines]))
    return path


def dataset_override(path: Path) -> str:
    return f"dataset={{kind: csv, path: '{path}'}}"


def test_a_file_of_ratings_is_compared_as_it_is(ratings: Path) -> None:
    comparison = load_comparison(str(ratings))
    assert comparison.config.name == "my-ratings"
    assert comparison.config.title == "Published systems and ours on my ratings.csv"
    assert {cell.config.dataset.path for cell in comparison.cells} == {str(ratings)}  # type: ignore[attr-defined]
    names = {cell.protocol for cell in comparison.cells}
    assert {"nothing-sent", "best-local-per-rating", "plain-mf", "isgd", "zheng-rr", "pg-mf"} <= names
    assert not comparison.left_out


def small(**changes: Any) -> dict[str, Any]:
    mechanism, completion = {"kind": "none"}, {"kind": "mf", "rank": 2}
    plain = {"kind": "one-shot", "mechanism": mechanism, "completion": completion}
    return {
        "name": "mine",
        "dataset": {"kind": "synthetic", "users": 12, "items": 9, "ratings": 60},
        "split": HOLDOUT,
        "epsilons": [1.0],
        "protocols": [{"name": "plain", "protocol": plain}, "x-map", "one-bit-input"],
        "simulation": {"backend": "local"},
        **changes,
    }


def test_what_does_not_suit_the_ratings_is_left_out_with_its_baselines(ratings: Path, tmp_path: Path) -> None:
    signs = {"name": "signs", "preset": "one-bit-input"}
    values = small(protocols=[*small()["protocols"][:2], signs])
    lines = ratings.read_text().splitlines()
    ratings.write_text("\n".join([lines[0], *(f"{line.rpartition(',')[0]},{3}" for line in lines[1:])]))
    scale = ["dataset.low=1", "dataset.high=5"]
    comparison = load_comparison(values, [dataset_override(ratings), *scale])
    result = run_comparison(comparison, tmp_path / "out", jobs=1)
    reasons = result.comparison.left_out
    assert set(reasons) == {"x-map", "signs"}
    assert "movielens-genres" in reasons["x-map"]
    baselines = {"nothing-sent", "global-mean", "item-average", "sets-only"}
    assert {row["name"] for row in result.rows} == {"plain"} | baselines
    written = yaml.safe_load((tmp_path / "out" / "comparison.yaml").read_text())
    assert written["left_out"] == reasons
    assert [entry["name"] for entry in written["protocols"]] == ["plain"]


def test_a_comparison_without_any_protocol_that_suits_is_refused(ratings: Path, tmp_path: Path) -> None:
    comparison = load_comparison(small(protocols=["x-map"]), [dataset_override(ratings)])
    with refused_at("protocols"):
        run_comparison(comparison, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "overrides", "message"),
    [
        (
            "1,1,-9.5\n1,2,7.25\n2,1,3.1\n2,2,-3.3\n",
            [],
            "ratings from -9.5 to 7.25 .* --set dataset.low=-10 ",
        ),
        ("a,b,c\n1,1,3\n", [], "line 1: which of the columns"),
        ("1,1,3\n1,2,4\n2,1,3\n", ["zork=1"], "overrides zork: "),
        (
            "1,1,3\n1,2,4\n2,1,3\n",
            ["protocols=[blp-mf, blp-mf]"],
            "overrides protocols: two protocols named 'blp-mf'",
        ),
    ],
)
def test_a_refusal_names_the_file_of_ratings_or_the_override_first(
    content: str, overrides: list[str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    first = "" if overrides else f"{re.escape(str(path))}[:,] "
    with pytest.raises(InputError, match=f"^{first}{message}") as caught:
        compare(path, tmp_path / "comparison", overrides=overrides)
    assert "compare-systems" not in str(caught.value)


def test_ratings_in_memory_are_compared_with_their_own_test_part(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    cells = rng.permutation(12 * 9)[:80]
    triples = cells // 9, cells % 9, rng.integers(1, 6, 80).astype(float)
    train, test = (tuple(column[rows] for column in triples) for rows in (slice(60), slice(60, None)))
    values = small(
        protocols=small()["protocols"][:1], baselines=False, split={"kind": "predefined", "fold": "u1"}
    )
    result = compare(values, tmp_path / "out", dataset=train, test=test, page=False)
    assert [row["name"] for row in result.rows] == ["plain"]
    written = yaml.safe_load((tmp_path / "out" / "comparison.yaml").read_text())
    assert (written["dataset"]["ratings"], written["dataset"]["test_ratings"]) == (80, 20)
    assert written["split"]["kind"] == "predefined"
