"""The report of a user as bytes: which items it shows as rated, and one symbol for each.

A mechanism that reveals the item set sends it and the symbols. A mechanism that hides
them has a symbol for every item; its report is either the whole row of symbols, including "not rated",
or the set of items that it shows as rated with their symbols, whichever is shorter on average for the
channel. Every layout and code follows from the channel and the catalogue alone, which both ends know. A
report that shows nothing has no bytes, unless whole rows are sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprec.arrays import AnyInts, Bools, Int32s, Ints, Uint16s, blocks, cut, offsets, rows_of, sizes_of
from dprec.channel import Channel
from dprec.errors import InputError
from dprec.wire.symbols import (
    MAX_FIELD_BITS,
    BitStream,
    ItemSets,
    PrefixCode,
    longest_item_set,
    read_item_sets,
)

_LEAST_RATE = 1e-9

_CELLS_AT_ONCE = 1 << 15
_BYTES_AT_ONCE = 1 << 16
"""What is encoded and decoded at once: little enough for the processor's caches, for any partition."""


@dataclass(frozen=True, eq=False)
class DecodedReports:
    """The reports of a partition after validation."""

    valid: Bools
    """Shape (users,)."""
    indptr: Ints
    """Cells of each user; a rejected report has none; shape (users + 1,)."""
    items: Int32s
    """Shape (cells,)."""
    symbols: Uint16s
    """Shape (cells,)."""


