"""What protocols account for alike, on reports that are made up."""

import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.mechanisms import MECHANISMS
from dprec.privacy.calibration import CalibratedMechanism, PrivacyBudget
from dprec.privacy.units import ComparableUnit, PrivacyUnit
from dprec.ratings import RatingScale
from dprec.wire.traffic import TrafficLedger
from simulation.protocols.accounting import (
    check_unit,
    mean_payload,
    measured_deployment,
    mechanism_budget,
    mechanism_ledger,
    notes_on_failures,
)
from strategies.round_record import RoundRecord

ITEMS = 5
COUNTS = np.array([0, 1, 4])


def record(replies: int, failures: int) -> RoundRecord:
    return RoundRecord(1, replies, failures, None, 0, 0, 0, 0, 0.0)


def calibrated(kind: str) -> CalibratedMechanism:
    mechanism = MECHANISMS[kind](kind=kind)
    budget = mechanism_budget(mechanism, None, 1.0, "rating")
    return CalibratedMechanism(mechanism, budget, RatingScale.evenly(1.0, 5.0, 1.0), ITEMS)


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
    budget = mechanism_budget(MECHANISMS[kind](kind=kind), None, 0.5, unit)
    assert budget == PrivacyBudget(epsilon=0.5, per=per)


def test_a_budget_in_another_unit_is_refused_with_the_reason() -> None:
    check_unit(PrivacyBudget(epsilon=1.0, per="user"), "user", "of no matter")
    with pytest.raises(SettingError, match=r"privacy\.per: .cell.; accepted: .user.: the rounds"):
        check_unit(PrivacyBudget(epsilon=1.0, per="cell"), "user", "the rounds protect whole profiles")


def test_who_sent_is_charged_where_items_are_shown() -> None:
    ledger = mechanism_ledger(calibrated("bounded-laplace"), COUNTS, np.array([True, True, True]))
    epsilon = ledger.per_rating[1]
    assert epsilon == pytest.approx(1.0, rel=1e-3)
    assert np.isnan(ledger.per_rating[0])
    assert ledger.per_user.tolist() == [0, epsilon, 4 * epsilon]
    assert [charge.round_index for charge in ledger.history] == [1]


def test_who_sent_is_charged_for_every_item_where_items_are_hidden() -> None:
    ledger = mechanism_ledger(calibrated("zheng-randomized-response"), COUNTS, np.array([True, False, True]))
    epsilon = ledger.per_rating[0]
    assert epsilon > 0
    assert np.isnan(ledger.per_rating[1])
    assert ledger.per_user.tolist() == [ITEMS * epsilon, 0, ITEMS * epsilon]


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


def test_the_average_report_is_what_was_sent_up_per_report() -> None:
    traffic = TrafficLedger(3)
    traffic.charge_uplink(np.array([0, 2]), np.array([10, 15]), np.array([50, 55]))
    traffic.charge_downlink(slice(None), 1000, 1000)
    assert mean_payload(traffic, 2) == 12
    assert mean_payload(traffic, 5) == 5


def test_a_longer_report_is_moved_with_less_overhead() -> None:
    short, long = (measured_deployment("query.report", payload, "group") for payload in (10, 10_000))
    assert short > long > 1
