"""The one-bit randomiser: unbiased, within its budget, and read back from the wire."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.gradients import randomizer
from dprec.randomness import even_share, words

DRAWS = 1_000_000


def scaled_mean(coordinate: float, epsilon: float) -> float:
    noise = words(4, "randomizer", 0, DRAWS)
    answers = randomizer.randomize(np.full(DRAWS, coordinate), epsilon, noise)
    return float((2.0 * answers - 1.0).mean()) * randomizer.unbiased_scale(epsilon)


@pytest.mark.parametrize("epsilon", [0.01, 0.4, 3.0])
@pytest.mark.parametrize("coordinate", [-1.0, -0.3, 0.0, 0.7, 1.0, 5.0])
def test_a_million_answers_are_unbiased(coordinate: float, epsilon: float) -> None:
    """Within 4 standard errors, false alarm 18 x 6.4e-5; the seed is fixed, so it passes or not for good."""
    expected = np.clip(coordinate, -1.0, 1.0)
    error = randomizer.unbiased_scale(epsilon) / math.sqrt(DRAWS)
    assert abs(scaled_mean(coordinate, epsilon) - expected) < 4 * error


@given(epsilon=st.floats(1e-6, 20.0))
def test_the_exact_loss_is_just_within_the_budget(epsilon: float) -> None:
    assert epsilon * (1 - 1e-9) <= randomizer.exact_epsilon(epsilon) <= epsilon


@given(epsilon=st.floats(20.0, 1e4))
def test_the_exact_loss_of_a_huge_budget_is_finite_and_within_it(epsilon: float) -> None:
    exact = randomizer.exact_epsilon(epsilon)
    assert math.isfinite(exact)
    assert exact <= epsilon


@pytest.mark.parametrize("total", [0.1, 1.6, 5.0])
@pytest.mark.parametrize("rounds", [1, 3, 7, 100])
def test_the_rounds_add_up_to_the_budget(total: float, rounds: int) -> None:
    spent = sum([randomizer.exact_epsilon(even_share(total, rounds))] * rounds)
    assert total * (1 - 1e-9) <= spent <= total


@given(epsilon=st.floats(1e-3, 8.0), one=st.floats(-1.0, 1.0), other=st.floats(-1.0, 1.0))
def test_no_two_coordinates_are_told_apart_beyond_the_budget(
    epsilon: float, one: float, other: float
) -> None:
    """Counted in integer weights, of which there are 2^60."""
    draws = 1 << 60
    first, second = (int(t) for t in randomizer._thresholds(np.array([one, other]), epsilon))
    limit = Fraction(Decimal(epsilon).exp(Context(prec=60)).next_minus(Context(prec=60)))
    assert Fraction(first, second) <= limit
    assert Fraction(draws - first, draws - second) <= limit


def test_what_is_not_a_number_is_answered_like_zero() -> None:
    noise = words(1, "x", 0, 1000)
    hostile = np.resize([np.nan, np.inf, -np.inf, 1e308], 1000)
    expected = np.resize([0.0, 1.0, -1.0, 1.0], 1000)
    assert (randomizer.randomize(hostile, 0.5, noise) == randomizer.randomize(expected, 0.5, noise)).all()


@given(st.data(), st.integers(1, 1 << 26))
def test_reports_are_read_back_and_no_longer_than_their_bits(data: st.DataObject, n_coordinates: int) -> None:
    coordinates = np.array(
        data.draw(st.lists(st.integers(0, n_coordinates - 1), max_size=20)), dtype=np.int64
    )
    answers = np.array(
        data.draw(st.lists(st.booleans(), min_size=coordinates.size, max_size=coordinates.size)),
        dtype=np.bool_,
    )
    reports = randomizer.pack_answers(coordinates, answers, n_coordinates)
    bits = max(1, math.ceil(math.log2(n_coordinates))) + 1
    assert {len(report) for report in reports} <= {math.ceil(bits / 8)}
    valid, read, bools = randomizer.unpack_answers(reports, n_coordinates)
    assert valid.all()
    assert read.tolist() == coordinates.tolist()
    assert bools.tolist() == answers.tolist()


@given(st.lists(st.binary(max_size=12)), st.integers(1, 5000))
def test_whatever_is_accepted_is_a_report(reports: list[bytes], n_coordinates: int) -> None:
    valid, coordinates, answers = randomizer.unpack_answers(reports, n_coordinates)
    again = randomizer.pack_answers(coordinates[valid], answers[valid], n_coordinates)
    assert again == [report for report, ok in zip(reports, valid, strict=True) if ok]


def test_what_is_rejected() -> None:
    # 1000 coordinates: 10 bits, the answer, 5 bits of padding.
    good = (999 << 6 | 1 << 5).to_bytes(2, "big")
    hostile = [b"", good[:1], good + b"\0", (1000 << 6).to_bytes(2, "big"), (999 << 6 | 1).to_bytes(2, "big")]
    valid, _, _ = randomizer.unpack_answers([*hostile, good], 1000)
    assert valid.tolist() == [False] * 5 + [True]
