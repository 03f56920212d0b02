"""Shares: the threshold puts a secret together, and fewer say nothing about it."""

import numpy as np
import pytest

from dprec.secure_aggregation.secrets import (
    ELEMENTS,
    PRIME,
    as_bytes,
    field_elements,
    from_bytes,
    secrets,
    shares,
)


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
