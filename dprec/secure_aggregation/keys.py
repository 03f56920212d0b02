"""Key pairs, and the seeds that two devices agree on over a server that reads all they send (X25519)."""

from __future__ import annotations

from dprec.secure_aggregation.secrets import derived_key

PUBLIC_BYTES = 32
"""Bytes of a public key."""


def private_key(secret: bytes, purpose: str) -> bytes:
    """Return the private key that a device's secret yields, 32 bytes."""
    return derived_key(secret, purpose)


def public_key(private: bytes) -> bytes:
    """Return the public key of a private one."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agreed_key(private: bytes, other: bytes, purpose: str, context: bytes) -> bytes:
    """Return the key that two devices agree on, each from its own private and the other's public key.

    Parameters
    ----------
    private : bytes
        One's own key.
    other : bytes
        The other's public key.
    purpose : str
        At most 16 characters.
    context : bytes
        The sum that it is for: another sum has other keys.

    Raises
    ------
    ValueError
        When the public key is none that X25519 accepts.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    known = X25519PrivateKey.from_private_bytes(private)
    return derived_key(known.exchange(X25519PublicKey.from_public_bytes(other)), purpose, context)
