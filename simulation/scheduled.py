"""A run of several collections in the course of time, as a schedule says, judged period by period.

After each period, devices hold what was rated so far. Where a collection is due, they are asked over Flower
as in any run; the server learns from all that it has collected, and devices predict the next period. Where
reports are of single ratings, those of all collections are read together; of any other protocol, each
collection is a whole run.
"""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import PrivacyAccountant
from dprec.arrays import Bools, Uint8s
from dprec.attacks import Transcript, recovered
from dprec.components import as_values
from dprec.datasets import selected
from dprec.errors import SettingError, within
from dprec.predictions import Lists, Predict, PredictRows
from dprec.progress import silent
from dprec.protocols.base import Protocol, Public
from dprec.protocols.one_shot import Learned, OneShotProtocol, notes_on_catalogue
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from dprec.schedules import Collection, Held, Periods, Schedule
from dprec.wire import TrafficLedger
from simulation.configuration.models import RunConfig
from simulation.courses.base import course_of, notes_on_failures, with_declared_losses
from simulation.courses.one_shot import OneShotCourse
from simulation.courses.task import Outcome
from simulation.engine.installing import Installer, run_protocol
from simulation.evaluation import Evaluator, Judged, unmeasured
from strategies.participation import RoundRecord

OWN_RATINGS = (0, 1, 5, 20, 50)
"""Numbers of own ratings that newcomers' devices are given before they predict."""

_Predictors = tuple[Predict, PredictRows | None]


KeysOf = Callable[..., RunKeys]
"""Derives the keys of a run, described by a text, or of its ``collection`` of a number."""


def check_schedule(config: RunConfig) -> None:
    """Refuse parts of a configuration that have no meaning in the course of time; raises SettingError."""
    refused = {
        "dataset.copies": config.dataset.copies,
        "binarization": config.binarization,
        "evaluation.ranking": config.evaluation.ranking,
        "evaluation.groups": config.evaluation.groups or None,
    }
    for key, value in refused.items():
        if value is not None:
            unset = "[]" if isinstance(value, tuple) else "null"
            raise SettingError(key, "one, with a schedule", f"{unset}, or no schedule")


def check_kind(schedule: Schedule, protocol: Protocol) -> None:
    """Refuse a policy that does not suit what devices report; raises SettingError with the whole key."""
    if protocol.privacy is not None and protocol.privacy.own:
        found = f"{schedule.kind!r}, where users choose their own epsilons"
        raise SettingError("schedule.kind", found, "one epsilon, or no schedule")
    one_shot: OneShotProtocol | None = protocol.of_single_ratings
    if one_shot is not None:
        with within("protocol"):
            replace(one_shot, answers=schedule.answers)
            if one_shot.guard is not None:
                raise SettingError("guard", "one, with a schedule", "null")
        return
    if schedule.leave_after is not None:
        # Of one cell it would depend, then, whether devices hold any of the others.
        found = f"{schedule.leave_after}, with {protocol.kind}, which runs as a whole with all users"
        raise SettingError(
            "schedule.leave_after", found, "null, or a one-shot protocol that reports on each rating alone"
        )
    if schedule.reads_ratings_alone:
        found = f"{schedule.kind!r}, with {protocol.kind} and mechanism {protocol.facts.protects}"
        accepted = "a one-shot protocol that reports on each rating alone, or a schedule of kind fresh"
        raise SettingError("schedule.kind", found, accepted)


def over_time(schedule: Schedule, installer: Installer, evaluator: Evaluator, keys: KeysOf) -> Judged:
    """Run a protocol as a schedule says, and judge its predictions period by period."""
    protocol, later = installer.config.protocol, selected(installer.config.dataset).load_changes()
    with within("schedule"):
        periods = schedule.periods(evaluator.train, later)
    check_kind(schedule, protocol)
    one_shot: OneShotProtocol | None = protocol.of_single_ratings
    shared = schedule, periods, replace(installer, progress=silent), keys
    with within("protocol"):
        collections = _WholeRuns(*shared, protocol) if one_shot is None else _ReadTogether(*shared, one_shot)
    return _Weeks(collections, evaluator, installer).judged()


