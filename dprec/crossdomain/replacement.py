"""Private replacement selection (PRS): which target item replaces a source item.

X-Sim values are sent as integers of steps, and the probabilities of the exponential mechanism are
held as integer weights out of 2**60: the device compares a random word with their cumulative sum, and
`ReplacementDraws.channel_beside` derives the exact privacy loss from the same integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dprec.arrays import Bools, Floats, Ints, Uint64s, offsets, places_of, row_maxima, rows_of, segments
from dprec.channel import Channel
from dprec.randomness import DRAWS, integer_weights

STEPS = 127
"""Steps of X-Sim from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """For some source items, the target items that may replace each of them."""

    items: Ints
    """The source items, ascending; shape (rows,)."""
    indptr: Ints
    """Shape (rows + 1,)."""
    targets: Ints
    """Positions in the target domain, ascending within a row; shape (candidates,)."""
    steps: Ints
    """X-Sim in steps, -`STEPS` to `STEPS`; shape (candidates,)."""

    @classmethod
    def of(cls, x_sim: sp.csr_array) -> Candidates:
        """Return the stored entries of a source x target matrix of X-Sim, explicit zeros included."""
        matrix = x_sim.tocsr()
        matrix.sort_indices()
        counts = np.diff(matrix.indptr)
        items = np.flatnonzero(counts)
        return cls(
            items,
            offsets(counts[items]),
            matrix.indices.astype(np.int64),
            np.rint(matrix.data * STEPS).astype(np.int64),
        )

    @property
    def counts(self) -> Ints:
        """Candidates of each row, shape (rows,)."""
        return np.diff(self.indptr)

    def best(self, x_sim: sp.csr_array, most: int) -> Candidates:
        """Return each row's candidates of the highest X-Sim, at most ``most``; ties go to lower items."""
        rows = rows_of(self.counts)
        matrix = x_sim.tocsr()
        matrix.sort_indices()
        order = np.lexsort((self.targets, -matrix.data, rows))
        chosen = np.zeros(order.size, dtype=np.bool_)
        chosen[order[places_of(self.counts) < most]] = True
        counts = np.bincount(rows[chosen], minlength=self.items.size)
        return Candidates(self.items, offsets(counts), self.targets[chosen], self.steps[chosen])

    def covering(self, items: Ints) -> Candidates:
        """Return the candidates with a row for each of the given items.

        An item without candidates gets one with an X-Sim of 0, so it does not show that it has none.
        """
        missing = np.setdiff1d(items, self.items)
        added = np.zeros_like(missing)
        rows = np.concatenate([np.repeat(self.items, self.counts), missing])
        order = np.argsort(rows, kind="stable")
        covered, counts = np.unique(rows, return_counts=True)
        return Candidates(
            covered,
            offsets(counts),
            np.concatenate([self.targets, added])[order],
            np.concatenate([self.steps, added])[order],
        )

    def rows(self, which: Ints) -> Candidates:
        """Return some of the rows, given by position in `items`, ascending."""
        counts = self.counts[which]
        cells = segments(self.indptr[which], counts)
        return Candidates(
            self.items[which],
            offsets(counts),
            self.targets[cells],
            self.steps[cells],
        )


