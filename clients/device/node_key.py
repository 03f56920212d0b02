"""Keys by which a server knows a device: how they are made, and the line by which one is made public."""

from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


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
