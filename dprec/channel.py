"""A mechanism is a channel: the matrix Q[x, z] = Pr(symbol z is sent | true level x).

The matrix is held in integers: row x gives each symbol an integer of 2**60 equally likely
draws. What the device does (compare a random word with the cumulative weights), how private it is
(the largest ratio in a column) and what the server may infer (the likelihood of a report) all follow
from these same integers, so the privacy reported is that of the draws that are made, with no
floating-point error in between.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprec.arrays import Floats, Ints, Uint16s, Uint64s
from dprec.errors import check_least
from dprec.randomness import DRAW_BITS, DRAWS, loss_of_draws, most_draws

_GUIDE_BITS = 12
"""First bits of a draw, at most, by which a guide says where its symbol is."""

_SPARSE = 4
"""A guide of more bits than that beyond those of a symbol is hardly better."""

_NEARLY = 2.0**-50
"""Relative error of a ratio in floating point, and more."""

_KEPT = 4096
"""Draws by which floating-point rounding may miss the sum of a row, and more."""

_TOLERANCE = 1e-7
"""Amount by which floating-point errors may make a matrix exceed its budget before it is rounded."""


@dataclass(frozen=True, eq=False)
class Channel:
    """A row-stochastic matrix from true levels to symbols."""

    weights: Uint64s
    """Draws out of 2**60 that turn each input into each symbol; rows sum to 2**60; shape (inputs, symbols).
    """
    inputs: Floats
    """The rating each row stands for; a first row of NaN is "not rated"; shape (inputs,)."""
    values: Floats
    """The rating that a published decoder reads from each symbol; NaN reads as "not rated"; shape (symbols,).
    """

    @classmethod
    def from_probabilities(
        cls, probabilities: ArrayLike, inputs: ArrayLike, values: ArrayLike, epsilon: float
    ) -> Self:
        """Round a matrix of probabilities to integer weights that lose no more than epsilon.

        Parameters
        ----------
        probabilities : array_like, shape (inputs, symbols)
            Non-negative; rows are normalised.
        inputs, values : array_like
            As for the class.
        epsilon : float
            The budget; infinite if nothing is promised.

        Raises
        ------
        ValueError
            When the shapes do not agree, a row is not a distribution, epsilon is negative or NaN, or the rows
            cost more than it.
        """
        rows = np.asarray(probabilities, dtype=np.float64)
        check_least("an epsilon", epsilon)
        if rows.ndim != 2 or rows.shape != (np.size(inputs), np.size(values)):
            raise ValueError(f"probabilities of shape {rows.shape} for {np.size(inputs)} x {np.size(values)}")
        if not (np.all(np.isfinite(rows)) and np.all(rows >= 0) and np.all(rows.sum(axis=1) > 0)):
            raise ValueError("every row must hold non-negative numbers with a positive sum")
        return cls(
            rounded_to_draws(rows, epsilon).astype(np.uint64),
            np.array(inputs, dtype=np.float64),
            np.array(values, dtype=np.float64),
        )

    @property
    def symbols(self) -> int:
        """Number of symbols."""
        return self.values.size

    @property
    def first_level(self) -> int:
        """Level of the first row: 0 when "not rated" is an input, else 1."""
        return 0 if np.isnan(self.inputs[0]) else 1

    @property
    def hides_rated_items(self) -> bool:
        """Whether "not rated" is an input, so that a report covers every item."""
        return self.first_level == 0

    @cached_property
    def probabilities(self) -> Floats:
        """Q, shape (inputs, symbols)."""
        return self.weights.astype(np.float64) / DRAWS

    @cached_property
    def epsilon(self) -> float:
        """Exact loss max log(Q[x, z] / Q[x', z]), rounded up; infinite if a symbol excludes an input."""
        most, fewest = self.weights.max(axis=0), self.weights.min(axis=0)
        most, fewest = most[most > 0], fewest[most > 0]
        if not fewest.all():
            return math.inf
        # Floating point finds the columns that may be the worst, integers the one that is.
        growths = (most - fewest) / fewest
        worst = np.flatnonzero(growths >= growths.max() * (1 - _NEARLY))
        pairs = zip(most[worst].tolist(), fewest[worst].tolist(), strict=True)
        return loss_of_draws(*max(set(pairs), key=lambda pair: Fraction(*pair)))

    def sample(self, levels: NDArray[np.unsignedinteger], random_words: Uint64s) -> Uint16s:
        """Send each level through the channel.

        Parameters
        ----------
        levels : ndarray of unsigned int, shape (cells,)
            Levels from `first_level`.
        random_words : ndarray of uint64, shape (cells,)
            One uniform word per cell.

        Returns
        -------
        ndarray of uint16, shape (cells,)
            Symbols, from 0.
        """
        from dprec.kernels.draws import invert

        rows = (levels - self.first_level).astype(np.uint8, copy=False)
        if rows.max(initial=0) >= self.inputs.size or rows.size != random_words.size:
            raise ValueError(f"levels that are none of {self.inputs.size}, or {random_words.size} words")
        symbols = np.empty(levels.size, dtype=np.uint16)
        random_words = np.ascontiguousarray(random_words)
        invert(rows, random_words, np.uint64(64 - DRAW_BITS), *self._inversion, symbols)
        return symbols

    @cached_property
    def _inversion(self) -> tuple[Uint64s, Uint16s, np.uint64]:
        """The cumulative draws of each row, and its guide for so many last bits of a draw left out.

        The guide is the symbol of the first draw with the same first bits.
        """
        cumulative = np.cumsum(self.weights, axis=1, dtype=np.uint64)
        bits = min(_GUIDE_BITS, self.symbols.bit_length() + _SPARSE)
        shift = np.uint64(DRAW_BITS - bits)
        first = np.arange(1 << bits, dtype=np.uint64) << shift
        guide = np.array([np.searchsorted(row, first, side="right") for row in cumulative])
        return cumulative, guide.astype(np.uint16), shift

    def marginal(self, prior: Floats | None = None) -> Floats:
        """Return the distribution of the symbols, shape (symbols,).

        Parameters
        ----------
        prior : ndarray, shape (inputs,), optional
            Distribution of the inputs; uniform by default.
        """
        inputs = len(self.inputs)
        return (np.full(inputs, 1 / inputs) if prior is None else prior) @ self.probabilities

    def entropy(self, prior: Floats | None = None) -> float:
        """Return the entropy of a symbol in bits: the least cost of a report per cell."""
        shares = self.marginal(prior)
        shares = shares[shares > 0]
        return max(0.0, float(-(shares * np.log2(shares)).sum()))

    def bias(self) -> Floats:
        """Return E[values[z] | x] - x per input, given a rating is shown; NaN for "not rated"."""
        return self._moment(1) - self.inputs

    def variance(self) -> Floats:
        """Return Var[values[z] | x] per input, given that the symbol shows a rating, shape (inputs,)."""
        return np.maximum(0.0, self._moment(2) - self._moment(1) ** 2)

    def _moment(self, order: int) -> Floats:
        decoded = ~np.isnan(self.values)
        shares = self.probabilities[:, decoded]
        return shares @ self.values[decoded] ** order / shares.sum(axis=1)


class OverspentError(ValueError):
    """Probabilities cost more than the epsilon that they are for."""


def rounded_to_draws(probabilities: Floats, epsilon: float) -> Ints:
    """Return integer weights with nearly the given probabilities, whose exact loss is at most epsilon.

    Rows are normalised and sum to `DRAWS`. With a promise, a symbol that one input can send has a draw for
    every input. Raises OverspentError when the probabilities cost more than epsilon, and ValueError when
    integer weights are too coarse for so small a one.
    """
    used = (probabilities.max(axis=0) > 0) & math.isfinite(epsilon)
    rows = np.maximum(probabilities / probabilities.sum(axis=1, keepdims=True), used / DRAWS)
    possible = rows[:, rows.max(axis=0) > 0]
    loss = float((np.log(possible.max(axis=0)) - np.log(possible.min(axis=0))).max()) if used.any() else 0.0
    if loss > epsilon + _TOLERANCE:
        sent = probabilities[:, used] > 0
        if not (always := sent.all(axis=0)).all():
            never, ever = (pick(sent[:, always.argmin()]) + 1 for pick in (np.argmin, np.argmax))
            raise OverspentError(
                f"an infinite loss: a symbol that row {never} never sends and row {ever} does"
            )
        raise OverspentError(f"probabilities that cost {loss:.9g}, at epsilon {epsilon:.9g}")
    # Some draws are kept back, so that no row sums to more than `DRAWS`.
    total = DRAWS - _KEPT - 4 * rows.shape[1]
    # The smallest number of a column is rounded up and one more, so that the largest can be what it should.
    fewest = (np.ceil(rows.min(axis=0) * total).astype(np.int64) + 1) * used
    most = most_draws(fewest, epsilon)
    draws = np.ascontiguousarray(np.clip(np.floor(rows * total).astype(np.int64), fewest, most))
    inputs = np.arange(len(rows))
    # The draws left over go to the likeliest symbols that have room, where they matter least.
    while np.any(spare := DRAWS - draws.sum(axis=1)):
        likeliest = np.where(draws < most, draws, -1).argmax(axis=1)
        added = np.minimum(spare, most[likeliest] - draws[inputs, likeliest])
        if np.any((added == 0) & (spare > 0)):
            raise ValueError("so small an epsilon that integer weights are too coarse for it")
        draws[inputs, likeliest] += added
    return draws
