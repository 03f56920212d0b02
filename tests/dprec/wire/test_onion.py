"""The size of an onion is that of layers that are really sealed, and none of it says what is inside."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dprec.wire import onion_bytes, record_bytes
from dprec.wire.traffic import KEY_BYTES


def sealing_key(own: X25519PrivateKey, other: X25519PublicKey, ephemeral: bytes) -> ChaCha20Poly1305:
    """Return the cipher of a layer, whose key is used once."""
    key = HKDF(SHA256(), 32, None, b"layer" + ephemeral).derive(own.exchange(other))
    return ChaCha20Poly1305(key)


def sealed(content: bytes, recipient: X25519PublicKey) -> bytes:
    """Return a layer around some content."""
    own = X25519PrivateKey.generate()
    ephemeral = own.public_key().public_bytes_raw()
    return ephemeral + sealing_key(own, recipient, ephemeral).encrypt(bytes(12), content, None)


def opened(layer: bytes, recipient: X25519PrivateKey) -> bytes:
    """Return what is in a layer."""
    ephemeral, rest = layer[:KEY_BYTES], layer[KEY_BYTES:]
    sender = X25519PublicKey.from_public_bytes(ephemeral)
    return sealing_key(recipient, sender, ephemeral).decrypt(bytes(12), rest, None)


@pytest.mark.parametrize("hops", [1, 3])
def test_sealed_layers_have_the_size_that_is_charged_and_open_to_the_report(hops: int) -> None:
    size = record_bytes(1682, 2)
    keys = [X25519PrivateKey.generate() for _ in range(hops + 1)]
    for item, symbol in ((0, 0), (1681, 1), (700, 1)):
        record = (item << 1 | symbol).to_bytes(size, "big")
        onion = record
        for key in reversed(keys):
            onion = sealed(onion, key.public_key())
        assert len(onion) == onion_bytes(size, hops)
        for passed, key in enumerate(keys, 1):
            onion = opened(onion, key)
            assert len(onion) == onion_bytes(size, hops - passed)
        assert onion == record


def test_a_record_has_room_for_every_item_and_symbol() -> None:
    for items, symbols in ((1, 2), (2, 2), (128, 2), (129, 2), (1682, 5), (60_000, 256)):
        largest = (items - 1 << (symbols - 1).bit_length()) + symbols - 1
        assert largest < 1 << 8 * record_bytes(items, symbols)
    assert record_bytes(1682, 2) == 2
    assert record_bytes(128, 2) == 1
    assert np.diff([onion_bytes(2, hops) for hops in range(4)]).tolist() == [48, 48, 48]
