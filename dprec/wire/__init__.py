"""What crosses the network, bit by bit: encoders for partitions, and decoders that trust nothing."""

from dprec.wire.downlink import BroadcastOptions, decode_broadcast, encode_broadcast
from dprec.wire.report import DecodedReports, ReportCodec
from dprec.wire.symbols import SymbolRows
from dprec.wire.traffic import TrafficLedger

__all__ = [
    "BroadcastOptions",
    "DecodedReports",
    "ReportCodec",
    "SymbolRows",
    "TrafficLedger",
    "decode_broadcast",
    "encode_broadcast",
]
