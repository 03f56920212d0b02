"""The secret of a device, from which all its noise follows: secret.key."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError
from dprec.randomness import SECRET_BYTES, Draws, SecretDraws

_ACCEPTED = f"{SECRET_BYTES} random bytes that only their owner can read (mode 0600)"


@dataclass(frozen=True)
class SecretKeys:
    """What a device draws from in a run; see `Keys`.

    The same question in the same run gets the same answer, which costs nothing. In another run, under
    another protocol or from another profile all noise is independent, so nothing can be replayed.

    Parameters
    ----------
    secret : bytes
    run : str
        Flower's number of the run.
    fingerprint : str
        Of the protocol.
    public_seed : int
        The seed of what devices and server share.
    network_seed : int
        Draws no faults: those of a real network happen.
    """

    secret: bytes
    run: str
    fingerprint: str
    public_seed: int
    network_seed: int = 0

    def draws(
        self,
        first_user: int,
        indptr: NDArray[np.int64],
        items: NDArray[np.integer],
        values: NDArray[np.float64],
        purpose: str,
        protocol: str,
    ) -> Draws:
        """Return the random words of the user in this run."""
        of = f"{purpose} {self.run} {self.fingerprint} {protocol}"
        return SecretDraws.of(self.secret, items, values, of)

    def __repr__(self) -> str:
        return f"SecretKeys(run={self.run!r})"


def new_secret() -> bytes:
    """Return a secret from the operating system."""
    return os.urandom(SECRET_BYTES)


def read_secret(path: Path) -> bytes:
    """Read secret.key.

    Raises
    ------
    InputError
        When it cannot be read, others can read it too, or it has another length.
    """
    try:
        mode, secret = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise InputError(str(path), str(error.strerror), _ACCEPTED) from None
    if stat.S_IMODE(mode) & 0o077:
        raise InputError(str(path), f"mode {stat.S_IMODE(mode):04o}", _ACCEPTED)
    if len(secret) != SECRET_BYTES:
        raise InputError(str(path), f"{len(secret)} bytes", _ACCEPTED)
    return secret
