"""The messages of a secure sum in bytes, and how many of them every user sends and receives.

============================  =============================================================
to the server                 the public keys of its masks and of its channel
to the device                 the same of every neighbour
to the server                 for every neighbour a share of each secret, encrypted for it
to the device                 the shares that neighbours encrypted for it
to the server                 the masked vector
to the device                 which neighbours sent one
to the server                 of every neighbour a share of one secret
============================  =============================================================

Neighbours come in the order of the graph, so nobody's name travels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.secure_aggregation.encoding import reduced, word_type
from dprec.secure_aggregation.secrets import PUBLIC_BYTES, SECRET_BYTES

_TAG_BYTES = 16
KEYS_BYTES = 2 * PUBLIC_BYTES
"""Bytes of a device's two public keys."""

SEALED_BYTES = 2 * SECRET_BYTES + _TAG_BYTES
"""Bytes of two encrypted shares."""


@dataclass(frozen=True)
class MessageSizes:
    """Bytes of the messages of one device in one sum."""

    degree: int
    """Neighbours of a device."""
    size: int
    bits: int
    """Numbers of a vector, and bits of the modulus."""

    @property
    def vector(self) -> int:
        """Bytes of a masked vector."""
        return -(-self.size * self.bits // 8)

    @property
    def uplink(self) -> tuple[int, int, int, int]:
        """Keys, encrypted shares, masked vector, revealed shares."""
        return KEYS_BYTES, self.degree * SEALED_BYTES, self.vector, self.degree * SECRET_BYTES

    @property
    def downlink(self) -> tuple[int, int, int]:
        """Neighbours' keys, neighbours' shares, who sent a vector."""
        return self.degree * KEYS_BYTES, self.degree * SEALED_BYTES, -(-self.degree // 8)


def pack_vector(words: NDArray[np.unsignedinteger], bits: int) -> bytes:
    """Return a vector modulo 2**bits, each number in so many bits, the highest first."""
    width = word_type(bits).itemsize
    whole = reduced(words, bits).astype(word_type(bits).newbyteorder(">"))
    if bits == 8 * width:
        return whole.tobytes()
    fields = np.unpackbits(whole.view(np.uint8).reshape(-1, width), axis=1)[:, 8 * width - bits :]
    return np.packbits(fields).tobytes()


def unpack_vector(data: bytes, size: int, bits: int) -> NDArray[np.unsignedinteger]:
    """Read a packed vector, shape (size,).

    Raises
    ------
    ValueError
        When it has another size, or bits that are set after its end.
    """
    if len(data) != -(-size * bits // 8):
        raise ValueError(f"a masked vector of {len(data)} bytes")
    width = word_type(bits).itemsize
    stored = np.unpackbits(np.frombuffer(data, dtype=np.uint8))
    if stored[size * bits :].any():
        raise ValueError("a masked vector with bits after its end")
    fields = np.zeros((size, 8 * width), dtype=np.uint8)
    fields[:, 8 * width - bits :] = stored[: size * bits].reshape(size, bits)
    whole = np.packbits(fields).view(word_type(bits).newbyteorder(">"))
    return whole.astype(word_type(bits))


def pack_presence(present: NDArray[np.bool_]) -> bytes:
    """Return which neighbours sent a vector, one bit each."""
    return np.packbits(present).tobytes()


def unpack_presence(data: bytes, degree: int) -> NDArray[np.bool_]:
    """Read which neighbours sent a vector.

    Raises
    ------
    ValueError
        When there are not as many.
    """
    if len(data) != -(-degree // 8):
        raise ValueError(f"presence of neighbours in {len(data)} bytes")
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=degree).view(np.bool_)


def pieces(data: bytes, count: int, size: int) -> Sequence[bytes]:
    """Cut a message into equal pieces.

    Raises
    ------
    ValueError
        When it has another length.
    """
    if len(data) != count * size:
        raise ValueError(f"a message of {len(data)} bytes in place of {count} x {size}")
    return [data[start : start + size] for start in range(0, len(data), size)]
