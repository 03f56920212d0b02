"""What a network carries is counted from messages, visits and polls.

The size of an onion is that of layers that are really sealed, and none of it says what is inside.
"""

from hashlib import shake_256

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dprec.wire import (
    WITHOUT_RECORD,
    Exchanged,
    NetworkOptions,
    TrafficLedger,
    hidden_batch_bytes,
    network_bytes,
    onion_bytes,
    record_bytes,
)
from dprec.wire.traffic import KEY_BYTES, MEASURED, SEED_BYTES, Contacts


def test_each_direction_is_charged_apart_and_the_messages_of_the_first_user_are_kept() -> None:
    ledger = TrafficLedger(3)
    ledger.charge_downlink(np.array([True, False, True]), 7, 70, kind="ask", example=b"question")
    ledger.charge_downlink(np.array([1, 2]), 5, 50, kind="ask")
    ledger.charge_uplink(np.array([0, 2]), np.array([3, 4]), np.array([30, 40]), kind="ask", example=b"abc")
    ledger.charge_uplink(slice(2, 3), 9, 90, kind="ask")
    ledger.charge_uplink(slice(None), 2, 20, kind="ask", example=b"other")
    assert (ledger.uplink_payload.tolist(), ledger.uplink_message.tolist()) == ([5, 2, 15], [50, 20, 150])
    assert ledger.downlink_payload.tolist() == [7, 5, 12]
    assert ledger.downlink_message.tolist() == [70, 50, 120]
    assert (ledger.messages.tolist(), ledger.requests.tolist()) == ([3, 2, 5], [1, 1, 2])
    asked = {("ask", False): Exchanged(1, 7, 70, b"question")}
    assert ledger.first_user == {**asked, ("ask", True): Exchanged(2, 5, 50, b"abc")}
    # A report that is divided is charged anew.
    ledger.recharge_uplink(np.array([0]), "ask", np.array([5]), np.array([10]), np.array([500]))
    assert ledger.first_user == {**asked, ("ask", True): Exchanged(5, 10, 500, b"")}
    assert (ledger.uplink_message[0], ledger.messages[0]) == (500, 7)
    ledger.clear(np.array([True, False, False]))
    assert ledger.first_user == {}


NO_CONTACTS = Contacts(connections=0, polls=0, heartbeats=0)
ROUND = 1.0
"""Bytes by which a sum of measured parts may miss a whole."""


@pytest.fixture
def reported() -> TrafficLedger:
    """Return the traffic of a user who is asked for a report of 80 bytes, beside one who is not asked."""
    ledger = TrafficLedger(2)
    ledger.charge_downlink(np.array([0]), 0, 110, objects=WITHOUT_RECORD)
    ledger.charge_uplink(np.array([0]), 80, 240)
    return ledger


def test_a_report_costs_eight_requests(reported: TrafficLedger) -> None:
    """A poll, two objects, a confirmation, an envelope and three objects: some 1,000 bytes up for each."""
    up, down = network_bytes(reported, NO_CONTACTS)
    assert 8 * 900 < up[0] - 240 < 8 * 1250
    assert 8 * 150 < down[0] - 110 < 8 * 350


def test_a_visit_adds_a_handshake_a_heartbeat_and_a_last_poll(reported: TrafficLedger) -> None:
    alone = network_bytes(reported, NO_CONTACTS)
    visiting = network_bytes(reported, NetworkOptions().contacts(reported.requests))
    for way in (0, 1):
        added = MEASURED.handshake[way] + MEASURED.heartbeat[way] + MEASURED.poll[way]
        assert visiting[way][0] - alone[way][0] == pytest.approx(added, abs=ROUND)
        assert visiting[way][1] == 0, "who is not asked costs nothing"


@pytest.mark.parametrize(
    ("seconds", "polls", "connections", "heartbeats"),
    [(3.0, 20, 1, 3), (0.5, 120, 1, 3), (5.0, 12, 13, 3), (7.0, 8, 9, 3), (40.0, 1, 2, 1), (90.0, 1, 2, 1)],
)
def test_polls_fill_the_minutes_and_connect_anew_when_they_are_rare(
    seconds: float, polls: int, connections: int, heartbeats: int
) -> None:
    contacts = NetworkOptions(minutes_per_round=1, poll_seconds=seconds).contacts(np.array([0, 1, 2]))
    found = contacts.polls, contacts.connections, contacts.heartbeats
    np.testing.assert_array_equal(found, np.outer([polls, connections, heartbeats], [0, 1, 2]))


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


@pytest.mark.parametrize("shufflers", [2, 3])
def test_the_shares_of_a_batch_have_the_size_that_is_charged_and_add_up_to_it(shufflers: int) -> None:
    batch = bytes(range(250))
    seeds = [bytes([number]) * SEED_BYTES for number in range(shufflers - 1)]
    masks = [np.frombuffer(shake_256(seed).digest(len(batch)), dtype=np.uint8) for seed in seeds]
    masked = np.bitwise_xor.reduce([np.frombuffer(batch, dtype=np.uint8), *masks]).tobytes()
    keys = [X25519PrivateKey.generate() for _ in range(shufflers)]
    shares = [sealed(share, key.public_key()) for share, key in zip([masked, *seeds], keys, strict=True)]
    charged = hidden_batch_bytes(np.array([len(batch)]), shufflers)
    assert charged.tolist() == [sum(map(len, shares))] == [250 + 48 * shufflers + 16 * (shufflers - 1)]
    first, *others = (opened(share, key) for share, key in zip(shares, keys, strict=True))
    assert others == seeds
    assert np.bitwise_xor.reduce([np.frombuffer(first, dtype=np.uint8), *masks]).tobytes() == batch
