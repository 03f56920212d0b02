"""What crosses the network, bit by bit: encoders for cohorts, and decoders that trust nothing."""

from dprec.wire.broadcast import BroadcastOptions, decode_broadcast, encode_broadcast
from dprec.wire.report import DecodedReports, ReportCodec
from dprec.wire.symbol_rows import SymbolRows
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
