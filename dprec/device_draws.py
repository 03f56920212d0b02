"""The random words of devices: functions of the device's secret and of all that its report depends on.

`Draws` is what a handler is given. `DeviceDraws` computes the words of whole partitions in a simulation; a
device that stands by itself draws from a secret that it shares with nobody (`dprec.randomness.devices`).

No draw depends on other people, on who computes it or on what is computed beside it. The keys of a user are

    secret = F(master, user)               the device's own; a real one would draw it once
    stream = F(secret, run and purpose)
    key    = F(stream, sum over the ratings of F(stream', (item, value)) modulo 2^64 in each word)
    word   = F(key, (item, round))

where F is `threefry` and stream' a key that is used for such sums alone. All noise of a user changes with any
of its ratings, so the reports before and after the change compose additively, as the ledger says. If the
noise of unchanged cells were used again, it would be certain from the two reports whether a rating changed.
In rounds, what a device is asked about is bound in the same way: another question gets fresh noise.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dprec.randomness import threefry
from dprec.randomness.devices import Pairs

_DIGEST = b"digest"


class Draws(Protocol):
    """The random words of consecutive users, for one purpose in one run; see `DeviceDraws`."""

    def given(
        self, indptr: NDArray[np.int64], items: NDArray[np.integer], values: NDArray[np.float64]
    ) -> Self:
        """Return draws that change with each user's own numbers."""

    def asked(self, question: bytes) -> Self:
        """Return draws that change with what all the users are asked."""

    def per_user(self, index: int, round_index: int) -> NDArray[np.uint64]:
        """Return one word for each user, shape (users,)."""

    def per_cell(
        self, counts: NDArray[np.integer], items: NDArray[np.integer], round_index: int
    ) -> NDArray[np.uint64]:
        """Return one word for each of some cells, shape (cells,)."""


@dataclass(frozen=True, eq=False)
class DeviceDraws:
    """The random words of the users of a simulated partition."""

    keys: Pairs
    """Shape (2, users)."""

    @classmethod
    def of(
        cls,
        master: bytes,
        first_user: int,
        indptr: NDArray[np.int64],
        items: NDArray[np.integer],
        values: NDArray[np.float64],
        purpose: str,
    ) -> DeviceDraws:
        """Derive the keys of some users.

        Parameters
        ----------
        master : bytes
            16 bytes that stand in for the secrets of all devices.
        first_user : int
            Global index of the first user.
        indptr : ndarray of int64, shape (users + 1,)
            Where each user's ratings begin, from 0.
        items, values : ndarray, shape (ratings,)
            The profiles, in any order within a user.
        purpose : str
            Identifies the run and what the words are for; other purposes have independent words.
        """
        users = np.arange(first_user, first_user + indptr.size - 1)
        secrets = threefry(np.broadcast_to(_pair(master), (2, users.size)), users, 0)
        return cls(threefry(secrets, *_hashed(purpose.encode()))).given(indptr, items, values)

    def given(
        self, indptr: NDArray[np.int64], items: NDArray[np.integer], values: NDArray[np.float64]
    ) -> DeviceDraws:
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

    def per_user(self, index: int, round_index: int) -> NDArray[np.uint64]:
        """Return one word for each user.

        Parameters
        ----------
        index : int
            Which of the user's words of a round, from 0.

        Returns
        -------
        ndarray of uint64, shape (users,)
        """
        words: NDArray[np.uint64] = threefry(self.keys, index, round_index)[0]
        return words

    def per_cell(
        self, counts: NDArray[np.integer], items: NDArray[np.integer], round_index: int
    ) -> NDArray[np.uint64]:
        """Return one word for each of some cells.

        Parameters
        ----------
        counts : ndarray of int, shape (users,)
            Number of cells of each user.
        items : ndarray of int, shape (cells,)
            The items of the cells, by user.

        Returns
        -------
        ndarray of uint64, shape (cells,)
        """
        words: NDArray[np.uint64] = threefry(np.repeat(self.keys, counts, axis=1), items, round_index)[0]
        return words


def _pair(number: bytes) -> Pairs:
    """Return 16 bytes as one number of 128 bits, shape (2, 1)."""
    return np.frombuffer(number, dtype="<u8").astype(np.uint64).reshape(2, 1)


def _hashed(text: bytes) -> tuple[int, int]:
    """Return a counter of 128 bits for some text."""
    low, high = _pair(hashlib.blake2b(text, digest_size=16).digest()).ravel().tolist()
    return low, high
