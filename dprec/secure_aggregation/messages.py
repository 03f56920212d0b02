"""The messages of secure aggregation in bytes, and how many of them every user sends and receives.

============================  =============================================================
to the server                 the public keys of its masks and of its channel, signed
to the device                 the same of every neighbour
to the server                 for every neighbour a share of each secret, encrypted for it
to the device                 the shares that neighbours encrypted for it, with what it is asked
to the server                 the masked vector
to the device                 which neighbours sent one
to the server                 of every neighbour a share of one secret
============================  =============================================================

Neighbours come in the order of the graph, so no names travel; of one that is gone, zeros do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Bools, Ints, Pieces
from dprec.secure_aggregation.encoding import reduced, word_type
from dprec.wire import FixedFields

PUBLIC_BYTES = 32
"""Bytes of a public key."""

KEYS_BYTES = 2 * PUBLIC_BYTES
"""Bytes of a device's two public keys of one sum."""

SIGNATURE_BYTES = 96
"""Bytes of a signature: two numbers below the order of the curve P-384."""

SIGNED_BYTES = KEYS_BYTES + SIGNATURE_BYTES
"""Bytes of a device's public keys of a sum with their signature."""

SECRET_BYTES = 20
"""Bytes of a secret, and of a share of it: five numbers modulo a prime of 31 bits."""

SEALED_BYTES = 2 * SECRET_BYTES + 16
"""Bytes of two encrypted shares, with the tag of the cipher."""


@dataclass(frozen=True)
class SumContext:
    """What all devices of a sum know about it."""

    identity: bytes
    """Differs from that of any other sum; at most 64 bytes."""
    size: int
    """Integers of a vector."""
    bits: int
    """Of the modulus."""


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
        return SIGNED_BYTES, self.degree * SEALED_BYTES, self.vector, self.degree * SECRET_BYTES

    @property
    def downlink(self) -> tuple[int, int, int]:
        """Neighbours' keys, neighbours' shares, which neighbours sent a vector."""
        return self.degree * SIGNED_BYTES, self.degree * SEALED_BYTES, -(-self.degree // 8)


def pack_vectors(vectors: NDArray[np.integer], bits: int) -> Pieces:
    """Return vectors modulo 2**bits, each number in so many bits, the highest first.

    ``vectors``: shape (vectors, size).
    """
    return FixedFields(vectors.shape[1], (1 << bits) - 1).encode(reduced(vectors, bits).astype(np.int64))


def unpack_vectors(reports: Sequence[bytes], size: int, bits: int) -> tuple[Bools, Ints]:
    """Return which reports are packed vectors, and all vectors, 0 for others, shape (reports, size)."""
    pieces = Pieces.of(reports)
    complete = pieces.sizes == -(-size * bits // 8)
    valid, rows = FixedFields(size, (1 << bits) - 1).decode(pieces)
    rows[~complete] = 0
    return valid & complete, rows


def pack_vector(words: NDArray[np.unsignedinteger], bits: int) -> bytes:
    """Return one vector as `pack_vectors` does."""
    return pack_vectors(words[None], bits).data


def unpack_vector(data: bytes, size: int, bits: int) -> NDArray[np.unsignedinteger]:
    """Read a packed vector, shape (size,), or raise ValueError."""
    valid, rows = unpack_vectors([data], size, bits)
    if not valid[0]:
        raise ValueError(f"a masked vector of {len(data)} bytes, or with bits after its end")
    return rows[0].astype(word_type(bits))
