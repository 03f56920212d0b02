"""What devices draw for one sum: a key that all follows from, and two secrets that neighbours share.

The mask key yields the private key behind a device's masks with its neighbours; the self seed yields the mask
of its own. Neighbours reveal shares of the one if it drops out and of the other if it does not, never of
both: with both, whoever holds its masked vector would read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.randomness import Draws
from dprec.secure_aggregation import shamir
from dprec.secure_aggregation.secrets import derived_key, private_key, public_key, stream

PURPOSE_OF_SUMS = b"secure sum"
"""What tells the draws of keys from whatever else a device draws in the round."""

_WORDS_OF_KEY = 4
_WORD = np.dtype("<u8")


def device_keys(draws: Draws, round_index: int) -> list[bytes]:
    """Return every device's key of one sum, 32 bytes, from its own random words."""
    own = draws.asked(PURPOSE_OF_SUMS)
    words = np.stack([own.per_user(index, round_index) for index in range(_WORDS_OF_KEY)], axis=1)
    return [row.tobytes() for row in words.astype(_WORD)]


@dataclass(frozen=True, eq=False)
class SharedSecrets:
    """The secrets of some devices as polynomials, of which neighbours are given values."""

    mask_keys: NDArray[np.uint64]
    self_seeds: NDArray[np.uint64]
    """The secrets are the constants; see `dprec.secure_aggregation.secrets`; shape (users, threshold, elements)."""

    @classmethod
    def of(cls, keys: Sequence[bytes], threshold: int) -> SharedSecrets:
        """Draw the secrets from the devices' keys of a sum."""
        size = 2 * threshold * shamir.ELEMENTS * 2
        words = [stream(derived_key(key, "polynomials"), size, _WORD) for key in keys]
        shape = (len(keys), 2, threshold, shamir.ELEMENTS, 2)
        elements = shamir.field_elements(np.concatenate(words).astype(np.uint64).reshape(shape))
        return cls(elements[:, 0], elements[:, 1])

    def private_keys(self) -> list[bytes]:
        """Return the private keys behind the masks with neighbours."""
        return mask_private_keys(self.mask_keys[:, 0])

    def seeds(self) -> list[bytes]:
        """Return the seeds of the devices' own masks."""
        return shamir.as_bytes(self.self_seeds[:, 0])


def mask_private_keys(mask_keys: NDArray[np.uint64]) -> list[bytes]:
    """Return the private keys that mask keys yield, from shape (users, elements)."""
    return [private_key(secret, "mask key") for secret in shamir.as_bytes(mask_keys)]


def channel_private_key(key: bytes) -> bytes:
    """Return the private key by which a device encrypts shares for its neighbours, from its key of a sum."""
    return private_key(key, "channel key")


def public_keys(private: Sequence[bytes]) -> list[bytes]:
    """Return the public keys of private ones."""
    return [public_key(key) for key in private]
