"""What a protocol is, and what it answers about itself: all that others ask of one is a method here.

Losses that a class from outside this distribution declares: nothing here follows from its code.

A mechanism of one's own is a matrix, from which its loss follows whoever made it. A gradient report, an
aggregation, a perturbation or a protocol of one's own sends what its code sends, and its loss is its word.
"""

from __future__ import annotations

import json
import typing
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from dprec.accounting import (
    DELTA,
    Adjacency,
    Guarantee,
    MatchedBudget,
    PrivacyAccountant,
    PrivacyBudget,
    PrivacyUnit,
)
from dprec.arrays import Floats, Ints
from dprec.catalogue import UsersTable
from dprec.channel import Channel
from dprec.completion import Observations
from dprec.components import Options, as_values, is_ours, option, reference_of, user_defined_classes
from dprec.crossdomain import RecommendationOptions, ReplacementOptions, SimilarityKind
from dprec.errors import InputError, SettingError, within
from dprec.exchange import Setup, XMapSetup
from dprec.mechanisms import Mechanism
from dprec.personalization import OrdinalProcess
from dprec.randomness.first_draws import first_names
from dprec.ratings import ColdRatings, Ratings, RatingScale
from dprec.reports import ReportFamily
from dprec.schedules import Schedule
from dprec.sums import Aggregation, SummedMethod
from dprec.wire import ReportCodec
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Task

ROUNDING = 1e-9
"""Relative excess over a promise that adding up floating-point numbers may cause."""

Complete = Callable[[Observations, int], Floats]
"""From ratings and a seed to all entries of what a trusted server releases, shape (users * items,)."""

Sample = Callable[[bool, int, int], Ints]
"""From whether a user takes part, a number of trials and a seed to what is seen in each, as classes."""


@dataclass(frozen=True)
class Promise:
    """What the devices of a protocol promise."""

    epsilon: float
    """For everything that is sent over all rounds."""
    unit: PrivacyUnit
    """What two profiles may differ in."""
    hides_rated_items: bool
    """Whether it holds for which items are rated, too."""
    delta: float = 0.0
    """Probability beyond which it holds; 0 unless the budget is for composed draws."""

    def loss(self, entries: int) -> float:
        """Return the largest loss between two profiles that differ in so many entries.

        A promise per user holds for any difference; one per rating or cell adds up.
        """
        return self.epsilon if self.unit == "user" else self.epsilon * entries

    def unit_of(self, entries: int) -> PrivacyUnit:
        """Return the unit in which a difference in so many entries is counted."""
        return self.unit if entries == 1 else "user"


