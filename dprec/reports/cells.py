"""One symbol for each rated item, beside the set of these: the family of most published mechanisms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.growing import GrowingArray
from dprec.observations import Evidence, Observations, SymbolReports
from dprec.ragged import offsets, rows_of
from dprec.reports.base import REPORT_ROUND, DrawsFor, Profiles, Reader, ReportSize, Wanted
from dprec.reports.draws import IndependentDraws
from dprec.wire.report import ReportCodec


@dataclass(frozen=True, eq=False)
class CellFamily(IndependentDraws):
    """A symbol for each rated item, drawn from the channel of its user; see `ReportFamily`."""

    def check(self) -> None:
        """Refuse a budget for which there is no channel, or a catalogue that reports cannot represent."""
        _ = self.codec

    def cells(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ratings: each is a draw, shape (users,)."""
        return counts

    @cached_property
    def codec(self) -> ReportCodec:
        """The encoder and decoder of the reports, with words for the symbols of any user's channel."""
        return ReportCodec(self.reference_channel, self.n_items, self.channel(1).symbols)

    def encode(self, profiles: Profiles, draws: DrawsFor) -> list[bytes]:
        """Return the set of rated items of every user, with a symbol for each."""
        return self.codec.encode(offsets(profiles.counts), profiles.items, self.drawn(profiles, draws))

    def drawn(self, profiles: Profiles, draws: DrawsFor) -> NDArray[np.uint16]:
        """Return the symbols of the rated items, the same whenever they are computed, shape (ratings,)."""
        noise = draws("report").per_cell(profiles.counts, profiles.items, REPORT_ROUND)
        return self.perturb(profiles.counts, profiles.levels, noise)

    def perturb(
        self, cells: NDArray[np.int64], levels: NDArray[np.uint8], random_words: NDArray[np.uint64]
    ) -> NDArray[np.uint16]:
        """Send the cells of some users through each user's channel.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells of each user.
        levels : ndarray of uint8, shape (sum of cells,)
            By user; 0 is "not rated".
        random_words : ndarray of uint64, shape (sum of cells,)

        Returns
        -------
        ndarray of uint16, shape (sum of cells,)
        """
        symbols = np.empty(levels.size, dtype=np.uint16)
        for channel, which in self._by_channel(cells):
            symbols[which] = channel.sample(levels[which], random_words[which])
        return symbols

    def reader(self, n_users: int, wanted: Wanted) -> CellReader:
        """Return what reads the reports of so many users."""
        return CellReader(self, n_users, wanted)

    def read(self, cells: NDArray[np.int64], symbols: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the value that each symbol stands for, undoing the encoding of `perturb`, not its noise.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells with a symbol, by user.
        symbols : ndarray of uint16, shape (sum of cells,)
        """
        values = np.empty(symbols.size)
        for channel, which in self._by_channel(cells):
            values[which] = channel.values[symbols[which]]
        return values

    def likelihood(self, cells: NDArray[np.int64], symbols: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the probability of each symbol given each level of the scale, shape (cells, levels).

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells with a symbol, by user.
        symbols : ndarray of uint16, shape (sum of cells,)
        """
        given = np.empty((symbols.size, self.scale.levels))
        for channel, which in self._by_channel(cells):
            given[which] = channel.probabilities[:, symbols[which]].T
        return given

    def evidence_of(
        self, cells: NDArray[np.int64], symbols: NDArray[np.uint16], accepted: NDArray[np.bool_]
    ) -> Evidence:
        """Return symbols with the channels through which they were sent.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells with a symbol, by user.
        symbols : ndarray of uint16, shape (sum of cells,)
        accepted : ndarray of bool, shape (users,)
            Whose report was accepted.
        """
        of_cell, channels = np.zeros(symbols.size, dtype=np.int64), []
        for number, (channel, which) in enumerate(self._by_channel(cells)):
            channels.append(channel.probabilities)
            of_cell[which] = number
        channels = channels or [self.reference_channel.probabilities]
        return SymbolReports(tuple(channels), symbols.astype(np.int64), of_cell)

    def noise_variance(self, cells: NDArray[np.int64]) -> float | None:
        """Return the mean variance of the value read for a rating, over the levels and the users' reports.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells that each user's report shows as rated.

        Returns
        -------
        float or None
            None if nothing is reported, or no noise is added to the ratings.
        """
        if self.budget is None or not cells.any():
            return None
        sizes, users = np.unique(cells[cells > 0], return_counts=True)
        variances = [mean_variance(self.channel(size)) for size in sizes.tolist()]
        return float(np.average(variances, weights=sizes * users))

    def size(self, ratings: int) -> ReportSize:
        """Return a report of so many symbols and the set of their items."""
        channel = self.channel(int(self.cells(np.array([ratings]))[0]))
        bits = ReportCodec(channel, self.n_items).expected_bits(ratings)
        epsilon = None if self.budget is None else channel.epsilon
        return ReportSize(channel.symbols, ratings, bits, epsilon, "rating")

    def audited_symbols(
        self, exchange: int, reports: list[bytes], items: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return one more than the symbol of every item; 0 where there is none."""
        decoded = self.codec.decode(reports)
        symbols = np.zeros((len(reports), self.n_items), dtype=np.int64)
        symbols[rows_of(np.diff(decoded.indptr)), decoded.items] = decoded.symbols.astype(np.int64) + 1
        # A symbol that the channel does not have stands for a rating without an answer.
        return np.where(symbols > self.reference_channel.symbols, 0, symbols)

    def _by_channel(self, cells: NDArray[np.int64]) -> Iterator[tuple[Channel, NDArray[np.int64] | slice]]:
        """Yield the channels of users with so many cells, each with the cells that it is for."""
        sizes = np.unique(cells[cells > 0]).tolist()
        if len({id(self.channel(size)) for size in sizes}) == 1:
            yield self.channel(sizes[0]), slice(None)
            return
        size_of_cell = np.repeat(cells, cells)
        for size in sizes:
            yield self.channel(size), np.flatnonzero(size_of_cell == size)


def mean_variance(channel: Channel) -> float:
    """Return the variance of the value read for a rating, averaged over the levels."""
    return float(channel.variance()[~np.isnan(channel.inputs)].mean())


class CellReader(Reader):
    """Reports of cells as they arrive; see `Reader`.

    Parameters
    ----------
    family : CellFamily
    n_users : int
    wanted : Wanted
    """

    def __init__(self, family: CellFamily, n_users: int, wanted: Wanted) -> None:
        self._family, self._wanted, self._codec = family, wanted, family.codec
        self._accepted = np.zeros(n_users, dtype=np.bool_)
        self._counts = np.zeros(n_users, dtype=np.int64)
        self._items, self._values = GrowingArray(np.int32), GrowingArray(np.float64)
        self._symbols = GrowingArray(np.uint16)

    def take(self, users: NDArray[np.int64], reports: Sequence[bytes]) -> NDArray[np.bool_]:
        """Decode reports, and keep the items that they show with what is read for them."""
        decoded = self._codec.decode(reports)
        counts = np.diff(decoded.indptr)
        self._accepted[users], self._counts[users] = decoded.valid, counts
        self._items.extend(decoded.items)
        self._values.extend(self._family.read(counts, decoded.symbols))
        if self._wanted.likelihood or self._wanted.symbols:
            self._symbols.extend(decoded.symbols)
        return decoded.valid

    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        """Return the cells that are shown as rated, with what a completion wants to know of their symbols."""
        family, counts, symbols = self._family, self._counts, self._symbols.take()
        return Observations(
            rows_of(counts, np.int32),
            self._items.take(),
            self._values.take(),
            (counts.size, family.n_items),
            family.scale,
            noise_variance=family.noise_variance(counts),
            likelihood=family.likelihood(counts, symbols) if self._wanted.likelihood else None,
            evidence=family.evidence_of(counts, symbols, self._accepted) if self._wanted.symbols else None,
            catalogue=catalogue,
        )
