"""Bytes of a message that shufflers pass on: sealed once for each of them and once for the server.

A layer holds an ephemeral public key of X25519, the next layer encrypted with the key that follows from it,
and the tag of ChaCha20-Poly1305. Every message enters with the same size and loses a layer with each
shuffler, so that none can be told from another by its size. All take the same route, which adds no bytes.
"""

from __future__ import annotations

KEY_BYTES, TAG_BYTES = 32, 16
"""Of an X25519 public key and of a Poly1305 tag."""


def record_bytes(n_items: int, symbols: int) -> int:
    """Return the size of one item and one symbol, in whole bytes, whichever they are."""
    bits = max(1, (n_items - 1).bit_length()) + max(0, symbols - 1).bit_length()
    return -(-bits // 8)


def onion_bytes(content: int, hops: int) -> int:
    """Return the size of a message with ``content`` bytes as it leaves the device.

    Parameters
    ----------
    hops : int
        Shufflers that it passes on its way to the server.
    """
    return content + (hops + 1) * (KEY_BYTES + TAG_BYTES)
