"""Sums from anonymous messages: what a device says of its contribution, and what counts of messages tell.

A message names a number of a contribution, and its sign if there are negative ones; or nothing: a null
message. Of its vector v every device sends r messages, no two of them alike, null messages where it says
less. A number is named with the probability r |v_j| / L, where L bounds the sum of the absolute values of a
vector: one whose sum is larger counts as if it were scaled down, and a number above L / r is named once, for
sure, as if it were no larger. Those named are at equal distances on a line of all numbers in random order
(Madow and Madow [madow1944]).

With them go fakes: of every message that there can be a Poisson number, so that those of all honest devices
hide what one of them sends (`dprec.accounting.HiddenMessages`); of the null message k r times as many, as
several may be one user's, and who holds nothing sends r of them. How many messages a device sends says
nothing about its vector; who sends any takes part, which no fakes hide.

A shuffler passes on how often each message was sent. Less the mean number of fakes, and times L / r, counts
are without bias the sum of the vectors, so cut.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import Bools, Floats, Ints, Uint64s, all_between, offsets, places_of
from dprec.components import option
from dprec.errors import SettingError
from dprec.gradients import Aggregate, RoundDraws
from dprec.randomness import Draws, ReleaseDraws, uniforms
from dprec.secure_aggregation import MOST_MEAN, honest_shares, poisson_table
from dprec.sums.aggregation import Aggregation, Cost, OfAllUsers
from dprec.sums.contributions import UNIT, Contributions, Layout, LayoutT, Vectors
from dprec.wire import Batches, hidden_batch_bytes

_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)

_MOST_KINDS = 1 << 30
"""Messages that there can be, at most."""

_USERS_AT_ONCE = 256


@dataclass(frozen=True)
class MessagePlan:
    """The messages that there can be in one release, and how many of them a device sends."""

    numbers: int
    """Of a vector."""
    signed: bool
    """Whether some of them can be negative."""
    messages: int
    """r, what every device sends of its vector, null messages included; at least 1."""
    share: float
    """Mean number of a device's fakes of each message; 0 for no fakes."""
    distance: int
    """L / r, in units of `UNIT`."""
    null_fakes: int = 1
    """k, fakes of the null message over those of r other messages; at least 1."""

    @property
    def null(self) -> int:
        """The null message, and how many others there are, numbered from 0: positive ones first."""
        return self.numbers * (2 if self.signed else 1)

    @property
    def codec(self) -> Batches:
        """Encoder and decoder of what a device sends."""
        return Batches(self.null)

    @property
    def fakes(self) -> float:
        """Mean number of a device's fakes."""
        return self.share * self.faked_kinds

    @property
    def faked_kinds(self) -> int:
        """Messages of which a device sends equally many fakes, the null message counting as so many."""
        return self.null + self.null_fakes * self.messages

    @property
    def most(self) -> int:
        """Messages of a device at most, fakes included."""
        return self.messages + (int(poisson_table(self.fakes).own.max()) if self.share else 0)

    def said(self, vectors: Vectors, starts: Floats, orders: Uint64s) -> Ints:
        """Return what users say of their vectors, shape (users, messages).

        ``starts``: uniform on 0 to 1; ``orders``: random words; shapes (users,).
        """
        from dprec.kernels import draws

        cells, numbers = vectors.cells, vectors.numbers.ravel()
        indptr, sizes = vectors.numbers.shape[1] * vectors.indptr, np.abs(numbers)
        sums = np.diff(offsets(sizes)[indptr])
        # So long that there are no more points than messages.
        distances = np.maximum(self.distance, -(-sums // self.messages))
        first = np.minimum((starts * distances).astype(np.int64), distances - 1)
        chosen = np.full((indptr.size - 1, self.messages), -1, dtype=np.int64)
        line = np.empty(int(np.diff(indptr).max(initial=0)), dtype=np.int64)
        draws.sample(indptr, sizes, orders, distances, first, line, chosen)
        messages = np.full(chosen.shape, self.null, dtype=np.int64)
        named = chosen >= 0
        of = chosen[named]
        messages[named] = cells[of] + self.numbers * (numbers[of] < 0)
        return messages

    def faked(self, users: int, draws: Draws, round_index: int) -> tuple[Ints, Ints]:
        """Return how many fakes users send, shape (users,), and these by user, shape (sum of them,).

        How many is drawn by comparing integers of 128 bits, and which by chance, from 64 bits: of each
        message the number is a Poisson number by itself, its mean off by less than a part in 10^9.
        """
        if not self.share:
            return np.zeros(users, dtype=np.int64), np.zeros(0, dtype=np.int64)
        words = draws.asked(b"number of fakes")

        def second_words(places: Ints) -> Uint64s:
            return words.per_user(1, round_index)[places]

        table = poisson_table(self.fakes)
        counts = table.draw(words.per_user(0, round_index), second_words).astype(np.int64)
        chosen = draws.asked(b"fakes").per_cell(counts, places_of(counts), round_index)
        return counts, np.minimum(_below(self.faked_kinds, chosen), self.null)

    def estimate(self, counts: Ints, users: int) -> Floats:
        """Return the sum of the vectors of so many users, in units of a contribution, shape (numbers,)."""
        above = counts[: self.numbers].astype(np.float64)
        below = counts[self.numbers : -1] if self.signed else users * self.share
        return (above - below) * (self.distance * UNIT)

    def deviation(self, users: int) -> float:
        """Return the deviation of a number of an estimate, by fakes and, on average at most, by sampling."""
        counted = users * self.share * (2 if self.signed else 1)
        sampled = users * self.messages / self.numbers
        return math.sqrt(counted + sampled) * self.distance * UNIT


def norm_among(users: int) -> float:
    """Return the norm of `ShuffledAggregation`: more is noise that only many users can bear.

    `choose_shuffled` of benchmarks/choosing chose it and `null_fakes` on validation items, for lists.
    """
    return 4 * math.sqrt(max(users / 20_000, 1.0))


def _below(limit: int, words: Uint64s) -> Ints:
    """Return integers uniform on 0 to ``limit`` - 1, up to 2**31, from all bits of their words."""
    size = np.uint64(limit)
    low = (words & _LOW) * size >> _HALF
    return ((words >> _HALF) * size + low >> _HALF).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ShuffledAggregation(OfAllUsers, Aggregation):
    """Devices send anonymous messages among fakes, which shufflers count: nobody sees whose they are."""

    kind: Literal["shuffle"] = "shuffle"
    papers: ClassVar[tuple[str, ...]] = ("ghazi2020", "madow1944")
    trust: ClassVar[accounting.Trust] = "shuffle"
    reason: ClassVar[str] = (
        "all that is released are counts of anonymous messages, each hidden among a Poisson number of fakes, "
        "and the losses of all counts that differ are added up by their exact distribution"
    )
    devices_add_noise: ClassVar[bool] = True

    messages: int = option("Messages of a device in each release, besides fakes.", 10, ge=1, le=4096)
    norm: float | None = option(
        "Sum of a contribution's absolute values from which on it is scaled down to send no more messages; "
        "one with a smaller sum sends as much fewer. By default a public rule of the users.",
        None,
        ge=1 / 64,
        le=4096,
    )
    fakes: float = option(
        "Fakes of a device for each of its messages, on average, by which a public rule bounds the numbers "
        "that are summed where it chooses them.",
        4.0,
        gt=0,
    )
    null_fakes: int = option(
        "Fakes of the null message, over those of as many other messages as a device sends; more of them "
        "hide better who has less to say.",
        8,
        ge=1,
        le=1024,
    )
    dropouts: float = option("Largest share of the devices that may drop out.", 0.1, ge=0, lt=0.5)
    colluders: int = option("Devices that may tell the server all they know, or send no fakes.", 5, ge=0)
    shufflers: int = option("Servers that mix messages; one has to be honest.", 2, ge=2, le=16)
    users: int | None = option("Devices of a release; all of the run if none.", None, ge=2)

    def among(self, users: int, joined: int = 0) -> Self:
        """Fix the number of devices, and refuse too few honest ones."""
        self.check_users(users - joined)
        if honest_shares(users, self.dropouts, self.colluders) < 1:
            raise SettingError("colluders", f"{self.colluders} of {users} devices", "fewer")
        return replace(self, users=users, norm=norm_among(users) if self.norm is None else self.norm)

    def check_deployed(self) -> None:
        """Refuse a deployment: it has no shuffler."""
        accepted = "'local', 'secure-aggregation' or 'central' on a deployment, which has no shuffler"
        raise SettingError("kind", repr(self.kind), accepted)

    def check(self, layout: Layout, multiplier: float) -> None:
        """Refuse more kinds of messages, or more fakes of a device, than can be drawn."""
        plan = self._plan(layout, multiplier)
        if plan.faked_kinds > _MOST_KINDS:
            found = f"{self.messages}, for {plan.null:,} kinds of messages"
            raise SettingError("messages", found, f"{_MOST_KINDS:,} kinds at most")
        if plan.fakes > MOST_MEAN:
            found = f"{self.messages}, for which a device sends {plan.fakes:,.0f} fakes on average"
            raise SettingError(
                "messages", found, f"fewer, or more users or epsilon: at most {MOST_MEAN:,.0f} fakes"
            )

    def notes(self) -> tuple[str, ...]:
        """Say against whom epsilon holds, and what is simulated."""
        return (
            f"It holds against the server and {self.colluders} devices that collude with it, while at most "
            f"{self.dropouts:.0%} of all devices drop out; with more, a release fails, and its budget is "
            f"spent. Of {self.shufflers} shufflers, which are sent shares of messages and see how many each "
            "device sends, one has to be honest. That a device takes part they see: epsilon compares what it "
            "holds, and one that holds nothing sends as many messages.",
            "The shufflers' own exchanges are left out: the counts are the same.",
        )

    @property
    def assumes(self) -> accounting.Assumptions:
        """Few colluders and dropouts, and an honest shuffler."""
        return accounting.Assumptions(self.colluders, self.dropouts, self.shufflers)

    def whole(self, sizes: Ints, layout: Layout, multiplier: float) -> Bools:
        """Return which batches have as many messages as a device can send."""
        plan = self._plan(layout, multiplier)
        smallest, largest = plan.codec.sizes(np.array([self.messages, plan.most])).tolist()
        return (sizes >= smallest) & (sizes <= largest)

    def can_release(self, present: Bools, added_up: int, round_index: int, public_seed: int) -> bool:
        """Return whether enough fakes are in the counts; a batch that is rejected took its own along."""
        return present.size - added_up <= math.floor(self.dropouts * present.size)

    def sealed(self, sizes: Ints) -> Ints:
        """Return the bytes of batches as shares for each shuffler, in a layer of encryption each."""
        return hidden_batch_bytes(sizes, self.shufflers)

    def affordable(self, multiplier: float) -> int | None:
        """Return for how many numbers devices send about `fakes` fakes with each message, at least for r."""
        share = self._share(multiplier)
        if not share:
            return None
        kinds = math.floor(self.fakes * self.messages / share)
        return max(kinds - self.null_fakes * self.messages, self.messages)

    def multipliers(
        self, budget: accounting.PrivacyBudget, shares: Sequence[float], farthest: float
    ) -> tuple[float, ...]:
        """Return the noise of fakes whose means are one over the shares, and just enough together."""
        adjacency: accounting.Adjacency = "add-or-remove-one" if farthest <= 1 else "replace-one"
        fakes = accounting.least_fakes(
            self.messages,
            budget.epsilon,
            budget.delta,
            adjacency,
            tuple(map(float, shares)),
            self.null_fakes,
        )
        return tuple(math.sqrt(fakes / share) * self._step for share in shares)

    def farthest(self, distance: float) -> float:
        """Return two: as many counts rise as fall between any two contributions."""
        return 2.0

    def cost(self, multiplier: float, farthest: float) -> Cost:
        """Return messages among as many fakes as there are at least."""
        if not multiplier:
            return Cost()
        hidden = accounting.HiddenMessages(self.messages, self._fakes(multiplier), self.null_fakes)
        return Cost(mechanism=hidden)

    def encode(
        self, contributions: Contributions[LayoutT], layout: LayoutT, multiplier: float, draws: RoundDraws
    ) -> Sequence[bytes]:
        """Say of contributions as much as they allow, and send it among fakes, in no order."""
        plan, users = self._plan(layout, multiplier), contributions.n_users
        sample = draws.devices.asked(b"sample")
        starts, orders = (sample.per_user(index, draws.round_index) for index in (0, 1))
        messages = np.empty((users, self.messages), dtype=np.int64)
        for first in range(0, users, _USERS_AT_ONCE):
            block = slice(first, min(first + _USERS_AT_ONCE, users))
            vectors = contributions.of_users(block).vectors(layout)
            messages[block] = plan.said(vectors, uniforms(starts[block]), orders[block])
        counts, fakes = plan.faked(users, draws.devices, draws.round_index)
        counts = counts + self.messages
        sent = np.empty(offsets(counts)[-1], dtype=np.int64)
        genuine = places_of(counts) < self.messages
        sent[genuine], sent[~genuine] = messages.ravel(), fakes
        return plan.codec.encode(counts, sent)

    def crafted(
        self,
        contributions: Contributions[LayoutT],
        layout: LayoutT,
        multiplier: float,
        draws: RoundDraws,
        malicious: int,
    ) -> Sequence[bytes]:
        """Send as many messages as a device can, none of them a fake; see `Aggregation.crafted`."""
        plan, users = self._plan(layout, multiplier), contributions.n_users
        sent = np.full((users, plan.most), plan.null, dtype=np.int64)
        for user in range(users):
            vectors = contributions.of_users(slice(user, user + 1)).vectors(layout)
            numbers = vectors.numbers.ravel()
            named = (vectors.cells + plan.numbers * (numbers < 0))[numbers != 0]
            if named.size:
                sent[user] = np.resize(named, plan.most)
        return plan.codec.encode(np.full(users, plan.most), sent.ravel())

    def decode(self, reports: Sequence[bytes], layout: Layout, multiplier: float) -> tuple[Bools, Aggregate]:
        """Reject what is no batch of messages that there can be, and count the rest."""
        plan = self._plan(layout, multiplier)
        valid, _, messages = plan.codec.decode(reports, self.messages, plan.most)
        counts = np.bincount(messages, minlength=plan.null + 1)
        return valid, Aggregate(counts, None, int(valid.sum()))

    def sum_shape(self, layout: Layout) -> tuple[int, ...]:
        """Return a count for each message."""
        return (self._plan(layout, 0.0).null + 1,)

    def possible(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> bool:
        """Return whether counts are those of as many messages as so many users can send."""
        counts, users = aggregate.total, aggregate.users
        least, largest = users * self.messages, users * self._plan(layout, multiplier).most
        # Were any of them larger, their sum could wrap around.
        return all_between(counts, 0, largest) and least <= int(counts.sum()) <= largest

    def length(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> float:
        """Return by how much there are too many messages of a user, or too many that are alike."""
        counts = np.abs(aggregate.total)
        return float(max(counts[:-1].max(initial=0), counts.sum() / self.messages))

    def release(self, aggregate: Aggregate, layout: Layout, multiplier: float, draws: ReleaseDraws) -> Floats:
        """Return what the counts tell; see `Aggregation.release`."""
        estimate = self._plan(layout, multiplier).estimate(aggregate.total, aggregate.users)
        return estimate.reshape(layout.n_rows, layout.width) * layout.scales

    def deviation(self, layout: Layout, multiplier: float, users: int) -> float:
        """Return the noise of all fakes that arrived, and of sampling; see `Aggregation.deviation`."""
        return self._plan(layout, multiplier).deviation(users)

    def most_of_one(self, layout: Layout, multiplier: float) -> float:
        """Return what as many messages count for as a device can send, fakes included, if all are alike."""
        return self._plan(layout, multiplier).most * self._step

    def report_bits(self, layout: Layout, ratings: int, multiplier: float) -> int:
        """Return the bits of a batch of the mean size, whatever was rated."""
        plan = self._plan(layout, multiplier)
        return math.ceil((self.messages + plan.fakes) * plan.codec.width)

    @property
    def _distance(self) -> int:
        # As if of few devices before their number is known.
        norm = norm_among(self.users or 1) if self.norm is None else self.norm
        return math.ceil(norm / self.messages / UNIT)

    @property
    def _step(self) -> float:
        """What a message counts for."""
        return self._distance * UNIT

    def _fakes(self, multiplier: float) -> float:
        """Return how many fakes hide a message at least, on average."""
        return (multiplier / self._step) ** 2

    def _share(self, multiplier: float) -> float:
        """Return how many fakes of each message a device sends, on average."""
        return self._fakes(multiplier) / honest_shares(self._n_users, self.dropouts, self.colluders)

    def _plan(self, layout: Layout, multiplier: float) -> MessagePlan:
        numbers, share = layout.n_rows * layout.width, self._share(multiplier)
        return MessagePlan(numbers, layout.signed, self.messages, share, self._distance, self.null_fakes)
