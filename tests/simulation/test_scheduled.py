"""Runs of several collections in the course of time, of populations that stay or move."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.errors import SettingError
from dprec.observations import Observations
from dprec.schedules import Collection, Periods, Schedule
from dprec.sums import CentralAggregation, SecureAggregation
from simulation import run
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from simulation.result import RunResult
from tests.make import small_run
from tests.refusals import refused_at
from tests.simulation.divisions import bits, compare, divided

FAULTS = {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2}


def weekly(
    schedule: dict[str, Any], users: int = 60, arrivals: dict[str, Any] | None = None, **protocol: Any
) -> dict[str, Any]:
    """Return a small configuration with a schedule, by default of periods of 30 days."""
    on_device = {
        "kind": "one-shot",
        "privacy": {"epsilon": 1.0, "per": "rating"},
        "mechanism": {"kind": "threshold-bit"},
        "completion": {"kind": "calibrated", "sweeps": 3, "dimensions": 4, "features": 2},
        "personalization": "on-device",
    }
    values = small_run({**on_device, **protocol}, users, 50, 25 * users)
    del values["split"]
    values["dataset"]["arrivals"] = arrivals or {"returning": 0.8}
    return {**values, "schedule": {"days": 30, **schedule}}


def ran(schedule: dict[str, Any], **changes: Any) -> RunResult:
    return run(weekly(schedule, **changes), page=False)


def periods_of(values: dict[str, Any]) -> Periods:
    """Return the periods of a configuration."""
    config = parse_config(values)
    assert config.schedule is not None
    return config.schedule.periods(load_ratings(config)[0])


def test_increments_ask_those_who_are_there_and_charge_each_rating_once() -> None:
    values = weekly({"kind": "increments"})
    periods, result = periods_of(values), run(values, page=False)
    summary, lines = result.record.summary, result.rounds
    asked = [int(periods.present(period).sum()) for period in range(periods.count - 1)]
    assert [line["replies"] for line in lines] == asked
    assert summary.privacy.epsilon_per_rating == pytest.approx(1.0)
    reported = periods.ratings.select(periods.held(periods.count - 2)).counts
    assert summary.privacy.epsilon_per_user.max == pytest.approx(reported.max())
    assert summary.dataset.test_ratings == periods.all_judged.sum()
    for line in lines:
        assert line["accuracy"]["recovered"] == pytest.approx(0.73, abs=0.1)
    # The figures of all periods follow from those of each.
    judged = np.array([periods.judged(period).sum() for period in range(periods.count - 1)])
    told = [line["accuracy"].get("rmse") or 0.0 for line in lines]
    whole = np.sqrt((judged * np.array(told) ** 2).sum() / judged.sum())
    assert summary.accuracy.rmse == pytest.approx(whole)
    # A request, a report, a table and its acknowledgement, from the period of the first rating on.
    expected = 4 * np.maximum(0, periods.count - 1 - periods.joined)
    assert result.traffic["messages"].tolist() == expected.tolist()


def test_fresh_noise_costs_its_share_each_time_and_can_be_averaged() -> None:
    shared = ran({"kind": "fresh"})
    assert shared.summary["privacy"]["epsilon_per_rating"] == pytest.approx(1.0)
    each = ran({"kind": "fresh", "budget": "each"})
    assert each.summary["privacy"]["epsilon_per_rating"] == pytest.approx(len(each.rounds))
    told = [line["accuracy"]["recovered"] for line in each.rounds]
    assert told[0] < 0.8
    assert told[-1] > told[0] + 0.05


SUMS = {
    "kind": "sums-on-device",
    "privacy": {"epsilon": 1.0, "per": "user", "composition": "pld", "delta": 1e-6},
}


@pytest.mark.parametrize("budget", ["each", "lifetime"])
@pytest.mark.parametrize("kind", ["central", "secure-aggregation"])
def test_noisy_sums_of_all_collections_compose(kind: str, budget: str) -> None:
    """As those of one collection do: n of them are as one at n times the squared distance."""
    values = weekly({"kind": "fresh", "budget": budget})
    aggregation = {"kind": kind, **({"colluders": 2} if kind == "secure-aggregation" else {})}
    values["protocol"] = {**SUMS, "aggregation": aggregation}
    result = run(values, page=False)
    collections = sum(line["asked"] > 0 for line in result.rounds)
    asked = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-6)
    if budget == "lifetime":
        asked = replace(asked, epsilon=1.0 / collections, delta=1e-6 / collections)
    way = CentralAggregation() if kind == "central" else SecureAggregation(colluders=2).among(60)
    expected = way.epsilon(way.multiplier(asked.epsilon, asked.delta) / math.sqrt(collections), 1e-6)
    assert result.summary["privacy"]["epsilon_composed"]["max"] == pytest.approx(expected, rel=1e-6)


def test_more_numbers_than_losses_are_bounded_for_are_refused_over_all_collections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = weekly({"kind": "fresh"})
    values["protocol"] = {**SUMS, "aggregation": {"kind": "secure-aggregation", "colluders": 2}}
    refused: list[int] = []

    def noted(self: SecureAggregation, numbers: int) -> None:
        refused.append(numbers)

    monkeypatch.setattr(SecureAggregation, "check_numbers", noted)
    run(values, page=False)
    monkeypatch.undo()
    assert max(refused) > 2 * min(refused)
    monkeypatch.setattr("dprec.accounting.MOST_NUMBERS", max(refused) - 1)
    with pytest.raises(SettingError, match=f"at most {max(refused) - 1:,} numbers"):
        run(values, page=False)


def test_what_a_server_forgets_is_not_asked_again() -> None:
    kept, forgotten = (ran({"kind": "increments", **more}).rounds for more in ({}, {"forget_after": 1}))
    assert [line["uplink"] for line in kept] == [line["uplink"] for line in forgotten]
    assert kept[-1]["accuracy"]["rmse"] != forgotten[-1]["accuracy"]["rmse"]


def test_beyond_a_cap_ratings_are_shown_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[Observations] = []

    def noted(self: Schedule, collections: Sequence[Collection]) -> Observations:
        joined.append(Observations.joined([each.observations for each in collections]))
        return joined[-1]

    monkeypatch.setattr(Schedule, "joined", noted)
    values = weekly({"kind": "increments", "answers_per_user": 5})
    privacy, periods = run(values, page=False).record.summary.privacy, periods_of(values)
    assert privacy.epsilon_per_user.max == pytest.approx(5.0)
    seen = joined[-1]
    assert seen.symbols is not None
    told = np.array([np.ptp(channel) > 0 for channel in seen.symbols.channels])[seen.symbols.channel_of]
    assert np.bincount(seen.users[told]).max() == 5
    held = periods.ratings.select(periods.held(periods.count - 2))
    assert (seen.counts == held.counts).all()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "schedule",
    [{"kind": "increments", "answers_per_user": 5, "choose": "sampled"}, {"kind": "fresh", "every": 2}],
)
def test_the_bits_do_not_depend_on_how_users_are_divided(tmp_path: Path, schedule: dict[str, Any]) -> None:
    values = weekly(schedule)
    values["simulation"] = {**values["simulation"], "faults": FAULTS}
    whole = bits(None, divided(values, "local", 1, "all"), tmp_path / "all")
    for size in (1, 7):
        compare(whole, bits(None, divided(values, "local", 1, size), tmp_path / str(size)))


def test_ratings_whose_reports_are_lost_are_asked_about_again() -> None:
    values = weekly({"kind": "increments"})
    result = run(values, simulation={"backend": "local", "faults": {"dropout": 0.5}}, page=False)
    assert sum(line["failures"] for line in result.rounds) > 0
    # An answer that is lost and given again is the same: a rating loses no more by it.
    assert result.summary["privacy"]["epsilon_per_rating"] == pytest.approx(1.0)


def test_lists_are_judged_by_the_items_of_the_next_period() -> None:
    values = weekly({"kind": "fresh"})
    values["dataset"]["positive"] = ">= 3"
    values["protocol"] = {"kind": "popularity", "aggregation": {"kind": "central"}}
    result = run(values, page=False)
    assert result.summary["accuracy"]["ndcg_at_10"] is not None
    assert sum(line["accuracy"].get("ndcg_at_10") is not None for line in result.rounds) > 1


@pytest.mark.parametrize("positive", [None, ">= 3"])
def test_the_lists_and_what_they_are_judged_by_are_of_the_last_period(positive: str | None) -> None:
    values = weekly({"kind": "fresh"})
    values["evaluation"] = {"lists": 10, "candidates": "unrated"}
    if positive:
        values["dataset"]["positive"] = positive
        values["protocol"] = {"kind": "popularity", "aggregation": {"kind": "central"}}
    periods, result = periods_of(values), run(values, page=False)
    lists, predictions = result.to_pandas("lists"), result.to_pandas()
    last = periods.number[periods.all_judged].max() - 1
    judged = predictions[predictions["relevant"].notna()]
    assert len(judged) == periods.judged(last).sum()
    assert set(lists["user"]) == set(judged["user"])
    hits = lists.merge(judged[judged["relevant"] == 1], on=["user", "item"]).groupby("user").size()
    accuracy = [line["accuracy"] for line in result.rounds if len(line["accuracy"]) > 1][-1]
    if positive:
        wanted = judged.groupby("user").size()
        assert accuracy["hit_rate_at_10"] == pytest.approx(len(hits) / len(wanted))
    else:
        length = lists.groupby("user").size()
        precisions = hits.reindex(length.index, fill_value=0) / length
        assert accuracy["precision_at_k"] == pytest.approx(precisions.mean())


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"protocol": {"kind": "nothing-sent"}}, "schedule.kind"),
        ({"dataset": {"kind": "synthetic"}}, "dataset.arrivals"),
        ({"evaluation": {"groups": ["activity"]}}, "evaluation.groups"),
        ({"evaluation": {"ranking": {}}}, "evaluation.ranking"),
        ({"binarization": {"kind": "mean"}}, "binarization"),
        ({"schedule": {"kind": "increments", "days": 1000}}, "schedule.days"),
        (weekly({"kind": "increments"}, privacy={"epsilon": 1.0, "per": "user"}), "protocol.privacy.per"),
    ],
)
def test_what_has_no_meaning_in_the_course_of_time_is_refused(changes: dict[str, Any], where: str) -> None:
    config = parse_config({**weekly({"kind": "increments"}), **changes})
    with refused_at(where):
        load_ratings(config)


def test_what_a_policy_of_ones_own_costs_is_declared_unless_it_changes_what_is_read_alone() -> None:
    free, last = (
        ran({"kind": f"tests.policies:{name}", "days": 60}).summary["privacy"] for name in ("Free", "Last")
    )
    assert (free["status"], free["epsilon_per_rating"]) == ("declared", None)
    assert [each["component"] for each in free["declared_by"]] == ["tests.policies:Free"]
    assert (last["status"], last["epsilon_per_rating"]) == ("proved", pytest.approx(1.0))
    own = ran({"kind": "fresh", "days": 60}, mechanism={"kind": "tests.policies:OwnBits"})
    assert own.summary["privacy"]["status"] == "declared"


ARRIVALS = {"days": 90, "returning": 0.6, "rated_again": 0.3}


def test_a_rating_that_is_changed_loses_epsilon_twice_only_where_changes_are_told() -> None:
    kept, told = (
        ran({"kind": "increments", "days": 10, **more}, arrivals=ARRIVALS).summary["privacy"]
        for more in ({}, {"on_change": "update"})
    )
    assert kept["epsilon_per_rating"] == pytest.approx(1.0)
    assert told["epsilon_per_rating"] == pytest.approx(2.0)
    assert told["epsilon_per_user"]["mean"] > kept["epsilon_per_user"]["mean"]
    assert any("sees that it was changed" in note for note in told["notes"])


def test_users_who_have_left_are_neither_asked_nor_sent_anything() -> None:
    stayed, left = (
        ran({"kind": "increments", "days": 10, **more}, arrivals=ARRIVALS)
        for more in ({}, {"leave_after": 1})
    )
    for before, after in zip(stayed.rounds, left.rounds, strict=True):
        assert after["replies"] <= before["replies"]
        assert after["downlink"]["message_bytes"] <= before["downlink"]["message_bytes"]
    assert left.rounds[-1]["replies"] < 0.7 * stayed.rounds[-1]["replies"]
    # All ratings are answered all the same, each in its own period.
    losses = [each.summary["privacy"]["epsilon_per_user"] for each in (stayed, left)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("kind", ["increments", "fresh"])
def test_a_period_in_which_nobody_is_there_has_no_collection(kind: str) -> None:
    few = {"days": 300, "returning": 0.0}
    rounds = ran({"kind": kind, "days": 0.7, "leave_after": 1}, users=12, arrivals=few).rounds
    empty = [line for line in rounds if not line["replies"]]
    assert len(empty) > 0.9 * len(rounds)
    assert all(line["uplink"]["message_bytes"] == line["downlink"]["message_bytes"] == 0 for line in empty)
