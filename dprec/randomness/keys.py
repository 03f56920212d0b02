"""The keys of a run: devices, server and what is public draw from domains of their own.

Each key is a one-way hash of the run's seed, or of entropy from the operating system, and of a domain's name:
no key leads to another. A seed that can be guessed can be found by trying, so keys derived from it keep no
secret from somebody who tries; only entropy does. What makes the experiment (data sets, splits, the ratings
held back for early stopping) draws from the seed itself, which neither devices nor server are given.
"""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import StringConstraints

from dprec.arrays import AnyInts, Floats, Ints
from dprec.components import Options, option
from dprec.randomness.counters import generator
from dprec.randomness.devices import DeviceDraws, Draws

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


@dataclass(frozen=True)
class RunKeys:
    """All keys of a run."""

    installed: InstalledKeys
    server: int
    """Seed of whatever the server draws: starting points, whom it asks, noise."""

    @classmethod
    def derive(cls, seed: int, run: str = "", entropy: bytes | None = None) -> Self:
        """Derive the keys of a seed and a run, described by its protocol with all settings.

        ``entropy``: what devices and server draw from instead of the seed.
        """
        seeded = str(seed).encode()
        secret = seeded if entropy is None else entropy
        identity = _derived(seeded, "run", run)
        installed = InstalledKeys(
            devices=_derived(secret, "devices"),
            public=_derived(seeded, "public"),
            network=_derived(seeded, "network"),
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
