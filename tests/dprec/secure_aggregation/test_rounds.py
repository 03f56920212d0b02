"""A secure sum: the plain total to the last bit, and nothing but uniform numbers before it is unmasked."""

import numpy as np
import pytest
from scipy.stats import chi2

from dprec.secure_aggregation import GraphSize, MaskGraph, centred, graph_size
from dprec.secure_aggregation.exchange import MaskedSum, plain_total
from dprec.secure_aggregation.masking import RevealedShares, SumContext, TooFewSharesError
from dprec.secure_aggregation.secrets import derived_key, public_key

USERS = 24


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
    vectors = random.integers(-80, 80, (USERS, 30))
    present = random.permutation(USERS) >= gone
    summed = sum_of(USERS, graph_size(USERS, 0.3, 2), 30, bits)
    received = sum(summed.masked(user, vectors[user]) for user in np.flatnonzero(present))
    total = summed.total(received, present)
    np.testing.assert_array_equal(total, plain_total(vectors, present, bits))
    np.testing.assert_array_equal(centred(total, bits), vectors[present].sum(axis=0))


def test_more_dropouts_than_the_threshold_fail_the_round_and_unmask_nothing(monkeypatch) -> None:
    summed = sum_of(USERS, GraphSize(10, 7), 5, 16)
    present = np.ones(USERS, dtype=bool)
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
    summed = sum_of(USERS, GraphSize(10, 6), numbers, 16)
    zeros = np.zeros(numbers, dtype=np.int64)
    sent = np.array([summed.masked(user, zeros) for user in range(USERS)])
    neighbours = summed.graph.neighbours[:, 0]
    others = sent.sum(axis=0, dtype=np.uint16) - sent
    # Neighbours share a mask: it must vanish from neither their sum nor their difference.
    for looked_at in (sent, sent + sent[neighbours], sent - sent[neighbours], others):
        for row in looked_at.astype("<u2"):
            counts = np.bincount(row.view(np.uint8), minlength=256)
            expected = counts.sum() / 256
            statistic = ((counts - expected) ** 2 / expected).sum()
            assert chi2.sf(statistic, 255) > 1e-6 / (4 * USERS)


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
