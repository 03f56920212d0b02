"""Masks on devices' vectors, and their removal from the total (Bonawitz et al. [bonawitz2017], Section 4).

Device u sends x_u + PRG(b_u) + sum over its neighbours v of +-PRG(s_uv), modulo a power of two. Of two
neighbours the lower one adds and the other subtracts, so that both masks vanish from the total. The messages
are those of `dprec.secure_aggregation.messages`.

The secrets behind masks: key pairs, shared seeds, and secrets cut into shares (Shamir [shamir1979]).

A secret is `ELEMENTS` numbers modulo a prime, 154 bits. Each is the constant of a polynomial of its own, of
which the other coefficients are uniform; the holder at point x > 0 has the values there.

The mask key yields the private key behind a device's masks with its neighbours; the self seed yields the mask
of its own. Neighbours reveal shares of the one if it drops out and of the other if it does not, never of
both: with both, its masked vector could be read.

Whoever puts a secret together can tell whether a share was wrong, however few there are. A mask key has a
public key. The last number of a self seed is a hash of the others, which are 124 bits. A wrong share moves
the numbers by what depends on no secret, so it is not noticed with a probability of 2**-31.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Bools, Ints, Uint64s
from dprec.secure_aggregation import GraphSize, MaskGraph, SumContext, pack_vector
from dprec.secure_aggregation.encoding import word_type
from dprec.secure_aggregation.messages import KEYS_BYTES, PUBLIC_BYTES, SEALED_BYTES, SECRET_BYTES
from dprec.secure_aggregation.streams import derived_key, stream

PRIME = 2**31 - 1
"""Products of two numbers below it fit into 62 bits."""

ELEMENTS = 5
"""Numbers of a secret."""

_ELEMENT, _WORD = np.dtype("<u4"), np.dtype("<u8")


def field_elements(random_words: Uint64s) -> Uint64s:
    """Map pairs of words to numbers modulo the prime, within 1 + 2**-96 of equally likely, shape (...)."""
    # Words modulo a prime p: 2**64 = 4 (mod 2**31 - 1), since 2**62 = 1.
    high, low = random_words[..., 0] % PRIME, random_words[..., 1] % PRIME
    elements: Uint64s = (4 * high + low) % PRIME
    return elements


def shares(polynomials: Uint64s, points: int) -> Uint64s:
    """Return the shares of secrets at 1, 2, ..., by Horner's rule, shape (secrets, points, elements).

    ``polynomials``, shape (secrets, threshold, elements): the secret first, then the uniform coefficients of
    higher powers.
    """
    x = np.arange(1, points + 1, dtype=np.uint64)[:, None]
    values = np.zeros((len(polynomials), points, polynomials.shape[2]), dtype=np.uint64)
    for power in range(polynomials.shape[1] - 1, -1, -1):
        values = (values * x + polynomials[:, None, power]) % PRIME
    return values


def put_together(points: AnyInts, held: Uint64s) -> Uint64s:
    """Put secrets together: the polynomials' values at 0 (Lagrange), shape (secrets, elements).

    ``points``, shape (secrets, threshold), are distinct; ``held``, shape (secrets, threshold, elements).
    """
    x = points.astype(np.uint64)
    above, below = np.ones_like(x), np.ones_like(x)
    for other in range(x.shape[1]):
        factor = x[:, other, None]
        difference = (factor + PRIME - x) % PRIME
        itself = np.arange(x.shape[1]) == other
        above = np.where(itself, above, above * factor % PRIME)
        below = np.where(itself, below, below * difference % PRIME)
    inverses = [pow(number, -1, PRIME) for number in below.ravel().tolist()]
    weights = above * np.array(inverses, dtype=np.uint64).reshape(below.shape) % PRIME
    # Sums of fewer than 2**33 products, each reduced before it is added.
    whole: Uint64s = (weights[:, :, None] * held % PRIME).sum(axis=1, dtype=np.uint64) % PRIME
    return whole


def as_bytes(elements: Uint64s) -> list[bytes]:
    """Return secrets or shares as bytes, from shape (count, elements)."""
    return [row.tobytes() for row in elements.astype(_ELEMENT)]


def from_bytes(data: bytes) -> Uint64s:
    """Read secrets or shares that stand one after the other, shape (count, elements), or raise ValueError."""
    if len(data) % SECRET_BYTES:
        raise ValueError(f"{len(data)} bytes of shares, which have {SECRET_BYTES} each")
    elements = np.frombuffer(data, dtype=_ELEMENT).astype(np.uint64).reshape(-1, ELEMENTS)
    if (elements >= PRIME).any():
        raise ValueError("a share outside its field")
    return elements


def public_key(private: bytes) -> bytes:
    """Return the public key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agreed_key(private: bytes, other: bytes, purpose: str, context: bytes) -> bytes:
    """Return the key of two devices for a purpose and context, from one's private and the other's public key.

    Raises ValueError when the public key is none that X25519 accepts.
    """
    known = X25519PrivateKey.from_private_bytes(private)
    return derived_key(known.exchange(X25519PublicKey.from_public_bytes(other)), purpose, context)


