"""Secure aggregation: the server sees the total of all devices only, and these add the noise.

Devices round their contributions to whole steps of a grid, add a share of Skellam noise each, and mask the
sum (`dprec.secure_aggregation`). The grid follows from public numbers, so that rounding adds little to the
noise. What a report holds in a simulation are the numbers below its masks:
those that two devices share cancel in the total, and their own are taken off it, so that the total is the
same to the last bit with them left out. Devices that stand by themselves draw them.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import Bools, Floats, Int32s, Ints, Pieces, blocks, rows_of
from dprec.components import option
from dprec.errors import SettingError
from dprec.gradients import Aggregate, RoundDraws
from dprec.randomness import Pairs, ReleaseDraws, generator
from dprec.secure_aggregation import (
    BEYOND_BOUNDS,
    MOST_VARIANCE,
    OVERFLOW,
    GraphSize,
    MaskGraph,
    MessageSizes,
    SumContext,
    centred,
    check_modulus,
    device_keys,
    graph_size,
    honest_shares,
    modulus_bits,
    noise_rows,
    pack_vectors,
    reduced,
    rounded_rows,
    rounding_keys,
    shrunk,
    skellam_numbers,
    skellam_tail,
    steps_of_unit,
    unpack_vectors,
)
from dprec.sums.aggregation import FurtherMessages, NoiseLoss, NoisyAggregation, OfAllUsers
from dprec.sums.contributions import UNIT, Contributions, Layout, LayoutT
from dprec.sums.proofs import Bounds, Proofs, proof_bytes

LEAST_NORM, MOST_NORM = 32, 1 << 16
"""Norms by rule are between them."""

RULED = accounting.SkellamLoss(LEAST_NORM, MOST_NORM)
"""Losses with norms by rule, none of which is below what they are counted for."""

_WITHOUT_NOISE = 1024
"""The least norm by rule of sums that have no noise."""

MOST_ADDED = 0.05
"""Part of its variance that a grid by rule adds to the noise, at most."""

_NUMBERS = 1 << 18
"""Of vectors that are made together: with more, what comes between leaves a processor's caches."""


@dataclass(frozen=True)
class ReleaseNoise:
    """The noise of a release, as devices draw it."""

    multiplier: float
    users: int
    """Devices of the release."""
    shares: int
    """How many of their shares add up to the multiplier."""

    def share(self, norm: int) -> float:
        """Return the variance of a device's share, in steps of the grid."""
        return (self.multiplier * norm) ** 2 / self.shares


