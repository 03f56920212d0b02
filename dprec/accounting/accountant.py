"""The privacy accountant: a history of events, and the epsilons of every user that follow from it.

What happened is recorded as it happens, of those who took part; nobody is assumed to have. The history is
the state: what a user has lost is derived, in the two units in which protocols are compared, which are kept
separate. *Per rating* compares two profiles that differ in the value of one rating, *per user* two profiles
that differ arbitrarily. By itself an event costs its epsilon, and epsilons add up (basic composition). With
a delta, the events of a mechanism that composes better do so together: draws by their privacy loss
distributions, sums with Gaussian noise by Gaussian DP, shuffled reports by amplification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from dprec.accounting.events import Adjacency, Epsilon, Event, EventMechanism, check_adjacency
from dprec.accounting.pld import largest_share
from dprec.accounting.shuffling import ShuffledProfiles, ShuffledReports
from dprec.arrays import AnyArray, Bools, Floats, Ints, Uint8s
from dprec.channel import Channel
from dprec.components import Options, option
from dprec.errors import SettingError
from dprec.randomness import even_share

if TYPE_CHECKING:
    from dprec.catalogue import UsersTable

PrivacyUnit = Literal["rating", "cell", "user"]
"""What two neighbouring profiles differ in, for a loss.

``rating``: the value of one rating; both profiles hold the same items. ``cell``: one (user, item)
entry, rated or not. ``user``: everything that a user sends.
"""

ComparableUnit = Literal["rating", "user"]
"""The units in which every protocol has a loss, so that protocols can be compared.

If a mechanism hides which items are rated, the loss of a rating is that of a cell.
"""

COMPARABLE_UNITS: tuple[ComparableUnit, ...] = get_args(ComparableUnit)

UNITS_IN_WORDS: dict[PrivacyUnit, str] = {
    "rating": "for the value of one rating",
    "cell": "for one entry, rated or not",
    "user": "for everything that a user sends",
}


def unit_from_text(text: Any) -> Any:
    """Return a unit by its usual name, or as "per-rating" or "per-user"; anything else as it is."""
    return {"per-rating": "rating", "per-user": "user"}.get(text, text) if isinstance(text, str) else text


LARGEST_CELL_EPSILON = 20.0
"""Largest loss of one cell for which integer weights out of 2**60 keep the ratios that epsilon requires."""

DELTA = 1e-6
"""Default: less than one in the number of users of any data set here."""

SMALLEST_DELTA, LARGEST_DELTA = 1e-9, 0.1
"""Range of delta: what floating-point numbers can tell from 0, and what is still small."""


@dataclass(frozen=True, kw_only=True)
class PrivacyBudget(Options):
    """What is guaranteed: epsilon, and for what; see `PrivacyUnit`.

    `own` states whether users choose among several epsilons, `column` where a table has these, and
    `sampled_at` the epsilon of all reports if ratings are sampled by their users' own; see
    `dprec.accounting.OwnBudgets`.
    """

    own: ClassVar[bool] = False
    column: ClassVar[str | None] = None
    sampled_at: ClassVar[float | None] = None
    epsilon: float = option("Privacy loss, in natural logarithms.", gt=0)
    per: PrivacyUnit = option("What the loss is guaranteed for.", "rating")
    composition: Literal["sum", "pld"] = option(
        "How the draws about a user share a budget per user: by the sum of their losses, or by their privacy "
        "loss distributions, so that (epsilon, delta) holds.",
        "sum",
    )
    delta: float = option(
        "Probability beyond which composed losses hold; sums hold without.",
        DELTA,
        ge=SMALLEST_DELTA,
        le=LARGEST_DELTA,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.composition == "pld" and self.per != "user":
            accepted = "'sum', or --set protocol.privacy.per=user, which is what draws are composed for"
            raise SettingError("composition", f"'pld' per {self.per}", accepted)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilons that users have, ascending; 0 where some refuse."""
        return (self.epsilon,)

    @property
    def in_words(self) -> tuple[str, ...]:
        """Sentences on who has which epsilon; none where everybody has the same."""
        return ()

    @property
    def installed(self) -> PrivacyBudget:
        """What devices know: the epsilons to choose from, and not who chooses which."""
        return self

    def scaled(self, factor: float) -> PrivacyBudget:
        """Return a budget that is so many times as large."""
        return replace(self, epsilon=factor * self.epsilon)

    @property
    def unsampled(self) -> PrivacyBudget:
        """The same budgets where every rating takes part; see `sampled_at`."""
        return self

    def of_users(self, users: UsersTable | None) -> PrivacyBudget:
        """Return the budget with what the users' table says of it; see `OwnBudgets.of_users`."""
        return self

    def alone(self) -> tuple[PrivacyBudget, ...]:
        """Return the budgets of people who all have one epsilon, for each epsilon but a refusal."""
        return (self,)

    def chosen(self, counts: Ints, means: Floats, seed: int) -> Uint8s:
        """Return the place of every user's epsilon; see `OwnBudgets.chosen`."""
        return np.zeros(counts.size, dtype=np.uint8)

    def share(
        self,
        channel: Callable[[float], Channel],
        draws: int,
        *,
        most: float = math.inf,
        guess: float | None = None,
    ) -> float:
        """Return the budget of each of a user's draws, at most ``most``; see `largest_share`."""
        if self.composition == "sum":
            return min(even_share(self.epsilon, draws), most)
        return largest_share(channel, draws, self.epsilon, self.delta, most=most, guess=guess)


