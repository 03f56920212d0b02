"""Families of reports: what one kind of report is, on the device and at the server."""

from dprec.reports.base import (
    Asking,
    DeviceChannel,
    DrawsFor,
    FollowUp,
    Profiles,
    Reader,
    ReportFamily,
    ReportSize,
    Wanted,
)
from dprec.reports.cells import CellFamily, IndependentDraws
from dprec.reports.counts import CountFamily
from dprec.reports.hidden_rows import HiddenRowFamily
from dprec.reports.profiles import ProfileFamily
from dprec.reports.residual_bits import ResidualBitFamily

__all__ = [
    "Asking",
    "CellFamily",
    "CountFamily",
    "DeviceChannel",
    "DrawsFor",
    "FollowUp",
    "HiddenRowFamily",
    "IndependentDraws",
    "ProfileFamily",
    "Profiles",
    "Reader",
    "ReportFamily",
    "ReportSize",
    "ResidualBitFamily",
    "Wanted",
]