@dataclass(eq=False)
class _Collections(ABC):
    """The collections of a run so far."""

    schedule: Schedule
    periods: Periods
    installer: Installer
    keys: KeysOf
    traffic: TrafficLedger = field(init=False)

    def __post_init__(self) -> None:
        self.traffic = TrafficLedger(self.periods.ratings.n_users)

    @property
    def horizon(self) -> int:
        """Number of all collections."""
        return self.schedule.horizon(self.periods)

    @property
    def drawn_by(self) -> str:
        """What the noise of this run is bound to."""
        return f"{self.installer.drawn_by} {json.dumps(as_values(self.schedule))}"

    def keys_of(self, number: int) -> RunKeys:
        """Return the keys of a collection."""
        fresh = f" {number}" if self.schedule.draws_anew else ""
        return self.keys(self.drawn_by + fresh, collection=number)

    @abstractmethod
    def collect(self, number: int, period: int) -> tuple[RoundRecord, dict[str, float | None]]:
        """Ask devices once the ratings of a period are made; return the round, and what else is measured."""

    @abstractmethod
    def predicting(self, profiles: Ratings, newcomers: int | None = None) -> _Predictors | None:
        """Return what predicts for those who hold some ratings; None if nobody can for newcomers with these.

        ``newcomers``: how many own ratings these have; None for users present.
        """

    @abstractmethod
    def outcome(self, rounds: tuple[RoundRecord, ...]) -> Outcome:
        """Return what came of all collections; what predicts is that of the last."""


