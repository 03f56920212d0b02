"""Sums of which nobody is trusted with a part: every device protects what it sends by itself.

A device reports once, in one of the rounds: its turn follows from a lasting secret and the shares of the
rounds, so that no server can ask it twice. In the other rounds it sends an empty report. Who is silent when
says nothing of anybody's profile. What a device sends is a seed that it draws, and which of the vectors that
follow from the seed it prefers (`dprec.sums.unit_vectors`): a loss of epsilon between any two profiles,
whoever reads it, whatever is known besides, and without a delta.

A contribution shorter than 1 gets a further number, which nobody looks at, so that it is 1 long.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator

from dprec import accounting
from dprec.arrays import Bools, Floats, Ints, Pieces, Uint64s, all_between, offsets, rows_of
from dprec.completion.factors import map_blocks
from dprec.components import as_tuple, option
from dprec.errors import SettingError
from dprec.gradients import Aggregate, RoundDraws
from dprec.randomness import ReleaseDraws, categories, uniforms
from dprec.sums.aggregation import Aggregation, Cost
from dprec.sums.contributions import UNIT, Contributions, Layout, LayoutT, Vectors
from dprec.sums.unit_vectors import VectorReports, candidate_keys, largest_total

_SEED, _CHOICE = 0, 1
"""What a device draws."""

_SEED_BITS = 32
"""Enough that few of a million devices share candidates; a device can look for no better ones than these."""

_USERS_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class LocalAggregation(Aggregation):
    """Each device protects what it sends, in one of the rounds; anybody may add it up."""

    kind: Literal["local"] = "local"
    papers: ClassVar[tuple[str, ...]] = ("ye2018", "bhowmick2018", "asi2022")
    trust: ClassVar[accounting.Trust] = "local"
    reason: ClassVar[str] = (
        "every device reports once, which of some random vectors it prefers, with probabilities in integers "
        "that do not depend on these vectors"
    )
    devices_add_noise: ClassVar[bool] = True
    by_itself: ClassVar[bool] = True

    epsilon: float | None = option("Budget of a device's only report; the protocol's if none.", None, gt=0)
    shares: Annotated[tuple[float, ...] | None, BeforeValidator(as_tuple)] = option(
        "Share of the devices that report in each round; the protocol's if none.", None
    )
    users: int | None = option("Devices at first, by which noise is stated; all if none.", None, ge=1)

    def among(self, users: int, joined: int = 0) -> Self:
        """Fix the number of devices, by which noise is stated, once: others may come later."""
        return replace(self, users=users) if self.users is None else self

    def divided(self, budget: accounting.PrivacyBudget | None, shares: Sequence[float]) -> Self:
        """Fix what devices need to know of a budget; see `Aggregation.divided`."""
        if budget is None:
            raise SettingError("kind", f"{self.kind!r} without a budget", "privacy, or another aggregation")
        return replace(self, epsilon=budget.epsilon, shares=tuple(shares))

    def multipliers(
        self, budget: accounting.PrivacyBudget, shares: Sequence[float], farthest: float
    ) -> tuple[float, ...]:
        """Return the noise of estimated sums over all devices, of which a share reports in each round."""
        # As if of one device before their number is known.
        undivided = _reports_at(budget.epsilon).deviation * math.sqrt(self.users or 1)
        return tuple(undivided / math.sqrt(share) for share in shares)

    def cost(self, multiplier: float, farthest: float) -> Cost:
        """Return the loss of a report: the exact one, between any two profiles."""
        return Cost(self.reports.epsilon)

    def reporting(self, lasting: Uint64s, round_index: int) -> Bools:
        """Return whose turn it is: everybody has one, in proportion to the rounds' shares."""
        if self.shares is None:
            raise ValueError("an aggregation for no rounds")
        # The last sum may be a little less than 1.
        turns = 1 + categories(np.cumsum(self.shares)[:-1], uniforms(lasting))
        return turns == round_index

    def costing(self, sizes: Ints) -> Bools:
        """Return who has reported, whatever became of it; what is shorter than a report says nothing."""
        return sizes >= self._report.itemsize

    def notes(self) -> tuple[str, ...]:
        """Say when devices report."""
        return (
            "A device reports in one round, which it draws by public shares, and is silent in others: who "
            "reports when says nothing of a profile.",
        )

    @property
    def reports(self) -> VectorReports:
        """What devices report of their contributions."""
        if self.epsilon is None:
            raise ValueError("an aggregation at no budget")
        return _reports_at(self.epsilon)

    def encode(
        self, contributions: Contributions[LayoutT], layout: LayoutT, multiplier: float, draws: RoundDraws
    ) -> Sequence[bytes]:
        """Send the seed and the number of a candidate; nothing where it is the turn of another round."""
        assert draws.lasting is not None
        own_turn = self.reporting(draws.lasting, draws.round_index)
        # Ratings are chosen by words of their items, which are numbers as these are.
        report_draws = draws.devices.asked(b"report")
        seeds, choices = (report_draws.per_user(index, draws.round_index) for index in (_SEED, _CHOICE))
        seeds = seeds >> np.uint64(64 - _SEED_BITS)

        def preferred(block: slice) -> Ints:
            chosen = np.flatnonzero(own_turn[block])
            vectors = contributions.of_users(block).vectors(layout).of_users(chosen)
            sparse = _with_norm_1(vectors, layout.n_rows)
            users = block.start + chosen
            return self.reports.encode(*sparse, choices[users], candidate_keys(seeds[users]))

        sent = np.zeros(int(own_turn.sum()), dtype=self._report)
        sent["seed"] = seeds[own_turn]
        sent["candidate"] = np.concatenate(
            [np.zeros(0, dtype=np.int64), *map_blocks(preferred, own_turn.size, _USERS_AT_ONCE)]
        )
        return Pieces(sent.tobytes(), offsets(own_turn * self._report.itemsize))

    def crafted(
        self,
        contributions: Contributions[LayoutT],
        layout: LayoutT,
        multiplier: float,
        draws: RoundDraws,
        malicious: int,
    ) -> Sequence[bytes]:
        """Send the candidate, of those of some seeds, that says most; see `Aggregation.crafted`."""
        assert draws.lasting is not None
        own_turn = self.reporting(draws.lasting, draws.round_index)
        words = draws.devices.asked(b"report")
        tried = np.stack([words.per_user(index, draws.round_index) for index in range(64)])
        sent = np.zeros(int(own_turn.sum()), dtype=self._report)
        for place, user in enumerate(np.flatnonzero(own_turn).tolist()):
            seeds = tried[:, user] >> np.uint64(64 - _SEED_BITS)
            vectors = contributions.of_users(slice(user, user + 1)).vectors(layout)
            sent[place] = self.reports.loudest(vectors, seeds)
        return Pieces(sent.tobytes(), offsets(own_turn * self._report.itemsize))

    def decode(self, reports: Sequence[bytes], layout: Layout, multiplier: float) -> tuple[Bools, Aggregate]:
        """Reject what is no seed and candidate, and add these up; the last number of the sum counts them."""
        valid, seeds, chosen = self._read(reports)
        total = self.reports.total(chosen, candidate_keys(seeds), layout.n_rows * layout.width)
        return valid, Aggregate(np.append(total, chosen.size), None, int(valid.sum()))

    def sum_shape(self, layout: Layout) -> tuple[int, ...]:
        """Return the numbers of a candidate, and how many were sent."""
        return (layout.n_rows * layout.width + 1,)

    def possible(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> bool:
        """Return whether no more candidates were sent than there are users, nor longer ones than exist."""
        numbers, sent = aggregate.total[:-1], int(aggregate.total[-1])
        if not 0 <= sent <= aggregate.users:
            return False
        largest = largest_total(sent)
        return all_between(numbers, -largest, largest)

    def length(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> float:
        """Return how many candidates are in a sum: each report is of a vector of norm 1."""
        return float(aggregate.total[-1])

    def release(self, aggregate: Aggregate, layout: Layout, multiplier: float, draws: ReleaseDraws) -> Floats:
        """Return the estimated sums of all users, of whom a share has reported; 0 if nobody has."""
        sums, sent = aggregate.total[:-1], int(aggregate.total[-1])
        numbers = self.reports.estimate(sums) * (aggregate.users / max(sent, 1))
        return numbers.reshape(layout.n_rows, layout.width) * layout.scales

    def deviation(self, layout: Layout, multiplier: float, users: int) -> float:
        """Return the noise of the estimated sums of so many users, if as many report as their share says.

        That some report for others adds little to it, which is left out; see `Aggregation.deviation`.
        """
        return multiplier * math.sqrt(users / (self.users or users))

    def noise_in(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> float:
        """Return the noise by how many have reported, which the sum tells; see `Aggregation.noise_in`."""
        return self.reports.deviation * aggregate.users / math.sqrt(max(int(aggregate.total[-1]), 1))

    def most_of_one(self, layout: Layout, multiplier: float) -> float:
        """Return the largest number of a candidate, read as that of all who do not report in its round."""
        share = (self.reports.deviation / multiplier) ** 2 * (self.users or 1) if multiplier else 1.0
        return self.reports.largest / share

    def report_bits(self, layout: Layout, ratings: int, multiplier: float) -> int:
        """Return the bits of a report, which are the same for everybody."""
        return 8 * self._report.itemsize

    def symbols(self, reports: Sequence[bytes], cells: int) -> Ints:
        """Return eighths of the normal distribution in which the first numbers of candidates lie, from 1.

        0 for reports that say nothing; shape (reports, cells).
        """
        valid, seeds, chosen = self._read(reports)
        symbols = np.zeros((len(reports), cells), dtype=np.int64)
        sent = np.flatnonzero(valid & self.costing(Pieces.of(reports).sizes))
        symbols[sent] = 1 + self.reports.parts(chosen, candidate_keys(seeds), cells) * 8 // (1 << 16)
        return symbols

    def told(self, reports: Sequence[bytes], layout: Layout, multiplier: float) -> tuple[Ints, Floats]:
        """Return the candidate that each device prefers, as an estimate; see `Aggregation.told`."""
        valid, seeds, chosen = self._read(reports)
        places = np.flatnonzero(valid & self.costing(Pieces.of(reports).sizes))
        return places, self.reports.estimates(chosen, candidate_keys(seeds), layout.n_rows * layout.width)

    @property
    def _report(self) -> np.dtype[Any]:
        number = "u1" if self.reports.bits <= 8 else "<u2"
        return np.dtype([("seed", f"<u{_SEED_BITS // 8}"), ("candidate", number)])

    def _read(self, reports: Sequence[bytes]) -> tuple[Bools, Uint64s, Ints]:
        """Return which reports are valid, and the seeds and candidates in those that are not empty."""
        pieces = Pieces.of(reports)
        sent = pieces.sizes == self._report.itemsize
        records = np.frombuffer(pieces.chosen(np.flatnonzero(sent)).data, dtype=self._report)
        exist = records["candidate"] < self.reports.candidates
        valid = pieces.sizes == 0
        valid[sent] = exist
        return valid, records["seed"][exist].astype(np.uint64), records["candidate"][exist].astype(np.int64)


def _with_norm_1(vectors: Vectors, n_rows: int) -> tuple[Ints, Ints, Floats]:
    """Return sparse vectors: where each begins, its cells and their numbers.

    A last cell, beyond those of all rows, makes up for what a vector lacks.
    """
    width, counts = vectors.numbers.shape[1], np.diff(vectors.indptr)
    numbers = vectors.numbers * UNIT
    squares = np.bincount(rows_of(counts), (numbers**2).sum(axis=1), minlength=counts.size)
    ends = vectors.indptr * width
    lacking = np.sqrt(np.maximum(1 - squares, 0.0))
    return (
        ends + np.arange(ends.size),
        np.insert(vectors.cells, ends[1:], n_rows * width),
        np.insert(numbers.ravel(), ends[1:], lacking),
    )


@lru_cache(maxsize=16)
def _reports_at(epsilon: float) -> VectorReports:
    return VectorReports.of(epsilon)
