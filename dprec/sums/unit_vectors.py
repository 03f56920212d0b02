"""Unit vectors that nobody sees: each device reports which of some public random vectors it prefers.

A device's candidates are independent standard normal vectors that follow from a seed, which it draws and
sends. It prefers those with the largest products with its own vector, a fixed number of all, and sends the
number of one: each preferred one with up to e^epsilon times the probability of any other. That is subset
selection (Ye and Barg [ye2018]) among candidates, or the best mechanism for unit vectors in high dimension
(Bhowmick et al. [bhowmick2018], with normal vectors as in Asi et al. [asi2022]) with the vector as a seed and
a few bits.

The loss is exact: it depends on two integers of draws, and neither on the vector nor on the candidates.
Candidates look the same in all directions, so on average the chosen one points at the device's vector; its
length along it, the gain, is known, and sums divided by it are unbiased (but for normal deviates of 16 bits,
which is less than a thousandth). The noise of a cell is 1 / gain, whatever the dimension.
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dprec.arrays import Floats, Int32s, Ints, Uint64s
from dprec.randomness import DRAWS, integer_weights, loss_of_draws
from dprec.sums.contributions import Vectors

_UNIT = 4096
"""What a normal deviate of 1 is as an integer, so that sums are exact in any order."""

_FEWEST, _MOST = 16, 4096
"""Numbers of candidates that are considered, in powers of two."""

_LOSS_OF_GAIN = 0.01
"""Part of the gain of many candidates that fewer may lose."""

_LARGEST = 40.0
"""A larger epsilon is as this one: the draws of a candidate that is not preferred are few."""

_CANDIDATES = np.uint64(0x63616E6469646174)
"""Apart from the words that are drawn for anything else."""

_BLOCK = 1 << 20
"""Products that are held at once."""


@dataclass(frozen=True)
class VectorReports:
    """What devices report of their unit vectors at an epsilon; make it with `VectorReports.of`."""

    candidates: int
    """How many a device has: a report is one of as many symbols."""
    preferred: int
    """How many of them it prefers."""
    fewest: int
    """Draws, of `DRAWS`, with which a device sends one that it does not prefer."""

    @classmethod
    def of(cls, epsilon: float) -> "VectorReports":
        """Return the reports with the least noise at an epsilon, above 0.

        Fewer candidates than the most are taken where that costs no more than a hundredth of the gain.
        """
        best = _best(_MOST, epsilon)
        count = _FEWEST
        while count < _MOST and _best(count, epsilon).gain < (1 - _LOSS_OF_GAIN) * best.gain:
            count *= 2
        return _best(count, epsilon)

    @property
    def most(self) -> int:
        """Draws with which a device sends one that it prefers, at most."""
        return -(-self._preferring // self.preferred)

    @property
    def epsilon(self) -> float:
        """The exact loss, of any two vectors, rounded up."""
        last = self._preferring - (self.preferred - 1) * self.most
        return loss_of_draws(self.most, min(self.fewest, last))

    @property
    def bits(self) -> int:
        """Bits of a report."""
        return self.candidates.bit_length() - 1

    @property
    def gain(self) -> float:
        """Mean length of what is sent along the device's own vector."""
        difference = (self._preferring / self.preferred - self.fewest) / DRAWS
        return difference * mean_of_largest(self.preferred, self.candidates)

    @property
    def largest(self) -> float:
        """Largest number of a candidate, as it is read: of a device that chooses its seed."""
        return float(normals()[-1]) / (self.gain * _unit())

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise per cell and per user of the decoded sum."""
        return 1 / self.gain

    @property
    def _preferring(self) -> int:
        """Draws with which a device sends any that it prefers."""
        return DRAWS - (self.candidates - self.preferred) * self.fewest

    def encode(self, indptr: Ints, cells: Ints, values: Floats, random_words: Uint64s, keys: Uint64s) -> Ints:
        """Return the number of the candidate that each device sends, shape (devices,).

        Parameters
        ----------
        indptr : ndarray, shape (devices + 1,)
        cells : ndarray, shape (numbers,)
            Ascending within a device.
        values : ndarray, shape (numbers,)
            Each device's have norm 1; one that has none sends any candidate.
        random_words : ndarray, shape (devices,)
            Secret words of the devices, of which nothing else is drawn.
        keys : ndarray, shape (2, devices)
            As `candidate_keys` returns them.
        """
        from dprec.kernels.draws import projections

        devices = indptr.size - 1
        chosen = np.empty(devices, dtype=np.int64)
        ranks = self._ranks(random_words)
        step = max(_BLOCK // self.candidates, 1)
        for first in range(0, devices, step):
            block = slice(first, min(first + step, devices))
            products = np.empty((block.stop - first, self.candidates))
            block_keys = np.ascontiguousarray(keys[:, block])
            projections(block_keys, indptr[first : block.stop + 1], cells, values, normals(), products)
            order = np.argsort(-products, axis=1, kind="stable")
            chosen[block] = np.take_along_axis(order, ranks[block, None], axis=1)[:, 0]
        return chosen

    def loudest(self, vectors: Vectors, seeds: Uint64s) -> tuple[int, int]:
        """Return the seed and the candidate of it that has the largest product with the signs of a vector.

        ``vectors``: of one device; ``seeds``, shape (seeds,): those to look at.
        """
        from dprec.kernels.draws import projections

        cells, values = vectors.cells, np.sign(vectors.numbers.ravel()).astype(np.float64)
        products = np.empty((seeds.size, self.candidates))
        indptr = np.arange(seeds.size + 1) * cells.size
        keys = np.ascontiguousarray(candidate_keys(seeds))
        projections(
            keys, indptr, np.tile(cells, seeds.size), np.tile(values, seeds.size), normals(), products
        )
        seed, candidate = divmod(int(products.argmax()), self.candidates)
        return int(seeds[seed]), candidate

    def total(self, chosen: Ints, keys: Uint64s, cells: int) -> Ints:
        """Return the sum of the candidates that were sent, in integers, so that parts can be added.

        ``chosen``, shape (devices,): below the number of candidates. ``keys``, shape (2, devices): as
        `candidate_keys` returns them. The sum: shape (cells,).
        """
        from dprec.kernels.draws import add_candidates

        sums = np.zeros(cells, dtype=np.int64)
        add_candidates(np.ascontiguousarray(keys), chosen, normals(), sums)
        return sums

    def parts(self, chosen: Ints, keys: Uint64s, cells: int) -> Ints:
        """Return the 16 bits of the first numbers of each candidate that was sent, shape (devices, cells)."""
        return np.searchsorted(normals(), self._each(chosen, keys, cells))

    def estimates(self, chosen: Ints, keys: Uint64s, cells: int) -> Floats:
        """Return what each candidate that was sent tells of its device's vector, shape (devices, cells)."""
        return self.estimate(self._each(chosen, keys, cells))

    def _each(self, chosen: Ints, keys: Uint64s, cells: int) -> Ints:
        totals = [self.total(chosen[[device]], keys[:, [device]], cells) for device in range(chosen.size)]
        return np.reshape(np.array(totals, dtype=np.int64), (-1, cells))

    def estimate(self, total: Ints) -> Floats:
        """Return what a total tells of the sum of the devices' vectors: an unbiased estimate of it."""
        return total / (self.gain * _unit())

    def _ranks(self, random_words: Uint64s) -> Ints:
        """Return the place, in the order of preference, of what each device sends."""
        draws = integer_weights(random_words)
        others = np.uint64((self.candidates - self.preferred) * self.fewest)
        last = self.preferred + draws // np.uint64(self.fewest)
        first = (draws - np.minimum(draws, others)) // np.uint64(self.most)
        return np.where(draws < others, last, first).astype(np.int64)


