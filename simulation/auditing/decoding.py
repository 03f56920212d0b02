"""Reads the symbols in what devices send, as any server can."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import rows_of
from dprec.channel import Channel
from dprec.completion import slope_channel
from dprec.exchange import GradientPerturbationSetup, ReportSetup
from dprec.ratings import Ratings
from dprec.reports import ReportFamily
from dprec.wire import ReportCodec, SymbolRows
from simulation.protocols.base import Protocol

Decoder = Callable[[int, list[bytes]], NDArray[np.int64]]
"""From a round, counted from 0, and its reports to the symbols of all items, or the counts of all groups."""


def family_of(protocol: Protocol, people: Ratings) -> ReportFamily | None:
    """Return what devices report about ratings; None if the protocol has no such reports."""
    setup = protocol.setup()
    if not isinstance(setup, ReportSetup):
        return None
    return setup.mechanism.family(setup.privacy, people.scale, people.n_items)


def fewest_items(protocol: Protocol, people: Ratings) -> int:
    """Return how many items a catalogue needs for devices to report as they do about that of some people."""
    family = family_of(protocol, people)
    return 1 if family is None else family.fewest_items


def reports_of(protocol: Protocol) -> type[ReportFamily] | None:
    """Return the kind of the reports about ratings; None if the protocol has none."""
    setup = protocol.setup()
    return setup.mechanism.report_family if isinstance(setup, ReportSetup) else None


def channel_of(protocol: Protocol, people: Ratings, entries: int) -> Channel | None:
    """Return the matrix that devices should apply to each of so many entries; None if there is none."""
    setup = protocol.setup()
    if isinstance(setup, GradientPerturbationSetup):
        return slope_channel(setup.clamp, setup.symbols, setup.epsilon_per_round)
    family = family_of(protocol, people)
    return None if family is None else family.channel(entries)


def decoder_of(protocol: Protocol, people: Ratings) -> Decoder | None:
    """Return what reads the symbols in reports; None if reports hold no symbols of items."""
    setup, family = protocol.setup(), family_of(protocol, people)
    if family is not None:
        rated = np.unique(people.items).astype(np.int64)
        return partial(_audited, family, rated)
    if isinstance(setup, GradientPerturbationSetup):
        channel = slope_channel(setup.clamp, setup.symbols, setup.epsilon_per_round)
        first, later = ReportCodec(channel, people.n_items), SymbolRows(channel)

        def decode(number: int, reports: list[bytes]) -> NDArray[np.int64]:
            return _by_item(first, reports) if number == 0 else _in_order(later, reports, people)

        return decode
    return None


def _audited(
    family: ReportFamily, items: NDArray[np.int64], number: int, reports: list[bytes]
) -> NDArray[np.int64]:
    return family.audited_symbols(number, reports, items)


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
