"""The symbols in what devices send, as any server can read them, and the matrices behind them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dprec.accounting import worst_pair
from dprec.arrays import Ints, rows_of
from dprec.channel import Channel
from dprec.ratings import Ratings
from dprec.wire import ReportCodec, SymbolRows

Losses = Callable[[int], Iterable[tuple[str, float]]]
"""From the number of entries in which profiles differ to what is compared, in words, and the exact loss."""


@dataclass(frozen=True, eq=False)
class SentSymbols:
    """The symbols that devices send about items."""

    decode: Callable[[int, Sequence[bytes]], Ints]
    """From a round, from 0, and its reports to the symbols of all items, or the counts of all groups."""
    channel: Callable[[int], Channel] | None = None
    """From the number of entries of a profile to the matrix that is applied to each; None without one."""
    exact_losses: Losses = lambda entries: ()
    """By default none are known."""
    fewest_items: int = 1
    """Of a catalogue about which devices report as they do about a larger one."""
    drawn: bool = False
    """Whether devices draw which items they answer about."""
    linked: bool = False
    """Whether what is sent in a round depends on the round before for other reasons than noise."""
    once: bool = False
    """Whether a device reports in one round, which it draws for good; its symbols follow from one draw."""

    def worst_levels(self, levels: int, entries: int) -> tuple[int, int]:
        """Return the two levels of a rating that are separated most in a profile of so many entries.

        If there is no matrix, or it has other inputs than the levels of the scale, these are extremes; on a
        scale of one level, that and "not rated".
        """
        if levels == 1:
            return 0, 1
        if self.channel is None:
            return 1, levels
        channel = self.channel(entries)
        rated = channel.weights[1 - channel.first_level :]
        if len(rated) != levels:
            return 1, levels
        low, high = worst_pair(rated)[1]
        return low + 1, high + 1


def symbols_of_slopes(channel: Channel, rounds: int, people: Ratings) -> SentSymbols:
    """Return what can be read in reports through one channel in every round: items in the first alone."""
    first, later = ReportCodec(channel, people.n_items), SymbolRows(channel)

    def decode(number: int, reports: Sequence[bytes]) -> Ints:
        """Return one more than the symbol of every item; 0 if there is none."""
        symbols = np.zeros((len(reports), people.n_items), dtype=np.int64)
        if number == 0:
            decoded = first.decode(reports)
            symbols[rows_of(np.diff(decoded.indptr)), decoded.items] = decoded.symbols.astype(np.int64) + 1
        else:
            valid, later_symbols = later.decode(reports, people.counts)
            rated = np.repeat(valid, people.counts)
            symbols[people.users[rated], people.items[rated]] = later_symbols.astype(np.int64) + 1
        return symbols

    def exact_losses(entries: int) -> Iterator[tuple[str, float]]:
        text = "all pairs of levels, from the matrix" + (f", {entries} entries" if entries > 1 else "")
        yield text, worst_pair(channel.weights)[0] * entries * rounds

    return SentSymbols(decode, lambda entries: channel, exact_losses)