@dataclass(frozen=True)
class VectorPlan:
    """What becomes of the numbers of a layout before they are added up."""

    items: int
    width: int
    """Items, and numbers of each."""
    limit: int | None
    """Most items of a user; see `Layout.limit`."""
    largest: float
    """See `Layout.largest`."""
    typical: int
    """See `Layout.typical_numbers`."""
    signed: bool
    """Whether any number can be negative."""
    norm: int
    """Longest rounded vector, in steps."""

    @classmethod
    def of(cls, layout: Layout, norm: int) -> Self:
        """Return the plan for a layout."""
        return cls(
            items=layout.n_rows,
            width=layout.width,
            limit=layout.limit,
            largest=layout.largest,
            typical=layout.typical_numbers,
            signed=layout.signed,
            norm=norm,
        )

    def ruled(self, noise: ReleaseNoise) -> Self:
        """Return the plan with the norm that a public rule chooses for the noise of a release.

        The bits are as few as they can be while the noise is as fine as losses count on and the grid adds at
        most `MOST_ADDED` to it, and the norm is the largest for which they are enough.
        """
        lowest = math.ceil(RULED.norm(1 / noise.multiplier)) if noise.multiplier else _WITHOUT_NOISE

        def fine(norm: int) -> bool:
            return replace(self, norm=norm).added(noise) <= MOST_ADDED

        least = lowest + bisect_left(range(lowest, MOST_NORM), True, key=fine)
        bits = replace(self, norm=least).bits(noise)

        def too_large(norm: int) -> bool:
            return noise.share(norm) > MOST_VARIANCE or replace(self, norm=norm).bits(noise) > bits

        return replace(self, norm=least + bisect_left(range(least + 1, MOST_NORM + 1), True, key=too_large))

    def added(self, noise: ReleaseNoise) -> float:
        """Return the part of its variance that the grid adds to the noise, with all devices in a release."""
        if self.steps <= 0:
            return math.inf
        share = noise.share(self.norm)
        return (self.norm / self.steps) ** 2 * (1 + (self.rounding / share if share else 0.0)) - 1

    def bits(self, noise: ReleaseNoise) -> int:
        """Return the bits of a modulus that holds all sums."""
        variance = noise.users * noise.share(self.norm)
        return modulus_bits(
            self.largest_sum(noise.users), variance, accounting.MOST_NUMBERS, signed=self.signed
        )

    def numbers(self, total: Ints, bits: int, noise: ReleaseNoise) -> Ints:
        """Return the numbers of a sum that is given modulo 2**bits."""
        variance = noise.users * noise.share(self.norm)
        lowest = None if self.signed else -skellam_tail(variance, OVERFLOW / accounting.MOST_NUMBERS)
        return centred(reduced(total, bits), bits, lowest)

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        return self.items * self.width

    @property
    def most_numbers(self) -> int:
        """Most numbers of a vector that are not 0, and so are rounded."""
        return self.width * min(self.limit or self.items, self.items)

    @property
    def usual_numbers(self) -> int:
        """Numbers that are not 0 in a typical vector, for which the grid is made."""
        return min(self.typical, self.most_numbers)

    @property
    def steps(self) -> float:
        """Steps of a unit, the largest norm of a contribution; see `steps_of_unit`."""
        return steps_of_unit(self.norm, self.usual_numbers)

    @property
    def rounding(self) -> float:
        """Variance that rounding adds to a number, of one device and on average over the numbers at most.

        A quarter for each that is not 0; and in all the squared norm of a rounded vector, at most.
        """
        return min(self.most_numbers / 4, self.norm**2) / self.size

    def largest_sum(self, users: int) -> int:
        """Return what no number of a total of so many users exceeds, whatever they have rated."""
        return users * self.largest_rounded

    @property
    def largest_rounded(self) -> int:
        """What no number of a rounded vector exceeds, in steps."""
        # The next integer, also where a product that is one has been rounded.
        return min(self.norm, math.floor(self.largest * self.steps) + 1)

    def rounded(
        self, contributions: Contributions[LayoutT], layout: LayoutT, keys: Pairs
    ) -> tuple[Ints, Ints, Ints]:
        """Return each device's contribution in whole steps, within the norm whatever it is.

        How many numbers each has, shape (devices,); which these are, and their steps, shape (numbers,).
        """
        vectors = contributions.vectors(layout)
        counts = np.diff(vectors.indptr) * self.width
        exact = vectors.numbers.ravel().astype(np.float64) * UNIT * self.steps
        values = shrunk(exact, counts, self.norm)
        return counts, vectors.cells, rounded_rows(values, counts, self.norm, keys)

    def vectors(self, contributions: Contributions[LayoutT], layout: LayoutT, keys: Pairs) -> Int32s:
        """Return what `rounded` does with the zeros, shape (devices, size)."""
        counts, cells, steps = self.rounded(contributions, layout, keys)
        rows = np.zeros((counts.size, self.size), dtype=np.int32)
        rows[rows_of(counts), cells] = steps
        return rows

    def statistics(self, total: Ints) -> Floats:
        """Return the numbers of every item, in units, from a total in steps; shape (items, width)."""
        return (total / self.steps).reshape(self.items, self.width)


@lru_cache(maxsize=256)
def _ruled(plan: VectorPlan, noise: ReleaseNoise) -> VectorPlan:
    return plan.ruled(noise)


