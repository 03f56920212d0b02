"""Masks on devices' vectors, and their removal from the total (Bonawitz et al. [bonawitz2017], Section 4).

Device u sends x_u + PRG(b_u) + sum over its neighbours v of +-PRG(s_uv), modulo a power of two. Of two
neighbours the lower one adds and the other subtracts, so that both masks vanish from the total.

The messages of secure aggregation in bytes, and how many of them every user sends and receives.

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

Who shares a mask with whom: a sparse random graph, and how many neighbours put a secret together.

Everybody stands on a circle in random order and has those who stand near as neighbours (Bell et al.
[bell2020], Section 3). Degree and threshold follow from probabilities of which each is stated here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Bools, Floats, Ints, Uint64s
from dprec.errors import SettingError
from dprec.scipy_or_numpy import log_factorials
from dprec.secure_aggregation import secrets
from dprec.secure_aggregation.directory import KEYS_BYTES, SIGNED_BYTES
from dprec.secure_aggregation.encoding import reduced, word_type

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305


SECURITY = 2.0**-40
"""Most probability with which a sum protects less than it says, over the order on the circle."""

FAILURE = 2.0**-20
"""Most probability with which a sum fails although no more devices drop out than are tolerated."""


@dataclass(frozen=True)
class GraphSize:
    """How many neighbours a device has, and how many of them put a secret of its together."""

    degree: int
    """Even, or everybody else."""
    threshold: int


@lru_cache(maxsize=64)
def graph_size(users: int, dropouts: float, colluders: int) -> GraphSize:
    """Return the smallest graph that holds what it must.

    The neighbours of a device are a random sample of all others, so the tails are hypergeometric; they are
    added up over all devices:

    - at least `threshold` neighbours answer, except with probability `FAILURE`;
    - fewer than 2 threshold - degree neighbours collude, except with probability `SECURITY` / 2: a server can
      then collect both secrets of no device, whatever it says to whom, as each honest neighbour reveals one;
    - honest devices that answer are connected by masks, except with probability `SECURITY` / 2: only a gap of
      degree / 2 others on the circle separates them (Bell et al. [bell2020], Section 3).

    Who colludes and who drops out must not depend on the order on the circle.

    ``dropouts``: largest tolerated share of devices that drop out, from 0 to below 1; ``colluders``: devices
    that tell the server all that they know. Raises SettingError when no graph of so few users does.
    """
    absent = math.floor(dropouts * users)
    most = users - 1
    complete = _threshold(users, most, absent, colluders) if most >= 2 else None
    if complete is None or users - absent - colluders < 2:
        # Two thresholds less everybody's neighbours exceed the colluders, and as many neighbours answer.
        found = f"{users} users, of whom {absent} may drop out and {colluders} collude"
        raise SettingError("", found, "users - 1 > colluders + 2 x dropouts, for two honest ones or more")
    for degree in range(2, most, 2):
        if degree // 2 < _shortest_gap(users, absent + colluders):
            continue
        threshold = _threshold(users, degree, absent, colluders)
        if threshold is not None:
            return GraphSize(degree, threshold)
    return GraphSize(most, complete)


def _threshold(users: int, degree: int, absent: int, colluders: int) -> int | None:
    """Return the smallest threshold at which secrets are safe, if enough neighbours answer then."""
    others = users - 1
    colluding = users * _at_least(others, min(colluders, others), degree)
    # As many collude, and no more: of the next number on, the probability is small enough.
    most = int(np.argmax(colluding <= SECURITY / 2)) - 1
    threshold = (degree + most) // 2 + 1
    if threshold > degree:
        return None
    missing = users * _at_least(others, min(absent, others), degree)
    return threshold if missing[degree - threshold + 1] <= FAILURE else None


def _at_least(others: int, marked: int, degree: int) -> Floats:
    """Return the probabilities that 0, 1, ... degree + 1 or more of some drawn others are marked ones."""

    def choose(items: int, taken: Ints) -> Floats:
        return log_factorials(np.array(items)) - log_factorials(taken) - log_factorials(items - taken)

    drawn = np.arange(degree + 1)
    possible = (drawn <= marked) & (degree - drawn <= others - marked)
    drawn = drawn[possible]
    logarithms = choose(marked, drawn) + choose(others - marked, degree - drawn)
    of_number = np.zeros(degree + 2)
    of_number[:-1][possible] = np.exp(logarithms - choose(others, np.array(degree)))
    return np.cumsum(of_number[::-1])[::-1]


def _shortest_gap(users: int, bad: int) -> int:
    """Return from which length on a gap of bad devices alone is too unlikely, wherever it begins."""
    probability, length = float(users), 0
    while probability > SECURITY / 2 and length < bad:
        probability *= (bad - length) / (users - length)
        length += 1
    return length if probability <= SECURITY / 2 else length + 1


@dataclass(frozen=True, eq=False)
class MaskGraph:
    """The neighbours of every device in one sum."""

    neighbours: Ints
    """Shape (users, degree)."""
    reverse: Ints
    """Each device is neighbour number ``reverse[c]`` of its neighbour number c; shape (degree,)."""

    @classmethod
    def of(cls, order: Ints, degree: int) -> Self:
        """Return the graph of an order on the circle."""
        users, steps = order.size, _steps(order.size, degree)
        position = np.empty(users, dtype=np.int64)
        position[order] = np.arange(users)
        neighbours: Ints = order[(position[:, None] + steps) % users]
        number = np.zeros(users, dtype=np.int64)
        number[steps] = np.arange(degree)
        return cls(neighbours, number[users - steps])

    @staticmethod
    def neighbours_of(user: int, order: Ints, degree: int) -> Ints:
        """Return the neighbours of one device, as the graph of all has them, shape (degree,)."""
        (position,) = np.flatnonzero(order == user)
        neighbours: Ints = order[(position + _steps(order.size, degree)) % order.size]
        return neighbours

    def pairs(self) -> tuple[Ints, Ints]:
        """Return every two neighbours once, the lower index first; shape (pairs,) each."""
        users = np.arange(len(self.neighbours))
        lower, column = np.nonzero(self.neighbours > users[:, None])
        return lower, self.neighbours[lower, column]

    def answers(self, present: Bools) -> Ints:
        """Return how many neighbours of each device are present, shape (users,)."""
        answers: Ints = present[self.neighbours].sum(axis=1)
        return answers


def _steps(users: int, degree: int) -> Ints:
    """Return how far from a device its neighbours stand on the circle, shape (degree,)."""
    half = np.arange(1, degree // 2 + 1)
    return np.arange(1, users) if degree == users - 1 else np.concatenate([half, users - half])


Words = NDArray[np.unsignedinteger]
"""Integers modulo a power of two; bits above those of the modulus have no meaning until they are cut."""


class TooFewSharesError(Exception):
    """More devices dropped out than the threshold bears: nothing can be unmasked."""


class SpoiledSharesError(Exception):
    """Some device revealed what was not a share of its neighbour's secret: nothing can be unmasked."""


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
        key = secrets.derived_key(seed, "self mask", self.identity)
        return secrets.stream(key, self.size, word_type(self.bits))

    def pair_mask(self, private: bytes, public: bytes) -> Words:
        """Return the mask that two devices share, from one's private and the other's public key."""
        key = secrets.agreed_key(private, public, "pair mask", self.identity)
        return secrets.stream(key, self.size, word_type(self.bits))

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
        of_one = np.where(present[:, None, None], of_seeds, of_keys)
        return cls.among(of_one, present[graph.neighbours], threshold)

    @classmethod
    def among(cls, revealed: Uint64s, known: Bools, threshold: int) -> Self:
        """Choose as many shares as the threshold, the first of those that are known.

        ``revealed``, shape (users, degree, elements); ``known``, shape (users, degree).
        """
        first = np.argsort(~known, axis=1, kind="stable")[:, :threshold]
        return cls(first + 1, np.take_along_axis(revealed, first[:, :, None], axis=1))


