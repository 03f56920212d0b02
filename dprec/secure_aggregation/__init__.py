"""Secure aggregation: sums over users whose summands stay secret."""

from dprec.secure_aggregation.encoding import *
from dprec.secure_aggregation.graph import *
from dprec.secure_aggregation.messages import *
from dprec.secure_aggregation.noise import (
    BEYOND_BOUNDS,
    DISTANCE,
    MOST_MEAN,
    MOST_VARIANCE,
    honest_shares,
    noise_rows,
    poisson_table,
    skellam_numbers,
)
from dprec.secure_aggregation.streams import device_keys, rounding_keys

__all__ = [
    "BEYOND_BOUNDS",
    "DISTANCE",
    "MOST_MEAN",
    "MOST_VARIANCE",
    "OVERFLOW",
    "GraphSize",
    "MaskGraph",
    "MessageSizes",
    "SumContext",
    "centred",
    "check_modulus",
    "device_keys",
    "graph_size",
    "honest_shares",
    "modulus_bits",
    "noise_rows",
    "pack_vector",
    "pack_vectors",
    "poisson_table",
    "reduced",
    "rounded_rows",
    "rounding_keys",
    "shrunk",
    "skellam_numbers",
    "skellam_tail",
    "steps_of_unit",
    "unpack_vector",
    "unpack_vectors",
]