def candidate_keys(seeds: Uint64s) -> Uint64s:
    """Return what candidates follow from, given the seeds that devices send, shape (2, devices)."""
    return np.stack([seeds, np.full(seeds.size, _CANDIDATES)])


@functools.cache
def mean_of_largest(preferred: int, candidates: int) -> float:
    """Return the mean of the sum of the largest of some independent standard normal deviates."""
    from scipy import integrate, special

    def weighted(deviate: float) -> float:
        density = math.exp(-(deviate**2) / 2) / math.sqrt(2 * math.pi)
        # That fewer than so many of the others are larger.
        largest = special.betainc(candidates - preferred, preferred, special.ndtr(deviate))
        return float(deviate * density * largest)

    return candidates * float(integrate.quad(weighted, -9, 9, points=[0.0], limit=400, epsabs=1e-13)[0])


@functools.cache
def normals() -> Int32s:
    """Return the normal deviates that 16 bits stand for, as integers, shape (65536,)."""
    from scipy import special

    parts = (np.arange(1 << 16) + 0.5) / (1 << 16)
    deviates: Int32s = np.rint(special.ndtri(parts) * _UNIT).astype(np.int32)
    deviates.flags.writeable = False
    return deviates


def largest_total(devices: int) -> int:
    """Return what no number of the total of so many devices exceeds."""
    return devices * int(normals()[-1])


@functools.cache
def _unit() -> float:
    """Return the standard deviation of `normals`."""
    return float(np.sqrt((normals().astype(np.float64) ** 2).mean()))


@functools.cache
def _best(candidates: int, epsilon: float) -> VectorReports:
    """Return the reports that prefer as many as is best in the limit of many candidates."""
    from scipy import special

    parts = np.arange(1, candidates // 2 + 1) / candidates
    densities = np.exp(-(special.ndtri(parts) ** 2) / 2)
    preferred = int(np.argmax(densities / (parts + 1 / math.expm1(min(epsilon, _LARGEST))))) + 1
    growth = Fraction(math.exp(min(epsilon, _LARGEST)))
    fewest = math.ceil(DRAWS / (preferred * growth + candidates - preferred))
    reports = VectorReports(candidates, preferred, fewest)
    while reports.epsilon > epsilon:
        fewest += max(fewest >> 50, 1)
        reports = VectorReports(candidates, preferred, fewest)
    return reports
