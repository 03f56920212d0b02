"""The shares of noise that devices add, Skellam or Poisson, drawn from their own random words.

The difference of two Poisson numbers is a Skellam number; sums of such numbers are again Skellam, so shares
add up to the noise that the accounting assumes, however many devices there are (Agarwal, Kairouz and Liu
[agarwal2021], Section 3). A share is looked up in a table (Walker's alias method [walker1977]) by comparing
integers of 128 bits: what floating point would do to the probabilities does not arise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dprec.arrays import Int32s, Ints, Uint64s
from dprec.randomness import normal_steps
from dprec.secure_aggregation.encoding import skellam_tail
from dprec.secure_aggregation.streams import streams

TOTAL_BITS = 128
"""All probabilities are integer multiples of 2**-128; a table is off by less than `DISTANCE` in all."""

DISTANCE = 2.0**-108
"""Bound on the total variation distance between a table and the distribution that it stands for."""

BEYOND_BOUNDS = 2.0**-100
"""Most probability with which noise carries what an honest device adds beyond what it has to prove of it."""

_WORD_BITS = 64
_TAIL_BITS = 160
_LOWEST_BITS = 256
MOST_VARIANCE = 2.0**29
"""So that a table has at most 2**20 values, each off by less than 2**-128."""

MOST_MEAN = 2.0**20


@dataclass(frozen=True, eq=False)
class DrawTable:
    """Numbers of one distribution, ready to be drawn."""

    column_bits: int
    """The table has 2**column_bits columns."""
    high: Uint64s
    low: Uint64s
    """The draws of a column, of 2**(128 - column_bits), that yield its own value: the part that is compared
    with the rest of a draw's first word, and the part for its second; shape (columns,).
    """
    own: Int32s
    other: Int32s
    """The value of these draws, and of the others; shape (columns,)."""

    def draw(self, random_words: Uint64s, second_words: Callable[[Ints], Uint64s]) -> Int32s:
        """Map words to numbers, shape (draws,).

        ``second_words`` gives a further word for the draws, less than one in 2**32, that their first does not
        decide.
        """
        from dprec.kernels.draws import look_up_numbers

        bits, numbers = np.uint64(self.column_bits), np.empty(random_words.size, dtype=np.int32)
        if look_up_numbers(numbers, random_words, bits, self.high, self.own, self.other):
            rest_bits = np.uint64(_WORD_BITS) - bits
            columns = (random_words >> rest_bits).astype(np.intp)
            rest = random_words & ((np.uint64(1) << rest_bits) - np.uint64(1))
            undecided = np.flatnonzero(rest == self.high[columns])
            columns = columns[undecided]
            is_own = second_words(undecided) < self.low[columns]
            numbers[undecided] = np.where(is_own, self.own[columns], self.other[columns])
        return numbers


@lru_cache(maxsize=4)
def skellam_table(variance: float) -> DrawTable:
    """Return the table of one variance, above 0 and at most 2**29; raises ValueError for another."""
    if not 0 < variance <= MOST_VARIANCE:
        raise ValueError(f"Skellam noise of variance {variance:g}")
    weights = _weights(Fraction(variance))
    furthest = len(weights) - 1
    return _table(list(range(-furthest, furthest + 1)), weights[:0:-1] + weights)


@lru_cache(maxsize=4)
def poisson_table(mean: float) -> DrawTable:
    """Return the table of Poisson numbers of one mean, above 0 and at most 2**20; see `skellam_table`."""
    if not 0 < mean <= MOST_MEAN:
        raise ValueError(f"Poisson numbers of mean {mean:g}")
    exact, peak = Fraction(mean), math.floor(mean)
    first, relative = peak, [1 << _LOWEST_BITS]
    while first > 0 and relative[0]:
        relative.insert(0, relative[0] * first * exact.denominator // exact.numerator)
        first -= 1
    while relative[-1]:
        following = (first + len(relative)) * exact.denominator
        relative.append(relative[-1] * exact.numerator // following)
    total = sum(relative)
    weights = [(weight << TOTAL_BITS) // total for weight in relative]
    weights[peak - first] += (1 << TOTAL_BITS) - sum(weights)
    return _table(list(range(first, first + len(weights))), weights)


def _table(values: list[int], weights: list[int]) -> DrawTable:
    """Return the table of values that so many of 2**128 draws yield."""
    column_bits = max(1, (len(weights) - 1).bit_length())
    first_values, second_values, limits = _columns(values, weights, column_bits)
    mask = (1 << _WORD_BITS) - 1
    return DrawTable(
        column_bits,
        np.array([limit >> _WORD_BITS for limit in limits], dtype=np.uint64),
        np.array([limit & mask for limit in limits], dtype=np.uint64),
        np.array(first_values, dtype=np.int32),
        np.array(second_values, dtype=np.int32),
    )


def _weights(variance: Fraction) -> list[int]:
    """Return how many of 2**128 draws yield 0, 1 and so on; as many yield -1 and so on.

    The probability of k is exp(-v) I_k(v). Going down, I_{k-1}(v) = I_{k+1}(v) + 2 k / v I_k(v) is stable,
    and as a sum of positive numbers it cancels nothing.
    """
    furthest = skellam_tail(float(variance), 2.0**-_TAIL_BITS)
    bessel = [0] * (furthest + 2)
    bessel[furthest] = 1 << _LOWEST_BITS
    for k in range(furthest, 0, -1):
        bessel[k - 1] = bessel[k + 1] + 2 * k * variance.denominator * bessel[k] // variance.numerator
    total = bessel[0] + 2 * sum(bessel[1:])
    weights = [(value << TOTAL_BITS) // total for value in bessel[: furthest + 1]]
    while len(weights) > 1 and weights[-1] == 0:
        weights.pop()
    weights[0] += (1 << TOTAL_BITS) - weights[0] - 2 * sum(weights[1:])
    return weights


def _columns(
    values: list[int], weights: list[int], column_bits: int
) -> tuple[list[int], list[int], list[int]]:
    """Divide the draws of all values over columns of equally many draws, each of two values at most."""
    columns, capacity = 1 << column_bits, 1 << (TOTAL_BITS - column_bits)
    values = values + [0] * (columns - len(values))
    remaining = weights + [0] * (columns - len(weights))
    second_values, limits = list(values), [capacity] * columns
    small = [column for column in range(columns) if remaining[column] < capacity]
    large = [column for column in range(columns) if remaining[column] >= capacity]
    while small:
        column, giver = small.pop(), large[-1]
        limits[column], second_values[column] = remaining[column], values[giver]
        remaining[giver] -= capacity - remaining[column]
        if remaining[giver] < capacity:
            small.append(large.pop())
    return values, second_values, limits


def honest_shares(users: int, dropouts: float, colluders: int) -> int:
    """Return how many shares of noise hide a contribution, at least: those of honest devices that are left.

    The shares of colluding devices do not count, as the server knows them, nor those of the tolerated
    dropouts.
    """
    return users - math.floor(dropouts * users) - colluders


def noise_rows(keys: Sequence[bytes], size: int, variance: float) -> Int32s:
    """Return each device's share of the noise of a total, shape (devices, size)."""
    rows = np.zeros((len(keys), size), dtype=np.int32)
    if variance == 0:
        return rows

    def second_words(positions: Ints) -> Uint64s:
        users, places = np.divmod(positions, size)
        needed, row_of = np.unique(users, return_inverse=True)
        return streams([keys[user] for user in needed.tolist()], "noise, second", size)[row_of, places]

    rows.ravel()[:] = skellam_table(variance).draw(streams(keys, "noise", size).ravel(), second_words)
    return rows


def skellam_numbers(random: np.random.Generator, variance: float, count: int) -> Ints:
    """Return Skellam numbers as the shares of many devices add up to, drawn at once, shape (count,).

    For a simulation, in which they protect nobody. The difference of two Poisson numbers is off by what
    floating point does to their probabilities, which grows with the variance; where that is large, a rounded
    normal deviate is nearer: either by less than 10**-7 in total variation.
    """
    if variance > _NORMAL_BEYOND:
        return normal_steps(random, math.sqrt(variance), (count,))
    more, less = random.poisson(variance / 2, (2, count))
    return more - less


_NORMAL_BEYOND = 2.0**24
