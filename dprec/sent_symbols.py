"""The symbols in what devices send, as any server can read them, and the matrices behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import worst_pair
from dprec.arrays import rows_of
from dprec.mechanisms.channel import Channel
from dprec.privacy.calibrated_counts import CalibratedCounts
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.profile_calibration import CalibratedProfiles
from dprec.ratings import Ratings
from dprec.wire import ReportCodec, SymbolRows

_DIVISIONS = 8
"""Classes of the divisions into blocks."""

Decoder = Callable[[int, list[bytes]], NDArray[np.int64]]
"""From a round, counted from 0, and its reports to the symbols of all items, or the counts of all groups."""

Losses = Callable[[int], Iterable[tuple[str, float]]]
"""From the number of entries in which profiles differ to what is compared, in words, and the exact loss."""


def _none_known(entries: int) -> Iterable[tuple[str, float]]:
    return ()


@dataclass(frozen=True, eq=False)
class SentSymbols:
    """The symbols that devices send about items."""

    decode: Decoder
    channel: Callable[[int], Channel] | None = None
    """From the number of entries of a profile to the matrix that is applied to each; None without one."""
    exact_losses: Losses = _none_known
    """By default none are known."""
    fewest_items: int = 1
    """Of a catalogue about which devices report as they do about a larger one."""
    drawn: bool = False
    """Whether devices draw which items they answer about."""
    linked: bool = False
    """Whether what is sent in a round depends on the round before for other reasons than noise."""

    def worst_levels(self, levels: int, entries: int) -> tuple[int, int]:
        """Return the two levels of a rating that are separated most in a profile of so many entries.

        If there is no matrix, or it has other inputs than the levels of the scale, these are extremes.
        """
        if self.channel is None:
            return 1, levels
        channel = self.channel(entries)
        rated = channel.weights[1 - channel.first_level :]
        if len(rated) != levels:
            return 1, levels
        low, high = worst_pair(rated)[1]
        return low + 1, high + 1


def symbols_of_mechanism(calibrated: CalibratedMechanism, people: Ratings) -> SentSymbols:
    """Return what can be read in the reports of a mechanism about some people's ratings."""
    codec, known = calibrated.codec(), calibrated.reference_channel.symbols
    counts = CalibratedCounts.of(calibrated)
    fewest, decode = 1, None
    if isinstance(calibrated, CalibratedProfiles):
        fewest, decode = calibrated.fewest_items, _Blocks.of(calibrated, people).decoded

    def decode_symbols(number: int, reports: list[bytes]) -> NDArray[np.int64]:
        if number and counts is not None:
            return counts.codec.decode(reports)[1]
        symbols = _by_item(codec, reports)
        # A symbol that the channel does not have stands for a rating without an answer.
        return np.where(symbols > known, 0, symbols)

    def exact_losses(entries: int) -> Iterator[tuple[str, float]]:
        cells = calibrated.cells(np.array([entries])) if calibrated.compares_ratings else [entries]
        yield _of_matrix(calibrated.channel(entries), entries, int(cells[0]))
        if counts is not None:
            loss = counts.count_epsilon(entries, entries)
            yield f"counts that differ by {entries}, from the table", loss

    return SentSymbols(
        decode or decode_symbols,
        calibrated.channel,
        exact_losses,
        fewest_items=fewest,
        drawn=calibrated.mechanism.compares_ratings,
        linked=counts is not None,
    )


def symbols_of_slopes(channel: Channel, rounds: int, people: Ratings) -> SentSymbols:
    """Return what can be read in reports through one channel in every round: items in the first alone."""
    first, later = ReportCodec(channel, people.n_items), SymbolRows(channel)

    def decode(number: int, reports: list[bytes]) -> NDArray[np.int64]:
        return _by_item(first, reports) if number == 0 else _in_order(later, reports, people)

    def exact_losses(entries: int) -> Iterator[tuple[str, float]]:
        yield _of_matrix(channel, entries, entries, rounds)

    return SentSymbols(decode, lambda entries: channel, exact_losses)


def _of_matrix(channel: Channel, entries: int, answers: int, rounds: int = 1) -> tuple[str, float]:
    """Return the loss of so many answers about the entries of a profile in each round."""
    text = "all pairs of levels, from the matrix" + (f", {entries} entries" if entries > 1 else "")
    return text, worst_pair(channel.weights)[0] * answers * rounds


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Reads answers about profiles: which of some elements one names, and how it divides all into blocks."""

    calibrated: CalibratedProfiles
    elements: NDArray[np.int64]

    @classmethod
    def of(cls, calibrated: CalibratedProfiles, people: Ratings) -> _Blocks:
        rated = np.unique(people.items).astype(np.int64)
        return cls(calibrated, np.concatenate([2 * rated, 2 * rated + 1]))

    def decoded(self, number: int, reports: list[bytes]) -> NDArray[np.int64]:
        """Return a symbol for each answer of each report, shape (reports, answers)."""
        code, answers = self.calibrated.code, self.calibrated.numbers.decode(reports)[1]
        if code.size == 1:
            return answers + 1
        multipliers, blocks = np.divmod(answers, code.blocks)
        named = np.zeros_like(answers)
        for element in self.elements.tolist():
            named = 2 * named + ((multipliers + 1) * element % code.modulus // code.size == blocks)
        # Which elements share a block is known of every division; a few classes of these tell dependence.
        symbols: NDArray[np.int64] = 1 + named * _DIVISIONS + multipliers * _DIVISIONS // code.multipliers
        return symbols


def _by_item(codec: ReportCodec, reports: list[bytes]) -> NDArray[np.int64]:
    """Return one more than the symbol of every item; 0 if there is none."""
    decoded = codec.decode(reports)
    symbols = np.zeros((len(reports), codec.n_items), dtype=np.int64)
    symbols[rows_of(np.diff(decoded.indptr)), decoded.items] = decoded.symbols.astype(np.int64) + 1
    return symbols


def _in_order(codec: SymbolRows, reports: list[bytes], people: Ratings) -> NDArray[np.int64]:
    valid, read = codec.decode(reports, people.counts)
    symbols = np.zeros((len(reports), people.n_items), dtype=np.int64)
    rated = np.repeat(valid, people.counts)
    symbols[people.users[rated], people.items[rated]] = read.astype(np.int64) + 1
    return symbols
