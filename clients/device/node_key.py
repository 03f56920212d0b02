"""Keys by which a server knows a device: how they are made, read, and made public in a line."""

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dprec.errors import InputError


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
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return NodeKeyPair(private, public_line(key.public_key()))


def public_line(key: ec.EllipticCurvePublicKey) -> str:
    """Return a public key as a line in the format of OpenSSH, without a comment."""
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def read_node_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Read a private key; raises InputError when that cannot be, or it is on no elliptic curve."""
    accepted = "a private EC key, as PEM or in OpenSSH's format, without a password"
    try:
        data = path.read_bytes()
        openssh = b"OPENSSH" in data
        load = serialization.load_ssh_private_key if openssh else serialization.load_pem_private_key
        key = load(data, password=None)
    except OSError as error:
        raise InputError(str(path), str(error.strerror), accepted) from None
    except (ValueError, TypeError) as error:
        raise InputError(str(path), f"no key ({error})", accepted) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(str(path), f"a key of type {type(key).__name__}", accepted)
    return key
