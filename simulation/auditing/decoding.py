"""Reads the symbols in what devices send, as any server can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.completion.one_bit.slope_channel import slope_channel
from dprec.mechanisms.bits_and_counts import BitsAndCounts
from dprec.privacy.calibrated_counts import CalibratedCounts
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.profile_calibration import CalibratedProfiles
from dprec.privacy.residual_calibration import calibrated_for
from dprec.ragged import rows_of
from dprec.ratings import Ratings
from dprec.setups import GradientPerturbationSetup, ReportSetup
from dprec.wire import ReportCodec
from dprec.wire.symbol_rows import SymbolRows
from simulation.protocols.base import Protocol

_DIVISIONS = 8
"""Classes of the divisions into blocks."""

Decoder = Callable[[int, list[bytes]], NDArray[np.int64]]
"""From a round, counted from 0, and its reports to the symbols of all items, or the counts of all groups."""


def calibrated_of(protocol: Protocol, people: Ratings) -> CalibratedMechanism | None:
    """Return the mechanism that devices apply to ratings; None if the protocol has none."""
    setup = protocol.setup()
    if not isinstance(setup, ReportSetup):
        return None
    return calibrated_for(setup.mechanism, setup.privacy, people.scale, people.n_items)


def counts_of(protocol: Protocol, people: Ratings) -> CalibratedCounts | None:
    """Return the counts for which devices leave ratings out of their reports; None if there are none."""
    calibrated = calibrated_of(protocol, people)
    return None if calibrated is None else CalibratedCounts.of(calibrated)


def fewest_items(protocol: Protocol, people: Ratings) -> int:
    """Return how many items a catalogue needs for devices to report as they do about that of some people."""
    calibrated = calibrated_of(protocol, people)
    return calibrated.fewest_items if isinstance(calibrated, CalibratedProfiles) else 1


def leaves_counts(protocol: Protocol) -> bool:
    """Return whether what is counted in the second round depends on the first, in which ratings are left."""
    setup = protocol.setup()
    return isinstance(setup, ReportSetup) and isinstance(setup.mechanism, BitsAndCounts)


def channel_of(protocol: Protocol, people: Ratings, entries: int) -> Channel | None:
    """Return the matrix that devices should apply to each of so many entries; None if there is none."""
    setup = protocol.setup()
    if isinstance(setup, GradientPerturbationSetup):
        return slope_channel(setup.clamp, setup.symbols, setup.epsilon_per_round)
    calibrated = calibrated_of(protocol, people)
    return None if calibrated is None else calibrated.channel(entries)


def answers_of(protocol: Protocol, people: Ratings, entries: int) -> int:
    """Return how many answers of a report depend on a profile's only entries: on each its own, or fewer."""
    calibrated = calibrated_of(protocol, people)
    if calibrated is None or not calibrated.compares_ratings:
        return entries
    return int(calibrated.cells(np.array([entries]))[0])


def decoder_of(protocol: Protocol, people: Ratings) -> Decoder | None:
    """Return what reads the symbols in reports; None if reports hold no symbols of items."""
    setup = protocol.setup()
    calibrated = calibrated_of(protocol, people)
    if calibrated is not None:
        codec, known = calibrated.codec(), calibrated.reference_channel.symbols
        counts = CalibratedCounts.of(calibrated)
        if isinstance(calibrated, CalibratedProfiles):
            return _Blocks.of(calibrated, people).decoded

        def decode_symbols(number: int, reports: list[bytes]) -> NDArray[np.int64]:
            if number and counts is not None:
                return counts.codec.decode(reports)[1]
            symbols = _by_item(codec, reports)
            # A symbol that the channel does not have stands for a rating without an answer.
            return np.where(symbols > known, 0, symbols)

        return decode_symbols
    if isinstance(setup, GradientPerturbationSetup):
        channel = slope_channel(setup.clamp, setup.symbols, setup.epsilon_per_round)
        first, later = ReportCodec(channel, people.n_items), SymbolRows(channel)

        def decode(number: int, reports: list[bytes]) -> NDArray[np.int64]:
            return _by_item(first, reports) if number == 0 else _in_order(later, reports, people)

        return decode
    return None


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Reads answers about profiles: which of some elements one names, and how it divides all into blocks.

    Parameters
    ----------
    calibrated : CalibratedProfiles
    elements : ndarray of int64, shape (elements,)
        Of all items that anybody has rated.
    """

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
