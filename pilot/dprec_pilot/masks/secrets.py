"""The secrets behind masks: key pairs, shared seeds, and secrets cut into shares (Shamir [shamir1979]).

A secret is `ELEMENTS` numbers modulo a prime, 154 bits. Each is the constant of a polynomial of its own, of
which the other coefficients are uniform; the holder at point x > 0 has the values there.

The mask key yields the private key behind a device's masks with its neighbours; the self seed yields the mask
of its own. Neighbours reveal shares of the one if it drops out and of the other if it does not, never of
both: with both, its masked vector could be read.

Whoever puts a secret together can tell whether a share was wrong, however few there are. A mask key has a
public key. The last number of a self seed is a hash of the others, which are 124 bits. A wrong share moves
the numbers by what depends on no secret, so it is not noticed with a probability of 2**-31.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Uint64s
from dprec.secure_aggregation.messages import PUBLIC_BYTES, SECRET_BYTES
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


def secrets(points: AnyInts, held: Uint64s) -> Uint64s:
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
    weights = above * _inverses(below) % PRIME
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


def _inverses(values: Uint64s) -> Uint64s:
    """Return values ** (PRIME - 2), modulo the prime."""
    result, power, exponent = np.ones_like(values), values, PRIME - 2
    while exponent:
        if exponent & 1:
            result = result * power % PRIME
        power = power * power % PRIME
        exponent >>= 1
    return result


def private_key(secret: bytes, purpose: str) -> bytes:
    """Return the private key that a device's secret yields, 32 bytes."""
    return derived_key(secret, purpose)


def public_key(private: bytes) -> bytes:
    """Return the public key of a private one."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agreed_key(private: bytes, other: bytes, purpose: str, context: bytes) -> bytes:
    """Return the key of two devices for a purpose and context, from one's private and the other's public key.

    Raises ValueError when the public key is none that X25519 accepts.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

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

    def private_keys(self) -> list[bytes]:
        """Return the private keys behind the masks with neighbours."""
        return mask_private_keys(self.mask_keys[:, 0])

    def seeds(self) -> list[bytes]:
        """Return the seeds of the devices' own masks."""
        return as_bytes(self.self_seeds[:, 0])


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
    return [private_key(secret, "mask key") for secret in as_bytes(mask_keys)]


def channel_private_key(key: bytes) -> bytes:
    """Return the private key by which a device encrypts shares for its neighbours, from its key of a sum."""
    return private_key(key, "channel key")


def public_keys(private: Sequence[bytes]) -> list[bytes]:
    """Return the public keys of private ones."""
    return [public_key(key) for key in private]