@dataclass(eq=False)
class _ReadTogether(_Collections):
    """Reports of single ratings, those of all collections read together."""

    protocol: OneShotProtocol
    collections: list[Collection] = field(default_factory=list, init=False)
    reported: Bools = field(init=False)
    sent_levels: Uint8s = field(init=False)
    tables: list[Bools] = field(default_factory=list, init=False)
    """Whose reports each table that was sent is learned from; shape (users,)."""
    latest: Learned = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        count = self.periods.ratings.count
        self.reported, self.sent_levels = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.uint8)
        privacy = self.schedule.share(self.protocol.privacy, self.horizon)
        self.asking = replace(self.protocol, privacy=privacy, answers=self.schedule.answers)
        self.course = OneShotCourse(self.asking)
        ratings = self.periods.ratings
        self.asking.check(ratings)
        self.family = self.asking.family(ratings.scale, ratings.n_items)
        self.server_seed = self.keys(self.drawn_by).server

    def collect(self, number: int, period: int) -> tuple[RoundRecord, dict[str, float | None]]:
        """Ask for the reports that the policy says, and learn from all that is remembered."""
        present = self.periods.present(period, self.schedule.leave_after)
        if not present.any():
            return _NOTHING, {}
        grid, keys = self.installer.session.grid, self.keys_of(number)
        public_seed = keys.installed.public_seed
        state = Held(self.periods, number, period, self.reported, self.sent_levels, public_seed)
        ratings = self.schedule.as_reported(state)
        reported = self.schedule.reported(state) & present[ratings.users]
        answering = reported & self.schedule.answering(state)
        profiles = ratings.without_levels(~answering).select(reported)
        task = self.installer.task(
            profiles,
            profiles,
            unmeasured,
            replace(keys, server=self.server_seed),
            device_ratings=profiles,
            protocol=self.asking.installed,
            present=present,
        )
        # Only without a table is there nothing to predict from.
        first = not self.tables
        collected = self.course.collected(grid, task, symbols=True, required=first)
        self.reported |= reported & collected.accepted[ratings.users]
        arrived = answering & collected.sent[ratings.users]
        again = ratings.select(arrived & (self.sent_levels > 0) & (self.sent_levels != ratings.levels)).counts
        self.sent_levels[arrived] = ratings.levels[arrived]
        counts = ratings.select(answering).counts
        self.collections.append(
            Collection(number, self.family, counts, again, collected.sent, collected.observations)
        )
        record, all_observed = collected.record, self.schedule.joined(self.collections)
        if number % self.schedule.refresh == 0 and collected.accepted.any():
            remembered = self.schedule.remembered(self.collections, number)
            remembers_all = len(remembered) == len(self.collections)
            observed = all_observed if remembers_all else self.schedule.joined(remembered)
            if self.asking.embedding_release.epsilon is not None:
                # Noise that follows from the item sets alone would be the same again as long as these are.
                table = self.keys(f"{self.drawn_by} table {len(self.tables)}")
                task = replace(task, server_seed=table.server)
            self.latest = self.asking.learn(observed, observed, task.server_seed, task.progress)
            self.tables.append(np.any([collection.sent for collection in remembered], axis=0))
            record = record.with_traffic(
                self.course.tell(grid, task, self.latest, observed, collected.traffic)
            )
        self.traffic.add(collected.traffic)
        last_sent = ratings.at_levels(self.sent_levels)
        return record, {"recovered": recovered(all_observed, last_sent)}

    def predicting(self, profiles: Ratings, newcomers: int | None = None) -> _Predictors | None:
        """Return what the last table says to devices, or the server, which knows nothing of newcomers."""
        if newcomers and self.latest.sent_table is None:
            return None
        return self.latest.predicting(profiles)

    def outcome(self, rounds: tuple[RoundRecord, ...]) -> Outcome:
        """Return what came of all collections."""
        ratings, completed = self.periods.ratings, self.latest.completed
        protocol, accountant = self.installer.config.protocol, self.schedule.accountant(self.collections)
        release, notes = self.asking.embedding_release, completed.notes + notes_on_failures(rounds)
        for number, sent in enumerate(self.tables, start=1):
            release.charge(accountant, number, sent)
        if release.epsilon is not None:
            notes += (
                f"{len(self.tables)} tables of the items were sent: item_embeddings.epsilon is for each of "
                "them, and a user loses it by each that its reports are in.",
            )
        predict, rows = self.latest.predicting(ratings)
        return Outcome(
            predict=predict,
            predict_rows=rows,
            traffic=self.traffic,
            accountant=accountant,
            guarantee=protocol.guarantee((ratings.n_users, ratings.n_items)),
            rounds=rounds,
            channel=self.family.device_channel(ratings.counts),
            notes=notes + notes_on_catalogue(completed.public_data),
            diagnostics=completed.diagnostics,
            mixture=completed.mixture,
            transcript=self._transcript() if self.installer.config.attacks else None,
        )

    def _transcript(self) -> Transcript:
        """Return the reports of all collections, with how they depend on each other."""
        ratings = self.periods.ratings
        return Transcript(
            n_users=ratings.n_users,
            n_items=ratings.n_items,
            scale=ratings.scale,
            trusted=self.protocol.guarantee((ratings.n_users, ratings.n_items)).trusts_server,
            reports=tuple(collection.observations for collection in self.collections),
            read_together=self.family.together,
            newcomer=self.latest.newcomer(ratings),
        )


