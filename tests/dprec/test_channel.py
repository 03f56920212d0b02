import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dprec.channel import Channel, rounded_to_draws
from dprec.mechanisms import MECHANISMS, BinaryFlip
from dprec.mechanisms.base import Mechanism
from dprec.randomness import DRAWS
from dprec.ratings import RatingScale
from tests.make import STARS

matrices = st.tuples(st.integers(1, 6), st.integers(1, 9)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(0, 1e6)).filter(
        lambda rows: bool(np.all(rows.sum(axis=1) > 0))
    )
)


def channel_from(rows: np.ndarray) -> Channel:
    return Channel.from_probabilities(rows, np.arange(1, len(rows) + 1), np.arange(rows.shape[1]), math.inf)


@given(matrices)
def test_weights_are_whole_draws_that_add_up(rows: np.ndarray) -> None:
    channel = channel_from(rows)
    assert all(sum(map(int, row)) == 1 << 60 for row in channel.weights)
    shares = rows / rows.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(channel.probabilities, shares, atol=1e-14)


@given(matrices)
def test_epsilon_is_the_largest_log_ratio(rows: np.ndarray) -> None:
    channel = channel_from(rows)
    largest = max(
        float("inf") if low == 0 else np.log(float(high) / float(low))
        for column in channel.weights.T
        if column.max() > 0
        for low, high in [(int(column.min()), int(column.max()))]
    )
    assert channel.epsilon == pytest.approx(largest, rel=1e-12, abs=1e-12)
    assert channel.epsilon >= 0


def test_epsilon_is_that_of_the_worst_pair_wherever_it_stands() -> None:
    channel = channel_from(np.array([[0.5, 0.5], [0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]))
    assert channel.epsilon == pytest.approx(np.log(6), rel=1e-12)


@settings(max_examples=50)
@given(matrices)
def test_moments_are_sums_over_the_rows(rows: np.ndarray) -> None:
    channel = channel_from(rows)
    means = channel.probabilities @ channel.values
    np.testing.assert_allclose(channel.bias(), means - channel.inputs, atol=1e-9)
    spread = [
        row @ (channel.values - mean) ** 2 for row, mean in zip(channel.probabilities, means, strict=True)
    ]
    np.testing.assert_allclose(channel.variance(), spread, atol=1e-9)


@pytest.mark.parametrize("bad", [[[0.0, 0.0]], [[-1.0, 2.0]], [[np.nan, 1.0]], [[np.inf, 1.0]]])
def test_rows_that_are_no_distributions_are_refused(bad: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="non-negative"):
        Channel.from_probabilities(bad, [1.0], [1.0, 2.0], math.inf)


@pytest.mark.parametrize("epsilon", [-1.0, math.nan])
def test_an_epsilon_below_0_or_nan_is_refused(epsilon: float) -> None:
    with pytest.raises(ValueError, match="an epsilon of"):
        Channel.from_probabilities([[0.5, 0.5]], [1.0], [1.0, 2.0], epsilon)


@pytest.mark.parametrize("crowded", [False, True])
def test_symbols_are_those_whose_draws_words_are_among(crowded: bool) -> None:
    """Every draw at a threshold, beside it, and the first and the last."""
    rare = [2.0**-20] * 7 if crowded else [0.0] * 7
    rows = np.array([[0.25, 0.25, 0.5, *rare], [0.5, 0.25, 0.25, *rare]])
    channel = Channel.from_probabilities(rows, [1.0, 2.0], np.arange(10.0), math.inf)
    thresholds = np.cumsum(channel.weights, axis=1, dtype=np.uint64)[:, :-1]
    near = np.concatenate([thresholds.ravel(), thresholds.ravel() - np.uint64(1), [np.uint64(0)]])
    near = np.concatenate([near[near < DRAWS], [np.uint64(DRAWS - 1)]])
    for level, row in enumerate(thresholds, 1):
        symbols = channel.sample(np.full(near.size, level, dtype=np.uint8), near << np.uint64(4))
        assert symbols.tolist() == np.searchsorted(row, near, side="right").tolist()


CALIBRATED = [mechanism for mechanism in MECHANISMS if mechanism.private and mechanism is not BinaryFlip]
LARGEST = 65_536


def with_symbols(mechanism: type[Mechanism], symbols: int) -> Mechanism:
    return mechanism(symbols=symbols) if "symbols" in mechanism.__dataclass_fields__ else mechanism()  # type: ignore[call-arg]


def keeps(channel: Channel, epsilon: float) -> bool:
    """Return whether no symbol is more than e^epsilon times likelier, in integers."""
    scaled = int(Decimal(epsilon).exp(Context(prec=60)) * 10**40) - 1
    columns = zip(channel.weights.max(axis=0).tolist(), channel.weights.min(axis=0).tolist(), strict=True)
    return all(most * 10**40 <= fewest * scaled for most, fewest in set(columns))


@pytest.mark.parametrize("mechanism", CALIBRATED, ids=lambda mechanism: mechanism.kind)
@settings(deadline=None, max_examples=30)
@given(
    levels=st.integers(2, 12),
    symbols=st.integers(4, 400),
    epsilon=st.floats(1e-6, 20.0) | st.floats(1e-6, 1e-2) | st.floats(20.0, 50.0),
)
def test_no_request_is_exceeded_and_little_is_wasted(
    mechanism: type[Mechanism], levels: int, symbols: int, epsilon: float
) -> None:
    channel = with_symbols(mechanism, symbols).channel(RatingScale.evenly(1, levels, 1), epsilon)
    assert keeps(channel, epsilon)
    assert channel.epsilon <= epsilon
    if epsilon <= 20:
        assert channel.epsilon >= epsilon * (1 - 1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
@pytest.mark.parametrize("mechanism", CALIBRATED, ids=lambda mechanism: mechanism.kind)
def test_the_largest_grids(mechanism: type[Mechanism], epsilon: float) -> None:
    channel = with_symbols(mechanism, LARGEST).channel(STARS, epsilon)
    assert keeps(channel, epsilon)
    assert epsilon * (1 - 1e-6) <= channel.epsilon <= epsilon


def test_a_symbol_that_shows_an_input_has_a_draw_for_all_where_the_budget_allows_it() -> None:
    assert rounded_to_draws(np.eye(2), math.inf).tolist() == [[DRAWS, 0], [0, DRAWS]]
    assert rounded_to_draws(np.eye(2), 50.0).min() >= 1
    with pytest.raises(ValueError, match="infinite loss: a symbol that row 2 never sends and row 1 does"):
        rounded_to_draws(np.eye(2), 40.0)


def test_probabilities_that_cost_more_are_refused() -> None:
    with pytest.raises(ValueError, match=r"cost 0\.405465108, at epsilon 0\.4$"):
        rounded_to_draws(np.array([[2.0, 1.0], [1.0, 1.0]]), 0.4)


def test_an_epsilon_below_the_resolution_of_the_draws_is_refused() -> None:
    rows = np.ones((2, 2))
    with pytest.raises(ValueError, match="too coarse"):
        rounded_to_draws(rows, 1e-18)