def is_public_key(data: bytes) -> bool:
    """Return whether X25519 agrees on a key with whoever has this public one."""
    try:
        agreed_key(bytes(PUBLIC_BYTES), data, "trial", b"")
    except ValueError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class SharedSecrets:
    """The secrets of some devices as polynomials, of which neighbours are given values."""

    mask_keys: Uint64s
    self_seeds: Uint64s
    """The secrets are the constants; shape (users, threshold, elements)."""

    @classmethod
    def of(cls, keys: Sequence[bytes], threshold: int) -> Self:
        """Draw the secrets from the devices' keys of a sum."""
        size = 2 * threshold * ELEMENTS * 2
        words = [stream(derived_key(key, "polynomials"), size, _WORD) for key in keys]
        shape = (len(keys), 2, threshold, ELEMENTS, 2)
        elements = field_elements(np.concatenate(words).astype(np.uint64).reshape(shape))
        elements[:, 1, 0, -1] = _hashes(elements[:, 1, 0, :-1])
        return cls(elements[:, 0], elements[:, 1])


def are_seeds(elements: Uint64s) -> Bools:
    """Return which secrets are those of a device's own mask, shape (count,), from shape (count, elements)."""
    whole: Bools = elements[:, -1] == _hashes(elements[:, :-1])
    return whole


def _hashes(numbers: Uint64s) -> Uint64s:
    """Return a number for those of each secret, shape (count,)."""
    hashed = [derived_key(row, "check of a seed") for row in as_bytes(numbers)]
    words = np.frombuffer(b"".join(hashed), dtype=_WORD).astype(np.uint64)
    return field_elements(words.reshape(len(hashed), -1)[:, :2])


def mask_private_keys(mask_keys: Uint64s) -> list[bytes]:
    """Return the private keys that mask keys yield, from shape (users, elements)."""
    return [derived_key(secret, "mask key") for secret in as_bytes(mask_keys)]


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
    key = agreed_key(private, public, "pair mask", context.identity)
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


Shares = tuple[Ints, Uint64s]
"""Of each device, what neighbours reveal: of its seed if it is there, else of its mask key.

Where the neighbours' shares are, from 1, shape (users, threshold); the shares, shape (users, threshold,
elements).
"""


def first_shares(revealed: Uint64s, known: Bools, threshold: int) -> Shares:
    """Choose as many shares as the threshold, the first of those that are known.

    ``revealed``, shape (users, degree, elements); ``known``, shape (users, degree).
    """
    first = np.argsort(~known, axis=1, kind="stable")[:, :threshold]
    return first + 1, np.take_along_axis(revealed, first[:, :, None], axis=1)


def unmasked_total(
    masked: Words,
    masking: Bools,
    present: Bools,
    revealed: Shares,
    graph: MaskGraph,
    public: Sequence[bytes],
    context: SumContext,
) -> Words:
    """Return the sum of the vectors of those present, from the sum of what they sent.

    ``masking``: who shares masks with its neighbours, those present among them; shape (users,). ``public``:
    the mask keys of all these. Raises SpoiledSharesError when a secret that was put together is another one
    than its device had.
    """
    whole = put_together(*revealed)
    spoiled = np.flatnonzero(present & ~are_seeds(whole))
    if spoiled.size:
        raise SpoiledSharesError(f"shares of device {spoiled[0]} that are not those of its seed")
    total = masked.astype(word_type(context.bits))
    for seed in as_bytes(whole[present]):
        total -= self_mask(context, seed)
    gone = np.flatnonzero(masking & ~present)
    for user, private in zip(gone.tolist(), mask_private_keys(whole[gone]), strict=True):
        if public_key(private) != public[user]:
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
    `dprec.secure_aggregation.device_keys`, and what neighbours have said is given to it again in each
    step. ``user``: its own number in the sum; ``identity``: see `SumContext`.

    A neighbour that has said nothing stands in messages as zeros. Every step raises ValueError for a message
    of another size, and when there are fewer neighbours than the threshold.
    """

    def __init__(
        self, key: bytes, user: int, neighbours: Ints, graph_size: GraphSize, identity: bytes
    ) -> None:
        self._user, self._neighbours = user, neighbours
        self._size, self._identity = graph_size, identity
        self._channel = derived_key(key, "channel key")
        self._secrets = SharedSecrets.of([key], graph_size.threshold)
        (self._private,) = mask_private_keys(self._secrets.mask_keys[:, 0])

    def advertise(self) -> bytes:
        """Return the public keys: of its masks, and of its channel."""
        return public_key(self._private) + public_key(self._channel)

    def share(self, keys_of_neighbours: bytes) -> bytes:
        """Return shares of its two secrets for every neighbour with keys, encrypted for it."""
        keys = self._enough(pieces(keys_of_neighbours, self._size.degree, KEYS_BYTES))
        given = [
            as_bytes(shares(polynomials, self._size.degree)[0])
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
        own = self._private, as_bytes(self._secrets.self_seeds[:, 0])[0]
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
        identity, public = self._identity + sender.to_bytes(8, "little"), keys_of_neighbour[PUBLIC_BYTES:]
        # A key of its own for either direction and every sum: the nonce need not change.
        return ChaCha20Poly1305(agreed_key(self._channel, public, "share channel", identity))
