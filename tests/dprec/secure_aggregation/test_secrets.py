"""Shares: the threshold puts a secret together, and fewer say nothing about it.

Keys of the pseudorandom streams: of one secret, a key for each purpose and context.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dprec.secure_aggregation import GraphSize, noise_rows, rounded_rows
from dprec.secure_aggregation.exchange import MaskedSum, MaskingDevice
from dprec.secure_aggregation.masking import SumContext
from dprec.secure_aggregation.secrets import (
    ELEMENTS,
    KEY_BYTES,
    PRIME,
    as_bytes,
    derived_key,
    field_elements,
    from_bytes,
    secrets,
    shares,
    stream,
)
from tests.drawn import recording


def polynomials(count: int, threshold: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, PRIME, (count, threshold, ELEMENTS), dtype=np.uint64)


@pytest.mark.parametrize(("threshold", "points"), [(1, 1), (2, 5), (7, 12)])
def test_any_holders_as_many_as_the_threshold_put_secrets_together(threshold: int, points: int) -> None:
    drawn = polynomials(30, threshold)
    random = np.random.default_rng(2)
    chosen = np.argsort(random.random((30, points)), axis=1)[:, :threshold]
    held = np.take_along_axis(shares(drawn, points), chosen[:, :, None], axis=1)
    np.testing.assert_array_equal(secrets(chosen + 1, held), drawn[:, 0])


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


SECRETS, PURPOSES, CONTEXTS = (b"one", b"other"), ("noise", "polynomials", ""), (b"", b"sum 1", b"sum 2")


def test_secret_purpose_and_context_each_change_a_key() -> None:
    """Two of 18 keys are the same by chance once in 10**74."""
    keys = {derived_key(*parts) for parts in product(SECRETS, PURPOSES, CONTEXTS)}
    assert len(keys) == len(SECRETS) * len(PURPOSES) * len(CONTEXTS)
    assert {len(key) for key in keys} == {KEY_BYTES}
    words = {stream(key, 1, np.dtype("<u8")).tolist()[0] for key in keys}
    assert len(words) == len(keys)


def test_no_two_secrets_of_a_sum_share_a_key_or_a_word() -> None:
    users, size, context = 8, GraphSize(4, 3), SumContext(b"a sum", 30, 16)
    keys = [bytes([user]) * KEY_BYTES for user in range(users)]
    with recording() as drawn:
        MaskingDevice(keys[0], 0, np.arange(1, 5), size, context)
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