@dataclass(frozen=True)
class MatchedBudget:
    """A budget in a unit that all protocols share."""

    epsilon: float
    """Above 0."""
    unit: ComparableUnit = "rating"
    delta: float | None = None
    """Probability beyond which epsilon holds; per user only. A protocol whose draws about a user compose
    keeps to (epsilon, delta), and any other to the sum of its losses, which holds at every delta. By default,
    each protocol composes as it is configured.
    """


def note_on_delta(delta: float, users: int) -> str | None:
    """Return a warning with the reason if delta is above one in the number of users; otherwise None."""
    if delta * users <= 1:
        return None
    return (
        f"Delta = {delta:g} is above one in {users:,} users: to publish {delta * users:,.3g} of the profiles "
        "in full, drawn at random, would be within it."
    )


Status = Literal["proved", "claimed", "declared", "none"]
"""How far a promise carries.

``proved``: the epsilon of the ledger holds by a theorem, for the numbers that are drawn. ``claimed``: a
paper claims an epsilon, and something is missing from its proof. ``declared``: a class from outside this
distribution says so, and nothing here follows its code. ``none``: nothing is promised.
"""

Trust = Literal["central", "secure-aggregation", "shuffle", "local"]
"""Whom users trust with true ratings: the server, one that adds up or shuffles reports, or nobody."""

LEAST_TRUST_FIRST: tuple[Trust, ...] = ("local", "shuffle", "secure-aggregation", "central")
"""Who trusts one of these can take part in what needs any before it."""


@dataclass(frozen=True)
class Assumptions:
    """What a promise takes for granted of devices and of those between them and the server."""

    colluders: int | None = None
    """Devices that may tell the server all they know; None for any number."""
    dropouts: float | None = None
    """Largest share of the devices that may drop out; None for any."""
    shufflers: int = 0
    """Servers that mix messages, of which one has to be honest."""
    embeddings_epsilon: float | None = None
    """Loss of a user's item set by what all devices are sent, where the server sees it; None without one."""
    embeddings_any_two: float | None = None
    """The same between any two item sets."""
    uncovered: str = ""
    """What devices are sent that follows from item sets without that noise, in words."""
    proxy: bool = False
    """Whether a proxy strips the senders of reports."""
    named_sets: bool = False
    """Whether item sets are sent under users' names, although reports carry no sender."""
    budgets_seen: bool = False
    """Whether the server sees which epsilon each user has."""


