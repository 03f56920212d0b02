"""Masks on devices' vectors, and their removal from the total (Bonawitz et al. [bonawitz2017], Section 4).

Device u sends x_u + PRG(b_u) + sum over its neighbours v of +-PRG(s_uv), modulo a power of two. Of two
neighbours the lower one adds and the other subtracts, so that both masks vanish from the total. The messages
are those of `dprec.secure_aggregation.messages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Bools, Ints, Uint64s
from dprec.secure_aggregation import GraphSize, MaskGraph, SumContext, pack_vector
from dprec.secure_aggregation.encoding import word_type
from dprec.secure_aggregation.messages import KEYS_BYTES, PUBLIC_BYTES, SEALED_BYTES, SECRET_BYTES
from dprec.secure_aggregation.streams import derived_key, stream
from dprec_pilot.masks import secrets

Words = NDArray[np.unsignedinteger]
"""Integers modulo a power of two; bits above those of the modulus have no meaning until they are cut."""


class SpoiledSharesError(Exception):
    """Some device revealed what was not a share of its neighbour's secret: nothing can be unmasked."""


def self_mask(context: SumContext, seed: bytes) -> Words:
    """Return a device's mask of its own, shape (size,)."""
    key = derived_key(seed, "self mask", context.identity)
    return stream(key, context.size, word_type(context.bits))


def pair_mask(context: SumContext, private: bytes, public: bytes) -> Words:
    """Return the mask that two devices share, from one's private and the other's public key."""
    key = secrets.agreed_key(private, public, "pair mask", context.identity)
    return stream(key, context.size, word_type(context.bits))


def pair_masks(
    context: SumContext, user: int, private: bytes, neighbours: Ints, public: Sequence[bytes]
) -> Words:
    """Return the sum of the masks that a device shares with some neighbours, as it adds them."""
    total = np.zeros(context.size, dtype=word_type(context.bits))
    for neighbour, key in zip(neighbours.tolist(), public, strict=True):
        mask = pair_mask(context, private, key)
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
    pairs = pair_masks(context, user, private, neighbours, public)
    masked: Words = vector.astype(word_type(context.bits)) + self_mask(context, seed) + pairs
    return masked


@dataclass(frozen=True, eq=False)
class RevealedShares:
    """What neighbours reveal of each device: of its seed if it is there, else of its mask key."""

    points: Ints
    """Where the neighbours' shares are, from 1; shape (users, threshold)."""
    held: Uint64s
    """Shape (users, threshold, elements)."""

    @classmethod
    def among(cls, revealed: Uint64s, known: Bools, threshold: int) -> Self:
        """Choose as many shares as the threshold, the first of those that are known.

        ``revealed``, shape (users, degree, elements); ``known``, shape (users, degree).
        """
        first = np.argsort(~known, axis=1, kind="stable")[:, :threshold]
        return cls(first + 1, np.take_along_axis(revealed, first[:, :, None], axis=1))


def unmasked_total(
    masked: Words,
    masking: Bools,
    present: Bools,
    revealed: RevealedShares,
    graph: MaskGraph,
    public: Sequence[bytes],
    context: SumContext,
) -> Words:
    """Return the sum of the vectors of those present, from the sum of what they sent.

    ``masking``: who shares masks with its neighbours, those present among them; shape (users,). ``public``:
    the mask keys of all these. Raises SpoiledSharesError when a secret that was put together is another one
    than its device had.
    """
    whole = secrets.secrets(revealed.points, revealed.held)
    spoiled = np.flatnonzero(present & ~secrets.are_seeds(whole))
    if spoiled.size:
        raise SpoiledSharesError(f"shares of device {spoiled[0]} that are not those of its seed")
    total = masked.astype(word_type(context.bits))
    for seed in secrets.as_bytes(whole[present]):
        total -= self_mask(context, seed)
    gone = np.flatnonzero(masking & ~present)
    for user, private in zip(gone.tolist(), secrets.mask_private_keys(whole[gone]), strict=True):
        if secrets.public_key(private) != public[user]:
            raise SpoiledSharesError(f"shares of device {user} that are not those of its mask key")
        left = graph.neighbours[user][present[graph.neighbours[user]]]
        # Its own masks with those who are left would have cancelled theirs.
        total += pair_masks(context, user, private, left, [public[other] for other in left.tolist()])
    return total


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


_NONCE = bytes(12)
_NO_SHARES = bytes(SEALED_BYTES)


