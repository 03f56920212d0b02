"""Who takes part in secure sums, by their public keys, and what they sign with them: their keys of one sum.

A device shares secrets with whoever holds the other end of a key, so a server that could put keys of its own
in place of a neighbour's would read what is shared. Devices therefore sign the keys of each sum with the
key by which the server knows them (ECDSA on the curve P-384, with SHA-384), and accept keys only with the
signature of that neighbour in the directory to which all of them have agreed (Bonawitz et al.
[bonawitz2017], Section 4, against active adversaries).

Signatures follow from what is signed: a device that is asked twice says the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from dprec.secure_aggregation.messages import KEYS_BYTES, SIGNATURE_BYTES

_ALGORITHM = ec.ECDSA(SHA384(), deterministic_signing=True)
_NUMBER_BYTES = SIGNATURE_BYTES // 2

_SUM = "dprec secure sum"
_DOMAIN = b"dprec: public keys of a device in a secure sum"
"""Tells these signatures from any other that a device makes with its key."""


@dataclass(frozen=True)
class Directory:
    """The public key of every user's device, in the order of the users."""

    keys: tuple[str, ...]
    """As lines in the format of OpenSSH, without comments; empty for a user without a device."""

    @classmethod
    def of(cls, keys: Iterable[str | None]) -> Self:
        """Return the directory of some keys, as lines of OpenSSH; None for a user without a device."""
        return cls(tuple(" ".join((key or "").split()[:2]) for key in keys))

    @classmethod
    def read(cls, text: str) -> Self:
        """Read `text`; a line that is no key belongs to a device that has signed nothing."""
        return cls(tuple(text.split("\n")[:-1]))

    @property
    def text(self) -> str:
        """A line for each user; what a file of the directory contains."""
        return "".join(f"{key}\n" for key in self.keys)

    @cached_property
    def digest(self) -> str:
        """What identifies the directory: the SHA-256 of its text, 64 hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def has_signed(self, user: int, message: bytes, signature: bytes) -> bool:
        """Return whether a signature is that of a user's device, by a key on the curve, under a message."""
        if len(signature) != SIGNATURE_BYTES:
            return False
        r, s = (int.from_bytes(signature[at:][:_NUMBER_BYTES], "big") for at in (0, _NUMBER_BYTES))
        try:
            key = load_ssh_public_key(self.keys[user].encode())
            if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP384R1):
                return False
            key.verify(encode_dss_signature(r, s), message, _ALGORITHM)
        except (ValueError, UnsupportedAlgorithm, InvalidSignature):
            return False
        return True


@dataclass(frozen=True)
class SumParties:
    """Who takes part in the secure sums of a run, as devices and server know them."""

    protocol: str
    """Fingerprint of what all have agreed to."""
    run: str
    """Run key."""
    directory: Directory

    def identity(self, round_index: int) -> bytes:
        """Return what tells the sum of a round from every other, 32 bytes."""
        parts = _SUM, self.protocol, self.run, self.directory.digest, str(round_index)
        return hashlib.sha256("\n".join(parts).encode()).digest()

    def keys_in(self, signed: bytes, user: int, round_index: int) -> bytes | None:
        """Return the public keys that a user's device has signed for a round; None if it has not."""
        keys, signature = signed[:KEYS_BYTES], signed[KEYS_BYTES:]
        message = self._message(keys, user, round_index)
        return keys if self.directory.has_signed(user, message, signature) else None

    def _message(self, keys: bytes, user: int, round_index: int) -> bytes:
        return _DOMAIN + self.identity(round_index) + user.to_bytes(8, "little") + keys


@dataclass(frozen=True)
class SigningParty(SumParties):
    """One of the devices that take part."""

    key: ec.EllipticCurvePrivateKey
    """By which the directory knows it."""

    def signed(self, keys: bytes, user: int, round_index: int) -> bytes:
        """Return the device's public keys of the sum of a round with their signature."""
        r, s = decode_dss_signature(self.key.sign(self._message(keys, user, round_index), _ALGORITHM))
        return keys + b"".join(number.to_bytes(_NUMBER_BYTES, "big") for number in (r, s))
