"""What a protocol is, and what it answers about itself: all that others ask of one is a method here.

A user-defined mechanism is a matrix, from which its loss follows whoever made it. A user-defined gradient
report, aggregation, perturbation or protocol sends what its code sends, and its loss is its word.
"""

from __future__ import annotations

import dataclasses
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from dprec.accounting import DELTA, Guarantee, MatchedBudget, PrivacyBudget, PrivacyUnit
from dprec.catalogue import UsersTable
from dprec.components import Options, as_values, is_ours, option, reference_of, user_defined_classes
from dprec.errors import SettingError, within
from dprec.mechanisms import Mechanism
from dprec.personalization import OrdinalProcess
from dprec.protocols.findings import AuditTests, Finding
from dprec.ratings import ColdRatings, Ratings, RatingScale
from dprec.reports import ReportFamily, ReportSize
from dprec.schedules import Answers, Schedule
from dprec.sent_symbols import SentSymbols


@dataclass(frozen=True, eq=False)
class Public:
    """What is public before anything is sent, the same for devices and server."""

    n_users: int
    """Users of the population, all of whom take part."""
    n_items: int
    scale: RatingScale
    content: bool = True
    """Whether categories or numbers of the items are public."""
    ratings: Ratings | None = None
    """Whose numbers by user and item are public where reports reveal them; nothing else of them is read."""
    joined: int = 0
    """Users who joined after the protocol was suited to the others."""

    @classmethod
    def of(
        cls, train: Ratings, *, content: bool = True, population: int | None = None, joined: int = 0
    ) -> Self:
        """Return what is public of train ratings, whose users may represent a population."""
        users = train.n_users if population is None else population
        return cls(users, train.n_items, train.scale, content, train, joined)


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


Predicted = Literal["ratings", "lists"]
"""What a protocol predicts."""

BASELINES = ("nothing-sent", "global-mean", "item-average", "sets-only")
"""Presets that a protocol has to beat to be worth any privacy or bytes; see `Protocol.baseline`."""

