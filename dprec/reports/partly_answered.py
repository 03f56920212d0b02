"""Reports of which not every rating is answered about: a rated item is shown, and nothing is said of it.

Which items are rated is not hidden by these reports, so a cap on answers spares the values, and what the
server learns from the item sets remains. One symbol more than the channel has says that there is no answer.
A profile has level 0 there, and which ratings these are does not depend on values: the symbol costs nothing.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dprec.accounting import ChannelDraws, PrivacyUnit
from dprec.arrays import Bools, Floats, Ints, Uint8s, Uint16s, Uint64s, rows_of
from dprec.channel import Channel
from dprec.observations import SymbolReports
from dprec.reports.base import DrawsFor, Profiles, ReportSize
from dprec.reports.cells import CellFamily
from dprec.wire import ReportCodec


@dataclass(frozen=True, eq=False)
class UnansweredFamily(CellFamily):
    """Base of the families whose reports show ratings without an answer; see `ReportFamily`."""

    @property
    def silent(self) -> int:
        """The symbol of a rating without an answer."""
        return self.reference_channel.symbols

    @property
    def middle(self) -> float:
        """What is read of such a rating: the middle of the scale."""
        return (self.scale.low + self.scale.high) / 2

    @property
    @abstractmethod
    def coded_rows(self) -> Floats:
        """The shares of symbols that the code is made for, `silent` the last, shape (inputs, symbols + 1)."""

    @cached_property
    def codec(self) -> ReportCodec:
        """What encodes reports, the channel's symbols and one more for a rating without an answer."""
        channel, values = self.reference_channel, np.append(self.reference_channel.values, self.middle)
        coded = Channel.from_probabilities(self.coded_rows, channel.inputs, values, np.inf)
        return ReportCodec(coded, self.n_items)


_UNANSWERED = 1 / 2
"""Share of the ratings without an answer for which the code is made: one bit says whether there is one."""


@dataclass(frozen=True, eq=False)
class PartlyAnsweredFamily(UnansweredFamily):
    """A symbol for each rated item, or that there is none; ``asked`` of losses are the users' answers."""

    units: ClassVar[tuple[PrivacyUnit, ...]] = ("rating",)
    units_reason: ClassVar[str] = "not every rating of a user is answered about"
    further_notes: ClassVar[tuple[str, ...]] = (
        "A rating beyond a user's last answer is reported as rated, and nothing is said of its value.",
    )

    @property
    def coded_rows(self) -> Floats:
        """Those of the channel, for the ratings with an answer."""
        channel = self.reference_channel
        silence = np.full(channel.inputs.size, _UNANSWERED)
        return np.column_stack([(1 - _UNANSWERED) * channel.probabilities, silence])

    # The device.

    def perturb(self, cells: Ints, levels: Uint8s, random_words: Uint64s) -> Uint16s:
        """Send levels through the channel; at level 0 there is no answer."""
        symbols = super().perturb(cells, np.maximum(levels, 1), random_words)
        return np.where(levels > 0, symbols, self.silent).astype(np.uint16)

    def loudest(self, profiles: Profiles) -> Uint16s:
        """Return the symbols that say most for profiles; at level 0 there is no answer."""
        answers = super().loudest(replace(profiles, levels=np.maximum(profiles.levels, 1)))
        return np.where(profiles.levels > 0, answers, self.silent).astype(np.uint16)

    def report_losses(self, profiles: Profiles, draws: DrawsFor) -> tuple[Floats, Floats]:
        """Return what devices charge themselves: only for answers."""
        users = rows_of(profiles.counts)[profiles.levels > 0]
        return self.losses(np.bincount(users, minlength=profiles.counts.size))

    # The server.

    def answered(self, symbols: Uint16s) -> Bools:
        """Return which symbols are answers."""
        return symbols < self.silent

    def read(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the value that each symbol stands for; the middle of the scale without an answer."""
        return np.append(self.reference_channel.values, self.middle)[symbols]

    def likelihood(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the probability of each symbol given each level; without an answer, all are as likely."""
        rows: Floats = np.vstack([self.reference_channel.probabilities.T, np.ones(self.scale.levels)])
        return rows[symbols]

    def evidence_of(self, cells: Ints, symbols: Uint16s, accepted: Bools) -> SymbolReports:
        """Return symbols with their channel; where there is no answer, with one that says nothing."""
        channels = self.reference_channel.probabilities, np.ones((self.scale.levels, 1))
        answered = self.answered(symbols)
        return SymbolReports(channels, np.where(answered, symbols, 0).astype(np.int64), 1 - answered)

    # What it loses, and what it costs.

    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the exact losses of so many answers; where nothing else is known, as many as ratings."""
        per_rating, per_user = super().losses(counts if asked is None else asked)
        return np.where(self.protects(counts), np.nan_to_num(per_rating), np.nan), per_user

    def draws_about(self, counts: Ints, asked: Ints | None = None) -> ChannelDraws:
        """Return a draw for each answer."""
        return super().draws_about(counts if asked is None else asked)

    def size(self, ratings: int) -> ReportSize:
        """Return a report with an answer about every rating."""
        size = super().size(ratings)
        return replace(size, bits=size.bits + ratings)
