"""The pseudorandom streams that noise and masks are made of, ChaCha20, keyed and one-way; and what keys them.

A key comes from a hash with a purpose, so that no two streams are the same one.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Uint64s
from dprec.randomness import Draws, Pairs

KEY_BYTES = 32
"""Bytes of a stream's key."""

_NONCE = bytes(16)


def derived_key(secret: bytes, purpose: str, context: bytes = b"") -> bytes:
    """Return the key that a secret of up to 64 bytes yields for a purpose and context."""
    return hashlib.blake2b(context, key=secret, person=purpose.encode(), digest_size=KEY_BYTES).digest()


def stream(key: bytes, count: int, dtype: np.dtype[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Return the first integers of a key's stream, uniform on all of their bits, shape (count,)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    cipher = Cipher(algorithms.ChaCha20(key, _NONCE), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(count * dtype.itemsize)), dtype=dtype.newbyteorder("<"))


def streams(keys: Sequence[bytes], purpose: str, count: int) -> Uint64s:
    """Return the first words of the streams that some keys yield for a purpose, shape (keys, count)."""
    words = np.empty((len(keys), count), dtype=np.uint64)
    for key, row in zip(keys, words, strict=True):
        row[:] = stream(derived_key(key, purpose), count, _WORD)
    return words


PURPOSE_OF_SUMS = b"secure sum"
"""What tells the draws of keys from whatever else a device draws in the round."""

_WORDS_OF_KEY = 4
_WORD = np.dtype("<u8")


def device_keys(draws: Draws, round_index: int) -> list[bytes]:
    """Return every device's key of one sum, 32 bytes, from its own random words."""
    words = _words(draws, round_index, range(_WORDS_OF_KEY))
    return [row.tobytes() for row in words.T.astype(_WORD)]


def rounding_keys(draws: Draws, round_index: int) -> Pairs:
    """Return what every device rounds by in one sum, of which nothing else is drawn, shape (2, devices)."""
    return _words(draws, round_index, range(_WORDS_OF_KEY, _WORDS_OF_KEY + 2))


def _words(draws: Draws, round_index: int, indices: range) -> Uint64s:
    draws_of_sums = draws.asked(PURPOSE_OF_SUMS)
    return np.stack([draws_of_sums.per_user(index, round_index) for index in indices])