TOLD = "told"
"""What stands for a baseline where devices are told what they are tested on: nothing competes with that."""

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


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What others ask of a protocol: plain values that follow from its options alone."""

    protects: str
    """Name of what protects the users, for tables: "secure-aggregation-sums", "bounded-laplace"."""
    learns: str
    """Name of what completes the matrix, for tables; nothing is looked up by it."""
    predicts: Predicted = "ratings"
    """Ratings, or scores that order lists, from sets of items without ratings."""
    private: bool
    """Whether it takes a privacy budget."""
    calibrated: bool
    """Whether a comparison sets its epsilon: it has a budget, and users have none of their own."""
    draws_noise: bool
    """Whether devices or server draw noise that protects somebody."""
    starts_at_random: bool = False
    """Whether devices are asked about parameters that the server learns, other ones in every run."""
    baseline: str | None = None
    """Which of the `BASELINES` it is, whatever it is called, or `TOLD`; None for any other protocol."""
    fit: Options | None = None
    """What is fitted to the ratings as they are, alike in all runs; None if a draw changes the fit."""
    noise_on_ratings: Mechanism | None = None
    """What devices apply to each rating by itself, so that its noise can be sampled; None if nothing."""
    assumes: OrdinalProcess | None = None
    """What a device assumes about preferences when it predicts; None if it assumes nothing."""

    @property
    def told_tested(self) -> bool:
        """Whether a simulation tells devices what they are tested on, as no deployment can."""
        return self.baseline == TOLD


@dataclass(frozen=True, kw_only=True)
class Protocol(Options):
    """How devices and server arrive at predictions together.

    A protocol says what it takes and promises. Devices and server are given the protocol itself
    (`installed`); how it runs over Flower is up to the course that it takes.
    """

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers"})
    predicted: ClassVar[Predicted] = "ratings"
    """What protocols of this kind predict, as far as the kind says it; see `Facts.predicts`."""
    folds_in: ClassVar[bool] = False
    """Whether devices that took no part predict from what was learned and their users' profiles: its
    predictions are for the users of `Task.judged`.
    """
    scales: ClassVar[bool] = False
    """Whether a few users can stand for a population of copies though there is a budget."""
    follows_data: ClassVar[bool] = False
    """Whether data decide what it predicts; see `of_data`."""
    course: ClassVar[Any] = None
    """From a protocol of a class from outside to how it runs; None for that of the class it derives from."""
    undeployable: ClassVar[str] = "whose server needs ratings or trust"
    """Why it cannot be deployed; empty if it can."""
    privacy: PrivacyBudget | None = option("What is promised; left out if nothing is.", None)

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """What others ask; see `facts_of`."""

    def facts_of(self, *, private: bool | None = None, **overrides: Any) -> Facts:
        """Return facts, by default with the names of mechanism and completion and what a budget says.

        ``private``: by default, whether there is a budget.
        """
        private = self.privacy is not None if private is None else private
        personalised = self.privacy is not None and self.privacy.own
        defaults: dict[str, Any] = {
            "protects": str(getattr(self, "mechanism", self).kind),
            "learns": str(getattr(self, "completion", self).kind),
            "predicts": self.predicted,
            "private": private,
            "calibrated": private and not personalised,
            "draws_noise": private,
        }
        return Facts(**defaults | overrides)

    @abstractmethod
    def check(self, train: Any) -> None:
        """Refuse settings that do not suit the ratings; one that is deployed is given `Public` sizes alone.

        Raises SettingError naming the protocol's key.
        """

    def check_repeated(self, train: Any, times: int) -> None:
        """Refuse what losses are not bounded for where it runs so often, with the same users; see `check`."""

    @abstractmethod
    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol calibrated to a budget in a unit that all protocols share; see `budget_at`."""

    @abstractmethod
    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Return what everybody who takes part is promised, among so many users and items."""

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return how many honest users who rate an item highest one malicious user can outweigh, at most.

        Of the ratings, numbers by user and item alone are read. None where nothing bounds it, or is known.
        """
        return None

    @abstractmethod
    def sent(self, public: Public, ratings: int) -> ReportSize | None:
        """Return what a device with so many ratings, at least 1, sends before anything is asked back.

        None if it sends nothing.
        """

    def of_data(self, predicted: Predicted) -> Protocol:
        """Return the protocol for data that hold ratings or sets; itself, unless it `follows_data`."""
        return self

    @property
    def picked(self) -> Protocol:
        """The protocol that is run, as far as it is known before any size is."""
        return self

    def suited(self, public: Public) -> Protocol:
        """Return the protocol with what follows from public numbers, or another one that is picked."""
        return self

    def reasons(self, public: Public) -> tuple[str, ...]:
        """Return why another protocol is run in its place, in sentences; empty if none is."""
        return ()

    @property
    def installed(self) -> Self:
        """What devices are given: the protocol, with defaults for what the server alone reads."""
        options = (field for field in dataclasses.fields(self) if "reader" in field.metadata)
        defaults = {
            field.name: field.default for field in options if field.default is not dataclasses.MISSING
        }
        return replace(self, **defaults)

    @property
    def keeps_last(self) -> bool:
        """Whether devices keep what they were sent, since the next question may hold its changes alone."""
        return False

    @property
    def remembers(self) -> Answers | None:
        """What devices remember of their answers between collections; None if nothing."""
        return None

    def memory(self, scale: RatingScale, purpose: str) -> str | None:
        """Return what the words for a purpose are bound to that repeat in every run; None if none do."""
        return None

    @property
    def hides_rated_items(self) -> bool:
        """Whether what devices send hides which items are rated."""
        return False

    @property
    def masks(self) -> bool:
        """Whether devices mask what they send, so that those of a deployment have to know each other."""
        return False

    @property
    def sends_values(self) -> bool:
        """Whether anything that devices send depends on how an item was rated."""
        return True

    @property
    def composed(self) -> tuple[float, float] | None:
        """What devices count for a whole run, as epsilon and delta, where rounds compose; else None."""
        return None

    def represented(self) -> Self:
        """Return what is installed on devices that represent others besides."""
        return self

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily | None:
        """Return the family of the reports that devices send once; None if they send others."""
        return None

    def sent_symbols(self, people: Ratings) -> SentSymbols | None:
        """Return what can be read in reports about some people's ratings; None if no symbols of items."""
        return None

    def exact_losses(self, people: Ratings) -> Iterator[tuple[str, int, float]]:
        """Yield what was compared, in how many entries, and the loss, computed without samples."""
        symbols = self.sent_symbols(people)
        if symbols is None:
            return
        for entries in (1, 3):
            for test, loss in symbols.exact_losses(entries):
                yield test, entries, loss

    def check_deployed(self) -> None:
        """Refuse to deploy what `undeployable` says, or settings, as `check` does."""
        if self.undeployable:
            found = f"{self.kind!r}, {self.undeployable}"
            kinds = ", ".join(_kinds_where(Protocol, lambda kind: not kind.undeployable))
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

    def audit(self, auditor: AuditTests) -> Iterator[Finding]:
        """Yield what an audit of `audited` finds: by default, about what devices send."""
        return auditor.of_devices()

    def promise(self) -> Promise:
        """Return what is promised, read from what is configured and from nothing that a run computes."""
        assert self.privacy is not None, "a protocol without a budget"
        delta = self.privacy.delta if self.privacy.composition == "pld" else 0.0
        return Promise(self.privacy.epsilon, self.privacy.per, self.hides_rated_items, delta)

    @property
    def stated(self) -> dict[str, str]:
        """What of a promise its settings state, by the columns of a table."""
        return {} if self.privacy is None else {"per": self.privacy.per}

    def knowing_users(self, users: UsersTable | None) -> Self:
        """Return the protocol with the epsilons that the users' table has, if it has them."""
        if self.privacy is None or self.privacy.column is None:
            return self
        with within("privacy"):
            return replace(self, privacy=self.privacy.of_users(users))

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return how many cells the server may see as rated, at most; memory is estimated from them."""
        return ratings

    def model_bytes(self, public: Public) -> float:
        """Return the memory in which the server learns, in bytes, beside what all runs need.

        By default 0: it is among what is needed for each rating, user and item.
        """
        return 0.0

    def asked_at_once(self, users: int) -> float:
        """Return how many of so many users are asked in a round, on average; by default all."""
        return users

    def held_at_once(self, reported: float, *, unseen: bool) -> float:
        """Return the bytes that a node holds at a time of so many that are reported to it; by default all.

        ``unseen``: whether nobody looks at single reports, none of which goes wrong.
        """
        return reported

    def attack_bytes(self, public: Public, sent: float) -> float:
        """Return the bytes that an attacked server holds of so many that it is sent in a round.

        By default they are there as sent, and as read.
        """
        return 2 * sent

    @property
    def delta(self) -> float:
        """Delta at which losses are composed."""
        return DELTA if self.privacy is None else self.privacy.delta

    @property
    def drawn_by(self) -> str:
        """What random words are keyed by, as text, so that no two protocols share noise.

        That is all options, but for those of ours that change no draw of devices or server.
        """
        options = dataclasses.fields(self) if is_ours(type(self)) else ()
        result_fields = {field.name for field in options if field.metadata.get("reader") == "result"}
        return json.dumps(
            {name: value for name, value in as_values(self).items() if name not in result_fields}
        )

    @property
    def of_single_ratings(self) -> Any:
        """The protocol, if its reports can be read with those of other times; None if not."""
        return None


def _kinds_where(base: type[Protocol], holds: Callable[[type[Protocol]], bool]) -> list[str]:
    """Return the kinds of ours, derived from a class, of which something holds."""
    kinds = [base.kind] if base.kind and is_ours(base) and holds(base) else []
    return [*kinds, *(kind for subclass in base.__subclasses__() for kind in _kinds_where(subclass, holds))]


def check_suits(protocol: Protocol, train: Ratings, test: Ratings | None = None) -> None:
    """Refuse ratings that a protocol does not predict from or for, or that its settings do not suit.

    Raises SettingError naming the protocol's key.
    """
    protocol = protocol.of_data("lists" if train.scale.implicit else "ratings")
    if (protocol.facts.predicts == "lists") is not train.scale.implicit:
        if protocol.facts.predicts == "lists":
            found = f"{protocol.kind!r}, which ranks by sets of items, with ratings"
            accepted = """which ratings make a set, such as --set 'dataset.positive=">= 4"'"""
            raise SettingError("kind", found, accepted)
        found = f"{protocol.kind!r}, which predicts ratings, with {train.scale.describe()}"
        kinds = ", ".join(dict.fromkeys(_kinds_where(Protocol, lambda kind: kind.predicted == "lists")))
        accepted = f"data with ratings, or a kind that ranks by sets: {kinds}"
        references = [
            reference_of(cls) for cls in user_defined_classes(protocol) if hasattr(cls, "predicted")
        ]
        for name in references[:1]:
            accepted = f'data with ratings, or predicted = "lists" in {name}, if it ranks by sets'
        raise SettingError("kind", found, accepted)
    suited = protocol.suited(Public.of(train))
    suited.check(train)
    if isinstance(test, ColdRatings) and suited.facts.told_tested:
        raise SettingError("", "devices that spare what they are tested on, with cold users", "another split")
    if isinstance(test, ColdRatings) and not suited.folds_in:
        found = f"{suited.kind!r}, which predicts for those alone who took part, with cold users"
        kinds = ", ".join(dict.fromkeys(_kinds_where(Protocol, lambda kind: kind.folds_in)))
        raise SettingError("kind", found, f"another split, or a kind whose devices predict: {kinds}")


def declaring(protocol: Protocol, schedule: Schedule | None = None) -> tuple[type[Options], ...]:
    """Return the classes from outside on whose word alone the losses of a protocol rest, on a schedule."""
    classes = dict.fromkeys(user_defined_classes(protocol) + user_defined_classes(schedule))
    return tuple(cls for cls in classes if cls.declares_loss())


def guarantee_of(protocol: Protocol, shape: tuple[int, int], schedule: Schedule | None = None) -> Guarantee:
    """Return what a protocol promises, on a schedule; declared if it rests on code from outside."""
    return as_declared(protocol.guarantee(shape), declaring(protocol, schedule))


def as_declared(guarantee: Guarantee, classes: tuple[type[Options], ...]) -> Guarantee:
    """Return a guarantee as it is where it rests on the word of classes from outside, if there are any."""
    if guarantee.status == "none" or not classes:
        return guarantee
    names = " and ".join(map(reference_of, classes))
    reason = (
        f"the loss, what is hidden and who is trusted are the word of {names}, and nothing here follows from "
        "its code. dprec audit measures what is sent."
    )
    notes = tuple(f"By the word of {names}: {note}" for note in guarantee.notes)
    return replace(guarantee, status="declared", reason=reason, notes=notes)
