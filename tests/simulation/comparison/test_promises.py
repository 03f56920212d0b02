"""Comparisons that hold best under every promise."""

from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import compare
from simulation.comparison.planning import load_comparison
from tests.make import small_run

TRUSTS = ("local", "shuffle", "secure-aggregation", "central")


def of(ratings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    run = small_run({"kind": "nothing-sent"}, 60, 20, 600)
    shared = {key: run[key] for key in ("split", "simulation")}
    held = {"dataset": {**run["dataset"], **ratings}, "epsilons": [2.0], "promises": "all", "protocols": []}
    return {"name": "held", **shared, **held, **changes}


@pytest.mark.thorough
def test_every_promise_about_ratings_is_a_line_that_says_it(tmp_path: Path) -> None:
    result = compare(of({}), output=tmp_path / "held", page=False)
    held = {
        row["name"]: (row["trust"], row["per"], row["item_set"], row.get("needed_trust"))
        for row in result.rows
        if row["name"].startswith("best")
    }
    assert {name: found[:3] for name, found in held.items()} == {
        "best-local-per-rating": ("local", "rating", "revealed"),
        "best-local-per-user-values": ("local", "user", "revealed"),
        "best-local-per-cell": ("local", "cell", "hidden"),
        **{f"best-{trust}-per-user": (trust, "user", "hidden") for trust in TRUSTS},
    }
    assert {found[3] for found in held.values()} <= {None, "local"}
    assert all(row["status"] == "proved" for row in result.rows if row["name"] in held)


def test_lists_are_promised_where_the_data_hold_sets_and_single_items_where_matched_by_these() -> None:
    sets, split = {"positive": ">= 4"}, {"split": {"kind": "user-holdout", "test_fraction": 0.2}}
    whole = {f"best-{trust}-per-user" for trust in TRUSTS}
    for unit, names in (("user", whole), ("rating", whole | {"best-local-per-cell"})):
        comparison = load_comparison(of(sets, match={"epsilon": unit}, **split))
        found = {cell.protocol: cell.config.protocol for cell in comparison.cells if cell.epsilon}
        assert found.keys() == names
        assert {protocol.facts.predicts for protocol in found.values()} == {"lists"}


def test_a_comparison_that_is_written_is_read_again_with_each_promise_once() -> None:
    comparison = load_comparison(of({}))
    entries = comparison.config.protocols
    again = of({}, protocols=[entry.model_dump(by_alias=True, exclude_none=True) for entry in entries])
    assert [cell.key for cell in load_comparison(again).cells] == [cell.key for cell in comparison.cells]


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        load_comparison(of({}, promises=None))
    assert "protocols" in caught.value.where