@dataclass(frozen=True)
class Guarantee:
    """What a protocol promises to everybody who takes part in it."""

    status: Status
    """Of what was asked for. The ledger holds what is proved in any case."""
    trust: Trust
    hides_rated_items: bool
    """Whether it stays hidden which items a user rated."""
    reason: str
    """The theorem, or what is missing from one: what follows a colon, to its full stop."""
    notes: tuple[str, ...] = ()
    """What else a reader of the figures must know about the guarantee."""
    unlinked: bool = False
    """Whether the server can tell of nothing that it sees whose it is, or what else is of the same user."""
    assumes: Assumptions = Assumptions()

    @property
    def trusts_server(self) -> bool:
        """Whether the server sees true ratings."""
        return self.trust == "central"

    @property
    def statements(self) -> tuple[str, ...]:
        """The status with its reason, and the notes."""
        openings: dict[Status, str]
        openings = {
            "claimed": "Claimed, not proved",
            "declared": "Declared, not proved",
            "none": "No privacy",
        }
        return (f"{openings.get(self.status, 'Proved')}: {self.reason}", *self.notes)


_SAME_FOR_ALL = -1
"""Instead of a row of an array: the loss is the same for all participants."""


@dataclass(eq=False)
class PrivacyAccountant:
    """The privacy losses of users."""

    rated: Bools
    """Users who have a rating to protect; everybody if the rated items are hidden; shape (users,)."""
    history: list[Event] = field(default_factory=list)
    """All events, in order."""
    adjacency: Adjacency = "add-or-remove-one"
    """What losses by sums with noise compare; reports compare any two profiles."""
    claimed: PrivacyAccountant | None = None
    """The accountant of the same exchanges at the losses that are claimed or declared without a proof; None
    where none are. What this one holds is proved; infinite where nothing is.
    """

    @classmethod
    def of_all(cls, parts: Sequence[PrivacyAccountant], *, same_ratings: bool = True) -> PrivacyAccountant:
        """Return the accountant of several exchanges with the same users, each of which is a round of it.

        Parameters
        ----------
        parts : sequence of PrivacyAccountant
            At least one, of the same adjacency.
        same_ratings : bool
            Whether they may be about the same ratings, whose losses then add up. Otherwise no rating is in
            two of them, and the loss of a rating is the largest of its user's.
        """
        rated, claimed = np.any([part.rated for part in parts], axis=0), None
        if any(part.claimed is not None for part in parts):
            claims = [part.claimed or part for part in parts]
            claimed = cls.of_all(claims, same_ratings=same_ratings)
        combined = replace(parts[0], rated=rated, history=[], claimed=claimed)
        charged = np.zeros(combined.n_users)
        for number, part in enumerate(parts, start=1):
            for event in part.history:
                users = event.took_part(combined.n_users)
                per_rating = np.where(users & part.rated, event.per_rating, 0.0)
                if not same_ratings:
                    previous, charged = charged, np.maximum(charged, per_rating)
                    per_rating = np.maximum(per_rating - previous, 0.0)
                combined.step(number, users, per_rating, event.per_user, event.mechanism)
        return combined

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.rated.size

    def step(
        self,
        round_index: int,
        users: Bools,
        per_rating: Epsilon,
        per_user: Epsilon,
        mechanism: EventMechanism | None = None,
    ) -> None:
        """Record an event of those who took part in one exchange; nothing is recorded if nobody did.

        Parameters
        ----------
        round_index : int
            The round that it belongs to, from 1; 0 for none, where nothing is sent.
        users : ndarray of bool, shape (users,)
            Who took part.
        per_rating, per_user : float, or ndarray of float64 of shape (users,)
            What the event costs them by itself; entries of others, and those per rating of users without a
            rating, are ignored.
        mechanism : EventMechanism, optional
            By which the losses of several events compose.

        Raises
        ------
        ValueError
            When an array does not cover all users, ``users`` is not of bool, a loss is negative or NaN, or
            one per user is finite of a mechanism that has none without a delta.
        """
        if mechanism is not None and mechanism.needs_delta and not np.all(np.isinf(per_user)):
            raise ValueError(f"{type(mechanism).__name__} bounds nothing without a delta")
        for column in (users, per_rating, per_user):
            if isinstance(column, np.ndarray) and column.shape != self.rated.shape:
                raise ValueError(f"an array of shape {column.shape} for {self.n_users} users")
        if users.dtype != np.bool_:
            raise ValueError(f"users of {users.dtype}; accepted: bool")
        if not users.any():
            return
        losses = _compact(per_rating, users & self.rated), _compact(per_user, users)
        event = Event(round_index, np.packbits(users), *losses, mechanism)
        if self.history:
            # Arrays that are equal to those of the event before are shared with it.
            previous = self.history[-1]
            arrays = {name: getattr(previous, name) for name in ("users", "per_rating", "per_user")}
            shared = {
                name: array for name, array in arrays.items() if np.array_equal(getattr(event, name), array)
            }
            event = replace(event, **shared)
        self.history.append(event)

    def get_epsilon(
        self, delta: float = 0.0, per: PrivacyUnit = "user", adjacency: Adjacency | None = None
    ) -> Floats:
        """Return what every user has lost, shape (users,).

        Parameters
        ----------
        delta : float
            Probability beyond which the loss per user holds; 0 for basic composition. Mechanisms that do not
            compose with each other have equal shares of it. The loss of a rating is its sum at every delta.
        per : {"rating", "cell", "user"}
            A rating is a cell where a mechanism hides which items are rated. NaN for users without one to
            protect, and for those who never took part.
        adjacency : {"add-or-remove-one", "replace-one"}, optional
            By default the accountant's.

        Returns
        -------
        ndarray of float64
            At most the sums of the events' epsilons; infinite for what was sent unprotected.

        Raises
        ------
        ValueError
            When delta is not from 0 to below 1, or there is no such unit or adjacency.
        """
        _check_asked(delta, per, adjacency)
        if per != "user":
            took_part = np.zeros(self.n_users, dtype=np.bool_)
            for event in self.history:
                took_part |= event.took_part(self.n_users)
            return np.where(took_part & self.rated, self._sums(self.history, "per_rating"), np.nan)
        basic = self._sums(self.history, "per_user")
        if not delta or not self.composes:
            return basic
        return np.minimum(basic, self._composed(delta, adjacency or self.adjacency))

    @property
    def composes(self) -> bool:
        """Whether a delta lowers the losses: events whose mechanism is known compose, others add up."""
        return any(event.mechanism is not None for event in self.history)

    def of_user(self, user: int, times: int = 1) -> PrivacyAccountant:
        """Return the accountant of one user, of whom all that was released is released so many times."""
        taking_part, history = np.packbits(np.ones(1, dtype=np.bool_)), list[Event]()
        for event in self.history:
            if event.took_part(self.n_users)[user]:
                per_rating, per_user = (
                    float(loss[user]) if isinstance(loss, np.ndarray) else loss
                    for loss in (event.per_rating, event.per_user)
                )
                mechanism = event.mechanism and event.mechanism.of_user(user)
                user_event = Event(event.round_index, taking_part, per_rating, per_user, mechanism)
                history += [user_event] * times
        return replace(self, rated=self.rated[[user]], history=history, claimed=None)

    def between_profiles(self, delta: float) -> Floats:
        """Return what every user has lost between any two profiles that the same is asked of, shape (users,).

        Events whose mechanism is known compose as under "replace-one", with a delta above 0. The sum of their
        own epsilons may only compare a profile with none, and does not bound it.

        Raises
        ------
        ValueError
            When delta is not above 0 and below 1.
        """
        if not 0 < delta < 1:
            raise ValueError(f"a delta of {delta}; accepted: above 0 and below 1")
        return self._composed(delta, "replace-one")

    def _composed(self, delta: float, adjacency: Adjacency) -> Floats:
        """Compose events whose mechanism is known, and add the epsilons of the others."""
        groups: dict[Hashable, list[tuple[EventMechanism, Bools]]] = {}
        for event in self.history:
            # What costs nothing has no share of delta.
            if event.mechanism is not None and np.any(event.per_user):
                group = groups.setdefault(event.mechanism.group, [])
                group.append((event.mechanism, event.took_part(self.n_users)))
        losses = self._sums([event for event in self.history if event.mechanism is None], "per_user")
        for group in groups.values():
            losses += group[0][0].composed(group, delta / len(groups), adjacency)
        return losses

    def per_report(self, delta: float) -> Floats | None:
        """Return what each report shuffled by itself loses, shape (reports,); None without any."""
        mechanisms = (event.mechanism for event in self.history if event.mechanism is not None)
        losses = (mechanism.per_report(delta) for mechanism in mechanisms)
        return next((loss for loss in losses if loss is not None), None)

    def through(self, mechanism: Callable[[int], EventMechanism | None]) -> PrivacyAccountant:
        """Return the accountant with the events of every round by the mechanism of that round."""
        events = [replace(event, mechanism=mechanism(event.round_index)) for event in self.history]
        return replace(self, history=events)

    def shuffled(self, hidden: ShuffledReports | ShuffledProfiles) -> PrivacyAccountant:
        """Return the accountant with its reports shuffled, which amplifies privacy.

        Parameters
        ----------
        hidden : ShuffledReports or ShuffledProfiles
            All reports, and among how many each is hidden.
        """
        events = [
            event if event.mechanism is None else replace(event, mechanism=event.mechanism.shuffled(hidden))
            for event in self.history
        ]
        return replace(self, history=events)

    def declared(self) -> PrivacyAccountant:
        """Return an accountant of the same exchanges that proves nothing: its losses stand as claims."""
        nothing = {"per_rating": math.inf, "per_user": math.inf, "mechanism": None}
        unbounded = [replace(event, **nothing) for event in self.history]  # type: ignore[arg-type]
        return replace(self, history=unbounded, claimed=self.claimed or self)

    def to_arrays(self) -> dict[str, AnyArray]:
        """Return the history as arrays, for files, without mechanisms; shared arrays are stored once.

        Returns
        -------
        dict of ndarray
            ``rated``: bool, shape (users,). ``rounds``: int64, shape (events,). ``user_sets``: uint8,
            shape (distinct sets, ceil(users / 8)), packed as in `Event`; ``users``: int64, the row of each
            event. ``losses``: float64, shape (distinct losses by user, users). ``per_rating`` and
            ``per_user``: float64, the loss that is the same for all; ``per_rating_row`` and
            ``per_user_row``: int64, the row of a loss by user, or -1.
        """
        history, of_all = self.history, (self.n_users + 7) // 8
        user_sets, users = _distinct([event.users for event in history], of_all, np.uint8)
        columns = [event.per_rating for event in history] + [event.per_user for event in history]
        by_user = np.array([isinstance(loss, np.ndarray) for loss in columns], dtype=np.bool_)
        losses, places = _distinct([loss for loss in columns if isinstance(loss, np.ndarray)], self.n_users)
        rows = np.full(by_user.size, _SAME_FOR_ALL, dtype=np.int64)
        rows[by_user] = places
        numbers = np.array([0.0 if isinstance(loss, np.ndarray) else loss for loss in columns])
        rounds = np.array([event.round_index for event in history], dtype=np.int64)
        arrays = {"rated": self.rated, "rounds": rounds, "user_sets": user_sets, "users": users}
        for name, part in (("per_rating", slice(len(history))), ("per_user", slice(len(history), None))):
            arrays |= {name: numbers[part], f"{name}_row": rows[part]}
        return {**arrays, "losses": losses}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> PrivacyAccountant:
        """Return the accountant from which `to_arrays` made some arrays, its events without mechanisms.

        Raises KeyError, IndexError, TypeError, ValueError when an array is missing, too short, of another
        type or for other users.
        """
        rated, rounds = arrays["rated"], arrays["rounds"]
        user_sets, losses = list(arrays["user_sets"]), list(arrays["losses"])
        if rated.dtype != np.bool_ or rated.ndim != 1:
            raise ValueError(f"rated is {rated.dtype} in {rated.ndim} dimensions")
        if any(row.shape != ((rated.size + 7) // 8,) for row in user_sets):
            raise ValueError("sets of users that are not the accountant's")
        if any(row.shape != rated.shape for row in losses):
            raise ValueError("losses of users that are not the accountant's")

        def loss(unit: str, event: int) -> Epsilon:
            row = int(arrays[f"{unit}_row"][event])
            return float(arrays[unit][event]) if row == _SAME_FOR_ALL else losses[row]

        history = [
            Event(int(number), user_sets[arrays["users"][n]], loss("per_rating", n), loss("per_user", n))
            for n, number in enumerate(rounds)
        ]
        return cls(rated, history)

    def _sums(self, events: list[Event], unit: Literal["per_rating", "per_user"]) -> Floats:
        sums = np.zeros(self.n_users)
        for event in events:
            np.add(sums, getattr(event, unit), out=sums, where=event.took_part(self.n_users))
        return sums


@dataclass(eq=False)
class LargestLoss:
    """The largest loss per user while events come: if all cost alike, one user is accounted for, else all."""

    accountant: PrivacyAccountant
    delta: float
    """Probability beyond which it holds."""
    _read: int = field(default=0, init=False)
    _alike: bool = field(default=True, init=False)
    _times: Ints = field(init=False)
    """Events that each user took part in, of those that were read; shape (users,)."""

    def __post_init__(self) -> None:
        self._times = np.zeros(self.accountant.n_users, dtype=np.int64)

    def so_far(self) -> float | None:
        """Return the largest of what `PrivacyAccountant.get_epsilon` returns now; None if it is infinite."""
        history, accountant = self.accountant.history, self.accountant
        for event in history[self._read :]:
            self._alike &= event.costs_like(history[0])
            self._times += event.took_part(accountant.n_users)
        self._read = len(history)
        if history and self._alike and (weight := history[0].weight) is not None:
            user = int((self._times * weight).argmax())
            loss, times = history[0].per_user, int(self._times[user])
            loss = times * float(loss[user] if isinstance(loss, np.ndarray) else loss) if times else 0.0
            mechanism = history[0].mechanism and history[0].mechanism.repeated(user, times)
            one_user = np.ones(1, dtype=np.bool_)
            accountant = replace(accountant, rated=one_user, history=[])
            accountant.step(1, one_user, 0.0, loss, mechanism)
        largest = float(accountant.get_epsilon(self.delta).max())
        return largest if math.isfinite(largest) else None


def _check_asked(delta: float, per: str = "user", adjacency: str | None = None) -> None:
    """Refuse a question about losses that has no answer; raises ValueError."""
    if not 0 <= delta < 1:
        raise ValueError(f"a delta of {delta}; accepted: at least 0 and below 1")
    if per not in get_args(PrivacyUnit):
        raise ValueError(f"{per!r}; accepted: {', '.join(get_args(PrivacyUnit))}")
    if adjacency is not None:
        check_adjacency(adjacency)


def _compact(losses: Epsilon, charged: Bools) -> Epsilon:
    charges = losses[charged] if isinstance(losses, np.ndarray) else np.array([losses])
    if np.isnan(charges).any() or (charges < 0).any():
        raise ValueError("a privacy loss that is negative or not a number")
    if charges.size and (charges == charges[0]).all():
        return float(charges[0])
    return np.where(np.isnan(losses), 0.0, losses) if charges.size else 0.0


def _distinct(
    arrays: Sequence[AnyArray], width: int, dtype: type[np.generic] = np.float64
) -> tuple[AnyArray, Ints]:
    """Return the distinct arrays as rows, and the row of each; a shared array is one row."""
    rows = {id(array): array for array in arrays}
    places = {identity: row for row, identity in enumerate(rows)}
    table = np.stack(list(rows.values())) if rows else np.zeros((0, width), dtype=dtype)
    return table, np.array([places[id(array)] for array in arrays], dtype=np.int64)
