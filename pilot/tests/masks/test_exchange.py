"""One device's real messages: the total of several devices, and the bytes that every user is charged.

A secure sum: the plain total to the last bit, and nothing but uniform numbers before it is unmasked.
"""

import numpy as np
import pytest
from scipy.stats import chi2

from dprec.secure_aggregation import (
    GraphSize,
    MaskGraph,
    MessageSizes,
    SumContext,
    centred,
    graph_size,
    noise_rows,
    reduced,
    rounded_rows,
    unpack_vector,
)
from dprec.secure_aggregation.messages import KEYS_BYTES, SEALED_BYTES, SIGNATURE_BYTES
from dprec.secure_aggregation.streams import KEY_BYTES, derived_key
from dprec_pilot.masks import masking as shamir
from dprec_pilot.masks.masking import (
    ELEMENTS,
    PRIME,
    MaskingDevice,
    SpoiledSharesError,
    as_bytes,
    field_elements,
    first_shares,
    from_bytes,
    pack_presence,
    pair_mask,
    public_key,
    put_together,
    self_mask,
    shares,
    unmasked_total,
    unpack_presence,
)
from pilot.tests.masks.summed import MaskedSum, TooFewSharesError, of_one_secret, plain_total
from tests.drawn import recording

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
            MaskingDevice(key, user, GRAPH.neighbours[user], SIZE, CONTEXT.identity)
            for user, key in enumerate(KEYS)
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
            user: self.devices[user].mask(
                self.keys_of_neighbours[user], self.sealed_for[user], VECTORS[user], BITS
            )
            for user in np.flatnonzero(present).tolist()
        }

    def revealed(self, present: np.ndarray) -> dict[int, bytes]:
        return {
            user: self.unmasked(user, present[GRAPH.neighbours[user]])
            for user in np.flatnonzero(present).tolist()
        }

    def unmasked(self, user: int, present: np.ndarray) -> bytes:
        held = self.keys_of_neighbours[user], self.sealed_for[user]
        return self.devices[user].unmask(*held, pack_presence(present))


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
    revealed = of_one_secret(held, held, GRAPH, SIZE.threshold, present)
    public = [keys[: KEYS_BYTES // 2] for keys in exchange.keys]
    everybody = np.ones(USERS, dtype=bool)
    total = reduced(unmasked_total(masked, everybody, present, revealed, GRAPH, public, CONTEXT), BITS)
    np.testing.assert_array_equal(total, plain_total(VECTORS, present, BITS))


def test_the_bytes_of_real_messages_are_those_that_are_charged() -> None:
    present = np.ones(USERS, dtype=bool)
    exchange = Exchange()
    vector = exchange.vectors(present)[0]
    answer = exchange.revealed(present)[0]
    sizes = MessageSizes(SIZE.degree, NUMBERS, BITS)
    signature = bytes(SIGNATURE_BYTES)
    up = (exchange.keys[0] + signature, exchange.sealed[0], vector, answer)
    presence = pack_presence(present[GRAPH.neighbours[0]])
    down = (exchange.keys_of_neighbours[0] + SIZE.degree * signature, exchange.sealed_for[0], presence)
    assert tuple(map(len, up)) == sizes.uplink
    assert tuple(map(len, down)) == sizes.downlink


def test_the_vectorised_sum_is_that_of_the_devices() -> None:
    summed = MaskedSum(KEYS, np.random.default_rng(3).permutation(USERS), SIZE, CONTEXT)
    sent = Exchange().vectors(np.ones(USERS, dtype=bool))
    for user, data in sent.items():
        np.testing.assert_array_equal(unpack_vector(data, NUMBERS, BITS), summed.masked(user, VECTORS[user]))


def test_a_device_reveals_one_secret_of_each_neighbour_and_only_to_enough() -> None:
    exchange = Exchange()
    with pytest.raises(ValueError, match="2 neighbours present, of whom 3 must be"):
        exchange.unmasked(0, np.array([True, False, True, False]))
    answer = shamir.from_bytes(exchange.unmasked(0, np.array([True, False, True, True])))
    secrets = [exchange.devices[other]._secrets for other in GRAPH.neighbours[0].tolist()]
    for column, (secret, share) in enumerate(zip(secrets, answer, strict=True)):
        polynomials = secret.mask_keys if column == 1 else secret.self_seeds
        np.testing.assert_array_equal(shamir.shares(polynomials, 4)[0, GRAPH.reverse[column]], share)


def test_shares_that_were_sealed_for_another_are_refused() -> None:
    exchange = Exchange()
    device, keys = exchange.devices[0], exchange.keys_of_neighbours[0]
    with pytest.raises(ValueError, match="has not encrypted for this one"):
        device.mask(keys, exchange.sealed_for[1], VECTORS[0], BITS)
    with pytest.raises(ValueError, match="bytes in place of"):
        device.mask(keys, exchange.sealed_for[0][:-1], VECTORS[0], BITS)
    with pytest.raises(ValueError, match="bytes in place of"):
        device.share(keys[:-1])


def test_neighbours_who_have_said_nothing_are_zeros_and_share_no_masks() -> None:
    """Of five who have sent shares one sends no vector; two others have sent nothing, or keys alone."""
    order, size, context = np.arange(USERS), GraphSize(6, 3), SumContext(b"another sum", NUMBERS, BITS)
    graph = MaskGraph.of(order, size.degree)
    devices = [
        MaskingDevice(key, user, graph.neighbours[user], size, context.identity)
        for user, key in enumerate(KEYS)
    ]
    silent, sharing, present = 1, [0, 3, 4, 5, 6], np.array([True, False, False, True, True, True, False])
    keys = {user: device.advertise() for user, device in enumerate(devices) if user != silent}
    received = {
        user: b"".join(keys.get(other, bytes(KEYS_BYTES)) for other in graph.neighbours[user])
        for user in sharing
    }
    sealed = {user: devices[user].share(received[user]) for user in sharing}
    for user in sharing:
        (column,) = np.flatnonzero(graph.neighbours[user] == silent)
        assert not any(sealed[user][column * SEALED_BYTES :][:SEALED_BYTES])
    nothing = bytes(size.degree * SEALED_BYTES)
    sealed_for = {
        user: b"".join(
            sealed.get(other, nothing)[place * SEALED_BYTES :][:SEALED_BYTES]
            for other, place in zip(graph.neighbours[user].tolist(), graph.reverse.tolist(), strict=True)
        )
        for user in sharing
    }
    held = np.zeros((USERS, size.degree, shamir.ELEMENTS), dtype=np.uint64)
    masked = np.zeros(NUMBERS, dtype=np.uint64)
    for user in np.flatnonzero(present).tolist():
        known = received[user], sealed_for[user]
        masked += unpack_vector(devices[user].mask(*known, VECTORS[user], BITS), NUMBERS, BITS)
        answer = devices[user].unmask(*known, pack_presence(present[graph.neighbours[user]]))
        held[user] = shamir.from_bytes(answer)
    revealed = held[graph.neighbours, graph.reverse]
    shares_of = first_shares(revealed, revealed.any(axis=2), size.threshold)
    masking = np.isin(np.arange(USERS), sharing)
    public = [keys.get(user, b"")[: KEYS_BYTES // 2] for user in range(USERS)]
    total = unmasked_total(masked, masking, present, shares_of, graph, public, context)
    np.testing.assert_array_equal(reduced(total, BITS), plain_total(VECTORS, present, BITS))


@pytest.mark.parametrize("spoiled", range(USERS))
@pytest.mark.parametrize("place", range(SIZE.threshold))
def test_a_wrong_share_is_noticed_where_there_are_no_others(spoiled: int, place: int) -> None:
    """Of whoever is there, and of one who dropped out, any of as many shares as put a secret together."""
    present = np.array([True, True, False, True, True, True, True])
    exchange = Exchange()
    held = np.zeros((USERS, SIZE.degree, shamir.ELEMENTS), dtype=np.uint64)
    for user, answer in exchange.revealed(present).items():
        held[user] = shamir.from_bytes(answer)
    shares_of = first_shares(
        revealed := held[GRAPH.neighbours, GRAPH.reverse], revealed.any(axis=2), SIZE.threshold
    )
    public = [keys[: KEYS_BYTES // 2] for keys in exchange.keys]
    everybody, nothing = np.ones(USERS, dtype=bool), np.zeros(NUMBERS, dtype=np.uint64)
    known = nothing, everybody, present, shares_of, GRAPH, public, CONTEXT
    unmasked_total(*known)
    for element in range(ELEMENTS):
        shares_of[1][spoiled, place, element] ^= np.uint64(1)
        with pytest.raises(SpoiledSharesError, match=f"device {spoiled} "):
            unmasked_total(*known)
        shares_of[1][spoiled, place, element] ^= np.uint64(1)


def test_what_tells_a_seed_from_others_is_in_its_last_number_alone() -> None:
    """The others are the field's; two of 500 devices have one of 2**31 values in common once in 17,000."""
    drawn = shamir.SharedSecrets.of(keys(500), 2)
    assert shamir.are_seeds(drawn.self_seeds[:, 0]).all()
    assert not shamir.are_seeds(drawn.mask_keys[:, 0]).any()
    assert len(np.unique(drawn.self_seeds[:, 0, -1])) == 500


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
    revealed = "pilot.tests.masks.summed.of_one_secret"
    monkeypatch.setattr(revealed, lambda *_: pytest.fail("shares were revealed"))
    with pytest.raises(TooFewSharesError, match="of whom 7 must answer"):
        summed.total(np.zeros(5, dtype=np.uint16), present)


def test_of_each_device_one_secret_is_revealed() -> None:
    graph = MaskGraph.of(order(8), 4)
    seeds, mask_keys = np.zeros((8, 4, 1), dtype=np.uint64), np.ones((8, 4, 1), dtype=np.uint64)
    present = np.array([True, False, True, True, True, False, True, True])
    revealed = of_one_secret(seeds, mask_keys, graph, 2, present)
    assert (revealed[1][present] == 0).all()
    assert (revealed[1][~present] == 1).all()
    answering = np.take_along_axis(graph.neighbours, revealed[0] - 1, axis=1)
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
    assert (self_mask(one, b"seed") != self_mask(other, b"seed")).mean() > 0.9
    pair = keys(1)[0], public_key(keys(2)[1])
    assert (pair_mask(one, *pair) != pair_mask(other, *pair)).mean() > 0.9


def polynomials(count: int, threshold: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, PRIME, (count, threshold, ELEMENTS), dtype=np.uint64)


@pytest.mark.parametrize(("threshold", "points"), [(1, 1), (2, 5), (7, 12)])
def test_any_holders_as_many_as_the_threshold_put_secrets_together(threshold: int, points: int) -> None:
    drawn = polynomials(30, threshold)
    random = np.random.default_rng(2)
    chosen = np.argsort(random.random((30, points)), axis=1)[:, :threshold]
    held = np.take_along_axis(shares(drawn, points), chosen[:, :, None], axis=1)
    np.testing.assert_array_equal(put_together(chosen + 1, held), drawn[:, 0])


def test_a_share_is_the_polynomial_at_its_point() -> None:
    drawn = polynomials(2, 4)
    at_three = [
        sum(int(value) * 3**power for power, value in enumerate(drawn[1, :, element])) % PRIME
        for element in range(ELEMENTS)
    ]
    assert shares(drawn, 5)[1, 2].tolist() == at_three


def test_fewer_shares_say_nothing_about_the_secret() -> None:
    # With the coefficients of a small field in place of drawn ones, two shares of a threshold of three are as
    # likely with one secret as with another: the map from coefficients to shares is one to one.
    first, second = (
        np.array([[[secret], [one], [two]] for one in range(40) for two in range(40)], dtype=np.uint64)
        for secret in (3, PRIME - 5)
    )
    for drawn in (first, second):
        assert len(np.unique(shares(drawn, 2)[:, :, 0], axis=0)) == len(drawn)


def test_words_become_numbers_of_the_field() -> None:
    words = np.array([[2**64 - 1, 2**64 - 1], [0, 5], [1, 0]], dtype=np.uint64)
    expected = [(2**128 - 1) % PRIME, 5, 2**64 % PRIME]
    assert field_elements(words).tolist() == expected


def test_shares_survive_the_wire_and_damaged_ones_are_refused() -> None:
    held = polynomials(3, 1)[:, 0]
    np.testing.assert_array_equal(from_bytes(b"".join(as_bytes(held))), held)
    with pytest.raises(ValueError, match="bytes of shares"):
        from_bytes(bytes(7))
    with pytest.raises(ValueError, match="outside its field"):
        from_bytes(b"\xff" * 20)


def test_no_two_secrets_of_a_sum_share_a_key_or_a_word() -> None:
    users, size, context = 8, GraphSize(4, 3), SumContext(b"a sum", 30, 16)
    keys = [bytes([user]) * KEY_BYTES for user in range(users)]
    with recording() as drawn:
        MaskingDevice(keys[0], 0, np.arange(1, 5), size, context.identity)
        noise_rows(keys, 30, 40.0)
        rounded_rows(np.full(30 * users, 0.3), np.full(users, 30), 60, keys)
    assert len(drawn.words) >= 2 * users + 1
    assert drawn.repeated() == set()
    assert drawn.shared_keys() == []
    with recording() as drawn:
        summed = MaskedSum(keys, np.arange(users), size, context)
        received = sum(summed.masked(user, np.ones(30, dtype=np.int64)) for user in range(users))
        assert (summed.total(received, np.ones(users, dtype=np.bool_)) == users).all()
    # Masks are computed again by neighbours and to remove them, from keys that have nothing else in common.
    assert len(drawn.keys) > 3 * users
    assert drawn.shared_keys() == []


def test_presence_comes_back_and_of_other_sizes_is_refused() -> None:
    present = np.array([True, False, True, True, False, True, True, True, False])
    np.testing.assert_array_equal(unpack_presence(pack_presence(present), 9), present)
    with pytest.raises(ValueError, match="presence"):
        unpack_presence(bytes(1), 9)
