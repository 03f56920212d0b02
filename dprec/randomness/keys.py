"""The keys of a run, and the words that devices draw with them.

**Keys.** Devices, server and what is public draw from domains of their own.

Each key is a one-way hash of the run's seed, or of entropy from the operating system, and of a domain's name:
no key leads to another. A seed that can be guessed can be found by trying, so keys derived from it keep no
secret from somebody who tries; only entropy does. What makes the experiment (data sets, splits, the ratings
held back for early stopping) draws from the seed itself, which neither devices nor server are given.

**Words of devices** are functions of the device's secret and of all that its report depends on. `Draws` is
what a handler is given. `DeviceDraws` computes the words of whole partitions in a simulation; a device that
stands by itself draws from a secret that it shares with nobody. No draw depends on other people, on who
computes it or on what is computed beside it. The keys of a user are

    secret = F(master, user)               the device's own; a real one would draw it once
    stream = F(secret, run and purpose)
    key    = F(stream, sum over the ratings of F(stream', (item, value)) modulo 2^64 in each word)
    word   = F(key, (item, round))

where F is `threefry` and stream' a key that is used for such sums alone. All noise of a user changes with any
of its ratings, so the reports before and after the change compose additively, as the ledger says. If the
noise of unchanged cells were used again, it would be certain from the two reports whether a rating changed.
In rounds, what a device is asked about is bound in the same way: another question gets fresh noise.

`threefry` is Threefry-2x64-20: 128 random bits for every key and counter (Salmon et al.
[salmon2011]). The output is a keyed function of the counter: it can be computed at any place and in any
order, and without the key it looks random. The function descends from the cipher Threefish, but is made for
statistical quality and not for secrecy: in a simulation it stands in for the cipher of a real device.

What a device is to repeat across runs is bound to less (`MemoisedDraws`): the word of a rating follows from
the secret, from what the rating is answered with, and from the rating itself,

    key    = F(F(secret, memory and purpose), F(stream', (item, value)))
    word   = F(key, (0, round))

which is the key of a user who has rated nothing else. Whatever is rated besides and whichever run asks, the
same value of an item has the same word, and another value an independent one.

`SecretDraws` are bound to the same things, for the same reasons, by ciphers that are made for secrecy: each
step to a key is HMAC-SHA-256 under the key before it, and a stream of words is SHAKE-256 of the last key, the
kind of word, the index and the round.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import StringConstraints

from dprec.arrays import AnyInts, Floats, Int32s, Ints, Uint64s, offsets
from dprec.components import Options, option
from dprec.randomness.counters import generator

SECRET_BYTES = 32
"""Bytes of a device's secret."""

_WORD = np.dtype("<u8")


@dataclass(frozen=True, eq=False)
class SecretDraws:
    """The random words of one user, for one purpose in one run."""

    key: bytes
    """32 bytes."""

    @classmethod
    def of(cls, secret: bytes, items: AnyInts, values: Floats, purpose: str) -> SecretDraws:
        """Derive the key of a user from its secret and its ratings in any order, for one run and purpose."""
        return cls(_step(secret, b"purpose", purpose.encode())).given(
            np.array([0, items.size]), items, values
        )

    @classmethod
    def of_all_runs(cls, secret: bytes, purpose: str) -> SecretDraws:
        """Derive the key of a user for one purpose from its secret alone; see `of_rating`."""
        return cls(_step(secret, b"all runs", purpose.encode()))

    def given(self, indptr: Ints, items: AnyInts, values: Floats) -> SecretDraws:
        """Return draws that change with the user's own numbers; see `DeviceDraws.given`."""
        cells = np.empty((2, items.size), dtype=_WORD)
        cells[0], cells[1] = items, values.view(np.uint64)
        ordered = cells[:, np.lexsort(cells)]
        return SecretDraws(_step(self.key, b"given", np.ascontiguousarray(ordered.T).tobytes()))

    def asked(self, question: bytes) -> SecretDraws:
        """Return draws that change with what the user is asked."""
        return SecretDraws(_step(self.key, b"asked", question))

    def of_rating(self, item: str, value: float) -> SecretDraws:
        """Return draws of one rating, of an item that is known by its id; see `MemoisedDraws`."""
        return SecretDraws(_step(self.key, b"rating", struct.pack("<d", value) + item.encode()))

    def per_user(self, index: int, round_index: int) -> Uint64s:
        """Return one word, shape (1,); see `DeviceDraws.per_user`."""
        return self._stream(b"user", 1, index, round_index)

    def per_cell(self, counts: AnyInts, items: AnyInts, round_index: int) -> Uint64s:
        """Return one word for each of some cells, shape (cells,); see `DeviceDraws.per_cell`."""
        stream = self._stream(b"cell", int(items.max(initial=-1)) + 1, round_index)
        return stream[items.astype(np.intp)]

    def _stream(self, kind: bytes, count: int, *numbers: int) -> Uint64s:
        place = b"".join(number.to_bytes(8, "little") for number in numbers)
        stream = hashlib.shake_256(self.key + kind + place)
        return np.frombuffer(stream.digest(count * _WORD.itemsize), dtype=_WORD).astype(np.uint64)


