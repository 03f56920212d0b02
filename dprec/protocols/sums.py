"""Protocols of sums: everybody contributes to sums with noise, round by round, and devices predict.

A protocol derives from `SumsProtocol`, its devices' half from `SummedDevice`, its server's half from
`SummedServer`. In every round devices are sent what the server holds so far, and contribute; the server
learns from the noisy sum. All that others see of a user are those sums; what a device predicts from its own
profile, it alone sees. Budget, noise, check, guarantee and price are here, once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator

from dprec.accounting import Adjacency, Guarantee, MatchedBudget, PrivacyAccountant
from dprec.arrays import AnyArray, AnyInts, Bools, Floats, Ints, Uint64s, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import as_tuple, is_ours, option, reference_of
from dprec.errors import SettingError, plural, within
from dprec.exchange import STATISTICS
from dprec.federated import ContractError
from dprec.protocols.base import Facts, Promise, Protocol, Public
from dprec.protocols.findings import AuditTests, Finding, NoisySums
from dprec.protocols.rounds import Charge, Device, RoundsProtocol, Server
from dprec.protocols.sharing import Limited, budget_at, check_unit, compared_in_words, note_on_limit
from dprec.randomness import uniform_below, uniforms, words
from dprec.ratings import POSITIVE, Ratings, RatingScale
from dprec.reports import ReportSize
from dprec.sent_symbols import SentSymbols
from dprec.sums import UNIT, Adding, Aggregation, CentralAggregation, Contributions, Cost, Layout
from dprec.sums.release import ProfileContributions, Release

LEAST_SHARE = 1e-3
"""Of what all rounds spend that one of them, or a part of it, can spend."""

LARGEST_MULTIPLIER = 1e6
"""Largest noise of a release: with it, the sums of 50 million users stay within 64 bits."""

_BYTES_OF_ESTIMATE = 36.0
"""Bytes of each number that a report says by itself, while all are read: it is there in several forms."""

REPORTS_AT_ONCE = 1 << 26
"""Bytes of reports that a node holds at a time where it adds them up."""


class SummedDevice(Device, Adding):
    """What every device holds between two messages: it contributes to the next release, and predicts."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse code from outside that adds anything but `cells`, which are checked and bounded."""
        super().__init_subclass__(**options)
        for name in ("contributions", "taking_part"):
            if not is_ours(next(base for base in cls.__mro__ if name in vars(base))):
                raise TypeError(f"{reference_of(cls)}: {name} of its own; define cells, which are checked")

    @abstractmethod
    def release(self, round_index: int) -> Layout:
        """Return what is summed in a round."""

    def contributions(self, profiles: Profiles, layout: Any, random: Uint64s) -> Contributions[Any]:
        """Return what the users of a partition contribute to a release, whatever they hold: at most 1 long.

        By default, what follows from `cells`. Who holds nothing contributes zeros, which is what epsilon
        compares a profile with.

        Parameters
        ----------
        random : ndarray of uint64, shape (ratings,)
            One word for each rating of the profiles.
        """
        return ProfileContributions(self.taking_part(profiles, layout), random)

    def cells(self, profiles: Profiles, release: Release, words: Uint64s) -> tuple[Any, Any, Any]:
        """Return what users add to a release; see `Adding.cells`."""
        raise NotImplementedError

    def about(self, items: AnyInts, layout: Any) -> Bools:
        """Return which rows of a sum say something about some items, shape (rows,); all by default."""
        return np.ones(layout.n_rows, dtype=np.bool_)


class SummedServer(Server):
    """What the server knows, from releases alone."""

    if TYPE_CHECKING:

        @property
        def held(self) -> SummedDevice:
            """What devices hold of it in the next round, as they decode it."""

    def lesson(self, released: Floats) -> AnyArray:
        """Return what is learned from of a sum, which is kept to teach it again; see `learn`."""
        return released

    @abstractmethod
    def learn(self, layout: Any, round_index: int, released: Any, deviation: float, users: int) -> None:
        """Learn from the sum of a round, with noise.

        Parameters
        ----------
        layout : Layout
            Of the round: `held.release(round_index)`.
        released : ndarray, shape (rows, width)
            The `lesson` of it, with noise of the deviation ``deviation * layout.scales``.
        deviation : float
            As `Aggregation.noise_in` returns it.
        users : int
            Whose contributions are in the sum, at least 1.
        """


