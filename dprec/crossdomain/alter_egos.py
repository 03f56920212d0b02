"""AlterEgos: what a user's source profile would look like in the target domain, and the messages about it.

A row holds the candidates for one source item. A message to a device packs the rows of the items that
it rated: a byte for the width of the rows' lengths, the item set, the lengths, the items' means if they
are needed, and the rows.

Which target item replaces a source item is drawn on the device (private replacement selection, PRS). X-Sim
values are sent as integers of steps, and the probabilities of the exponential mechanism are held as integer
weights out of 2**60: the device compares a random word with their cumulative sum, and
`ReplacementDraws.channel_beside` derives the exact privacy loss from the same integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from dprec.accounting import LARGEST_CELL_EPSILON
from dprec.arrays import (
    AnyInts,
    Bools,
    Floats,
    Ints,
    Pieces,
    Uint64s,
    find,
    offsets,
    places_of,
    row_maxima,
    rows_of,
    segments,
)
from dprec.channel import Channel
from dprec.components import Options, option
from dprec.crossdomain.similarity import SimilarityKind, global_sensitivity
from dprec.errors import SettingError
from dprec.randomness import DRAW_BITS, DRAWS, integer_weights
from dprec.ratings import RatingScale
from dprec.wire import ItemSets, Reader, ReportCodec, encode_items

if TYPE_CHECKING:
    import scipy.sparse as sp

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
        # The target item at a place among those that a row does not list.
        start, stop = first[beyond], last[beyond]
        passed = _search(lambda at: table.targets[at] - (at - start) > order, start, stop) - start
        targets[beyond] = order + passed
        return targets

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


@dataclass(frozen=True, kw_only=True)
class ReplacementOptions(Options):
    """How a source item is replaced by a target item."""

    selection: Literal["private", "random", "best", "none"] = option(
        "'private': PRS over all candidates; 'random': one of the best few; 'best': the best; 'none': no "
        "AlterEgo, only the target domain.",
        "best",
    )
    epsilon: float | None = option(
        "Privacy loss of one replacement, for 'private'.", None, gt=0, le=LARGEST_CELL_EPSILON
    )
    among: int = option("How many of the best candidates 'random' draws from.", 4, ge=1)
    candidates: Literal["valued", "catalogue"] = option(
        "What PRS draws from: target items with an X-Sim value, a set that depends on the ratings, or all.",
        "valued",
        published="valued",
        source="guerraoui2017, Theorem 1",
    )
    global_sensitivity: float | None = option(
        "How far one user can move X-Sim; by default the width of the similarity's range.", None, gt=0
    )
    transfer: Literal["rating", "deviation"] = option(
        "What the replacement inherits: the rating, or its deviation from the source item's mean.",
        "rating",
        published="rating",
        source="guerraoui2017, section 4.3",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.private and self.epsilon is None:
            raise SettingError("epsilon", "none, with private selection", "a number above 0")
        if not self.private and self.epsilon is not None:
            found = f"a budget, with selection {self.selection!r}"
            raise SettingError("epsilon", found, "null, or --set protocol.replacement.selection=private")

    @property
    def private(self) -> bool:
        """Whether replacements are drawn by PRS, within a budget."""
        return self.selection == "private"

    @property
    def whole_catalogue(self) -> bool:
        """Whether target items without an X-Sim value can be drawn too."""
        return self.private and self.candidates == "catalogue"

    @property
    def deviations(self) -> bool:
        """Whether replacements inherit deviations from the source items' means instead of ratings."""
        return self.transfer == "deviation"

    def sensitivity(self, kind: SimilarityKind) -> float:
        """Return GS for a similarity; raises SettingError when another sensitivity is configured."""
        width = global_sensitivity(kind)
        if self.global_sensitivity not in (None, width):
            raise SettingError(
                "global_sensitivity",
                f"{self.global_sensitivity:g}, with {kind} similarity",
                f"{width:g}, the width of its range",
            )
        return width


