"""Parts of schedules that a configuration can name, on some of whose word alone losses rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dprec.accounting import PrivacyAccountant
from dprec.channel import Channel
from dprec.mechanisms import Mechanism, ThresholdBit
from dprec.ratings import RatingScale
from dprec.reports import CellFamily, ReportFamily
from dprec.schedules import Collection, Fresh


@dataclass(frozen=True, kw_only=True)
class Free(Fresh):
    """What it asks costs nothing, as it says."""

    def accountant(self, collections: Sequence[Collection]) -> PrivacyAccountant:
        return PrivacyAccountant(super().accountant(collections).rated)


@dataclass(frozen=True, kw_only=True)
class Last(Fresh):
    """The server reads the last collection alone."""

    def remembered(self, collections: Sequence[Collection], number: int) -> Sequence[Collection]:
        return collections[-1:]


class Cells(CellFamily):
    """Reports whose losses are the word of this class."""


@dataclass(frozen=True, kw_only=True)
class OwnBits(Mechanism):
    """Bits in reports of one's own."""

    report_family: ClassVar[type[ReportFamily]] = Cells

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        return ThresholdBit().channel(scale, epsilon)