def check_threshold(graph: MaskGraph, threshold: int, present: Bools) -> None:
    """Raise TooFewSharesError unless a threshold of every device's neighbours answer."""
    fewest = int(graph.answers(present).min())
    if fewest < threshold:
        raise TooFewSharesError(f"a device with {fewest} neighbours left, of whom {threshold} must answer")


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
        total -= context.self_mask(seed)
    gone = np.flatnonzero(masking & ~present)
    for user, private in zip(gone.tolist(), secrets.mask_private_keys(whole[gone]), strict=True):
        if secrets.public_key(private) != public[user]:
            raise SpoiledSharesError(f"shares of device {user} that are not those of its mask key")
        left = graph.neighbours[user][present[graph.neighbours[user]]]
        # Its own masks with those who are left would have cancelled theirs.
        total += context.pair_masks(user, private, left, [public[other] for other in left.tolist()])
    return total


_TAG_BYTES = 16
SEALED_BYTES = 2 * secrets.SECRET_BYTES + _TAG_BYTES
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
        return SIGNED_BYTES, self.degree * SEALED_BYTES, self.vector, self.degree * secrets.SECRET_BYTES

    @property
    def downlink(self) -> tuple[int, int, int]:
        """Neighbours' keys, neighbours' shares, which neighbours sent a vector."""
        return self.degree * SIGNED_BYTES, self.degree * SEALED_BYTES, -(-self.degree // 8)


def pack_vector(words: NDArray[np.unsignedinteger], bits: int) -> bytes:
    """Return a vector modulo 2**bits, each number in so many bits, the highest first."""
    from dprec.kernels.vectors import pack

    data = np.zeros(-(-words.size * bits // 8), dtype=np.uint8)
    pack(reduced(words, bits).astype(np.uint64), bits, data)
    return data.tobytes()


def unpack_vector(data: bytes, size: int, bits: int) -> NDArray[np.unsignedinteger]:
    """Read a packed vector, shape (size,), or raise ValueError."""
    if len(data) != -(-size * bits // 8):
        raise ValueError(f"a masked vector of {len(data)} bytes")
    if data and data[-1] & ((1 << -size * bits % 8) - 1):
        raise ValueError("a masked vector with bits after its end")
    from dprec.kernels.vectors import unpack

    words = np.empty(size, dtype=np.uint64)
    unpack(np.frombuffer(data, dtype=np.uint8), bits, words)
    return words.astype(word_type(bits))


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
        public = [keys[column][: secrets.PUBLIC_BYTES] for column in sharing]
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
            shares[secrets.SECRET_BYTES :] if is_present else shares[: secrets.SECRET_BYTES]
            for shares, is_present in zip(held, present.tolist(), strict=True)
        )

    def _opened(self, keys_of_neighbours: bytes, shares_of_neighbours: bytes) -> list[bytes]:
        """Return the shares that neighbours encrypted for this device, zeros of those without."""
        from cryptography.exceptions import InvalidTag

        keys = pieces(keys_of_neighbours, self._size.degree, KEYS_BYTES)
        sealed = self._enough(pieces(shares_of_neighbours, self._size.degree, SEALED_BYTES))
        opened = []
        for key, neighbour, data in zip(keys, self._neighbours.tolist(), sealed, strict=True):
            if not any(data):
                opened.append(bytes(2 * secrets.SECRET_BYTES))
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
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        identity, public = (
            self._identity + sender.to_bytes(8, "little"),
            keys_of_neighbour[secrets.PUBLIC_BYTES :],
        )
        # A key of its own for either direction and every sum: the nonce need not change.
        return ChaCha20Poly1305(secrets.agreed_key(self._channel, public, "share channel", identity))


class MaskedSum:
    """Devices that add up vectors, in an order on the circle: their keys, shares and masks, unencrypted."""

    def __init__(
        self, keys: Sequence[bytes], order: Ints, graph_size: GraphSize, context: SumContext
    ) -> None:
        self.graph = MaskGraph.of(order, graph_size.degree)
        self._threshold, self._context = graph_size.threshold, context
        self._secrets = secrets.SharedSecrets.of(keys, graph_size.threshold)
        self._private, self._seeds = self._secrets.private_keys(), self._secrets.seeds()
        self._public = secrets.public_keys(self._private)

    def masked(self, user: int, vector: AnyInts) -> Words:
        """Return what a device sends in place of its vector, modulo the modulus, shape (size,)."""
        neighbours = self.graph.neighbours[user]
        public = [self._public[other] for other in neighbours.tolist()]
        keys = self._private[user], self._seeds[user]
        masked = masked_vector(vector, user, keys, neighbours, public, self._context)
        return reduced(masked, self._context.bits)

    def total(self, masked: Words, present: Bools) -> Words:
        """Unmask the sum of what those present sent; raises TooFewSharesError if too many dropped out."""
        check_threshold(self.graph, self._threshold, present)
        degree = self.graph.neighbours.shape[1]
        of_seeds = secrets.shares(self._secrets.self_seeds, degree)
        of_keys = secrets.shares(self._secrets.mask_keys, degree)
        revealed = RevealedShares.of(of_seeds, of_keys, self.graph, self._threshold, present)
        everybody = np.ones(present.size, dtype=np.bool_)
        total = unmasked_total(masked, everybody, present, revealed, self.graph, self._public, self._context)
        return reduced(total, self._context.bits)


def plain_total(vectors: AnyInts, present: Bools, bits: int) -> Words:
    """Return the sum of the vectors of those present with the masks that cancel left out, shape (size,)."""
    total = vectors[present].astype(word_type(bits)).sum(axis=0, dtype=word_type(bits))
    return reduced(total, bits)
