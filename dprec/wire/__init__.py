"""What crosses the network, bit by bit: encoders for partitions, and decoders that trust nothing."""

from dprec.wire.bits import BitStream, FixedFields
from dprec.wire.downlink import (
    BroadcastOptions,
    Factors,
    ItemListCodec,
    ItemTable,
    decode_broadcast,
    encode_broadcast,
)
from dprec.wire.item_sets import ItemSets, longest_item_set, read_item_sets
from dprec.wire.report import DecodedReports, ReportCodec
from dprec.wire.symbols import SymbolRows
from dprec.wire.traffic import (
    WITH_RECORD,
    WITHOUT_RECORD,
    Exchanged,
    NetworkOptions,
    TrafficLedger,
    Users,
    network_bytes,
    onion_bytes,
    record_bytes,
)

__all__ = [
    "WITHOUT_RECORD",
    "WITH_RECORD",
    "BitStream",
    "BroadcastOptions",
    "DecodedReports",
    "Exchanged",
    "Factors",
    "FixedFields",
    "ItemListCodec",
    "ItemSets",
    "ItemTable",
    "NetworkOptions",
    "ReportCodec",
    "SymbolRows",
    "TrafficLedger",
    "Users",
    "decode_broadcast",
    "encode_broadcast",
    "longest_item_set",
    "network_bytes",
    "onion_bytes",
    "read_item_sets",
    "record_bytes",
]