@dataclass(frozen=True, eq=False)
class AlterEgos:
    """The AlterEgos of some users."""

    indptr: Ints
    """Shape (users + 1,)."""
    targets: Ints
    """Positions in the target domain, ascending within a user; shape (cells,)."""
    values: Floats
    """Ratings, or deviations from an item's mean; shape (cells,)."""

    @classmethod
    def none(cls, n_users: int) -> Self:
        """Return empty AlterEgos."""
        return cls(np.zeros(n_users + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def alter_egos(
    users: AnyInts,
    items: AnyInts,
    values: Floats,
    n_users: int,
    draws: ReplacementDraws,
    random_words: Uint64s,
    target_start: int,
) -> AlterEgos:
    """Replace the source items of profiles by target items.

    The values of items replaced by the same target item are averaged, and a user's own ratings of target
    items take precedence over replacements (Guerraoui et al. [guerraoui2017], section 4.3).
    """
    places, listed = find(draws.candidates.items, items)
    replaced = np.flatnonzero(listed)
    targets = draws.draw(places[replaced], random_words[replaced])
    cells = users[replaced].astype(np.int64) * draws.n_targets + targets
    target_items = items.astype(np.int64) - target_start
    in_target = (target_items >= 0) & (target_items < draws.n_targets)
    rated = users[in_target].astype(np.int64) * draws.n_targets + target_items[in_target]
    free = ~np.isin(cells, rated)
    distinct, of_cell = np.unique(cells[free], return_inverse=True)
    sums = np.bincount(of_cell, weights=values[replaced[free]], minlength=distinct.size)
    counts = np.bincount(distinct // draws.n_targets, minlength=n_users)
    return AlterEgos(
        offsets(counts),
        distinct % draws.n_targets,
        sums / np.maximum(np.bincount(of_cell, minlength=distinct.size), 1),
    )


CODES = 241
"""Codes of a value. On a five-star scale a star is 60 of them, so means of 2 to 6 whole stars are exact;
among deviations, which range over twice the width, it is 30."""

_WIDTHS = (1, 2, 4)


@dataclass(frozen=True)
class ValueCode:
    """Numbers coded in a byte: the range from `low` to `high` in equal steps."""

    low: float
    high: float

    @classmethod
    def of(cls, scale: RatingScale, *, deviations: bool) -> Self:
        """Return the code for ratings on a scale, or for differences between two."""
        width = scale.high - scale.low
        return cls(-width, width) if deviations else cls(scale.low, scale.high)

    def encode(self, values: Floats) -> Ints:
        """Return the nearest codes."""
        parts = (values - self.low) / (self.high - self.low) * (CODES - 1)
        return np.clip(np.rint(parts), 0, CODES - 1).astype(np.int64)

    def decode(self, codes: AnyInts) -> Floats:
        """Return the values that the codes stand for."""
        share = codes.astype(np.float64) / (CODES - 1)
        return self.low + share * (self.high - self.low)


class RowCodec:
    """Encoder and decoder of candidate rows, perhaps with X-Sim values and the source items' means."""

    def __init__(self, n_items: int, n_targets: int, *, with_steps: bool, with_means: bool) -> None:
        self.n_items, self.n_targets = n_items, n_targets
        self.with_steps, self.with_means = with_steps, with_means
        self._rows = ReportCodec(_plain_channel(2 * STEPS + 1 if with_steps else 2), n_targets)

    def rows(self, candidates: Candidates) -> Pieces:
        """Encode every row by itself."""
        symbols = candidates.steps + STEPS if self.with_steps else np.zeros_like(candidates.targets)
        return self._rows.encode(candidates.indptr, candidates.targets, symbols)

    def packed_sizes(self, indptr: Ints, items: Ints, row_sizes: Ints) -> Ints:
        """Return the bytes of messages that carry some rows each, shape (messages,); items ascend in each."""
        counts = np.diff(indptr)
        set_bytes = -(-ItemSets.plan(indptr, items, self.n_items).bits // 8)
        per_row = np.array(_WIDTHS)[_width_index(row_maxima(row_sizes, indptr))] + int(self.with_means)
        sizes = 1 + set_bytes + counts * per_row + np.diff(offsets(row_sizes)[indptr])
        return np.where(counts > 0, sizes, 0)

    def pack(self, items: Ints, rows: Sequence[bytes], means: Ints) -> bytes:
        """Pack the rows of source items, in ascending order, with the codes of the items' means."""
        if not rows:
            return b""
        rows = Pieces.of(rows)
        width = _WIDTHS[int(_width_index(rows.sizes.max()))]
        middle = means.astype(np.uint8).tobytes() if self.with_means else b""
        lengths = rows.sizes.astype(f"<u{width}").tobytes()
        return b"".join([bytes([width]), encode_items(items, self.n_items), lengths, middle, rows.data])

    def unpack(self, data: bytes) -> tuple[Candidates, Ints]:
        """Unpack rows and the codes of their items' means; raises ValueError for a malformed message."""
        if not data:
            empty = np.zeros(0, dtype=np.int64)
            return Candidates(empty, np.zeros(1, dtype=np.int64), empty, empty), empty
        width, body = data[0], data[1:]
        if width not in _WIDTHS or not body:
            raise ValueError("rows without their lengths")
        read = Reader(body)
        items = read.item_set(self.n_items)
        sizes = read.numbers(np.dtype(f"<u{width}"), items.size).astype(np.int64)
        means = read.numbers(np.dtype(np.uint8), items.size * int(self.with_means)).astype(np.int64)
        if int(sizes.sum()) != len(read.rest()):
            raise ValueError("rows that differ in length from what was announced")
        rows = self._rows.decode(Pieces(read.rest(), offsets(sizes)))
        counts = np.diff(rows.indptr)
        if not rows.valid.all() or not counts.all() or means.max(initial=0) >= CODES:
            raise ValueError("a malformed row")
        steps = rows.symbols.astype(np.int64) - STEPS if self.with_steps else np.zeros(rows.items.size)
        return (
            Candidates(
                items.astype(np.int64),
                rows.indptr.astype(np.int64),
                rows.items.astype(np.int64),
                steps.astype(np.int64),
            ),
            means,
        )


class AlterEgoCodec:
    """Encoder and decoder of AlterEgos: the set of target items and a code for each."""

    def __init__(self, n_targets: int, values: ValueCode) -> None:
        self._codec, self._values = ReportCodec(_plain_channel(CODES), n_targets), values

    def encode(self, egos: AlterEgos) -> Pieces:
        """Encode the AlterEgo of every user."""
        return self._codec.encode(egos.indptr, egos.targets, self._values.encode(egos.values))

    def decode(self, reports: Sequence[bytes]) -> tuple[Bools, AlterEgos]:
        """Decode and validate; returns which reports are valid, and the AlterEgos, empty for the others."""
        decoded = self._codec.decode(reports)
        values = self._values.decode(decoded.symbols)
        return decoded.valid, AlterEgos(decoded.indptr, decoded.items.astype(np.int64), values)


def _plain_channel(symbols: int) -> Channel:
    numbers = np.arange(symbols, dtype=np.float64)
    return Channel(np.eye(symbols, dtype=np.uint64) << np.uint64(DRAW_BITS), numbers, numbers)


def _width_index(sizes: Ints) -> Ints:
    """Return the index of the least width that holds each size."""
    return np.searchsorted([1 << (8 * width) for width in _WIDTHS], sizes, side="right").astype(np.int64)