@dataclass(frozen=True)
class Finding:
    """What one of the tests of an audit measured."""

    test: str
    """What was compared, in words."""
    unit: PrivacyUnit
    """Unit of the promise."""
    promised: float
    """Largest epsilon that the configuration allows; 0 for reports that must not depend on each other."""
    at_least: float
    """Lower bound on the true epsilon; the loss itself if it is exact."""
    charged: float | None
    """Epsilon that the run's ledger charges; None if the ledger does not state it."""
    exact: bool
    """Whether the loss was computed from a matrix rather than bounded by samples."""
    power: float
    """Probability that a leak of twice the promise would have been detected, or noise that is reused."""
    covers: str = ""
    """What an exact loss is that of, in words, where it is not that of all cases."""

    @property
    def defect(self) -> str | None:
        """What contradicts the promise, in words; None if nothing does."""
        allowed = self.promised * (1 + ROUNDING)
        if self.at_least > (allowed if self.exact else self.promised):
            return f"epsilon is at least {self.at_least:.4g}"
        if self.charged is not None and self.charged > allowed:
            return f"the ledger charges {self.charged:.4g}"
        if self.charged is not None and self.at_least > self.charged * (1 + ROUNDING):
            return f"epsilon is at least {self.at_least:.4g}, and the ledger charges {self.charged:.4g}"
        return None

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against the promise."""
        return self.defect is None

    @property
    def strength(self) -> str:
        """How strong the test was, in words."""
        if self.exact:
            return f"exact, {self.covers}" if self.covers else "exact"
        leak = "a twofold leak" if self.promised else "noise that is reused"
        return f"{leak} would be seen with probability {self.power:.2f} or more"


@dataclass(frozen=True, eq=False)
class NoisySums:
    """The sums that a protocol releases; see `simulation.protocols.sums.SummedProtocol`."""

    method: SummedMethod
    aggregation: Aggregation
    multipliers: tuple[float, ...]
    sensitivity: float
    accountant: Callable[[float], PrivacyAccountant]

    def epsilon(self, delta: float, longest: float = 1.0, adjacency: Adjacency | None = None) -> float:
        """Return what all releases cost a user whose contributions are so long; by default, as promised."""
        if longest == 0:
            return 0.0
        return float(self.accountant(longest).get_epsilon(delta, adjacency=adjacency)[0])


@dataclass(frozen=True, eq=False)
class CrossDomainOutputs:
    """What a protocol across domains lets out; see `simulation.protocols.x_map.XMapProtocol`."""

    setup: XMapSetup
    replacement: ReplacementOptions
    recommendation: RecommendationOptions
    similarity: SimilarityKind


Moved = Callable[[int, RatingScale, int], float | None]
"""From a number of users, a scale and a seed to how far one of them moves what is computed of others."""


class Auditor(typing.Protocol):
    """What performs an audit: a protocol says which of its tests there are to do."""

    def of_groups(self, moved: Moved, loss: Callable[[float], float]) -> Iterator[Finding]:
        """Have users move others in groups of several sizes, and return the loss of the farthest move."""

    def of_devices(self) -> Iterator[Finding]:
        """Compare what the devices of people send whose profiles differ, in runs of the protocol."""

    def of_releases(self, complete: Complete) -> Iterator[Finding]:
        """Compare what a trusted server releases of two small data sets, many times."""

    def of_samples(self, test: str, sample: Sample) -> Iterator[Finding]:
        """Compare what is seen with a user and without, where a protocol knows the worst of users itself."""

    def of_sums(self, released: NoisySums) -> Iterator[Finding]:
        """Compare sums of contributions with noise."""

    def of_outputs(self, given: CrossDomainOutputs) -> Iterator[Finding]:
        """Compare replacements, and the neighbours and similarities of predictions."""


@dataclass(frozen=True)
class Example:
    """The population and the user for whom reports are described."""

    scale: RatingScale
    users: int
    items: int
    """Sizes of the population and of the catalogue."""
    ratings: int
    """Ratings of the user, at least 1."""

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.users, self.items


@dataclass(frozen=True)
class Sent:
    """The reports of one device."""

    reports: int
    """Reports that a device sends, at most."""
    symbols: int | None
    """Size of the alphabet of one answer; None for a number in floating point."""
    answers: int
    """Answers in one report, or of what it is computed from; see `of`."""
    bits: float
    """Mean size of one report, before it is padded to whole bytes."""
    epsilon: float | None
    """Exact loss of one answer, in natural logarithms; None if it is not protected."""
    per: PrivacyUnit
    """What this loss is for."""
    of: str = ""
    """What `answers` counts, where a report holds one message that is computed from them, as a noun; empty
    where it holds the answers themselves.
    """


def sent_through(channel: Channel, example: Example, *, protected: bool, reports: int = 1) -> Sent:
    """Return reports on the rated items, each through a channel."""
    return Sent(
        reports=reports,
        symbols=channel.symbols,
        answers=example.ratings,
        bits=ReportCodec(channel, example.items).expected_bits(example.ratings),
        epsilon=channel.epsilon if protected else None,
        per="rating",
    )


def sent_ratings(family: ReportFamily, example: Example) -> Sent:
    """Return the one report of a family."""
    size = family.size(example.ratings)
    return Sent(1, size.symbols, size.answers, size.bits, size.epsilon, size.per)


Predicted = Literal["ratings", "lists"]
"""What a protocol predicts."""

BASELINES = ("nothing-sent", "global-mean", "item-average", "sets-only")
"""Presets that a protocol has to beat to be worth any privacy or bytes; see `Protocol.baseline`."""

BASELINE_PRESETS: dict[Predicted, dict[str, str]] = {
    "ratings": {name: name for name in BASELINES},
    "lists": {"nothing-sent": "random-list", "popularity": "popularity"},
}
"""The presets that are baselines of ratings or of lists, by what they are called in tables."""

INFORMED_BASELINES = {
    "nothing-sent": "nothing-sent",
    "sets-only": "sets-only",
    "random-list": "content-list",
    "popularity": "popularity-by-content",
}
"""What stands for a preset of `BASELINE_PRESETS` where something is public about the items."""

_AFTER_REPORTS = frozenset({"delivery", "guard", "shuffler", "item_embeddings"})
"""Settings with and without which devices draw and send the same."""

_AS_FIRST = {
    "process": {
        "level": 0.25,
        "taste": 0.1,
        "nearness": 0.12,
        "reach": 0.3,
        "number": 0.02,
        "category": 0.03,
        "most_ratings": 500,
    }
}
"""Others that change nothing of what is sent, as they were when draws were first bound to them."""


@dataclass(frozen=True, kw_only=True)
class Protocol(Options):
    """How devices and server arrive at predictions together.

    A protocol has to say what it takes and promises, what is installed on devices, and how it runs. It runs
    in three parts: `serve` is all that its server does, from a `ServerTask` in which there is no rating;
    `served` is what the server knows then; `simulated` adds what only a simulation knows. One whose server
    needs ratings, or trust, defines `run` alone, and cannot be deployed.
    """

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers", "mechanism_name", "completion_name"})
    predicted: ClassVar[Predicted] = "ratings"
    """What it predicts: ratings, or scores that order lists, from sets of items without ratings."""
    folds_in: ClassVar[bool] = False
    """Whether devices that took no part predict from what was learned and their users' profiles: its
    predictions are for the users of `Task.judged`.
    """
    learns_parameters: ClassVar[bool] = False
    """Whether devices are asked about parameters that the server learns, other ones in every run."""
    not_deployed: ClassVar[str] = "whose server needs ratings or trust"
    """Why it cannot be deployed; empty if it can."""
    privacy: PrivacyBudget | None = option("What is promised; left out if nothing is.", None)

    @property
    def private(self) -> bool:
        """Whether the protocol takes a privacy budget: by default, where it has one."""
        return self.privacy is not None

    @property
    def calibrated(self) -> bool:
        """Whether a comparison sets its epsilon: it has a budget, and users have none of their own."""
        return self.private and not (self.privacy is not None and self.privacy.own)

    @property
    def mechanism_name(self) -> str:
        """Name of what protects the users, for the summary: by default the kind of its mechanism."""
        return str(getattr(self, "mechanism", self).kind)

    @property
    def completion_name(self) -> str:
        """Name of what completes the matrix, for the summary: by default the kind of its completion."""
        return str(getattr(self.picked, "completion", self).kind)

    @abstractmethod
    def check(self, train: Any) -> None:
        """Refuse settings that do not suit the ratings; one that is deployed is given `Sizes` alone.

        Raises SettingError naming the protocol's key.
        """

    @abstractmethod
    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol calibrated to a budget in a unit that all protocols share; see `budget_at`."""

    @abstractmethod
    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Return what everybody who takes part is promised, among so many users and items."""

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return how many honest users who rate an item highest one liar can outweigh, at most.

        Of the ratings, numbers by user and item alone are read. None where nothing bounds it, or is known.
        """
        return None

    @abstractmethod
    def sent(self, example: Example) -> Sent | None:
        """Return what a device sends before anything is asked back; None if nothing."""

    @abstractmethod
    def setup(self) -> Setup:
        """Return what is installed on the devices."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the protocol on the nodes of a grid: serve, then add what only the simulation knows."""
        return self.simulated(task, self.serve(grid, task.for_server()))

    def serve(self, grid: Grid, task: ServerTask) -> Any:
        """Do all that the server does, and return what it holds: ask devices, learn, tell them."""
        raise NotImplementedError

    def served(self, task: ServerTask, held: Any) -> ServerOutcome:
        """Return what the server knows at the end, where nobody knows more."""
        raise NotImplementedError

    def simulated(self, task: Task, held: Any) -> Outcome:
        """Return the outcome in a simulation, which knows the ratings that the devices hold."""
        raise NotImplementedError

    def check_deployed(self) -> None:
        """Refuse to deploy what `not_deployed` says, or settings, as `check` does."""
        if self.not_deployed:
            found = f"{self.kind!r}, {self.not_deployed}"
            kinds = ", ".join(_kinds_where(Protocol, lambda kind: not kind.not_deployed))
            raise SettingError("kind", found, f"a kind that deploys: {kinds}")

    def audited(self) -> Protocol:
        """Return the protocol for an audit, with as little work as possible but the same reports.

        Raises SettingError when the devices themselves do not protect what they send.
        """
        accepted = "a protocol whose devices protect what they send"
        raise SettingError("kind", repr(self.kind), accepted)

    def audited_on(self, items: int, *, separating: bool = False) -> Self:
        """Return an audited protocol for a few items; ``separating`` where parameters tell profiles apart."""
        return self

    def audit(self, auditor: Auditor) -> Iterator[Finding]:
        """Yield what an audit of `audited` finds: by default, about what devices send."""
        return auditor.of_devices()

    def promise(self) -> Promise:
        """Return what is promised, read from what is configured and from nothing that a run computes."""
        assert self.privacy is not None, "a protocol without a budget"
        delta = self.privacy.delta if self.privacy.composition == "pld" else 0.0
        return Promise(self.privacy.epsilon, self.privacy.per, self.setup().hides_rated_items, delta)

    def knowing_items(self, *, content: bool) -> Self:
        """Return the protocol for items of which something is public, or nothing; before `suited_to`."""
        return self

    def knowing_users(self, users: UsersTable | None) -> Self:
        """Return the protocol with the epsilons that the users' table has, if it has them."""
        if self.privacy is None or self.privacy.column is None:
            return self
        with within("privacy"):
            return replace(self, privacy=self.privacy.of_users(users))

    def suited_to(self, train: Ratings) -> Self:
        """Return the protocol for train ratings, of which only the scale and the rated items are read."""
        return self

    def representing(self, population: int, train: Ratings) -> Self:
        """Return the protocol of a population of copies, for train ratings of a few; raises SettingError."""
        if self.private:
            found = f"{self.kind!r}, of {population:,} users of whom {train.n_users:,} are simulated"
            raise SettingError("kind", found, "a protocol of sums, or no dataset.simulated_up_to")
        return self.suited_to(train)

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return the ratings that are installed on the devices."""
        return train

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return how many cells the server may see as rated, at most; memory is estimated from them."""
        return ratings

    @property
    def draws_noise(self) -> bool:
        """Whether devices or server draw noise that protects somebody."""
        return self.private

    @property
    def delta(self) -> float:
        """Delta at which losses are composed."""
        return DELTA if self.privacy is None else self.privacy.delta

    def resized(self, users: int, items: int) -> Self:
        """Return the protocol, suited before, for another number of users, if devices know how many."""
        return self

    @property
    def identity(self) -> str:
        """All settings that devices' draws depend on, as text: not what becomes of their reports."""
        values = {key: value for key, value in as_values(self).items() if key not in _AFTER_REPORTS}
        return json.dumps(first_names({key: _AS_FIRST.get(key, value) for key, value in values.items()}))

    @property
    def picked(self) -> Protocol:
        """The protocol that is run: this one, unless it picks another."""
        return self

    @property
    def of_single_ratings(self) -> Any:
        """The protocol that is run, if its reports can be read with those of other times; None if not."""
        return None if self.picked is self else self.picked.of_single_ratings

    @property
    def baseline(self) -> str | None:
        """Which of the `BASELINES` it is, whatever it is called; None for any other protocol."""
        return None

    @property
    def shared_fit(self) -> Options | None:
        """What is fitted to the ratings as they are, alike in all runs; None if a draw changes the fit."""
        return None

    @property
    def mechanism_of_ratings(self) -> Mechanism | None:
        """What devices apply to each rating by itself, so that its noise can be sampled; None if nothing."""
        return None

    @property
    def assumed(self) -> OrdinalProcess | None:
        """What a device assumes about preferences when it predicts; None if it assumes nothing."""
        return None


