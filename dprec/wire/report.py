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

from dprec.arrays import AnyInts, Bools, Int32s, Ints, Pieces, Uint16s, blocks, offsets, rows_of
from dprec.channel import Channel
from dprec.errors import InputError
from dprec.wire.symbols import MAX_FIELD_BITS, ItemSets, PrefixCode, read_item_sets, written

_CELLS_AT_ONCE = 1 << 20
"""Of whole rows: bounds the memory for those that are decoded."""


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
        cell_shares = np.delete(shares, self._blank)
        row_code, cell_code = PrefixCode.for_distribution(shares), PrefixCode.for_distribution(cell_shares)
        # The least rate avoids a division by 0 if next to nothing is shown.
        rate = max(float(cell_shares.sum()), 1e-9)
        # The mean bits of a Rice code of geometric gaps, for each item of a set.
        blanks = (1 - rate) ** (2.0 ** np.arange(MAX_FIELD_BITS))
        gaps = 1 + np.arange(MAX_FIELD_BITS) + blanks / (1 - blanks) if rate < 1 else np.ones(1)
        set_bits = min(1.0, rate * float(gaps.min()))
        cell_bits = rate * cell_code.expected_bits(cell_shares)
        self._whole_row = row_code.expected_bits(shares) < set_bits + cell_bits
        self._code = row_code if self._whole_row else cell_code
        self._shares, self._shown_per_item = (shares, 1.0) if self._whole_row else (cell_shares, rate)

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
        return symbol_bits + float(ItemSets.plan(np.array([0, cells]), items, self.n_items).bits[0])

    def encode(self, indptr: Ints, items: AnyInts, symbols: AnyInts) -> Pieces:
        """Encode the reports of a partition."""
        if not self._whole_row:
            sets = ItemSets.plan(indptr, items, self.n_items)
            return written(indptr, sets, (self._code, self._without_blank(symbols)))
        rows = np.full((indptr.size - 1, self.n_items), self._blank, dtype=np.uint16)
        rows[rows_of(np.diff(indptr)), items] = symbols
        return written(self.n_items * np.arange(indptr.size), words=(self._code, rows.ravel()))

    def parts(self, report: bytes) -> dict[str, int]:
        """Return the bits of each part of a valid report, without its padding."""
        decoded = self.decode([report])
        lengths = self._code.lengths
        if self._whole_row:
            blanks = (self.n_items - decoded.symbols.size) * lengths[self._blank]
            return {"a symbol for every item": int(blanks + lengths[decoded.symbols].sum())}
        if not report:
            return {}
        sets = ItemSets.plan(decoded.indptr, decoded.items, self.n_items)
        words = lengths[self._without_blank(decoded.symbols)]
        return {"item set": int(sets.bits[0]), "symbols": int(words.sum())}

    def decode(self, reports: Sequence[bytes]) -> DecodedReports:
        """Decode and validate the reports of a partition; malformed ones are rejected without an exception.

        A report is rejected if it is cut short, contains an item outside the catalogue, or does not end with
        its last symbol, apart from padding zeros.
        """
        rows = Pieces.of(reports)
        if self._whole_row:
            return self._decode_rows(rows)
        places, indptr, items = read_item_sets(rows, self.n_items, self._code.shortest)
        symbols = self._code.read(rows, places, indptr)
        valid, counts = places >= 0, np.diff(indptr)
        if not valid.all():
            in_valid = np.repeat(valid, counts)
            counts, items, symbols = np.where(valid, counts, 0), items[in_valid], symbols[in_valid]
        if self._blank is not None:
            symbols = symbols + (symbols >= self._blank).astype(np.uint16)
        return DecodedReports(valid, offsets(counts), items, symbols)

    def _decode_rows(self, reports: Pieces) -> DecodedReports:
        valid, counts = np.zeros(len(reports), dtype=np.bool_), np.zeros(len(reports), dtype=np.int64)
        items, symbols = [], []
        for users in blocks(np.full(len(reports), self.n_items), _CELLS_AT_ONCE):
            block = reports[users]
            places = 8 * block.bounds[:-1]
            row = self._code.read(block, places, self.n_items * np.arange(places.size + 1))
            rows, valid[users] = row.reshape(places.size, self.n_items), places >= 0
            is_rated = (rows != self._blank) & valid[users, None]
            counts[users] = is_rated.sum(axis=1)
            items.append(np.nonzero(is_rated)[1].astype(np.int32))
            symbols.append(rows[is_rated])
        return DecodedReports(valid, offsets(counts), np.concatenate(items), np.concatenate(symbols))

    def _without_blank(self, symbols: AnyInts) -> AnyInts:
        """Close the gap that the symbol "not rated" leaves in the alphabet of shown cells."""
        return symbols if self._blank is None else symbols - (symbols > self._blank)
