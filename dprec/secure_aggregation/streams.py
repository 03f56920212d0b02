"""The pseudorandom streams that masks and noise are made of: ChaCha20, keyed and one-way.

A key comes from a hash with a purpose, so that no two streams are the same one.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 32
"""Bytes of a stream's key."""

_NONCE = bytes(16)


def derived_key(secret: bytes, purpose: str, context: bytes = b"") -> bytes:
    """Return the key that a secret yields for one purpose and context.

    Parameters
    ----------
    secret : bytes
        At most 64 bytes.
    purpose : str
        At most 16 characters.
    context : bytes
        What else the key is bound to.
    """
    return hashlib.blake2b(context, key=secret, person=purpose.encode(), digest_size=KEY_BYTES).digest()


def stream(key: bytes, count: int, dtype: np.dtype[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Return the first integers of a key's stream, uniform on all of their bits, shape (count,).

    A key has one stream: whoever needs two derives two keys.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    cipher = Cipher(algorithms.ChaCha20(key, _NONCE), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(count * dtype.itemsize)), dtype=dtype.newbyteorder("<"))