def _kinds_where(base: type[Protocol], holds: Callable[[type[Protocol]], bool]) -> list[str]:
    """Return the kinds of ours, derived from a class, of which something holds."""
    own = [base.kind] if base.kind and is_ours(base) and holds(base) else []
    return [*own, *(kind for each in base.__subclasses__() for kind in _kinds_where(each, holds))]


def check_suits(protocol: Protocol, train: Ratings, test: Ratings | None = None) -> None:
    """Refuse ratings that a protocol does not predict from or for, or that its settings do not suit.

    Raises SettingError naming the protocol's key.
    """
    if (protocol.predicted == "lists") is not train.scale.implicit:
        if protocol.predicted == "lists":
            found = f"{protocol.kind!r}, which ranks by sets of items, with ratings"
            raise SettingError("kind", found, "dataset.positive, such as '>= 4': which ratings make a set")
        found = f"{protocol.kind!r}, which predicts ratings, with {train.scale.describe()}"
        kinds = ", ".join(_kinds_where(Protocol, lambda kind: kind.predicted == "lists"))
        raise SettingError("kind", found, f"data with ratings, or a kind that ranks by sets: {kinds}")
    suited = protocol.suited_to(train)
    suited.check(train)
    if isinstance(test, ColdRatings) and not suited.picked.folds_in:
        found = f"{suited.picked.kind!r}, which predicts for those alone who took part, with cold users"
        kinds = ", ".join(_kinds_where(Protocol, lambda kind: kind.folds_in))
        raise SettingError("kind", found, f"another split, or a kind whose devices predict: {kinds}")