_FAILING = (
    "whose proof fails counts as dropped out, and has paid. That happens to an honest device with a "
    f"probability of 2^{math.log2(BEYOND_BOUNDS):.0f} at most, which may depend on what it holds, and which "
    "delta covers."
)
_PROVED = {
    "none": (),
    "norm": (
        "Devices prove that no number of what they add, nor its norm, is beyond what honest devices add; "
        f"{_FAILING} Proofs are modelled: they add a tenth to a masked vector.",
    ),
    "norm-and-noise": (
        "Devices prove that their contributions are within bounds, and that they drew their noise; "
        f"{_FAILING} Proofs are modelled: they add a tenth to a masked vector, which is published for bounds "
        "alone.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(OfAllUsers, NoisyAggregation):
    """Devices mask what they send, so the server sees its total only, and add the noise themselves."""

    kind: Literal["secure-aggregation"] = "secure-aggregation"
    papers: ClassVar[tuple[str, ...]] = ("bonawitz2017", "bell2020", "agarwal2021", "kairouz2021")
    trust: ClassVar[accounting.Trust] = "secure-aggregation"
    reason: ClassVar[str] = (
        "every release is a sum of integers of bounded norm, with Skellam noise of which every device "
        "adds a share. Releases compose as those with Gaussian noise of nearly its variance, or, where the "
        "grid is coarse, by Renyi divergences. The server follows the protocol"
    )

    devices_add_noise: ClassVar[bool] = True
    masks: ClassVar[bool] = True
    adds_reports: ClassVar[bool] = False

    dropouts: float = option("Largest share of the devices that may drop out.", 0.1, ge=0, lt=0.5)
    colluders: int = option("Devices that may tell the server all they know.", 5, ge=0)
    norm: int | None = option(
        "Longest contribution, in steps of the grid; by default a public rule of the noise, the devices and "
        "the numbers, by which rounding adds at most a twentieth to the variance of the noise.",
        None,
        ge=2,
        le=MOST_NORM,
    )
    modulus_bits: int | None = option("Bits of a number that is sent; as needed if none.", None, ge=2, le=62)
    users: int | None = option("Devices of a release; all of the run if none.", None, ge=2)
    proofs: Proofs = option("What devices prove of their contributions: nothing, or their bounds.", "none")

    def among(self, users: int, joined: int = 0) -> Self:
        """Fix the number of devices, and refuse too few for a graph of masks."""
        self.check_users(users - joined)
        graph_size(users, self.dropouts, self.colluders)
        return replace(self, users=users)

    def check_deployed(self) -> None:
        """Refuse proofs, which are modelled."""
        if self.proofs != "none":
            raise SettingError("proofs", repr(self.proofs), "'none' on a deployment: proofs are modelled")

    def check(self, layout: Layout, multiplier: float) -> None:
        """Refuse a grid too coarse for so many numbers, and a modulus that a sum can exceed."""
        plan = self._plan(layout, multiplier)
        if self.norm is not None and plan.steps < 1:
            numbers = plan.usual_numbers
            found = f"{self.norm}, for contributions of {numbers} numbers"
            least = math.ceil(math.sqrt(numbers / 4 + math.sqrt(numbers) / 2 + 2))
            raise SettingError("norm", found, f"null, or at least {least}")
        variance = self._noise(multiplier).share(plan.norm)
        if self.norm is not None and variance > MOST_VARIANCE:
            found = f"{self.norm}, for which a share of the noise has a variance of {variance:.2g}"
            raise SettingError("norm", found, f"fewer steps, or more epsilon: at most {MOST_VARIANCE:.2g}")
        self._bits(layout, multiplier)

    @property
    def largest_multiplier(self) -> float:
        """That at which the least norm by rule is too large; see `Aggregation.largest_multiplier`."""
        return math.sqrt(MOST_VARIANCE * self._shares) / LEAST_NORM if self.norm is None else math.inf

    def notes(self) -> tuple[str, ...]:
        """Say against whom epsilon holds, and what is simulated."""
        return (
            f"It holds against the server and {self.colluders} devices that collude with it, while at most "
            f"{self.dropouts:.0%} of all devices drop out; with more, a release fails, and its budget is "
            "spent. That a device takes part the server sees: epsilon compares what it holds.",
            "A simulation leaves masks out that cancel in the total: it is the same to the last bit, and the "
            "bytes of keys, signatures, shares and masked vectors are charged in full. Devices draw them.",
            "Where nothing asks for single reports, as attacks and faults do, a simulation draws the noise "
            "of all devices at once, with the distribution of the sum of their shares.",
            *_PROVED[self.proofs],
        )

    @property
    def assumes(self) -> accounting.Assumptions:
        """Few colluders and dropouts; that the server follows the protocol, the trust model says."""
        return accounting.Assumptions(self.colluders, self.dropouts)

    def sealed(self, sizes: Ints) -> Ints:
        """Add the bytes of proofs to those of masked vectors; see `Aggregation.sealed`."""
        if self.proofs == "none":
            return sizes
        return sizes + np.array([proof_bytes(size) for size in sizes.tolist()], dtype=np.int64)

    def further_messages(self) -> FurtherMessages:
        """Return the bytes of keys, of shares and of what is revealed; who drops out does not report."""
        sizes = MessageSizes(self.graph_size.degree, 0, 1)
        keys, sealed, _, revealed = sizes.uplink
        keys_of_neighbours, sealed_for_it, presence = sizes.downlink
        before = (0, keys), (keys_of_neighbours, sealed)
        return FurtherMessages(before, sealed_for_it, ((presence, revealed),))

    def whole(self, sizes: Ints, layout: Layout, multiplier: float) -> Bools:
        """Return which masked vectors have the size that all have."""
        return sizes * 8 == self.report_bits(layout, 0, multiplier)

    def can_release(self, present: Bools, added_up: int, round_index: int, public_seed: int) -> bool:
        """Return whether enough devices, and enough neighbours of each, are left to unmask the total.

        A report that is not in the total, whatever was wrong with it, took its share of the noise along.
        """
        n_present = np.count_nonzero(present)
        if self.proofs == "none" and added_up != n_present:
            return False
        # Whose proof fails counts as one that dropped out, before anything is unmasked.
        if present.size - added_up > math.floor(self.dropouts * present.size):
            return False
        graph = self.graph(round_index, public_seed)
        return bool((graph.answers(present) >= self.graph_size.threshold).all())

    @property
    def graph_size(self) -> GraphSize:
        """How many neighbours a device has, and how many of them put a secret together."""
        return graph_size(self._n_users, self.dropouts, self.colluders)

    def graph(self, round_index: int, public_seed: int) -> MaskGraph:
        """Return who shares masks with whom in a release, which everybody knows."""
        return MaskGraph.of(self._order(round_index, public_seed), self.graph_size.degree)

    def neighbours(self, user: int, round_index: int, public_seed: int) -> Ints:
        """Return with whom one device shares masks in a release, shape (degree,)."""
        order = self._order(round_index, public_seed)
        return MaskGraph.neighbours_of(user, order, self.graph_size.degree)

    def _order(self, round_index: int, public_seed: int) -> Ints:
        return generator(public_seed, f"order of secure sum {round_index}").permutation(self._n_users)

    def check_numbers(self, numbers: int) -> None:
        """Refuse more numbers than losses and overflows are bounded for; see `Aggregation.check_numbers`."""
        most = min(accounting.MOST_NUMBERS, accounting.MOST_DRAWS // self._n_users)
        if numbers > most:
            found = f"{self.kind}, of {numbers:,} numbers in all rounds"
            raise SettingError("kind", found, f"another aggregation, or at most {most:,} numbers")

    def sum_of(self, identity: bytes, layout: Layout, multiplier: float) -> SumContext:
        """Return what all devices know about the sum of a release; see `SumContext` for its identity."""
        (size,) = self.sum_shape(layout)
        return SumContext(identity, size, self._bits(layout, multiplier))

    def multiplier(self, epsilon: float, delta: float) -> float:
        """Return the noise by what Skellam noise costs."""
        if delta < accounting.LEAST_DELTA:
            raise SettingError("privacy.delta", f"{delta:g}", f"at least {accounting.LEAST_DELTA:g}")
        return accounting.skellam_multiplier(epsilon, self.loss, delta)

    @property
    def loss(self) -> NoiseLoss:
        """The cost of Skellam noise, with a norm that is stated or by rule."""
        return RULED if self.norm is None else accounting.SkellamLoss(self.norm, self.norm)

    def encode(
        self, contributions: Contributions[LayoutT], layout: LayoutT, multiplier: float, draws: RoundDraws
    ) -> Pieces:
        """Round contributions to whole steps, add each device's share of the noise, and reduce them."""
        whose = draws.devices, draws.round_index
        keys, rounding = device_keys(*whose), rounding_keys(*whose)
        plan = self._plan(layout, multiplier)
        bits, variance = self._bits(layout, multiplier), self._noise(multiplier).share(plan.norm)
        reports = []
        for block in blocks(np.full(len(keys), plan.size), _NUMBERS):
            vectors = plan.vectors(contributions.of_users(block), layout, rounding[:, block])
            vectors += noise_rows(keys[block], plan.size, variance)
            reports.append(pack_vectors(vectors, bits))
        return Pieces.joined(reports)

    def crafted(
        self,
        contributions: Contributions[LayoutT],
        layout: LayoutT,
        multiplier: float,
        draws: RoundDraws,
        malicious: int,
    ) -> Pieces:
        """Send numbers as large as proofs allow, or else as large as a total can hold.

        Without noise, unless that it is drawn is proved; see `Aggregation.crafted`.
        """
        whose = draws.devices, draws.round_index
        keys, rounding = device_keys(*whose), rounding_keys(*whose)
        plan, bits = self._plan(layout, multiplier), self._bits(layout, multiplier)
        bounds = self._chosen(layout, multiplier)
        # Half of what a total can be.
        largest = 1 << bits - (2 if plan.signed else 1)
        noise_is_proved = self.proofs == "norm-and-noise"
        variance = self._noise(multiplier).share(plan.norm) if noise_is_proved else 0.0
        reports = []
        for block in blocks(np.full(len(keys), plan.size), _NUMBERS):
            steps = plan.vectors(contributions.of_users(block), layout, rounding[:, block])
            signs = np.sign(steps).astype(np.int64)
            vectors = signs * (largest // malicious)
            if bounds is not None:
                vectors = np.stack([bounds.filled(row) for row in signs])
            reports.append(pack_vectors(vectors + noise_rows(keys[block], plan.size, variance), bits))
        return Pieces.joined(reports)

    def decode(self, reports: Sequence[bytes], layout: Layout, multiplier: float) -> tuple[Bools, Aggregate]:
        """Reject reports of another size or out of proved bounds, and add up the rest modulo the modulus.

        Whether bounds are kept is looked up, which a simulation can; a server would verify proofs.
        """
        bits, (size,) = self._bits(layout, multiplier), self.sum_shape(layout)
        bounds = self.bounds(layout, multiplier)
        pieces, valid = Pieces.of(reports), np.zeros(len(reports), dtype=np.bool_)
        total = np.zeros(size, dtype=np.uint64)
        for block in blocks(np.full(len(reports), size), _NUMBERS):
            valid[block], rows = unpack_vectors(pieces[block], size, bits)
            if bounds is not None:
                valid[block] &= [bounds.hold(centred(row.astype(np.uint64), bits)) for row in rows]
            total += rows[valid[block]].view(np.uint64).sum(axis=0)
        return valid, Aggregate(reduced(total, bits).astype(np.int64), None, int(valid.sum()))

    def summed(
        self,
        contributions: Contributions[LayoutT],
        layout: LayoutT,
        multiplier: float,
        draws: RoundDraws,
        present: Bools,
    ) -> tuple[Ints, Aggregate]:
        """Add up whole steps without the zeros; the noise of all is drawn with the release.

        An honest device keeps to what it proves, but for less than `BEYOND_BOUNDS`; see `Aggregation.summed`.
        """
        plan, bits = self._plan(layout, multiplier), self._bits(layout, multiplier)
        keys = rounding_keys(draws.devices, draws.round_index)
        total, users = np.zeros(plan.size, dtype=np.int64), int(present.sum())
        for block in blocks(contributions.work(layout) * plan.width, _NUMBERS):
            counts, cells, steps = plan.rounded(contributions.of_users(block), layout, keys[:, block])
            np.add.at(total, cells, steps * np.repeat(present[block], counts))
        sizes = np.full(present.size, self.report_bits(layout, 0, multiplier) // 8)
        return sizes, Aggregate(reduced(total, bits).astype(np.int64), None, users, users)

    def sum_shape(self, layout: Layout) -> tuple[int, ...]:
        """Return the numbers of a vector."""
        return (VectorPlan.of(layout, LEAST_NORM).size,)

    def possible(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> bool:
        """Return that they are: numbers count modulo the modulus, of which every one is possible."""
        return True

    def length(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> float:
        """Return the norm of the steps of a total, rounded as they are."""
        plan, bits = self._plan(layout, multiplier), self._bits(layout, multiplier)
        return float(np.linalg.norm(centred(reduced(aggregate.total, bits), bits))) / plan.norm

    def release(self, aggregate: Aggregate, layout: Layout, multiplier: float, draws: ReleaseDraws) -> Floats:
        """Return the total with the devices' noise: n shares are one number of n times the variance.

        See `Aggregation.release`.
        """
        plan, bits = self._plan(layout, multiplier), self._bits(layout, multiplier)
        noise, total = self._noise(multiplier), reduced(aggregate.total, bits).astype(np.int64)
        random = draws.generator("shares of noise", total)
        total += skellam_numbers(random, aggregate.undrawn * noise.share(plan.norm), plan.size)
        return plan.statistics(plan.numbers(total, bits, noise)) * layout.scales

    def deviation(self, layout: Layout, multiplier: float, users: int) -> float:
        """Return the noise of so many devices' shares, and that of rounding, in units of contributions.

        Shares are made for the fewest devices that count, a unit has fewer steps than the norm, and numbers
        are rounded: so there is more noise than the multiplier says. See `Aggregation.deviation`.
        """
        plan = self._plan(layout, multiplier)
        if plan.steps <= 0:
            return math.inf
        share = self._noise(multiplier).share(plan.norm)
        return math.sqrt(users * (share + plan.rounding)) / plan.steps

    def report_bits(self, layout: Layout, ratings: int, multiplier: float) -> int:
        """Return the bits of a masked vector, which are the same for everybody."""
        (size,) = self.sum_shape(layout)
        return MessageSizes(0, size, self._bits(layout, multiplier)).vector * 8

    def bounds(self, layout: Layout, multiplier: float) -> Bounds | None:
        """Return what is proved of a report, in steps of the grid; None if nothing is."""
        return None if self.proofs == "none" else self._bounds(layout, multiplier)

    def _bounds(self, layout: Layout, multiplier: float, *, noisy: bool = True) -> Bounds:
        plan = self._plan(layout, multiplier)
        variance = self._noise(multiplier).share(plan.norm) if noisy else 0.0
        return Bounds.around(plan.largest_rounded, plan.norm, plan.size, variance)

    def _chosen(self, layout: Layout, multiplier: float) -> Bounds | None:
        """Return the bounds of what malicious users can choose; None if there are none."""
        if self.proofs == "norm-and-noise":
            return self._bounds(layout, multiplier, noisy=False)
        return self.bounds(layout, multiplier)

    def most_of_one(self, layout: Layout, multiplier: float) -> float:
        """Return what proofs leave, without noise that is drawn; without them, anything.

        See `Aggregation.most_of_one`.
        """
        bounds = self._chosen(layout, multiplier)
        if bounds is None:
            return math.inf
        return bounds.of_one_number / self._plan(layout, multiplier).steps

    def _plan(self, layout: Layout, multiplier: float) -> VectorPlan:
        plan = VectorPlan.of(layout, self.norm or LEAST_NORM)
        return plan if self.norm is not None else _ruled(plan, self._noise(multiplier))

    @property
    def _shares(self) -> int:
        return honest_shares(self._n_users, self.dropouts, self.colluders)

    def _noise(self, multiplier: float) -> ReleaseNoise:
        return ReleaseNoise(multiplier, self._n_users, self._shares)

    def _bits(self, layout: Layout, multiplier: float) -> int:
        needed = self._plan(layout, multiplier).bits(self._noise(multiplier))
        return check_modulus(self.modulus_bits, needed)
