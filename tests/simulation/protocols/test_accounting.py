"""What protocols account for alike, on reports that are made up."""

from dataclasses import replace
from typing import Literal

import pytest

from dprec.accounting import DELTA, ComparableUnit, MatchedBudget, PrivacyBudget, PrivacyUnit
from dprec.errors import SettingError
from dprec.mechanisms import MECHANISMS
from simulation.protocols.accounting import (
    budget_at,
    check_unit,
    mechanism_budget,
    notes_on_failures,
)
from strategies.participation import RoundRecord


def record(replies: int, failures: int) -> RoundRecord:
    return RoundRecord(1, replies, failures, None, 0, 0, 0, 0, 0.0)


@pytest.mark.parametrize(
    ("kind", "unit", "per"),
    [
        ("bounded-laplace", "rating", "rating"),
        ("bounded-laplace", "user", "user"),
        ("zheng-randomized-response", "rating", "cell"),
        ("zheng-randomized-response", "user", "user"),
    ],
)
def test_a_rating_is_a_cell_where_rated_items_are_hidden(
    kind: str, unit: ComparableUnit, per: PrivacyUnit
) -> None:
    budget = mechanism_budget(MECHANISMS[kind](kind=kind), None, MatchedBudget(0.5, unit))
    assert budget == PrivacyBudget(epsilon=0.5, per=per)


@pytest.mark.parametrize(
    ("kind", "composition", "delta"),
    [("bounded-laplace", "pld", 1e-5), ("residual-bits", "pld", 1e-5), ("bits-and-counts", "sum", DELTA)],
)
def test_with_a_delta_what_composes_shares_the_budget_by_composition(
    kind: str, composition: Literal["sum", "pld"], delta: float
) -> None:
    budget = mechanism_budget(MECHANISMS[kind](kind=kind), None, MatchedBudget(0.5, "user", 1e-5))
    assert budget == PrivacyBudget(epsilon=0.5, per="user", composition=composition, delta=delta)


def test_without_a_delta_a_protocol_composes_as_configured() -> None:
    own = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-4)
    assert budget_at(own, MatchedBudget(2.0, "user"), "user") == replace(own, epsilon=2.0)
    assert budget_at(own, MatchedBudget(2.0, "user", 1e-5), "user").delta == 1e-5
    with pytest.raises(SettingError, match=r"privacy\.composition: .pld. per rating"):
        budget_at(own, MatchedBudget(2.0), "rating")


def test_a_budget_in_another_unit_is_refused_with_the_reason() -> None:
    check_unit(PrivacyBudget(epsilon=1.0, per="user"), "user", "of no matter")
    with pytest.raises(SettingError, match=r"privacy\.per: .cell.; accepted: .user.: the rounds"):
        check_unit(PrivacyBudget(epsilon=1.0, per="cell"), "user", "the rounds protect whole profiles")


@pytest.mark.parametrize(
    ("records", "notes"),
    [
        ([], ()),
        ([record(7, 0), record(8, 0)], ()),
        (
            [record(7, 1), record(5, 2)],
            ("3 of 15 replies were missing, late or malformed and were not used.",),
        ),
    ],
)
def test_failures_are_counted_over_all_rounds(records: list[RoundRecord], notes: tuple[str, ...]) -> None:
    assert notes_on_failures(records, "replies") == notes