OutcomeT = TypeVar("OutcomeT", bound=ServerOutcome)


def declaring(protocol: Protocol, schedule: Schedule | None = None) -> tuple[type[Options], ...]:
    """Return the classes from outside on whose word alone the losses of a protocol rest, on a schedule."""
    parts = (protocol, protocol.picked, schedule)
    own = dict.fromkeys(each for part in parts for each in user_defined_classes(part))
    return tuple(each for each in own if each.declares_loss())


def guarantee_of(protocol: Protocol, shape: tuple[int, int], schedule: Schedule | None = None) -> Guarantee:
    """Return what a protocol promises, on a schedule; declared if it rests on code from outside."""
    return _as_declared(protocol.guarantee(shape), declaring(protocol, schedule))


def with_declared_losses(outcome: OutcomeT, protocol: Protocol, schedule: Schedule | None = None) -> OutcomeT:
    """Return an outcome whose accountant holds what is proved: losses only declared stand as claims."""
    own = declaring(protocol, schedule)
    if type(protocol) in own:
        _check_charged(outcome, protocol)
    if outcome.guarantee.status == "declared":  # of each collection already
        return outcome
    guarantee = _as_declared(outcome.guarantee, own)
    if guarantee.status != "declared":
        return outcome
    return replace(outcome, guarantee=guarantee, accountant=outcome.accountant.declared())


