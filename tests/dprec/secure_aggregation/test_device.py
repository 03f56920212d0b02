"""One device's real messages: the total of several devices, and the bytes that every user is charged."""

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag

from dprec.secure_aggregation import GraphSize, MaskGraph, MessageSizes, reduced, shamir, unpack_vector
from dprec.secure_aggregation.exchange import MaskedSum, MaskingDevice, plain_total
from dprec.secure_aggregation.masking import (
    KEYS_BYTES,
    SEALED_BYTES,
    RevealedShares,
    SumContext,
    pack_presence,
    unmasked_total,
)
from dprec.secure_aggregation.secrets import derived_key

USERS, NUMBERS, BITS = 7, 25, 14
SIZE = GraphSize(4, 3)
CONTEXT = SumContext(b"a sum", NUMBERS, BITS)
GRAPH = MaskGraph.of(np.random.default_rng(3).permutation(USERS), SIZE.degree)
KEYS = [derived_key(bytes([4]), "test", bytes([number])) for number in range(USERS)]
VECTORS = np.random.default_rng(4).integers(-90, 90, (USERS, NUMBERS))


class Exchange:
    """A server between devices; it keeps every message, by step."""

    def __init__(self) -> None:
        self.devices = [
            MaskingDevice(key, user, GRAPH.neighbours[user], SIZE, CONTEXT) for user, key in enumerate(KEYS)
        ]
        self.keys = [device.advertise() for device in self.devices]
        self.keys_of_neighbours = [self.of_neighbours(user, self.keys) for user in range(USERS)]
        self.sealed = [
            device.share(keys) for device, keys in zip(self.devices, self.keys_of_neighbours, strict=True)
        ]
        # Neighbour c of a user sealed its shares for that user at place reverse[c] of its own message.
        self.sealed_for = [
            b"".join(
                self.sealed[other][place * SEALED_BYTES :][:SEALED_BYTES]
                for other, place in zip(GRAPH.neighbours[user], GRAPH.reverse, strict=True)
            )
            for user in range(USERS)
        ]

    def of_neighbours(self, user: int, messages: list[bytes]) -> bytes:
        return b"".join(messages[other] for other in GRAPH.neighbours[user])

    def vectors(self, present: np.ndarray) -> dict[int, bytes]:
        return {
            user: self.devices[user].mask(self.sealed_for[user], VECTORS[user])
            for user in np.flatnonzero(present).tolist()
        }

    def revealed(self, present: np.ndarray) -> dict[int, bytes]:
        return {
            user: self.devices[user].unmask(pack_presence(present[GRAPH.neighbours[user]]))
            for user in np.flatnonzero(present).tolist()
        }


def test_devices_that_exchange_real_messages_add_up_to_the_plain_total() -> None:
    present = np.array([True, True, False, True, True, True, True])
    exchange = Exchange()
    sent = exchange.vectors(present)
    answers = exchange.revealed(present)
    masked = sum(unpack_vector(data, NUMBERS, BITS) for data in sent.values())
    held = np.zeros((USERS, SIZE.degree, shamir.ELEMENTS), dtype=np.uint64)
    for user in range(USERS):
        for column, other in enumerate(GRAPH.neighbours[user].tolist()):
            if other in answers:
                held[user, column] = shamir.from_bytes(answers[other])[GRAPH.reverse[column]]
    revealed = RevealedShares.of(held, held, GRAPH, SIZE.threshold, present)
    public = [keys[: KEYS_BYTES // 2] for keys in exchange.keys]
    total = reduced(unmasked_total(masked, present, revealed, GRAPH, public, CONTEXT), BITS)
    np.testing.assert_array_equal(total, plain_total(VECTORS, present, BITS))


def test_the_bytes_of_real_messages_are_those_that_are_charged() -> None:
    present = np.ones(USERS, dtype=bool)
    exchange = Exchange()
    vector = exchange.vectors(present)[0]
    answer = exchange.revealed(present)[0]
    sizes = MessageSizes(SIZE.degree, NUMBERS, BITS)
    up = (exchange.keys[0], exchange.sealed[0], vector, answer)
    presence = pack_presence(present[GRAPH.neighbours[0]])
    down = (exchange.keys_of_neighbours[0], exchange.sealed_for[0], presence)
    assert tuple(map(len, up)) == sizes.uplink
    assert tuple(map(len, down)) == sizes.downlink


def test_the_vectorised_sum_is_that_of_the_devices() -> None:
    summed = MaskedSum(KEYS, np.random.default_rng(3).permutation(USERS), SIZE, CONTEXT)
    sent = Exchange().vectors(np.ones(USERS, dtype=bool))
    for user, data in sent.items():
        np.testing.assert_array_equal(unpack_vector(data, NUMBERS, BITS), summed.masked(user, VECTORS[user]))


def test_a_device_reveals_one_secret_of_each_neighbour_once_and_only_to_enough() -> None:
    exchange = Exchange()
    exchange.vectors(np.ones(USERS, dtype=bool))
    device = exchange.devices[0]
    with pytest.raises(ValueError, match="2 neighbours present, of whom 3 must be"):
        device.unmask(pack_presence(np.array([True, False, True, False])))
    answer = shamir.from_bytes(device.unmask(pack_presence(np.array([True, False, True, True]))))
    secrets = [exchange.devices[other]._secrets for other in GRAPH.neighbours[0].tolist()]
    for column, (secret, share) in enumerate(zip(secrets, answer, strict=True)):
        polynomials = secret.mask_keys if column == 1 else secret.self_seeds
        np.testing.assert_array_equal(shamir.shares(polynomials, 4)[0, GRAPH.reverse[column]], share)
    with pytest.raises(ValueError, match="revealed already"):
        device.unmask(pack_presence(np.array([True, True, True, True])))


def test_shares_that_were_sealed_for_another_are_refused() -> None:
    exchange = Exchange()
    with pytest.raises(InvalidTag):
        exchange.devices[0].mask(exchange.sealed_for[1], VECTORS[0])
    with pytest.raises(ValueError, match="bytes in place of"):
        exchange.devices[0].mask(exchange.sealed_for[0][:-1], VECTORS[0])
