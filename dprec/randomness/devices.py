"""The random words of devices: functions of the device's secret and of all that its report depends on.

`Draws` is what a handler is given. `DeviceDraws` computes the words of whole partitions in a simulation; a
device that stands by itself draws from a secret that it shares with nobody.

No draw depends on other people, on who computes it or on what is computed beside it. The keys of a user are

    secret = F(master, user)               the device's own; a real one would draw it once
    stream = F(secret, run and purpose)
    key    = F(stream, sum over the ratings of F(stream', (item, value)) modulo 2^64 in each word)
    word   = F(key, (item, round))

where F is `threefry` and stream' a key that is used for such sums alone. All noise of a user changes with any
of its ratings, so the reports before and after the change compose additively, as the ledger says. If the
noise of unchanged cells were used again, it would be certain from the two reports whether a rating changed.
In rounds, what a device is asked about is bound in the same way: another question gets fresh noise.

`threefry` is Threefry-2x64-20 on arrays: 128 random bits for every key and counter (Salmon et al.
[salmon2011]). The output is a keyed function of the counter: it can be computed at any place and in any
order, and without the key it looks random. The function descends from the cipher Threefish, but is made for
statistical quality and not for secrecy: in a simulation it stands in for the cipher of a real device.

`SecretDraws` are bound to the same things, for the same reasons, by ciphers that are made for secrecy: each
step to a key is HMAC-SHA-256 under the key before it, and a stream of words is SHAKE-256 of the last key, the
kind of word, the index and the round.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from dprec.arrays import AnyInts, Floats, Ints, Uint64s

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

    def given(self, indptr: Ints, items: AnyInts, values: Floats) -> SecretDraws:
        """Return draws that change with the user's own numbers; see `DeviceDraws.given`."""
        cells = np.empty((2, items.size), dtype=_WORD)
        cells[0], cells[1] = items, values.view(np.uint64)
        ordered = cells[:, np.lexsort(cells)]
        return SecretDraws(_step(self.key, b"given", np.ascontiguousarray(ordered.T).tobytes()))

    def asked(self, question: bytes) -> SecretDraws:
        """Return draws that change with what the user is asked."""
        return SecretDraws(_step(self.key, b"asked", question))

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

_ROUNDS, _ROUNDS_PER_KEY = 20, 4

# Constants are arrays, which NumPy need not convert in every step.
_PARITY = np.array(0x1BD11BDAA9FC1A22, dtype=np.uint64)
_ROTATIONS = tuple(
    (np.array(bits, dtype=np.uint64), np.array(64 - bits, dtype=np.uint64))
    for bits in (16, 42, 12, 31, 16, 32, 24, 21)
)
_STEPS = tuple(np.array(step, dtype=np.uint64) for step in range(1 + _ROUNDS // _ROUNDS_PER_KEY))

_BLOCK = 1 << 14
"""Counters that are worked on together: their arrays stay in the processor's cache."""


def threefry(keys: Pairs, low: AnyInts | int, high: AnyInts | int) -> Pairs:
    """Return 128 random bits for each key and the two words of its counter, shape (2, count)."""
    count = keys.shape[1]
    result = np.empty((2, count), dtype=np.uint64)
    spare = np.empty((2, min(count, _BLOCK)), dtype=np.uint64)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        first, second = result[:, part]
        first[...] = low if isinstance(low, int) else low[part]
        second[...] = high if isinstance(high, int) else high[part]
        _encrypt(keys[:, part], first, second, spare[0, : first.size], spare[1, : first.size])
    return result


def _encrypt(keys: Pairs, first: Uint64s, second: Uint64s, third_key: Uint64s, turned: Uint64s) -> None:
    """Replace the words of some counters by random ones; the last two arrays are working space."""
    np.bitwise_xor(keys[0], keys[1], out=third_key)
    np.bitwise_xor(third_key, _PARITY, out=third_key)
    schedule = (keys[0], keys[1], third_key)
    np.add(first, keys[0], out=first)
    np.add(second, keys[1], out=second)
    for done in range(_ROUNDS):
        left, right = _ROTATIONS[done % len(_ROTATIONS)]
        np.add(first, second, out=first)
        np.left_shift(second, left, out=turned)
        np.right_shift(second, right, out=second)
        np.bitwise_or(second, turned, out=second)
        np.bitwise_xor(second, first, out=second)
        step, between = divmod(done + 1, _ROUNDS_PER_KEY)
        if between == 0:
            np.add(first, schedule[step % 3], out=first)
            np.add(second, schedule[(step + 1) % 3], out=second)
            np.add(second, _STEPS[step], out=second)


_DIGEST = b"digest"


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
        """Derive the keys of some users.

        ``master``: 16 bytes that stand in for the secrets of all devices. ``purpose``: identifies the run and
        what the words are for; other purposes have independent words.
        """
        users = np.arange(first_user, first_user + indptr.size - 1)
        secrets = threefry(np.broadcast_to(_pair(master), (2, users.size)), users, 0)
        return cls(threefry(secrets, *_hashed(purpose.encode()))).given(indptr, items, values)

    def given(self, indptr: Ints, items: AnyInts, values: Floats) -> DeviceDraws:
        """Return draws that change with each user's own numbers; see `of` for the parameters."""
        counts = np.diff(indptr)
        keys = np.repeat(threefry(self.keys, *_hashed(_DIGEST)), counts, axis=1)
        of_cells = threefry(keys, items, values.view(np.uint64))
        digests = np.zeros_like(self.keys)
        filled = np.flatnonzero(counts)
        if filled.size:
            digests[:, filled] = np.add.reduceat(of_cells, indptr[:-1][filled], axis=1)
        return DeviceDraws(threefry(self.keys, *digests))

    def asked(self, question: bytes) -> DeviceDraws:
        """Return draws that change with what all the users are asked."""
        return DeviceDraws(threefry(self.keys, *_hashed(question)))

    def per_user(self, index: int, round_index: int) -> Uint64s:
        """Return one word for each user, shape (users,)."""
        words: Uint64s = threefry(self.keys, index, round_index)[0]
        return words

    def per_cell(self, counts: AnyInts, items: AnyInts, round_index: int) -> Uint64s:
        """Return one word for each of some cells, given by user, shape (cells,)."""
        words: Uint64s = threefry(np.repeat(self.keys, counts, axis=1), items, round_index)[0]
        return words


def _pair(number: bytes) -> Pairs:
    return np.frombuffer(number, dtype="<u8").astype(np.uint64).reshape(2, 1)


def _hashed(text: bytes) -> tuple[int, int]:
    low, high = _pair(hashlib.blake2b(text, digest_size=16).digest()).ravel().tolist()
    return low, high