def _step(key: bytes, kind: bytes, data: bytes) -> bytes:
    return hmac.digest(key, kind + b"\0" + data, "sha256")


Pairs = Uint64s
"""Numbers of 128 bits, shape (2, count): one row of low words and one of high words."""


def threefry(keys: Pairs, low: AnyInts | int, high: AnyInts | int) -> Pairs:
    """Return 128 random bits for each key and the two words of its counter, shape (2, count)."""
    from dprec.kernels.draws import of_counters

    result = np.empty(keys.shape, dtype=np.uint64)
    first, second = (np.full(keys.shape[1], word, dtype=np.uint64) for word in (low, high))
    of_counters(np.ascontiguousarray(keys), first, second, result)
    return result


def public_words(seed: int, users: AnyInts, items: AnyInts) -> Uint64s:
    """Return a word for each of some cells, the same for all who know the seed, shape (cells,).

    ``seed``: up to 128 bits; draws for different ends need different ones.
    """
    keys = np.zeros((2, items.size), dtype=np.uint64)
    keys[0], keys[1] = seed & _LOW, seed >> 64
    return threefry(keys, items, users)[0]


_LOW = (1 << 64) - 1


class Draws(Protocol):
    """The random words of consecutive users, for one purpose in one run; see `DeviceDraws`."""

    def given(self, indptr: Ints, items: AnyInts, values: Floats) -> Self:
        """Return draws that change with each user's own numbers."""

    def asked(self, question: bytes) -> Self:
        """Return draws that change with what all the users are asked."""

    def per_user(self, index: int, round_index: int) -> Uint64s:
        """Return one word for each user, shape (users,)."""

    def per_cell(self, counts: AnyInts, items: AnyInts, round_index: int) -> Uint64s:
        """Return one word for each of some cells, shape (cells,)."""