def _as_declared(guarantee: Guarantee, own: tuple[type[Options], ...]) -> Guarantee:
    if guarantee.status == "none" or not own:
        return guarantee
    names = " and ".join(map(reference_of, own))
    reason = (
        f"the loss, what is hidden and who is trusted are the word of {names}, and nothing here follows from "
        "its code. dprec audit measures what is sent."
    )
    notes = tuple(f"By the word of {names}: {note}" for note in guarantee.notes)
    return replace(guarantee, status="declared", reason=reason, notes=notes)


def _check_charged(outcome: ServerOutcome, protocol: Protocol) -> None:
    """Refuse a ledger in which what was sent costs nothing; only which items are rated can cost nothing."""
    if not protocol.picked.setup().sends_values:
        return
    proved = outcome.accountant
    claimed = proved if proved.claimed is None else proved.claimed
    charged = np.maximum(proved.get_epsilon(), claimed.get_epsilon()) > 0
    free = (outcome.traffic.uplink_message > 0) & ~charged
    if free.any():
        size = int(outcome.traffic.uplink_message[free].sum())
        found = f"{size:,} bytes from {int(free.sum()):,} users, for which its privacy ledger charges nothing"
        accepted = "a charge to everybody who sends: infinite where nothing is protected"
        raise InputError(reference_of(type(protocol)), found, accepted)