@dataclass(eq=False, kw_only=True)
class LimitedServer(SummedServer):
    """Base of the servers that send what devices predict from in a limited number of bytes."""

    most_bytes: int | None = None
    """Of what devices are sent at the end."""

    @property
    @abstractmethod
    def whole(self) -> Limited:
        """What they are sent where nothing limits it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what the limit costs."""
        return note_on_limit(self.most_bytes, self.whole)


@dataclass(frozen=True, kw_only=True)
class SumsProtocol(RoundsProtocol):
    """Base of the protocols in which users contribute to sums with noise.

    One that derives from it has the settings `privacy`, `adjacency` and `aggregation`. Contributions are
    bounded here (`dprec.sums.release`), so the loss of one from outside is proved like that of any other.
    """

    without_loss: ClassVar[frozenset[str] | None] = frozenset(
        {"papers", "learns", "signed", "facts", "shares", "begin", "device", "server", "suited_to_noise"}
        | {"most_ratings", "notes_on", "check_settings", "predicted", "suited"}
    )
    undeployable: ClassVar[str] = ""
    message_type: ClassVar[str] = STATISTICS
    folds_in: ClassVar[bool] = True
    scales: ClassVar[bool] = True
    learns: ClassVar[str] = "sums"
    """Name of what is learned, for tables."""
    signed: ClassVar[bool] = True
    """Whether numbers of any release can be negative: contributions of two users are 2 apart then, else the
    root of 2; of a user and none, 1. `asked` holds releases to it.
    """
    noise: Annotated[tuple[float, ...] | None, BeforeValidator(as_tuple)] = option(
        "Noise of each round: follows from the rest, and is fixed as devices are given it.", None
    )

    if TYPE_CHECKING:
        adjacency: Adjacency
        aggregation: Aggregation

    # What an author writes.

    @property
    @abstractmethod
    def shares(self) -> tuple[float, ...]:
        """Share of the squared distance of means that each round spends; their sum is 1."""

    def suited_to_noise(self, public: Public) -> Self:
        """Return the protocol, whose aggregation knows its devices, with what follows from its noise."""
        return self

    def check_settings(self, train: Public | Ratings) -> None:
        """Refuse settings that do not suit public sizes; raises SettingError naming the protocol's key."""

    @abstractmethod
    def begin(self, public: Public, catalogue: Catalogue | None = None) -> SummedDevice:
        """Return what devices hold before the first round, as large as it gets: sizes follow from it."""

    @abstractmethod
    def device(self, received: bytes, n_items: int, scale: RatingScale) -> SummedDevice:
        """Read what `SummedDevice.encode` wrote; raises ValueError, as devices do not trust the server."""

    @abstractmethod
    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> SummedServer:
        """Return the server before the first round; ``seed``: of what it draws."""

    def most_ratings(self, ratings: int) -> int:
        """Return how many of so many ratings a user contributes in a round, at most."""
        return ratings

    def notes_on(self, train: Ratings, catalogue: Catalogue | None) -> tuple[str, ...]:
        """Return what a reader must know of how these users contribute."""
        return ()

    # What follows.

    @property
    def facts(self) -> Facts:
        """What is learned, from sums that protect users."""
        return self.facts_of(learns=self.learns)

    def facts_of(self, **overrides: Any) -> Facts:
        """Return facts, in which the sums protect users."""
        return super().facts_of(**{"protects": f"{self.aggregation.kind}-sums"} | overrides)

    @property
    def rounds(self) -> int:  # type: ignore[override]
        """Number of rounds, each of them one release."""
        return len(self.shares)

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; a promise per user holds per rating as well."""
        composes = not self.aggregation.by_itself
        privacy = budget_at(self.privacy, budget, "user", composes=composes)
        return replace(self, privacy=replace(privacy, composition="pld") if composes else privacy)

    def promise(self) -> Promise:
        """Return the promise, which needs no delta where each report is protected by itself."""
        promise = super().promise()
        return replace(promise, delta=0.0) if self.aggregation.by_itself else promise

    def suited(self, public: Public) -> Self:
        """Return the protocol with what follows from public numbers, of what its settings leave out."""
        with within("aggregation"):
            aggregation = self.aggregation.among(public.n_users, public.joined)
        return self._adding_up_by(aggregation).suited_to_noise(public)

    @property
    def installed(self) -> Self:
        """What devices are given: noise is fixed, so that no float is computed twice."""
        divided, noise = self._adding_up_by(self.adding_up), self.multipliers
        return replace(super(SumsProtocol, divided).installed, noise=noise)

    def _adding_up_by(self, aggregation: Aggregation) -> Self:
        changes: dict[str, Any] = {"aggregation": aggregation}
        return replace(self, **changes)

    @property
    def adding_up(self) -> Aggregation:
        """Who adds up, as devices and server know it."""
        with within("aggregation"):
            return self.aggregation.divided(self.privacy, self.shares)

    def represented(self) -> Self:
        """Return the protocol for a trusted sum; see `dprec.sums.RepresentedAggregation`."""
        return self._adding_up_by(CentralAggregation())

    @property
    def apart(self) -> float:
        """How far apart the contributions of two profiles can be, before they are added up."""
        return 2.0 if self.signed else math.sqrt(2)

    @property
    def farthest(self) -> float:
        """How far apart the contributions of two profiles can be, as they are added up."""
        return self.aggregation.farthest(self.apart)

    @property
    def bounded(self) -> bool:
        """Whether contributions must not be longer than 1: for a budget, or for those who add them up."""
        return self.privacy is not None or self.aggregation.devices_add_noise

    @property
    def multipliers(self) -> tuple[float, ...]:
        """Noise of each round that counts for a loss, of contributions of norm 1; 0 without a budget."""
        return self._multipliers(self.shares) if self.noise is None else self.noise

    @property
    def whole_multiplier(self) -> float:
        """Multiplier of one release that has the whole budget; 0 without one."""
        return self._multipliers((1.0,))[0]

    @property
    def sensitivity(self) -> float:
        """Largest change of a release that a user can cause."""
        return 1.0 if self.adjacency == "add-or-remove-one" else self.farthest

    def _multipliers(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        if self.privacy is None:
            return (0.0,) * len(shares)
        return self.aggregation.multipliers(self.privacy, shares, self.sensitivity)

    def tau(self, layout: Layout, users: int) -> float:
        """Return the noise per user of a release that has the whole budget, by public numbers.

        The aggregation knows the users, who all take part.
        """
        return self.aggregation.deviation(layout, self.whole_multiplier, users) / max(users, 1)

    def largest(self, public: Public) -> tuple[Layout, ...]:
        """Return the largest layout of each round in which all before it were of use."""
        device = self.begin(public)
        return tuple(self.asked(device, number) for number in range(1, self.rounds + 1))

    def may_ask(self, public: Public) -> tuple[tuple[Layout, ...], ...]:
        """Return all layouts that a round may have, whatever the releases are: the largest of each kind."""
        return tuple((layout,) for layout in self.largest(public))

    def most_numbers(self, public: Public) -> int:
        """Return the numbers of the largest release, of the protocol as it suits public sizes."""
        return max(self.suited(public)._numbers(public))

    def _numbers(self, public: Public) -> list[int]:
        """Return those of the largest release of each round."""
        return [max(layout.n_rows * layout.width for layout in layouts) for layouts in self.may_ask(public)]

    def asked(self, device: SummedDevice, round_index: int) -> Layout:
        """Return what is summed in a round; raises ContractError if it may be negative and must not."""
        layout = device.release(round_index)
        if layout.signed and not self.signed:
            found = "contributions that can be negative, where signed = False"
            raise ContractError.of(self, found, "signed = True, or releases without negative numbers")
        return layout

    def check(self, train: Public | Ratings) -> None:
        """Refuse a budget that cannot be kept to, and settings that do not suit public sizes."""
        self.check_settings(train)
        if not math.isclose(sum(self.shares), 1.0) or min(self.shares) <= 0:
            found = f"contributions in rounds with the shares {self.shares}"
            raise ContractError.of(self, found, "shares above 0 that add up to 1")
        if self.noise is not None:
            raise SettingError("noise", str(list(self.noise)), "null: it follows from the budget")
        if self.privacy is not None:
            check_unit(self.privacy, "user", "the rounds protect whole profiles")
            if self.privacy.composition == "sum" and not self.aggregation.by_itself:
                accepted = "'pld': Gaussian noise keeps to an epsilon with a delta only"
                raise SettingError("privacy.composition", "'sum'", accepted)
            with within("aggregation"):
                largest_drawn = self.adding_up.among(train.n_users).largest_multiplier
            largest, limit = max(self.multipliers), min(LARGEST_MULTIPLIER, largest_drawn)
            if largest > limit:
                raise SettingError(
                    "privacy.epsilon",
                    f"{self.privacy.epsilon:g} at delta {self.privacy.delta:g}, for which a round "
                    f"of {self.rounds} needs noise of {largest:.3g} times what a user contributes",
                    f"a larger epsilon or delta, or fewer rounds: at most {limit:g} times",
                )
        public = Public(train.n_users, train.n_items, train.scale)
        aggregation = self.adding_up
        with within("aggregation"):
            aggregation = aggregation.among(train.n_users)
            for layouts, multiplier in zip(self.may_ask(public), self.multipliers, strict=True):
                for layout in layouts:
                    aggregation.check(layout, multiplier)
        self.check_repeated(train, 1)

    def check_repeated(self, train: Public | Ratings, times: int) -> None:
        """Refuse more numbers than can be added up."""
        numbers = sum(self._numbers(Public(train.n_users, train.n_items, train.scale)))
        with within("aggregation"):
            self.adding_up.among(train.n_users).check_numbers(times * numbers)

    def check_deployed(self) -> None:
        """Refuse an aggregation that devices and server of a deployment cannot do."""
        with within("aggregation"):
            self.aggregation.check_deployed()

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return the most that one adds to a number, in what honest users add to that of an item of theirs.

        Of the round in which that is most; see `Protocol.influence_of_one`.
        """
        rounds = zip(self.may_ask(Public.of(train)), self.multipliers, strict=True)
        releases = [(layout, multiplier) for layouts, multiplier in rounds for layout in layouts]
        counts, aggregation = train.counts[train.counts > 0], self.adding_up
        most_of_one = [aggregation.most_of_one(layout, multiplier) for layout, multiplier in releases]
        honest = [np.average(layout.honest(counts), weights=counts) for layout, _ in releases]
        with np.errstate(divide="ignore"):
            influences = np.array(most_of_one) / np.array(honest)
        return float(influences.max()) if np.isfinite(influences).all() else None

    def held_at_once(self, reported: float, *, unseen: bool) -> float:
        """Return the bytes of some reports, which are added up and forgotten; see `Protocol.held_at_once`."""
        return 0.0 if unseen and not self.aggregation.adds_reports else min(reported, REPORTS_AT_ONCE)

    def attack_bytes(self, public: Public, sent: float) -> float:
        """Return the bytes of what reports say by themselves, if anything; see `Protocol.attack_bytes`."""
        if not self.aggregation.by_itself:
            return 0.0
        return sent + _BYTES_OF_ESTIMATE * self.most_numbers(public) * public.n_users

    def sent(self, public: Public, ratings: int) -> ReportSize:
        """Return the contributions, one in each round."""
        suited, answers = self.suited(public), self.most_ratings(ratings)
        rounds, multipliers, aggregation = suited.may_ask(public), suited.multipliers, suited.adding_up
        with within("aggregation"):
            bits = [
                max(aggregation.report_bits(layout, answers, multiplier) for layout in layouts)
                for layouts, multiplier in zip(rounds, multipliers, strict=True)
            ]
        by_itself = aggregation.by_itself
        return ReportSize(
            reports=1 if by_itself else len(bits),
            symbols=None,
            answers=answers,
            bits=float(np.mean(bits)),
            epsilon=suited.cost_of(1).epsilon if by_itself else None,
            per="user",
            of="item" if public.scale.implicit else "rating",
        )

    def charge(self, round_index: int, counts: Ints | None = None) -> Charge:
        """Return what a round costs a user who takes part."""
        cost = self.cost_of(round_index)
        return Charge(cost.epsilon, cost.epsilon, cost.mechanism)

    @property
    def compares(self) -> Adjacency:  # type: ignore[override]
        """What epsilon compares where losses compose."""
        return self.adjacency

    def cost_of(self, round_index: int, longest: float = 1.0) -> Cost:
        """Return what a round costs a user who takes part, whose contributions are up to a norm."""
        return self.adding_up.cost(self.multipliers[round_index - 1] / longest, self.farthest)

    def accountant(self, longest: float = 1.0) -> PrivacyAccountant:
        """Return the accountant of one user who takes part in all rounds, with contributions up to a norm.

        In one of them, where a user reports once.
        """
        rounds = range(1, 2 if self.aggregation.by_itself else self.rounds + 1)
        accountant = PrivacyAccountant(np.ones(1, dtype=np.bool_), adjacency=self.adjacency)
        return self._charged(accountant, rounds, longest)

    def _charged(
        self, accountant: PrivacyAccountant, rounds: Collection[int], longest: float = 1.0
    ) -> PrivacyAccountant:
        takes_part = np.ones(1, dtype=np.bool_)
        for round_index in rounds:
            cost = self.cost_of(round_index, longest)
            accountant.step(round_index, takes_part, cost.epsilon, cost.epsilon, cost.mechanism)
        return accountant

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the composed loss of all releases among so many, if there is a budget."""
        suited = self.suited(Public(*shape, POSITIVE))
        aggregation = suited.aggregation
        if suited.privacy is None:
            return Guarantee("none", aggregation.trust, False, "the sums are released without noise.")
        epsilon, delta = suited.privacy.epsilon, suited.privacy.delta
        rounds = plural(suited.rounds, "round")
        if aggregation.by_itself:
            promise = (
                f"Epsilon = {epsilon:g} holds without a delta, and between any two profiles, for everything "
                f"that all others see of a user in {rounds}, which items it rated included."
            )
        else:
            between = float(suited.accountant().get_epsilon(delta, adjacency="replace-one")[0])
            promise = (
                f"Epsilon = {epsilon:g} holds with delta = {delta:g} for everything that all others see of a "
                f"user in {rounds}, which items it rated included. "
                f"{compared_in_words(suited.adjacency, between)}"
            )
        notes = promise, *aggregation.notes()
        reason, assumes = f"{aggregation.reason}.", aggregation.assumes
        return Guarantee("proved", aggregation.trust, True, reason, notes, assumes=assumes)

    # What devices ask.

    @property
    def masks(self) -> bool:
        """Whether devices mask what they send, for which real ones exchange keys."""
        return self.aggregation.masks

    @property
    def hides_rated_items(self) -> bool:
        """Whether each report protects them by itself."""
        return self.aggregation.by_itself

    def loss_of(self, rounds: Collection[int]) -> float:
        """Return what contributions to some rounds, from 1, cost between any two profiles, at `counted_at`.

        Infinite where those who are to protect them are neither the device itself nor devices that mask.
        """
        if not (self.masks or self.aggregation.by_itself):
            return math.inf
        accountant = self._charged(PrivacyAccountant(np.ones(1, dtype=np.bool_)), rounds)
        return float(accountant.get_epsilon(self.counted_at, adjacency="replace-one")[0])

    @property
    def counted_at(self) -> float:
        """Delta at which devices count what masked contributions cost; 0 for others."""
        return 0.0 if self.privacy is None or not self.masks else self.privacy.delta

    @property
    def composed(self) -> tuple[float, float] | None:
        """What masked contributions to all rounds cost; None of others, or without noise."""
        loss = self.loss_of(range(1, self.rounds + 1)) if self.masks else math.inf
        return (loss, self.counted_at) if math.isfinite(loss) else None

    # What audits ask.

    def audited(self) -> Protocol:
        """Return the protocol itself if anybody adds noise; see `Protocol.audited`."""
        return self if self.privacy is not None else super().audited()

    def audit(self, auditor: AuditTests) -> Iterator[Finding]:
        """Compare sums with noise, unless devices protect what they send by themselves."""
        if self.aggregation.by_itself:
            return super().audit(auditor)
        sums = self.probes, self.apart, self.aggregation, self.multipliers, self.sensitivity
        return auditor.of_sums(NoisySums(*sums, self.accountant))

    def sent_symbols(self, people: Ratings) -> SentSymbols | None:
        """Return the candidates that devices send; None for reports that do not protect themselves."""
        if not self.aggregation.by_itself:
            return None
        symbols_of = self.aggregation.symbols
        return SentSymbols(
            lambda number, reports: symbols_of(reports, people.n_items), linked=True, once=True
        )

    def exact_losses(self, people: Ratings) -> Iterator[tuple[str, int, float]]:
        """Yield the loss of a device's only report."""
        if self.aggregation.by_itself:
            yield "a device's only report, as probabilities", 1, self.cost_of(1).epsilon

    def probes(self, seed: int) -> Iterator[tuple[Layout, Contributions[Any]]]:
        """Yield what made-up users contribute who hold 1 rating, 2 ratings, and so on, without noise.

        The rounds are played, as what is contributed to one follows from what was learned before.
        """
        scale = POSITIVE if self.facts.predicts == "lists" else RatingScale.evenly(1, 5, 1)
        catalogue, profiles = _made_up(seed), _made_up_profiles(seed, scale)
        public = Public(_USERS, _ITEMS, scale)
        server = self.server(public, catalogue, seed)
        for round_index in range(1, self.rounds + 1):
            device = self.device(server.held.encode(), _ITEMS, scale)
            layout = device.release(round_index)
            choices = words(seed, f"choices {round_index}", 0, profiles.items.size)
            contributions = device.contributions(profiles, layout, choices)
            yield layout, contributions
            _, total = layout.added_up(contributions.encode(layout))
            server.learn(layout, round_index, total * UNIT * layout.scales, 0.0, _USERS)


_USERS, _ITEMS = 48, 64
"""Of whom an audit sees how long their contributions are."""


def _made_up(seed: int) -> Catalogue:
    numbers = uniforms(words(seed, "numbers", 0, _ITEMS)).reshape(_ITEMS, 1)
    chosen = uniforms(words(seed, "categories", 0, 4 * _ITEMS)).reshape(_ITEMS, 4) < 0.5
    return Catalogue(numbers, chosen, ("number",), tuple("abcd"))


def _made_up_profiles(seed: int, scale: RatingScale) -> Profiles:
    counts = 1 + np.arange(_USERS) * _ITEMS // _USERS
    orders = np.argsort(words(seed, "items of users", 0, _USERS * _ITEMS).reshape(_USERS, -1), axis=1)
    items = [np.sort(order[:size]) for order, size in zip(orders, counts, strict=True)]
    # Extreme ratings are furthest from what is expected of them.
    extremes = uniform_below(2, words(seed, "levels", 0, int(counts.sum())))
    values = (
        np.where(extremes, scale.high, scale.low) if not scale.implicit else np.full(extremes.size, np.nan)
    )
    return Profiles(offsets(counts), np.concatenate(items).astype(np.int32), values, _ITEMS)