@dataclass(frozen=True, eq=False)
class DeviceDraws:
    """The random words of the users of a simulated partition."""

    keys: Pairs
    """Shape (2, users)."""

    @classmethod
    def of(
        cls, master: bytes, first_user: int, indptr: Ints, items: AnyInts, values: Floats, purpose: str
    ) -> DeviceDraws:
        """Derive the keys of some users, bound to all that each has rated.

        ``master``: 16 bytes that stand in for the secrets of all devices. ``purpose``: identifies the run and
        what the words are for; other purposes have independent words.
        """
        return cls._of_users(master, first_user, indptr, purpose).given(indptr, items, values)

    @classmethod
    def of_ratings(
        cls, master: bytes, first_user: int, indptr: Ints, items: AnyInts, values: Floats, purpose: str
    ) -> DeviceDraws:
        """Derive a key for each rating, as if its user had no other; see `of` for the parameters."""
        users = cls._of_users(master, first_user, indptr, purpose).keys
        of_ratings = cls(np.repeat(users, np.diff(indptr), axis=1))
        return of_ratings.given(np.arange(items.size + 1, dtype=np.int64), items, values)

    @classmethod
    def _of_users(cls, master: bytes, first_user: int, indptr: Ints, purpose: str) -> DeviceDraws:
        users = np.arange(first_user, first_user + indptr.size - 1)
        secrets = threefry(np.broadcast_to(_pair(master), (2, users.size)), users, 0)
        return cls(threefry(secrets, *_hashed(purpose.encode())))

    def given(self, indptr: Ints, items: AnyInts, values: Floats) -> DeviceDraws:
        """Return draws that change with each user's own numbers; see `of` for the parameters."""
        from dprec.kernels.draws import digests

        keys, sums = threefry(self.keys, *_hashed(b"digest")), np.empty_like(self.keys)
        numbers = np.ascontiguousarray(values).view(np.uint64)
        digests(keys, indptr, self._checked(indptr, items), numbers, sums)
        return DeviceDraws(threefry(self.keys, *sums))

    def asked(self, question: bytes) -> DeviceDraws:
        """Return draws that change with what all the users are asked."""
        return DeviceDraws(threefry(self.keys, *_hashed(question)))

    def per_user(self, index: int, round_index: int) -> Uint64s:
        """Return one word for each user, shape (users,)."""
        return threefry(self.keys, index, round_index)[0]

    def per_cell(self, counts: AnyInts, items: AnyInts, round_index: int) -> Uint64s:
        """Return one word for each of some cells, given by user, shape (cells,)."""
        from dprec.kernels.draws import of_cells

        indptr, words = offsets(counts), np.empty(items.size, dtype=np.uint64)
        of_cells(self.keys, indptr, self._checked(indptr, items), np.uint64(round_index), words)
        return words

    def _checked(self, indptr: Ints, items: AnyInts) -> Int32s:
        """Return the items of these users' cells, of which there are as many as the rows hold."""
        if indptr.size - 1 != self.keys.shape[1] or indptr[-1] != items.size:
            raise ValueError(f"{items.size} cells of {self.keys.shape[1]} users, in other rows")
        return np.ascontiguousarray(items, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class MemoisedDraws:
    """Random words of ratings that are the same in every run, whatever else is rated."""

    items: AnyInts
    """The rated items, by user; shape (ratings,)."""
    ratings: Sequence[Draws]
    """The draws of users of whom each has one of the ratings, in their order."""

    def given(self, indptr: Ints, items: AnyInts, values: Floats) -> Self:
        """Refuse numbers that another run could change."""
        raise ValueError("words that every run repeats, for numbers of a run")

    def asked(self, question: bytes) -> Self:
        """Refuse a question that another run could change."""
        raise ValueError("words that every run repeats, for a question of a run")

    def per_user(self, index: int, round_index: int) -> Uint64s:
        """Refuse words that belong to no rating."""
        raise ValueError("words that every run repeats, for a whole profile")

    def per_cell(self, counts: AnyInts, items: AnyInts, round_index: int) -> Uint64s:
        """Return one word for each of the ratings, shape (ratings,); see `DeviceDraws.per_cell`."""
        if not np.array_equal(items, self.items):
            raise ValueError("words that every run repeats, for items that are not rated")
        nothing: Uint64s = np.zeros(0, dtype=np.uint64)
        return np.concatenate([nothing, *(draws.per_user(0, round_index) for draws in self.ratings)])


def _pair(number: bytes) -> Pairs:
    return np.frombuffer(number, dtype="<u8").astype(np.uint64).reshape(2, 1)


def _hashed(text: bytes) -> tuple[int, int]:
    low, high = _pair(hashlib.blake2b(text, digest_size=16).digest()).ravel().tolist()
    return low, high


ENTROPY_BYTES = 32
"""Bytes from the operating system that replace the seed."""

_KEY_BYTES = 16

Key = Annotated[str, StringConstraints(pattern=f"^[0-9a-f]{{{2 * _KEY_BYTES}}}$")]
"""A number of 128 bits in hexadecimal digits."""


class Keys(Protocol):
    """What a node draws from, whether its devices are simulated or one that stands by itself."""

    @property
    def public_seed(self) -> int:
        """The seed of what devices and server share."""

    @property
    def network_seed(self) -> int:
        """The seed of the simulated faults."""

    def draws(
        self, first_user: int, indptr: Ints, items: AnyInts, values: Floats, purpose: str, protocol: str
    ) -> Draws:
        """Return the random words of some users in this run, for a purpose and all that is installed."""

    def memoised(
        self, first_user: int, indptr: Ints, items: AnyInts, values: Floats, purpose: str, memory: str
    ) -> Draws:
        """Return the random words of some users' ratings in all runs, for a purpose and what answers them."""


@dataclass(frozen=True, kw_only=True)
class InstalledKeys(Options):
    """What simulated devices, and the network that is simulated beside them, draw from."""

    devices: Key = option("Master from which the secret of every device is derived, 32 hexadecimal digits.")
    public: Key = option("What devices and server share, 32 hexadecimal digits.")
    network: Key = option("What the faults are drawn from, 32 hexadecimal digits.")
    run: Key = option("Identifies the run: its noise is used in no other; 32 hexadecimal digits.")

    @property
    def master(self) -> bytes:
        """The devices' master, 16 bytes."""
        return bytes.fromhex(self.devices)

    @property
    def public_seed(self) -> int:
        """The seed of what devices and server share."""
        return int(self.public, 16)

    @property
    def network_seed(self) -> int:
        """The seed of the faults."""
        return int(self.network, 16)

    def draws(
        self, first_user: int, indptr: Ints, items: AnyInts, values: Floats, purpose: str, protocol: str
    ) -> Draws:
        """Return the random words of some users in this run; see `Keys`."""
        words = f"{purpose} {self.run} {protocol}"
        return DeviceDraws.of(self.master, first_user, indptr, items, values, words)

    def memoised(
        self, first_user: int, indptr: Ints, items: AnyInts, values: Floats, purpose: str, memory: str
    ) -> Draws:
        """Return the random words of some users' ratings in all runs; see `Keys`."""
        words = f"{purpose} in all runs {memory}"
        ratings = DeviceDraws.of_ratings(self.master, first_user, indptr, items, values, words)
        return MemoisedDraws(items, [ratings])


@dataclass(frozen=True)
class RunKeys:
    """All keys of a run."""

    installed: InstalledKeys
    server: int
    """Seed of whatever the server draws: starting points, whom it asks, noise."""

    @classmethod
    def derive(
        cls, seed: int, run: str = "", entropy: bytes | None = None, collection: int | None = None
    ) -> Self:
        """Derive the keys of a seed and a run, described by what its draws depend on.

        ``entropy``: what devices and server draw from instead of the seed; ``collection``: which of several
        it is, whose faults are its own.
        """
        seeded = str(seed).encode()
        secret = seeded if entropy is None else entropy
        identity = _derived(seeded, "run", run)
        installed = InstalledKeys(
            devices=_derived(secret, "devices"),
            public=_derived(seeded, "public"),
            network=_derived(seeded, "network", "" if collection is None else str(collection)),
            run=identity,
        )
        return cls(installed, int(_derived(secret, "server", identity), 16))


@dataclass(frozen=True)
class ReleaseDraws:
    """What a server draws the noise of one release from; the counterpart of a device's `RoundDraws`.

    Whoever adds noise is given this and not the seed alone: without its round, a release of the same numbers
    in another round would have the same noise.
    """

    seed: int
    """Of what the server draws."""
    round_index: int
    """The round of the release, from 1."""

    def generator(self, purpose: str, released: NDArray[np.generic]) -> np.random.Generator:
        """Return a generator of noise; another round, purpose or number to be released gets other noise."""
        return generator(seed_for(self.seed, released), f"{purpose}/{self.round_index}")


def seed_for(seed: int, *data: NDArray[np.generic]) -> int:
    """Return the seed of all noise on what is computed from some arrays, which changes with any of them.

    For a server that releases once. What is drawn from the seed is told apart by its purpose and its index
    (`dprec.randomness.counters.words`); where there are rounds, see `ReleaseDraws`.
    """
    digest = hashlib.blake2b(str(seed).encode(), digest_size=_KEY_BYTES, person=b"dprec noise")
    for array in data:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return int.from_bytes(digest.digest(), "big")


def _derived(secret: bytes, domain: str, text: str = "") -> str:
    person = f"dprec {domain}".encode()
    key = hashlib.blake2b(secret, digest_size=_KEY_BYTES).digest()
    return hashlib.blake2b(text.encode(), key=key, person=person, digest_size=_KEY_BYTES).hexdigest()
