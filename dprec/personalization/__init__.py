"""What a device computes from what it is sent and its own ratings."""

from dprec.personalization.broadcast import TableOptions, broadcast_of, for_everybody
from dprec.personalization.ordinal_process import BroadcastDevices, OrdinalProcess

__all__ = [
    "BroadcastDevices",
    "OrdinalProcess",
    "TableOptions",
    "broadcast_of",
    "for_everybody",
]
