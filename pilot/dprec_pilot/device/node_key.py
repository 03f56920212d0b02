"""Keys by which a server knows a device: how they are made, read, and made public in a line."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA384

from dprec.errors import InputError
from dprec_pilot.files import read_bytes

_KIND = "ecdsa-sha2-nistp384"
"""How a line of OpenSSH begins that is a key on the curve P-384."""

_MOST_DIGITS = 9
"""Of a user's number."""

_ROTATED = b"dprec: the next key of a device"
"""Tells these signatures from any other that a device makes with its key."""


@dataclass(frozen=True)
class NodeKeyPair:
    """The key by which the server knows a device, on the curve P-384."""

    private: bytes
    """As PEM."""
    public: str
    """A line in the format of OpenSSH, as Flower registers it."""


def new_node_key() -> NodeKeyPair:
    """Make the key of a device."""
    key = ec.generate_private_key(ec.SECP384R1())
    return NodeKeyPair(as_pem(key), public_line(key.public_key()))


def as_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM, without a password."""
    encoding, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, kind, serialization.NoEncryption())


def public_line(key: ec.EllipticCurvePublicKey) -> str:
    """Return a public key as a line in the format of OpenSSH, without a comment."""
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def read_node_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Read a private key; raises InputError when that cannot be, or it is on no elliptic curve."""
    accepted = "a private EC key, as PEM or in OpenSSH's format, without a password"
    data = read_bytes(path, accepted)
    openssh = b"OPENSSH" in data
    load = serialization.load_ssh_private_key if openssh else serialization.load_pem_private_key
    try:
        key = load(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(str(path), f"no key ({error})", accepted) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(str(path), f"a key of type {type(key).__name__}", accepted)
    return key


@dataclass(frozen=True)
class PublicLine:
    """What a server is told of a device: who it is, its public key, and for a later key, a signature."""

    user: int
    """The number under which the server has enrolled the device."""
    key: str
    """As `NodeKeyPair.public`."""
    signature: bytes = b""
    """By the key before this one; empty for the first."""

    @classmethod
    def read(cls, text: str, where: str) -> Self:
        """Read a line; raises InputError when it is none, or its key is of another kind."""
        accepted = "a line as dprec-pilot join prints it: number, kind of the key, key"
        words = text.split()
        if len(text.splitlines()) != 1 or len(words) not in {3, 4} or words[1] != _KIND:
            raise InputError(where, text, accepted)
        number, kind, encoded, *signature = words
        if not (number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS):
            raise InputError(where, f"user {number}", accepted)
        try:
            key = serialization.load_ssh_public_key(f"{kind} {encoded}".encode())
            signed = b64decode(signature[0], validate=True) if signature else b""
        except (ValueError, UnsupportedAlgorithm):
            raise InputError(where, text, accepted) from None
        assert isinstance(key, ec.EllipticCurvePublicKey)
        return cls(int(number), public_line(key), signed)

    @classmethod
    def signed(cls, user: int, key: str, before: ec.EllipticCurvePrivateKey) -> Self:
        """Return the line of a device's next key."""
        message = _rotation(user, public_line(before.public_key()), key)
        return cls(user, key, before.sign(message, ec.ECDSA(SHA384())))

    @property
    def text(self) -> str:
        """The line, without its end."""
        signature = f" {b64encode(self.signature).decode()}" if self.signature else ""
        return f"{self.user} {self.key}{signature}"

    def follows(self, before: str) -> bool:
        """Return whether it is signed by the key of a line of OpenSSH."""
        try:
            key = serialization.load_ssh_public_key(before.encode())
            if not isinstance(key, ec.EllipticCurvePublicKey):
                return False
            message = _rotation(self.user, public_line(key), self.key)
            key.verify(self.signature, message, ec.ECDSA(SHA384()))
        except (InvalidSignature, UnsupportedAlgorithm, ValueError):
            return False
        return True


def _rotation(user: int, before: str, after: str) -> bytes:
    return b"\n".join([_ROTATED, str(user).encode(), before.encode(), after.encode()])
