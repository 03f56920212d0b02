"""One device's real messages: the total of several devices, and the bytes that every user is charged.

A secure sum: the plain total to the last bit, and nothing but uniform numbers before it is unmasked.
"""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from scipy.stats import chi2

from dprec.secure_aggregation import (
    GraphSize,
    MaskGraph,
    MessageSizes,
    centred,
    graph_size,
    reduced,
    unpack_vector,
)
from dprec.secure_aggregation import secrets as shamir
from dprec.secure_aggregation.exchange import MaskedSum, MaskingDevice, plain_total
from dprec.secure_aggregation.masking import (
    KEYS_BYTES,
    SEALED_BYTES,
    RevealedShares,
    SumContext,
    TooFewSharesError,
    pack_presence,
    unmasked_total,
)
from dprec.secure_aggregation.secrets import derived_key, public_key

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


MASKED_USERS = 24


def keys(users: int) -> list[bytes]:
    return [derived_key(bytes([9]), "test", number.to_bytes(4, "little")) for number in range(users)]


def order(users: int) -> np.ndarray:
    return np.random.default_rng(3).permutation(users)


def sum_of(users: int, size: GraphSize, numbers: int, bits: int) -> MaskedSum:
    return MaskedSum(keys(users), order(users), size, SumContext(b"a sum", numbers, bits))


@pytest.mark.parametrize("bits", [12, 16, 20, 40])
@pytest.mark.parametrize("gone", [0, 1, 3, 7])
def test_the_total_is_the_plain_total_to_the_last_bit(bits: int, gone: int) -> None:
    random = np.random.default_rng(gone)
    vectors = random.integers(-80, 80, (MASKED_USERS, 30))
    present = random.permutation(MASKED_USERS) >= gone
    summed = sum_of(MASKED_USERS, graph_size(MASKED_USERS, 0.3, 2), 30, bits)
    received = sum(summed.masked(user, vectors[user]) for user in np.flatnonzero(present))
    total = summed.total(received, present)
    np.testing.assert_array_equal(total, plain_total(vectors, present, bits))
    np.testing.assert_array_equal(centred(total, bits), vectors[present].sum(axis=0))


def test_more_dropouts_than_the_threshold_fail_the_round_and_unmask_nothing(monkeypatch) -> None:
    summed = sum_of(MASKED_USERS, GraphSize(10, 7), 5, 16)
    present = np.ones(MASKED_USERS, dtype=bool)
    present[summed.graph.neighbours[0][:4]] = False
    monkeypatch.setattr(RevealedShares, "of", lambda *_: pytest.fail("shares were revealed"))
    with pytest.raises(TooFewSharesError, match="of whom 7 must answer"):
        summed.total(np.zeros(5, dtype=np.uint16), present)


def test_of_each_device_one_secret_is_revealed() -> None:
    graph = MaskGraph.of(order(8), 4)
    seeds, mask_keys = np.zeros((8, 4, 1), dtype=np.uint64), np.ones((8, 4, 1), dtype=np.uint64)
    present = np.array([True, False, True, True, True, False, True, True])
    revealed = RevealedShares.of(seeds, mask_keys, graph, 2, present)
    assert (revealed.held[present] == 0).all()
    assert (revealed.held[~present] == 1).all()
    answering = np.take_along_axis(graph.neighbours, revealed.points - 1, axis=1)
    assert present[answering].all()


def test_what_is_received_of_each_device_is_uniform_given_the_others() -> None:
    """Of zeros, what is sent is masks alone: of each device, and of each together with others.

    All tests together give a false alarm once in 10**6; seeds are fixed.
    """
    numbers = 2000
    summed = sum_of(MASKED_USERS, GraphSize(10, 6), numbers, 16)
    zeros = np.zeros(numbers, dtype=np.int64)
    sent = np.array([summed.masked(user, zeros) for user in range(MASKED_USERS)])
    neighbours = summed.graph.neighbours[:, 0]
    others = sent.sum(axis=0, dtype=np.uint16) - sent
    # Neighbours share a mask: it must vanish from neither their sum nor their difference.
    for looked_at in (sent, sent + sent[neighbours], sent - sent[neighbours], others):
        for row in looked_at.astype("<u2"):
            counts = np.bincount(row.view(np.uint8), minlength=256)
            expected = counts.sum() / 256
            statistic = ((counts - expected) ** 2 / expected).sum()
            assert chi2.sf(statistic, 255) > 1e-6 / (4 * MASKED_USERS)


def test_another_sum_has_other_masks() -> None:
    first, second = (
        MaskedSum(keys(6), order(6), GraphSize(4, 3), SumContext(identity, 50, 16))
        for identity in (b"one", b"two")
    )
    zeros = np.zeros(50, dtype=np.int64)
    assert (first.masked(0, zeros) != second.masked(0, zeros)).mean() > 0.9
    # Both kinds of mask change, not their sum alone.
    one, other = (SumContext(identity, 50, 16) for identity in (b"one", b"two"))
    assert (one.self_mask(b"seed") != other.self_mask(b"seed")).mean() > 0.9
    pair = keys(1)[0], public_key(keys(2)[1])
    assert (one.pair_mask(*pair) != other.pair_mask(*pair)).mean() > 0.9