@dataclass(frozen=True, eq=False)
class ReplacementDraws:
    """The exponential mechanism over the candidates of each row, in integer weights."""

    candidates: Candidates
    weights: Uint64s
    """Draws out of 2**60 that select each candidate; shape (candidates,)."""
    unlisted_weight: Uint64s
    """Draws that select each target item that is not listed; 0 if only listed ones can be drawn;
    shape (rows,).
    """
    n_targets: int
    """Size of the target domain."""

    @classmethod
    def prepare(
        cls,
        candidates: Candidates,
        epsilon: float,
        sensitivity: float,
        n_targets: int,
        *,
        whole_catalogue: bool,
    ) -> ReplacementDraws:
        """Compute the probabilities of the exponential mechanism.

        Pr(t_j) is proportional to exp(eps X-SIM(t_i, t_j) / (2 GS)) (Guerraoui et al. [guerraoui2017],
        Theorem 1), GS being the most by which one user can change a value. Target items without one can be
        drawn too, with an X-Sim of 0, from the whole catalogue: which have a value depends on the users, so
        that the mechanism is private for any ratings only there, with a row for every source item
        (`Candidates.covering`).
        """
        per_step = epsilon / (2 * sensitivity) / STEPS
        rows = rows_of(candidates.counts)
        peak = row_maxima(candidates.steps, candidates.indptr)
        if whole_catalogue:
            peak = np.maximum(peak, 0)
        shares = np.exp(per_step * (candidates.steps - peak[rows]))
        unlisted = np.exp(-per_step * peak) if whole_catalogue else np.zeros(peak.size)
        left_out = n_targets - candidates.counts
        totals = np.bincount(rows, weights=shares, minlength=peak.size) + left_out * unlisted
        weights = np.floor(shares / totals[rows] * DRAWS).astype(np.int64)
        unlisted_weight = np.floor(unlisted / totals * DRAWS).astype(np.int64)
        spent = np.zeros(peak.size, dtype=np.int64)
        np.add.at(spent, rows, weights)
        # Rounding leaves a few draws over; they go to the likeliest candidate, where they matter least.
        likeliest = np.lexsort((candidates.targets, -candidates.steps, rows))[candidates.indptr[:-1]]
        weights[likeliest] += DRAWS - spent - left_out * unlisted_weight
        return cls(candidates, weights.astype(np.uint64), unlisted_weight.astype(np.uint64), n_targets)

    def probabilities(self, row: int) -> Floats:
        """Return the probability of every target item for a row, shape (n_targets,)."""
        return self._draws(row).astype(np.float64) / DRAWS

    def channel_beside(self, other: ReplacementDraws, row: int) -> Channel:
        """Return the same row of these draws and of another table's as a channel with an exact epsilon."""
        positions = np.arange(self.n_targets, dtype=np.float64)
        return Channel(np.stack([self._draws(row), other._draws(row)]), np.array([0.0, 1.0]), positions)

    def draw(self, rows: Ints, random_words: Uint64s) -> Ints:
        """Draw one replacement, a position in the target domain, per random word, shape (draws,)."""
        table = self.candidates
        draws = integer_weights(random_words)
        # Sums run over all rows and may wrap at 2**64; differences from a row's start are still right.
        sums = np.zeros(self.weights.size + 1, dtype=np.uint64)
        np.cumsum(self.weights, out=sums[1:])
        base, first, last = sums[table.indptr[:-1][rows]], table.indptr[:-1][rows], table.indptr[1:][rows]
        places = _search(lambda at: sums[at + 1] - base > draws, first, last)
        listed = places < last
        targets = np.empty(rows.size, dtype=np.int64)
        targets[listed] = table.targets[places[listed]]
        beyond = ~listed
        surplus = draws[beyond] - (sums[last] - base)[beyond]
        order = (surplus // self.unlisted_weight[rows[beyond]]).astype(np.int64)
        targets[beyond] = self._unlisted(rows[beyond], order)
        return targets

    def _unlisted(self, rows: Ints, order: Ints) -> Ints:
        """Return the target item at a given place among those that a row does not list."""
        table = self.candidates
        first, last = table.indptr[:-1][rows], table.indptr[1:][rows]
        passed = _search(lambda at: table.targets[at] - (at - first) > order, first, last) - first
        return order + passed

    def _draws(self, row: int) -> Uint64s:
        cells = slice(self.candidates.indptr[row], self.candidates.indptr[row + 1])
        draws = np.full(self.n_targets, self.unlisted_weight[row], dtype=np.uint64)
        draws[self.candidates.targets[cells]] = self.weights[cells]
        return draws


def _search(holds: Callable[[Ints], Bools], first: Ints, last: Ints) -> Ints:
    """Return, for every range first:last, the first place at which a monotone condition holds, or last.

    All ranges are bisected together; the condition is evaluated at one place of each.
    """
    low, high = first.copy(), last.copy()
    while np.any(searching := low < high):
        # A range that is done is evaluated at a place inside it again, and does not change.
        middle = np.where(searching, (low + high) // 2, np.maximum(first, low - 1))
        satisfied = holds(middle)
        high = np.where(searching & satisfied, middle, high)
        low = np.where(searching & ~satisfied, middle + 1, low)
    return low
