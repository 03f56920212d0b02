"""What crosses the network, bit by bit: encoders for partitions, and decoders that trust nothing."""

from dprec.wire.downlink import *
from dprec.wire.report import *
from dprec.wire.symbols import *
from dprec.wire.tables import *
from dprec.wire.traffic import *

__all__ = [
    "MOST_TIMES",
    "WITHOUT_RECORD",
    "WITH_RECORD",
    "Batches",
    "BroadcastOptions",
    "DecodedReports",
    "Exchanged",
    "Factors",
    "FixedFields",
    "ItemListCodec",
    "ItemSets",
    "ItemTable",
    "NetworkOptions",
    "Reader",
    "ReportCodec",
    "SymbolRows",
    "TrafficLedger",
    "Users",
    "decode_broadcast",
    "decode_cautions",
    "decode_item_sets",
    "encode_broadcast",
    "encode_cautions",
    "encode_integers",
    "encode_item_sets",
    "encode_items",
    "encode_numbers",
    "fitted",
    "hidden_batch_bytes",
    "network_bytes",
    "onion_bytes",
    "record_bytes",
    "step_of",
]
