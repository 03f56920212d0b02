"""The random words of a device that stands by itself, from a secret that it shares with nobody.

They are bound to what the words of simulated devices are bound to, for the same reasons (see
`dprec.randomness.devices`), by ciphers that are made for secrecy: each step to a key is HMAC-SHA-256 under
the key before it, and a stream of words is SHAKE-256 of the last key, the kind of word, the index and the
round.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SECRET_BYTES = 32
"""Bytes of a device's secret."""

_WORD = np.dtype("<u8")


@dataclass(frozen=True, eq=False)
class SecretDraws:
    """The random words of one user, for one purpose in one run."""

    key: bytes
    """32 bytes."""

    @classmethod
    def of(
        cls, secret: bytes, items: NDArray[np.integer], values: NDArray[np.float64], purpose: str
    ) -> SecretDraws:
        """Derive the key of a user.

        Parameters
        ----------
        secret : bytes
            `SECRET_BYTES` from the operating system.
        items, values : ndarray, shape (ratings,)
            The profile, in any order.
        purpose : str
            Identifies the run, the protocol and what the words are for; others have independent words.
        """
        return cls(_step(secret, b"purpose", purpose.encode())).given(
            np.array([0, items.size]), items, values
        )

    def given(
        self, indptr: NDArray[np.int64], items: NDArray[np.integer], values: NDArray[np.float64]
    ) -> SecretDraws:
        """Return draws that change with the user's own numbers; see `DeviceDraws.given`."""
        cells = np.empty((2, items.size), dtype=_WORD)
        cells[0], cells[1] = items, values.view(np.uint64)
        ordered = cells[:, np.lexsort(cells)]
        return SecretDraws(_step(self.key, b"given", np.ascontiguousarray(ordered.T).tobytes()))

    def asked(self, question: bytes) -> SecretDraws:
        """Return draws that change with what the user is asked."""
        return SecretDraws(_step(self.key, b"asked", question))

    def per_user(self, index: int, round_index: int) -> NDArray[np.uint64]:
        """Return one word, shape (1,); see `DeviceDraws.per_user`."""
        return self._stream(b"user", 1, index, round_index)

    def per_cell(
        self, counts: NDArray[np.integer], items: NDArray[np.integer], round_index: int
    ) -> NDArray[np.uint64]:
        """Return one word for each of some cells, shape (cells,); see `DeviceDraws.per_cell`."""
        stream = self._stream(b"cell", int(items.max(initial=-1)) + 1, round_index)
        return stream[items.astype(np.intp)]

    def _stream(self, kind: bytes, count: int, *numbers: int) -> NDArray[np.uint64]:
        """Return the first words of the stream of a kind and some numbers."""
        place = b"".join(number.to_bytes(8, "little") for number in numbers)
        stream = hashlib.shake_256(self.key + kind + place)
        return np.frombuffer(stream.digest(count * _WORD.itemsize), dtype=_WORD).astype(np.uint64)


def _step(key: bytes, kind: bytes, data: bytes) -> bytes:
    """Return the key that follows from a key and some data."""
    return hmac.digest(key, kind + b"\0" + data, "sha256")
