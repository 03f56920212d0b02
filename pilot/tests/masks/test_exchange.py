"""Devices that mask what they add up, by their real messages: the plain total, and nothing else before it.

Then what is drawn for masks and shares, and whose signed keys are taken.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dprec.arrays import AnyInts
from dprec.secure_aggregation import (
    GraphSize,
    MaskGraph,
    SumContext,
    centred,
    graph_size,
    noise_rows,
    unpack_vector,
)
from dprec.secure_aggregation.messages import KEYS_BYTES, SEALED_BYTES, SIGNATURE_BYTES, SIGNED_BYTES
from dprec.secure_aggregation.streams import KEY_BYTES, derived_key
from dprec_pilot.masks.directory import Directory, SigningParty
from dprec_pilot.masks.masking import (
    ELEMENTS,
    PRIME,
    MaskingDevice,
    SharedSecrets,
    SpoiledSharesError,
    as_bytes,
    first_shares,
    from_bytes,
    mask_private_keys,
    pack_presence,
    pair_mask,
    pair_masks,
    public_key,
    put_together,
    self_mask,
    shares,
    unmasked_total,
)
from tests.distributions import check_counts, check_independent
from tests.drawn import recording

USERS, NUMBERS, BITS = 7, 25, 14
SIZE = GraphSize(4, 3)
CONTEXT = SumContext(b"a sum", NUMBERS, BITS)
VECTORS = np.random.default_rng(4).integers(-90, 90, (USERS, NUMBERS))
PRESENT = np.array([True, True, False, True, True, True, True])


def keys(users: int) -> list[bytes]:
    return [derived_key(bytes([9]), "test", number.to_bytes(4, "little")) for number in range(users)]


class Exchange:
    """A server between devices; some of them say nothing, others give their keys alone."""

    def __init__(
        self,
        users: int = USERS,
        size: GraphSize = SIZE,
        context: SumContext = CONTEXT,
        silent: Collection[int] = (),
        keys_alone: Collection[int] = (),
    ) -> None:
        self.size, self.context = size, context
        self.graph = MaskGraph.of(np.random.default_rng(3).permutation(users), size.degree)
        self.devices = [
            MaskingDevice(key, user, self.graph.neighbours[user], size, context.identity)
            for user, key in enumerate(keys(users))
        ]
        self.keys = [
            bytes(KEYS_BYTES) if user in silent else device.advertise()
            for user, device in enumerate(self.devices)
        ]
        self.received = [b"".join(self.keys[other] for other in own) for own in self.graph.neighbours]
        self.masking = ~np.isin(np.arange(users), [*silent, *keys_alone])
        self.sealed = [
            device.share(received) if masks else bytes(size.degree * SEALED_BYTES)
            for device, received, masks in zip(self.devices, self.received, self.masking, strict=True)
        ]
        # Neighbour c of a user sealed its shares for that user at place reverse[c] of its own message.
        self.sealed_for = [
            b"".join(
                self.sealed[other][place * SEALED_BYTES :][:SEALED_BYTES]
                for other, place in zip(own.tolist(), self.graph.reverse.tolist(), strict=True)
            )
            for own in self.graph.neighbours
        ]

    def masked(self, user: int, vector: AnyInts) -> AnyInts:
        """Return what a device sends in place of its vector."""
        known = self.received[user], self.sealed_for[user]
        sent = self.devices[user].mask(*known, vector, self.context.bits)
        return unpack_vector(sent, self.context.size, self.context.bits)

    def revealed(self, user: int, neighbours_present: np.ndarray) -> np.ndarray:
        """Return the shares that a device reveals, shape (degree, elements)."""
        known = self.received[user], self.sealed_for[user]
        return from_bytes(self.devices[user].unmask(*known, pack_presence(neighbours_present)))

    def known_of(self, present: np.ndarray) -> tuple:
        """Return what a server knows before it unmasks, but for the sum itself."""
        held = np.zeros((present.size, self.size.degree, ELEMENTS), dtype=np.uint64)
        for user in np.flatnonzero(present):
            held[user] = self.revealed(user, present[self.graph.neighbours[user]])
        revealed = held[self.graph.neighbours, self.graph.reverse]
        chosen = first_shares(revealed, revealed.any(axis=2), self.size.threshold)
        public = [key[: KEYS_BYTES // 2] for key in self.keys]
        return self.masking, present, chosen, self.graph, public, self.context

    def total(self, vectors: AnyInts, present: np.ndarray) -> AnyInts:
        """Return the sum that a server reads of those present."""
        masked = sum(self.masked(user, vectors[user]) for user in np.flatnonzero(present).tolist())
        return centred(unmasked_total(masked, *self.known_of(present)), self.context.bits)


@pytest.mark.parametrize("bits", [12, 16, 20, 40])
@pytest.mark.parametrize("gone", [0, 1, 7])
def test_real_messages_add_up_to_the_plain_total(bits: int, gone: int) -> None:
    users, random = 24, np.random.default_rng(gone)
    vectors, present = random.integers(-80, 80, (users, 30)), random.permutation(users) >= gone
    exchange = Exchange(users, graph_size(users, 0.3, 2), SumContext(b"a sum", 30, bits))
    np.testing.assert_array_equal(exchange.total(vectors, present), vectors[present].sum(axis=0))


def test_neighbours_who_have_said_nothing_are_zeros_and_share_no_masks() -> None:
    """Of five who have sent shares one sends no vector; two others have sent nothing, or keys alone."""
    exchange = Exchange(size=GraphSize(6, 3), silent=[1], keys_alone=[2])
    present = exchange.masking & (np.arange(USERS) != 6)
    for user in np.flatnonzero(present):
        (column,) = np.flatnonzero(exchange.graph.neighbours[user] == 1)
        assert not any(exchange.sealed[user][column * SEALED_BYTES :][:SEALED_BYTES])
    np.testing.assert_array_equal(exchange.total(VECTORS, present), VECTORS[present].sum(axis=0))


def test_a_device_reveals_one_secret_of_each_neighbour_and_only_to_enough() -> None:
    exchange = Exchange()
    with pytest.raises(ValueError, match="2 neighbours present, of whom 3 must be"):
        exchange.revealed(0, np.array([True, False, True, False]))
    answer = exchange.revealed(0, np.array([True, False, True, True]))
    secrets = [exchange.devices[other]._secrets for other in exchange.graph.neighbours[0].tolist()]
    for column, (secret, share) in enumerate(zip(secrets, answer, strict=True)):
        polynomials = secret.mask_keys if column == 1 else secret.self_seeds
        np.testing.assert_array_equal(shares(polynomials, 4)[0, exchange.graph.reverse[column]], share)


def test_a_server_that_lies_reads_the_vector_of_one_device() -> None:
    """It tells devices of different neighbours that they are gone; of each, a device reveals one secret.

    The victim masks with as few partners as it accepts, those next to it on the circle. Of each of these, as
    many neighbours are told that it is gone as put a secret together, and never of too many at once.
    """
    size = graph_size(50, 0.1, 5)
    exchange, needed = Exchange(50, size), size.threshold
    neighbours, order = exchange.graph.neighbours, np.random.default_rng(3).permutation(50)
    victim, beside = int(order[25]), np.arange(needed // 2, 0, -1)
    partners = order[np.stack([25 - beside, 25 + beside], axis=1).ravel()]
    gone = np.zeros((50, 50), dtype=np.bool_)
    for partner in partners.tolist():
        told = sorted(neighbours[partner].tolist(), key=lambda user: gone[user].sum())
        gone[told[:needed], partner] = True
    shared = np.frombuffer(exchange.sealed_for[victim], dtype=np.uint8).reshape(size.degree, SEALED_BYTES)
    left = np.isin(neighbours[victim], partners)[:, None]
    exchange.sealed_for[victim] = np.where(left, shared, np.uint8(0)).tobytes()
    masked = exchange.masked(victim, VECTORS[0])
    held = np.stack([exchange.revealed(user, ~gone[user, neighbours[user]]) for user in range(50)])

    revealed, whom = held[neighbours, exchange.graph.reverse], np.array([victim, *partners])
    places = [np.arange(needed), *(np.flatnonzero(gone[neighbours[each], each]) for each in partners)]
    points = np.stack(places)
    seed, *mask_keys = put_together(points + 1, revealed[whom[:, None], points])
    own, public = as_bytes(seed[None])[0], [exchange.keys[victim][: KEYS_BYTES // 2]]
    vector = masked - self_mask(CONTEXT, own)
    for partner, private in zip(partners.tolist(), mask_private_keys(np.stack(mask_keys)), strict=True):
        vector += pair_masks(CONTEXT, partner, private, np.array([victim]), public)
    np.testing.assert_array_equal(centred(vector, BITS), VECTORS[0])


def test_shares_that_were_sealed_for_another_are_refused() -> None:
    exchange = Exchange()
    device, received = exchange.devices[0], exchange.received[0]
    with pytest.raises(ValueError, match="has not encrypted for this one"):
        device.mask(received, exchange.sealed_for[1], VECTORS[0], BITS)
    with pytest.raises(ValueError, match="bytes in place of"):
        device.mask(received, exchange.sealed_for[0][:-1], VECTORS[0], BITS)
    with pytest.raises(ValueError, match="bytes in place of"):
        device.share(received[:-1])


@pytest.mark.parametrize("place", range(SIZE.threshold))
def test_a_wrong_share_is_noticed_where_there_are_no_others(place: int) -> None:
    """Of whoever is there, and of one who dropped out, any of as many shares as put a secret together."""
    exchange, nothing = Exchange(), np.zeros(NUMBERS, dtype=np.uint64)
    known = exchange.known_of(PRESENT)
    unmasked_total(nothing, *known)
    _, held = known[2]
    for spoiled in range(USERS):
        for element in range(ELEMENTS):
            held[spoiled, place, element] ^= np.uint64(1)
            with pytest.raises(SpoiledSharesError, match=f"device {spoiled} "):
                unmasked_total(nothing, *known)
            held[spoiled, place, element] ^= np.uint64(1)


def test_another_sum_has_other_masks() -> None:
    one, other = (SumContext(identity, 50, 16) for identity in (b"one", b"two"))
    assert (self_mask(one, b"seed") != self_mask(other, b"seed")).mean() > 0.9
    pair = keys(1)[0], public_key(keys(2)[1])
    assert (pair_mask(one, *pair) != pair_mask(other, *pair)).mean() > 0.9


@pytest.mark.parametrize(("threshold", "points"), [(1, 1), (2, 5), (7, 12)])
def test_any_holders_as_many_as_the_threshold_put_secrets_together(threshold: int, points: int) -> None:
    random = np.random.default_rng(1)
    drawn = random.integers(0, PRIME, (30, threshold, ELEMENTS), dtype=np.uint64)
    chosen = np.argsort(random.random((30, points)), axis=1)[:, :threshold]
    held = np.take_along_axis(shares(drawn, points), chosen[:, :, None], axis=1)
    np.testing.assert_array_equal(put_together(chosen + 1, held), drawn[:, 0])


def test_no_two_secrets_of_a_sum_share_a_key_or_a_word() -> None:
    users, size, context = 8, GraphSize(4, 3), SumContext(b"a sum", 30, 16)
    own = [bytes([user]) * KEY_BYTES for user in range(users)]
    with recording() as drawn:
        MaskingDevice(own[0], 0, np.arange(1, 5), size, context.identity)
        noise_rows(own, 30, 40.0)
    assert len(drawn.words) >= users + 1
    assert drawn.repeated() == set()
    assert drawn.shared_keys() == []


MANY = SumContext(b"a sum", 40_000, 16)


def check_uniform(numbers: AnyInts, limit: int) -> None:
    """Check the first and the last bits of numbers below a limit."""
    values = np.asarray(numbers, dtype=np.uint64).ravel()
    assert int(values.max()) < limit
    check_counts(
        np.bincount((values * np.uint64(256) // np.uint64(limit)).astype(np.int64), minlength=256),
        np.full(256, 1 / 256),
    )
    check_counts(
        np.bincount((values % np.uint64(256)).astype(np.int64), minlength=256), np.full(256, 1 / 256)
    )


def test_both_kinds_of_masks_are_uniform_on_all_bits_and_tell_nothing_of_each_other() -> None:
    """Each by itself: where one is known, as of a neighbour that colludes, the other has to hide a vector."""
    one, other, third = keys(3)
    pair, of_another = (pair_mask(MANY, one, public_key(key)) for key in (other, third))
    own = self_mask(MANY, one[:20])
    for mask in (own, pair, of_another):
        check_uniform(mask, 1 << 16)
        check_independent(mask[::2], mask[1::2])
    check_independent(own, pair)
    check_independent(pair, of_another)
    assert np.array_equal(pair, pair_mask(MANY, other, public_key(one)))


def test_secrets_and_fewer_shares_than_put_one_together_are_uniform() -> None:
    drawn = SharedSecrets.of(keys(3_000), 3)
    # The last number of a seed may serve to check the others.
    for secrets, numbers in ((drawn.mask_keys, ELEMENTS), (drawn.self_seeds, ELEMENTS - 1)):
        constants = secrets[:, 0, :numbers]
        check_uniform(constants, PRIME)
        held = shares(secrets, 4)[:, :, :numbers]
        for point in range(4):
            check_uniform(held[:, point], PRIME)
            check_independent(held[:, point], constants)
        check_independent(held[:, 0], held[:, 1])
    check_independent(drawn.mask_keys[:, 0], np.roll(drawn.self_seeds[:, 0], 1, axis=0))
    check_independent(drawn.mask_keys[:, 0, 0], drawn.self_seeds[:, 0, 0], classes=4)


PUBLIC = bytes(range(KEYS_BYTES))
ROUND, SIGNER = 3, 1


@cache
def private(user: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(1234 + user, ec.SECP384R1())


def line(key: object) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()  # type: ignore[attr-defined]


DIRECTORY = Directory.of([line(private(0).public_key()), f"{line(private(1).public_key())} phone", None])
PARTY = SigningParty("f" * 64, "run1", DIRECTORY, private(SIGNER))


def test_signed_keys_are_accepted_from_whom_they_are() -> None:
    signed = PARTY.signed(PUBLIC, SIGNER, ROUND)
    assert len(signed) == SIGNED_BYTES == KEYS_BYTES + SIGNATURE_BYTES
    assert PARTY.keys_in(signed, SIGNER, ROUND) == PUBLIC
    # The same again, for one that is asked again.
    assert PARTY.signed(PUBLIC, SIGNER, ROUND) == signed


@pytest.mark.parametrize(
    "other",
    [
        replace(PARTY, protocol="e" * 64),
        replace(PARTY, run="run2"),
        replace(PARTY, directory=Directory((*DIRECTORY.keys, ""))),
        replace(PARTY, key=private(0)),
    ],
)
def test_keys_of_another_sum_or_device_are_refused(other: SigningParty) -> None:
    assert PARTY.keys_in(other.signed(PUBLIC, SIGNER, ROUND), SIGNER, ROUND) is None


def test_what_is_signed_is_the_round_the_number_and_every_byte() -> None:
    signed = PARTY.signed(PUBLIC, SIGNER, ROUND)
    assert PARTY.keys_in(signed, SIGNER, ROUND + 1) is None
    both = replace(PARTY, directory=Directory((DIRECTORY.keys[1], DIRECTORY.keys[1])))
    assert both.keys_in(both.signed(PUBLIC, 1, ROUND), 1, ROUND) == PUBLIC
    assert both.keys_in(both.signed(PUBLIC, 1, ROUND), 0, ROUND) is None
    for place in range(0, SIGNED_BYTES, 7):
        changed = bytearray(signed)
        changed[place] ^= 1
        assert PARTY.keys_in(bytes(changed), SIGNER, ROUND) is None, place