class ReportCodec:
    """Encoder and decoder of reports for one channel and one catalogue.

    ``symbols``: those that the channel of another user may have, where budgets differ; by default no more
    than this. Raises InputError when the catalogue has more items than the fields of a report can represent.
    """

    def __init__(self, channel: Channel, n_items: int, symbols: int = 0) -> None:
        if not 1 <= n_items <= 1 << MAX_FIELD_BITS:
            raise InputError("catalogue", f"{n_items} items", f"1 to {1 << MAX_FIELD_BITS}")
        self.n_items = n_items
        self._blank = int(np.flatnonzero(np.isnan(channel.values))[0]) if channel.hides_rated_items else None
        if self._blank is None:
            self._whole_row = False
            further = np.zeros(max(0, symbols - channel.symbols))
            self._shares, self._shown_per_item = np.append(channel.marginal(), further), 0.0
            self._code = PrefixCode.for_distribution(self._shares)
            return
        # Nearly all items of a user are not rated, so symbols mostly follow that row of the channel.
        shares = channel.probabilities[0]
        shown = np.delete(shares, self._blank)
        row_code, cell_code = PrefixCode.for_distribution(shares), PrefixCode.for_distribution(shown)
        # The least rate avoids a division by 0 if next to nothing is shown.
        rate = max(float(shown.sum()), _LEAST_RATE)
        set_bits = min(1.0, rate * _rice_bits_per_item(rate))
        self._whole_row = row_code.expected_bits(shares) < set_bits + rate * cell_code.expected_bits(shown)
        self._code = row_code if self._whole_row else cell_code
        self._shares, self._shown_per_item = (shares, 1.0) if self._whole_row else (shown, rate)

    @property
    def longest_report(self) -> int:
        """Greatest size in bytes of a valid report."""
        set_bits = 0 if self._whole_row else longest_item_set(self.n_items)
        return -(-(set_bits + self.n_items * self._code.longest) // 8)

    def expected_bits(self, ratings: int) -> float:
        """Return the mean size in bits, before padding, of the report of a user with that many ratings.

        The items are taken to be spread evenly over the catalogue. If the item set is revealed, all
        levels are taken to be equally frequent; if they are hidden, the report is that of a user without
        ratings, from which a rating hardly differs.
        """
        hidden = self._blank is not None
        cells = round(self._shown_per_item * self.n_items) if hidden else ratings
        symbol_bits = cells * self._code.expected_bits(self._shares)
        if self._whole_row:
            return symbol_bits
        items = np.linspace(0, self.n_items - 1, cells).astype(np.int64)
        return symbol_bits + float(ItemSets.plan(np.array([0, cells]), items, self.n_items).lengths[0])

    def encode(self, indptr: Ints, items: AnyInts, symbols: AnyInts) -> list[bytes]:
        """Encode the reports of a partition."""
        counts: Ints = np.diff(indptr)
        sizes = np.full_like(counts, self.n_items) if self._whole_row else counts
        reports: list[bytes] = []
        for users in blocks(sizes, _CELLS_AT_ONCE):
            cells = slice(indptr[users.start], indptr[users.stop])
            block = indptr[users.start : users.stop + 1] - cells.start
            reports += self._encode_block(block, items[cells], symbols[cells])
        return reports

    def _encode_block(self, indptr: Ints, items: AnyInts, symbols: AnyInts) -> list[bytes]:
        counts: Ints = np.diff(indptr)
        sets = None if self._whole_row else ItemSets.plan(indptr, items, self.n_items)
        if sets is None:
            rows = np.full((counts.size, self.n_items), self._blank, dtype=np.int64)
            rows[rows_of(counts), items] = symbols
            coded: AnyInts = rows.ravel()
            cell_counts = np.full(counts.size, self.n_items)
        else:
            coded, cell_counts = self._without_blank(symbols), counts
        code_starts, cells = offsets(self._code.lengths[coded]), offsets(cell_counts)
        symbol_bits = np.diff(code_starts[cells])
        set_bits = np.zeros_like(counts) if sets is None else sets.lengths
        sizes = (set_bits + symbol_bits + 7) // 8
        starts = offsets(sizes)[:-1] * 8
        bits = np.zeros(int(sizes.sum()) * 8, dtype=np.uint8)
        if sets is not None:
            sets.write(bits, starts)
        bases = starts + set_bits - code_starts[cells[:-1]]
        self._code.write(bits, code_starts[:-1] + np.repeat(bases, cell_counts), coded)
        return cut(np.packbits(bits).tobytes(), sizes)

    def parts(self, report: bytes) -> dict[str, int]:
        """Return the bits of each part of a valid report, without its padding."""
        stream, first = BitStream([report]), np.zeros(1, dtype=np.int64)
        if self._whole_row:
            ends = self._code.read(stream, stream.starts, np.full(1, self.n_items))[1]
            return {"a symbol for every item": int(ends[0])}
        if not report:
            return {}
        _, counts, _, positions = read_item_sets(stream, first, self.n_items)
        ends = self._code.read(stream, positions, counts)[1]
        return {"item set": int(positions[0]), "symbols": int(ends[0] - positions[0])}

    def decode(self, reports: Sequence[bytes]) -> DecodedReports:
        """Decode and validate the reports of a partition; malformed ones are rejected without an exception.

        A report is rejected if it is longer than any valid one, is cut short, contains an item outside
        the catalogue, or does not end with its last symbol, apart from padding zeros.
        """
        sizes = sizes_of(reports)
        parts = [self._decode_block(reports[users]) for users in blocks(sizes, _BYTES_AT_ONCE)]
        cells = np.concatenate([np.diff(part.indptr) for part in parts])
        return DecodedReports(
            np.concatenate([part.valid for part in parts]),
            offsets(cells),
            np.concatenate([part.items for part in parts]),
            np.concatenate([part.symbols for part in parts]),
        )

    def _decode_block(self, reports: Sequence[bytes]) -> DecodedReports:
        lengths = sizes_of(reports)
        sane = lengths <= self.longest_report
        stream = BitStream([report if ok else b"" for report, ok in zip(reports, sane.tolist(), strict=True)])
        filled = np.flatnonzero(sane & (lengths > 0))
        if self._whole_row:
            return self._decode_rows(stream, sane, filled)
        ok, counts, items, positions = read_item_sets(stream, filled, self.n_items)
        # A set that claims more cells than the bits after it allow is cheap to send but costly to read.
        ok[ok] = positions[ok] + counts[ok] * self._code.shortest <= stream.ends[filled[ok]]
        items = items[np.repeat(ok, counts)]
        readers = filled[ok]
        symbols, ends = self._code.read(stream, positions[ok], counts[ok])
        complete = _ends_cleanly(stream, readers, ends)
        accepted = np.repeat(complete, counts[ok])
        valid = sane & (lengths == 0)
        valid[readers[complete]] = True
        cells = np.zeros(lengths.size, dtype=np.int64)
        cells[readers[complete]] = counts[ok][complete]
        return DecodedReports(
            valid,
            offsets(cells),
            items[accepted],
            self._with_blank(symbols[accepted]),
        )

    def _decode_rows(self, stream: BitStream, sane: Bools, filled: Ints) -> DecodedReports:
        symbols, ends = self._code.read(stream, stream.starts[filled], np.full(filled.size, self.n_items))
        complete = _ends_cleanly(stream, filled, ends)
        rows = symbols.reshape(filled.size, self.n_items)[complete]
        shown = rows != self._blank
        valid = np.zeros(sane.size, dtype=np.bool_)
        valid[filled[complete]] = True
        cells = np.zeros(sane.size, dtype=np.int64)
        cells[filled[complete]] = shown.sum(axis=1)
        return DecodedReports(
            valid,
            offsets(cells),
            np.nonzero(shown)[1].astype(np.int32),
            rows[shown],
        )

    def _without_blank(self, symbols: AnyInts) -> AnyInts:
        """Close the gap that the symbol "not rated" leaves in the alphabet of shown cells."""
        return symbols if self._blank is None else symbols - (symbols > self._blank)

    def _with_blank(self, symbols: Uint16s) -> Uint16s:
        if self._blank is None:
            return symbols
        return symbols + (symbols >= self._blank).astype(np.uint16)


def _ends_cleanly(stream: BitStream, users: Ints, ends: Ints) -> Bools:
    padding = stream.ends[users] - ends
    fits = (padding >= 0) & (padding < 8)
    clean: Bools = fits & (stream.peek(ends, np.where(fits, padding, 0)) == 0)
    return clean


def _rice_bits_per_item(rate: float) -> float:
    """Return the mean bits of a Rice code of geometric gaps, per item of a set of density ``rate``."""
    if rate >= 1:
        return 1.0
    parameters = np.arange(MAX_FIELD_BITS)
    blanks = 1 - rate
    return float(np.min(1 + parameters + blanks ** (2.0**parameters) / (1 - blanks ** (2.0**parameters))))
