"""Runs of several collections in the course of time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.observations import Observations
from dprec.schedules import Collection, Periods, Schedule
from simulation import run
from simulation.analysis.description import describe
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from simulation.storage.summary import Summary
from tests.refusals import refused_at
from tests.simulation.divisions import bits, compare, divided

SMALL = {"kind": "synthetic", "users": 60, "items": 50, "ratings": 1500}


def weekly(schedule: dict[str, Any], **protocol: Any) -> dict[str, Any]:
    """Return a small configuration with a schedule of periods of 30 days."""
    on_device = {
        "kind": "one-shot",
        "privacy": {"epsilon": 1.0, "per": "rating"},
        "mechanism": {"kind": "threshold-bit"},
        "completion": {"kind": "calibrated", "sweeps": 3, "dimensions": 4, "features": 2},
        "personalization": "on-device",
    }
    return {
        "name": "weekly",
        "seed": 1,
        "dataset": {
            "kind": "synthetic",
            "users": 60,
            "items": 50,
            "ratings": 1500,
            "arrivals": {"returning": 0.8},
        },
        "schedule": {"days": 30, **schedule},
        "protocol": {**on_device, **protocol},
        "simulation": {"backend": "local"},
    }


def periods_of(values: dict[str, Any]) -> Periods:
    """Return the periods of a configuration."""
    config = parse_config(values)
    assert config.schedule is not None
    return config.schedule.periods(load_ratings(config)[0])


def weeks(values: dict[str, Any], folder: Path) -> tuple[Summary, list[dict[str, Any]]]:
    """Return the summary of a run, and the lines of its rounds."""
    result = run(parse_config(values), folder, page=False)
    lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    assert lines == result.rounds
    return result.record.summary, lines


def test_increments_ask_those_who_are_there_and_charge_each_rating_once(tmp_path: Path) -> None:
    values = weekly({"kind": "increments"})
    periods = periods_of(values)
    summary, lines = weeks(values, tmp_path / "run")
    assert [line["round"] for line in lines] == list(range(1, periods.count))
    assert [line["replies"] for line in lines] == [
        int(periods.present(period).sum()) for period in range(periods.count - 1)
    ]
    assert summary.privacy.epsilon_per_rating == pytest.approx(1.0)
    reported = periods.ratings.select(periods.held(periods.count - 2)).counts
    assert summary.privacy.epsilon_per_user.max == pytest.approx(reported.max())
    assert summary.dataset.test_ratings == periods.all_judged.sum()
    assert summary.accuracy.rmse is not None
    assert summary.nothing_sent is not None
    for line in lines:
        assert line["accuracy"]["recovered"] == pytest.approx(0.73, abs=0.1)
    # The figures of all periods follow from those of each.
    judged = np.array([periods.judged(period).sum() for period in range(periods.count - 1)])
    told = [line["accuracy"].get("rmse") or 0.0 for line in lines]
    whole = np.sqrt((judged * np.array(told) ** 2).sum() / judged.sum())
    assert summary.accuracy.rmse == pytest.approx(whole)
    assert summary.accuracy.newcomers is not None
    assert set(summary.accuracy.newcomers) == {0, 1, 5, 20, 50}
    assert "Time divides the ratings" in "".join(summary.privacy.notes)


def test_nobody_is_charged_for_messages_before_they_join(tmp_path: Path) -> None:
    values = weekly({"kind": "increments"})
    periods = periods_of(values)
    result = run(parse_config(values), tmp_path / "run", page=False)
    # A request, a report, a table and its acknowledgement, from the period of the first rating on.
    expected = 4 * np.maximum(0, periods.count - 1 - periods.joined)
    assert result.traffic["messages"].tolist() == expected.tolist()


def test_fresh_noise_costs_its_share_each_time_and_can_be_averaged(tmp_path: Path) -> None:
    divided_, _ = weeks(weekly({"kind": "fresh"}), tmp_path / "divided")
    assert divided_.privacy.epsilon_per_rating == pytest.approx(1.0)
    each, lines = weeks(weekly({"kind": "fresh", "budget": "each"}), tmp_path / "each")
    assert each.privacy.epsilon_per_rating == pytest.approx(len(lines))
    told = [line["accuracy"]["recovered"] for line in lines]
    assert told[0] < 0.8
    assert told[-1] > told[0] + 0.05


def test_what_a_server_forgets_is_not_asked_again(tmp_path: Path) -> None:
    _, kept = weeks(weekly({"kind": "increments"}), tmp_path / "kept")
    _, forgotten = weeks(weekly({"kind": "increments", "forget_after": 1}), tmp_path / "forgotten")
    assert [line["uplink"] for line in kept] == [line["uplink"] for line in forgotten]
    assert kept[-1]["accuracy"]["rmse"] != forgotten[-1]["accuracy"]["rmse"]


def test_beyond_a_cap_ratings_are_shown_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[Observations] = []

    def noted(self: Schedule, made: Sequence[Collection]) -> Observations:
        joined.append(Observations.joined([each.observations for each in made]))
        return joined[-1]

    monkeypatch.setattr(Schedule, "joined", noted)
    values = weekly({"kind": "increments", "answers_per_user": 5})
    summary, _ = weeks(values, tmp_path / "run")
    losses, periods = summary.privacy.epsilon_per_user, periods_of(values)
    assert losses.max == pytest.approx(5.0)
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
@pytest.mark.parametrize("faults", [{}, {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2}])
def test_the_bits_do_not_depend_on_how_users_are_divided(
    tmp_path: Path, schedule: dict[str, Any], faults: dict[str, float]
) -> None:
    values = weekly(schedule)
    values["simulation"]["faults"] = faults
    whole = bits(None, divided(values, "local", 1, "all"), tmp_path / "all")
    for size in (1, 7):
        compare(whole, bits(None, divided(values, "local", 1, size), tmp_path / str(size)))


def test_ratings_whose_reports_are_lost_are_asked_about_again(tmp_path: Path) -> None:
    values = weekly({"kind": "increments"})
    values["simulation"]["faults"] = {"dropout": 0.5}
    summary, lines = weeks(values, tmp_path / "run")
    assert sum(line["failures"] for line in lines) > 0
    # An answer that is lost and given again is the same: a rating loses no more by it.
    assert summary.privacy.epsilon_per_rating == pytest.approx(1.0)


def test_lists_are_judged_by_the_items_of_the_next_period(tmp_path: Path) -> None:
    values = weekly({"kind": "fresh"})
    values["dataset"]["positive"] = ">= 3"
    values["protocol"] = {"kind": "popularity", "aggregation": {"kind": "trusted"}}
    summary, lines = weeks(values, tmp_path / "run")
    assert summary.accuracy.ndcg_at_10 is not None
    assert summary.accuracy.newcomers is None
    assert sum(line["accuracy"].get("ndcg_at_10") is not None for line in lines) > 1


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"protocol": {"kind": "nothing-sent"}}, "schedule.kind"),
        ({"dataset": SMALL}, "dataset.arrivals"),
        ({"evaluation": {"groups": ["activity"]}}, "evaluation.groups"),
        ({"evaluation": {"ranking": {}}}, "evaluation.ranking"),
        ({"binarization": {"kind": "mean"}}, "binarization"),
        ({"schedule": {"kind": "increments", "days": 1000}}, "schedule.days"),
    ],
)
def test_what_has_no_meaning_in_the_course_of_time_is_refused(changes: dict[str, Any], where: str) -> None:
    config = parse_config({**weekly({"kind": "increments"}), **changes})
    with refused_at(where):
        load_ratings(config)


def test_increments_take_no_budget_per_user() -> None:
    config = parse_config(weekly({"kind": "increments"}, privacy={"epsilon": 1.0, "per": "user"}))
    with refused_at("protocol.privacy.per"):
        load_ratings(config)


def test_what_a_policy_of_ones_own_costs_is_declared_unless_it_changes_what_is_read_alone() -> None:
    free, last = (
        run(weekly({"kind": f"tests.policies:{name}", "days": 60}), page=False).summary["privacy"]
        for name in ("Free", "Last")
    )
    assert free["status"] == "declared"
    assert describe(parse_config(weekly({"kind": "tests.policies:Free"}))).guarantee.status == "declared"
    assert free["epsilon_per_rating"] is None
    assert [each["component"] for each in free["declared_by"]] == ["tests.policies:Free"]
    assert last["status"] == "proved"
    assert last["epsilon_per_rating"] == pytest.approx(1.0)
