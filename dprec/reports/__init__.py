"""Families of reports: what one kind of report is, on the device and at the server."""

from dprec.reports.base import *
from dprec.reports.cells import *
from dprec.reports.counts import *
from dprec.reports.layers import *
from dprec.reports.mixed import *
from dprec.reports.partly_answered import *
from dprec.reports.profiles import *
from dprec.reports.sets import *

__all__ = [
    "Asking",
    "CellFamily",
    "CountFamily",
    "DeviceChannel",
    "DrawsFor",
    "FollowUp",
    "HiddenRowFamily",
    "IndependentDraws",
    "LayeredFamily",
    "MixedFamily",
    "PartlyAnsweredFamily",
    "ProfileFamily",
    "ProfileLevels",
    "ReportFamily",
    "ReportReader",
    "ReportSize",
    "ResidualBitFamily",
    "SampledNegativesFamily",
    "SampledRatingsFamily",
    "SetFamily",
    "Wanted",
]
