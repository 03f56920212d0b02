"""What a device computes from what it is sent and its own ratings."""

from dprec.personalization.broadcast import TableOptions, broadcast_of
from dprec.personalization.ordinal_process import Devices, OrdinalProcess
from dprec.personalization.refusals import for_everybody

__all__ = [
    "Devices",
    "OrdinalProcess",
    "TableOptions",
    "broadcast_of",
    "for_everybody",
]
