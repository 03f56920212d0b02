"""The encoding of item factors for the devices: whole, or only what has changed since the last round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.components import Options, option
from dprec.wire.bits import MAX_FIELD_BITS, BitStream
from dprec.wire.item_sets import ItemSets, read_item_sets

_WHOLE, _CHANGES = b"\x00", b"\x01"

Factors = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class BroadcastOptions(Options):
    """How item factors are sent to the devices."""

    dtype: Literal["float16", "float32"] = option("Precision of the numbers.", "float32")
    delta: bool = option(
        "Send only the numbers that changed to a device that holds the last round's factors.", False
    )

    def rounded(self, factors: NDArray[np.float64]) -> Factors:
        """Return the factors as the devices will see them."""
        limits = np.finfo(self.dtype)
        rounded = np.clip(factors, limits.min, limits.max).astype(f"<f{limits.bits // 8}")
        # Without negative zeros, equal factors have equal bytes, whether sent whole or as changes.
        unsigned: Factors = rounded + rounded.dtype.type(0)
        return unsigned


def encode_broadcast(factors: Factors, held: Factors | None = None) -> bytes:
    """Encode rounded item factors.

    Parameters
    ----------
    factors : ndarray of float16 or float32, shape (items, rank)
    held : ndarray, same shape and type, optional
        What the receiving device already holds; only the changes are sent if that is shorter.
    """
    whole = _WHOLE + factors.tobytes()
    if held is None or factors.size > 1 << MAX_FIELD_BITS:
        return whole
    changed = np.flatnonzero(factors != held)
    sets = ItemSets.plan(np.array([0, changed.size]), changed, factors.size)
    bits = np.zeros(-(-int(sets.lengths[0]) // 8) * 8, dtype=np.uint8)
    sets.write(bits, np.zeros(1, dtype=np.int64))
    changes = _CHANGES + np.packbits(bits).tobytes() + factors.ravel()[changed].tobytes()
    return changes if len(changes) < len(whole) else whole


def decode_broadcast(
    data: bytes, options: BroadcastOptions, shape: tuple[int, int], held: Factors | None
) -> Factors:
    """Decode item factors; the device does not trust the server, as the server does not trust the device.

    Raises
    ------
    ValueError
        When the broadcast is malformed, not finite, or contains changes to factors that are not held.
    """
    dtype = np.dtype("<f2" if options.dtype == "float16" else "<f4")
    kind, body = data[:1], data[1:]
    if kind == _WHOLE and len(body) == shape[0] * shape[1] * dtype.itemsize:
        factors = np.frombuffer(body, dtype=dtype).reshape(shape)
    elif kind == _CHANGES and held is not None:
        factors = held.copy()
        coordinates, numbers = _read_changes(body, factors.size, dtype)
        factors.reshape(-1)[coordinates] = numbers
    else:
        raise ValueError(f"a broadcast of {len(data)} bytes for {shape[0]} x {shape[1]} factors")
    if not np.isfinite(factors).all():
        raise ValueError("a broadcast with numbers that are not finite")
    return factors


def _read_changes(body: bytes, size: int, dtype: np.dtype[Any]) -> tuple[NDArray[np.int32], Factors]:
    if not body:
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=dtype)
    if size > 1 << MAX_FIELD_BITS:
        raise ValueError(f"changes of {size} numbers, which are always sent whole")
    valid, counts, coordinates, ends = read_item_sets(BitStream([body]), np.zeros(1, dtype=np.int64), size)
    set_bytes = -(-int(ends[0]) // 8)
    if not valid[0] or len(body) != set_bytes + int(counts[0]) * dtype.itemsize:
        raise ValueError(f"changes of {len(body)} bytes that are cut short")
    return coordinates, np.frombuffer(body[set_bytes:], dtype=dtype)