class MaskingDevice:
    """What one device says in one sum. Whoever asks it keeps to the order of the steps.

    It has no memory: its secrets follow from ``key``, its key of this sum from
    `dprec.secure_aggregation.secrets.device_keys`, and what neighbours have said is given to it again in each
    step. ``user``: its own number in the sum; ``identity``: see `SumContext`.

    A neighbour that has said nothing stands in messages as zeros. Every step raises ValueError for a message
    of another size, and when there are fewer neighbours than the threshold.
    """

    def __init__(
        self, key: bytes, user: int, neighbours: Ints, graph_size: GraphSize, identity: bytes
    ) -> None:
        self._user, self._neighbours = user, neighbours
        self._size, self._identity = graph_size, identity
        self._channel = secrets.channel_private_key(key)
        self._secrets = secrets.SharedSecrets.of([key], graph_size.threshold)
        self._private = self._secrets.private_keys()[0]

    def advertise(self) -> bytes:
        """Return the public keys: of its masks, and of its channel."""
        return secrets.public_key(self._private) + secrets.public_key(self._channel)

    def share(self, keys_of_neighbours: bytes) -> bytes:
        """Return shares of its two secrets for every neighbour with keys, encrypted for it."""
        keys = self._enough(pieces(keys_of_neighbours, self._size.degree, KEYS_BYTES))
        given = [
            secrets.as_bytes(secrets.shares(polynomials, self._size.degree)[0])
            for polynomials in (self._secrets.mask_keys, self._secrets.self_seeds)
        ]
        sealed = [
            self._cipher(key, self._user).encrypt(_NONCE, mask_key + seed, None) if any(key) else _NO_SHARES
            for key, mask_key, seed in zip(keys, *given, strict=True)
        ]
        return b"".join(sealed)

    def mask(
        self, keys_of_neighbours: bytes, shares_of_neighbours: bytes, vector: AnyInts, bits: int
    ) -> bytes:
        """Return the vector masked with those neighbours whose shares this device has received.

        Raises ValueError also when some shares were not encrypted for it.
        """
        held = self._opened(keys_of_neighbours, shares_of_neighbours)
        keys = pieces(keys_of_neighbours, self._size.degree, KEYS_BYTES)
        sharing = [column for column, shares in enumerate(held) if any(shares)]
        public = [keys[column][:PUBLIC_BYTES] for column in sharing]
        own = self._private, self._secrets.seeds()[0]
        context = SumContext(self._identity, vector.size, bits)
        masked = masked_vector(vector, self._user, own, self._neighbours[sharing], public, context)
        return pack_vector(masked, bits)

    def unmask(
        self, keys_of_neighbours: bytes, shares_of_neighbours: bytes, presence_of_neighbours: bytes
    ) -> bytes:
        """Return of every neighbour a share of its seed if it is present, and of its mask key if it is not.

        To be answered once in a sum: with both, a neighbour's vector could be read.
        """
        held = self._opened(keys_of_neighbours, shares_of_neighbours)
        present = unpack_presence(presence_of_neighbours, self._size.degree)
        self._enough([bytes([is_present]) for is_present in present.tolist()])
        return b"".join(
            shares[SECRET_BYTES:] if is_present else shares[:SECRET_BYTES]
            for shares, is_present in zip(held, present.tolist(), strict=True)
        )

    def _opened(self, keys_of_neighbours: bytes, shares_of_neighbours: bytes) -> list[bytes]:
        """Return the shares that neighbours encrypted for this device, zeros of those without."""
        keys = pieces(keys_of_neighbours, self._size.degree, KEYS_BYTES)
        sealed = self._enough(pieces(shares_of_neighbours, self._size.degree, SEALED_BYTES))
        opened = []
        for key, neighbour, data in zip(keys, self._neighbours.tolist(), sealed, strict=True):
            if not any(data):
                opened.append(bytes(2 * SECRET_BYTES))
                continue
            try:
                opened.append(self._cipher(key, neighbour).decrypt(_NONCE, data, None))
            except InvalidTag:
                raise ValueError(f"shares that device {neighbour} has not encrypted for this one") from None
        return opened

    def _enough(self, of_neighbours: Sequence[bytes]) -> Sequence[bytes]:
        """Return what neighbours have said, if enough of them have said anything."""
        found = sum(map(any, of_neighbours))
        if found < self._size.threshold:
            raise ValueError(f"{found} neighbours present, of whom {self._size.threshold} must be")
        return of_neighbours

    def _cipher(self, keys_of_neighbour: bytes, sender: int) -> ChaCha20Poly1305:
        """Return the cipher for shares between this device and a neighbour, in one direction."""
        identity, public = (
            self._identity + sender.to_bytes(8, "little"),
            keys_of_neighbour[PUBLIC_BYTES:],
        )
        # A key of its own for either direction and every sum: the nonce need not change.
        return ChaCha20Poly1305(secrets.agreed_key(self._channel, public, "share channel", identity))