@dataclass(eq=False)
class _WholeRuns(_Collections):
    """Whole runs of a protocol, each from all ratings that devices hold, at its share of the budget."""

    protocol: Protocol
    outcomes: list[Outcome] = field(default_factory=list, init=False)

    def collect(self, number: int, period: int) -> tuple[RoundRecord, dict[str, float | None]]:
        """Run the protocol; its rounds count as one."""
        known_ratings = self.periods.known(period)
        present = self.periods.present(period, self.schedule.leave_after)
        if not present.any():
            return _NOTHING, {}
        profiles = known_ratings.select(self.periods.held(period) & present[known_ratings.users])
        shared = self.schedule.share(self.protocol.privacy, self.horizon)
        protocol = replace(self.protocol, privacy=shared).suited(Public.of(profiles))
        protocol.check(profiles)
        protocol.check_repeated(profiles, self.horizon)
        evaluator = Evaluator(
            profiles, profiles, self.installer.config.evaluation, None, self.installer.catalogue
        )
        task = self.installer.task(
            profiles,
            profiles,
            evaluator,
            self.keys_of(number),
            device_ratings=course_of(protocol).held_ratings(profiles, self.installer.config.seed),
            protocol=protocol.installed,
        )
        outcome = run_protocol(self.installer.session, protocol, task)
        self.outcomes.append(outcome)
        self.traffic.add(outcome.traffic)
        sums = {
            name: sum(getattr(record, name) for record in outcome.rounds)
            for name in vars(_NOTHING)
            if name not in ("round", "accuracy", "causes", "epsilon", "observed")
        }
        return replace(_NOTHING, **sums), {}

    def predicting(self, profiles: Ratings, newcomers: int | None = None) -> _Predictors | None:
        """Return what the last run predicts, whatever is held now; it knows nothing of newcomers' ratings."""
        last = self.outcomes[-1]
        return None if newcomers else (last.predict, last.predict_rows)

    def outcome(self, rounds: tuple[RoundRecord, ...]) -> Outcome:
        """Return what came of all runs; notes and diagnostics are those of the last, and of one run each."""
        accountant = PrivacyAccountant.of_all([outcome.accountant for outcome in self.outcomes])
        transcripts = [outcome.transcript for outcome in self.outcomes if outcome.transcript is not None]
        guarantee, number = self.outcomes[-1].guarantee, len(self.outcomes)
        notes = tuple(f"Of one collection of {number}: {note}" for note in guarantee.notes)
        return replace(
            self.outcomes[-1],
            guarantee=replace(guarantee, notes=notes) if number > 1 else guarantee,
            traffic=self.traffic,
            accountant=accountant,
            rounds=rounds,
            transcript=Transcript.of_all(transcripts) if transcripts else None,
        )


_NOTHING = RoundRecord(
    round=1,
    replies=0,
    failures=0,
    accuracy=None,
    uplink_payload_bytes=0,
    uplink_message_bytes=0,
    downlink_payload_bytes=0,
    downlink_message_bytes=0,
    seconds=0.0,
)
"""A period without a collection."""


