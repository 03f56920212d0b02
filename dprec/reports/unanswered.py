"""Reports on all rated items in which some have no answer: one symbol more says so."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dprec.arrays import Floats
from dprec.channel import Channel
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
