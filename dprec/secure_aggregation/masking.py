"""Masks on devices' vectors, and their removal from the total (Bonawitz et al. [bonawitz2017], Section 4).

Device u sends x_u + PRG(b_u) + sum over its neighbours v of +-PRG(s_uv), modulo a power of two. Of two
neighbours the lower one adds and the other subtracts, so that both masks vanish from the total.

The messages of secure aggregation in bytes, and how many of them every user sends and receives.

============================  =============================================================
to the server                 the public keys of its masks and of its channel
to the device                 the same of every neighbour
to the server                 for every neighbour a share of each secret, encrypted for it
to the device                 the shares that neighbours encrypted for it
to the server                 the masked vector
to the device                 which neighbours sent one
to the server                 of every neighbour a share of one secret
============================  =============================================================

Neighbours come in the order of the graph, so no names travel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Bools, Ints, Uint64s
from dprec.secure_aggregation.encoding import reduced, word_type
from dprec.secure_aggregation.graph import MaskGraph
from dprec.secure_aggregation.secrets import (
    PUBLIC_BYTES,
    SECRET_BYTES,
    agreed_key,
    as_bytes,
    derived_key,
    mask_private_keys,
    secrets,
    stream,
)

Words = NDArray[np.unsignedinteger]
"""Integers modulo a power of two; bits above those of the modulus have no meaning until they are cut."""


class TooFewSharesError(Exception):
    """More devices dropped out than the threshold bears: nothing can be unmasked."""


@dataclass(frozen=True)
class SumContext:
    """What all devices of a sum know about it."""

    identity: bytes
    """Differs from that of any other sum; at most 64 bytes."""
    size: int
    """Integers of a vector."""
    bits: int
    """Of the modulus."""

    def self_mask(self, seed: bytes) -> Words:
        """Return a device's mask of its own, shape (size,)."""
        key = derived_key(seed, "self mask", self.identity)
        return stream(key, self.size, word_type(self.bits))

    def pair_mask(self, private: bytes, public: bytes) -> Words:
        """Return the mask that two devices share, from one's private and the other's public key."""
        key = agreed_key(private, public, "pair mask", self.identity)
        return stream(key, self.size, word_type(self.bits))

    def pair_masks(self, user: int, private: bytes, neighbours: Ints, public: Sequence[bytes]) -> Words:
        """Return the sum of the masks that a device shares with some neighbours, as it adds them."""
        total = np.zeros(self.size, dtype=word_type(self.bits))
        for neighbour, key in zip(neighbours.tolist(), public, strict=True):
            mask = self.pair_mask(private, key)
            if user < neighbour:
                total += mask
            else:
                total -= mask
        return total


def masked_vector(
    vector: AnyInts,
    user: int,
    secrets_of_user: tuple[bytes, bytes],
    neighbours: Ints,
    public: Sequence[bytes],
    context: SumContext,
) -> Words:
    """Return what a device sends in place of its vector."""
    private, seed = secrets_of_user
    pairs = context.pair_masks(user, private, neighbours, public)
    masked: Words = vector.astype(word_type(context.bits)) + context.self_mask(seed) + pairs
    return masked


@dataclass(frozen=True, eq=False)
class RevealedShares:
    """What neighbours reveal of each device: of its seed if it is there, else of its mask key."""

    points: Ints
    """Where the neighbours' shares are, from 1; shape (users, threshold)."""
    held: Uint64s
    """Shape (users, threshold, elements)."""

    @classmethod
    def of(
        cls, of_seeds: Uint64s, of_keys: Uint64s, graph: MaskGraph, threshold: int, present: Bools
    ) -> Self:
        """Choose as many shares as the threshold, of the first neighbours that are present.

        ``of_seeds``, ``of_keys``, shape (users, degree, elements): all shares that neighbours hold.
        """
        first = np.argsort(~present[graph.neighbours], axis=1, kind="stable")[:, :threshold]
        of_one = np.where(present[:, None, None], of_seeds, of_keys)
        return cls(first + 1, np.take_along_axis(of_one, first[:, :, None], axis=1))


def check_threshold(graph: MaskGraph, threshold: int, present: Bools) -> None:
    """Raise TooFewSharesError unless a threshold of every device's neighbours answer."""
    fewest = int(graph.answers(present).min())
    if fewest < threshold:
        raise TooFewSharesError(f"a device with {fewest} neighbours left, of whom {threshold} must answer")


def unmasked_total(
    masked: Words,
    present: Bools,
    revealed: RevealedShares,
    graph: MaskGraph,
    public: Sequence[bytes],
    context: SumContext,
) -> Words:
    """Return the sum of the vectors of those present, from the sum of what they sent."""
    whole = secrets(revealed.points, revealed.held)
    total = masked.astype(word_type(context.bits))
    for seed in as_bytes(whole[present]):
        total -= context.self_mask(seed)
    gone = np.flatnonzero(~present)
    for user, private in zip(gone.tolist(), mask_private_keys(whole[gone]), strict=True):
        left = graph.neighbours[user][present[graph.neighbours[user]]]
        # Its own masks with those who are left would have cancelled theirs.
        total += context.pair_masks(user, private, left, [public[other] for other in left.tolist()])
    return total


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
    """Read a packed vector, shape (size,), or raise ValueError."""
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


def pack_presence(present: Bools) -> bytes:
    """Return which neighbours sent a vector, one bit each."""
    return np.packbits(present).tobytes()


def unpack_presence(data: bytes, degree: int) -> Bools:
    """Read which neighbours sent a vector; raises ValueError when there are not as many."""
    if len(data) != -(-degree // 8):
        raise ValueError(f"presence of neighbours in {len(data)} bytes")
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=degree).view(np.bool_)


def pieces(data: bytes, count: int, size: int) -> Sequence[bytes]:
    """Cut a message into equal pieces; raises ValueError when it has another length."""
    if len(data) != count * size:
        raise ValueError(f"a message of {len(data)} bytes in place of {count} x {size}")
    return [data[start : start + size] for start in range(0, len(data), size)]