@dataclass(eq=False)
class _Weeks:
    """The periods of a run: a collection where one is due, and what is predicted of the next period."""

    collections: _Collections
    evaluator: Evaluator
    """Of all ratings, and of those that are judged."""
    installer: Installer
    squares: dict[str, list[tuple[float, int]]] = field(default_factory=dict, init=False)
    """Sums of squared errors of all periods so far, and how many they are of, by the keys of the metrics."""

    def __post_init__(self) -> None:
        ratings = self.evaluator.train
        self.predictions = np.full(ratings.count, np.nan)
        self.ranks = np.full(ratings.count, np.nan)
        self.relevant = np.full(ratings.count, np.nan)
        self.lists: Lists | None = None
        self.measured: list[tuple[int, dict[str, float | None]]] = []

    def judged(self) -> Judged:
        """Go through all periods, and judge them together."""
        started, collections, rounds = time.perf_counter(), self.collections, []
        schedule, periods = collections.schedule, collections.periods
        for period in range(periods.count - 1):
            number, offset = divmod(period, schedule.periods_each)
            record, further = _NOTHING, dict[str, float | None]()
            if offset == 0:
                record, further = collections.collect(number, period)
            accuracy = {**self._present(period), **self._newcomers(period), **further}
            rounds.append(replace(record, round=period + 1, accuracy=accuracy))
            self.installer.ended(rounds[-1])
            self.installer.progress("collecting and predicting", period + 1, periods.count - 1)
        outcome = collections.outcome(tuple(rounds))
        outcome = with_declared_losses(outcome, self.installer.config.protocol, schedule)
        divided = (
            f"Time divides the ratings, not the split: {periods.count} periods of {schedule.days:g} days. "
            "After each but the last, devices hold what was rated so far, and what users present rate in the "
            "next period is predicted. Bytes and losses are those of all collections."
        )
        notes = (divided, *schedule.notes(collections.horizon), *outcome.notes)
        if schedule.leave_after is not None:
            leaving = (
                f"Users who have not rated for {schedule.leave_after} periods take no part until they rate "
                "again; what they reported stays."
            )
            notes = (leaving, *notes)
        outcome = replace(outcome, notes=notes, seconds=time.perf_counter() - started)
        mask = periods.all_judged
        ranks = self.ranks[mask] if periods.ratings.scale.implicit else None
        nothing_sent = _root(self.squares.get("nothing_sent", []))
        relevant = None if self.lists is None else self.relevant[mask]
        predictions, measured = self.predictions[mask], self._together()
        return Judged(outcome, predictions, ranks, measured, nothing_sent, self.lists, relevant)

    def _present(self, period: int) -> dict[str, float | None]:
        """Judge what is predicted of the ratings that users present make in the next period."""
        periods, ratings = self.collections.periods, self.evaluator.train
        mask = periods.judged(period)
        if not mask.any():
            return {}
        profiles = periods.known(period).select(periods.held(period))
        evaluator = self._evaluator(profiles, ratings.select(mask))
        predictors = self.collections.predicting(evaluator.train)
        assert predictors is not None, "nobody predicts for users present"
        last = period + 1 == periods.number[periods.all_judged].max()
        if last and evaluator.options.lists is not None:
            self.lists = evaluator.longest_lists(*predictors)
            self.relevant[mask] = evaluator.relevant
        predictions, ranks, measured = evaluator.judged(*predictors, lists=self.lists)
        self.predictions[mask] = predictions
        if ranks is not None:
            self.ranks[mask] = ranks
            self.measured.append((int((evaluator.test.counts > 0).sum()), measured))
            return measured
        self.measured.append((evaluator.test.count, measured))
        new = periods.of_new_items(period)[mask]
        errors = predictions - evaluator.test.values
        return {
            **measured,
            "new_items": self._root("new_items", errors[new]),
            "nothing_sent": self._root("nothing_sent", evaluator.alone - evaluator.test.values),
        }

    def _newcomers(self, period: int) -> dict[str, float | None]:
        """Judge what is predicted for newcomers of the next period from some of their ratings."""
        periods, ratings = self.collections.periods, self.evaluator.train
        if ratings.scale.implicit:
            return {}
        measured: dict[str, float | None] = {}
        for n_given in OWN_RATINGS:
            first, later = periods.newcomers(period, n_given)
            evaluator = self._evaluator(ratings.select(first), ratings.select(later))
            predictors = self.collections.predicting(evaluator.train, n_given)
            errors = np.zeros(0)
            if predictors is not None and later.any():
                errors = evaluator.predictions(predictors[0]) - evaluator.test.values
            measured[f"newcomers_{n_given}"] = self._root(f"newcomers_{n_given}", errors)
        return measured

    def _evaluator(self, train: Ratings, test: Ratings) -> Evaluator:
        return Evaluator(train, test, self.evaluator.options, None, self.evaluator.catalogue)

    def _root(self, key: str, errors: NDArray[np.float64]) -> float | None:
        """Return the root mean square of some errors, which count with those of all periods."""
        squares = float((errors**2).sum()), errors.size
        self.squares.setdefault(key, []).append(squares)
        return _root([squares])

    def _together(self) -> dict[str, Any]:
        """Return the metrics of all periods; what is not an error is a mean over what was judged."""
        keys = dict.fromkeys(key for _, measured in self.measured for key in measured)
        together: dict[str, Any] = {key: _together(key, self.measured) for key in keys}
        if "k" in keys:
            together["k"] = self.evaluator.options.top_k
        if self.evaluator.train.scale.implicit:
            return together
        newcomers = {n_given: _root(self.squares[f"newcomers_{n_given}"]) for n_given in OWN_RATINGS}
        return {**together, "newcomers": newcomers, "new_items": _root(self.squares["new_items"])}


def _root(squares: Sequence[tuple[float, int]]) -> float | None:
    """Return the root of the mean of some sums of squared errors; None without errors."""
    count = sum(number for _, number in squares)
    return math.sqrt(sum(total for total, _ in squares) / count) if count else None


def _together(key: str, measured: Sequence[tuple[int, dict[str, float | None]]]) -> float | None:
    """Return a metric over several periods, each of which counts as often as it was judged."""
    weighted = [(figures[key], weight) for weight, figures in measured if figures.get(key) is not None]
    if not weighted:
        return None
    values, weights = (np.array(column, dtype=np.float64) for column in zip(*weighted, strict=True))
    if key == "rmse":
        return float(np.sqrt(np.average(values**2, weights=weights)))
    return float(np.average(values, weights=weights))
