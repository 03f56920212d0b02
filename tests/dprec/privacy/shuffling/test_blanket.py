"""The blanket's bound against every outcome of few shuffled reports, and against published reductions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import gammaln

from dprec.accounting import PrivacyBlanket, ShuffledChannel
from dprec.channel import Channel
from tests.dprec.privacy.shuffling.exact_shuffling import exact_delta, k_ary_response


def uneven_channel() -> Channel:
    """Return a channel of three levels and four symbols of which no two rows or columns are alike."""
    rows = np.random.default_rng(0).dirichlet(np.full(4, 3.0), 3) + 0.05
    return Channel.from_probabilities(rows, np.arange(1.0, 4), np.arange(1.0, 5), 10.0)


CHANNELS = {
    "one bit": k_ary_response(2, 1.0),
    "three answers": k_ary_response(3, 1.0),
    "three answers at 2": k_ary_response(3, 2.0),
    "uneven": uneven_channel(),
}


@pytest.mark.parametrize("reports", [1, 2, 4, 6])
@pytest.mark.parametrize("name", CHANNELS)
def test_no_profile_of_few_users_tells_more(name: str, reports: int) -> None:
    channel = CHANNELS[name]
    blanket = PrivacyBlanket(channel)
    for epsilon in np.array([0.0, 0.3, 0.6]) * channel.epsilon:
        exact, bound = exact_delta(channel, epsilon, reports), blanket.delta(epsilon, reports)
        assert bound >= exact
        # The blanket is all of the others that hides: nearly so for randomised response.
        assert bound <= exact * (3 if name == "uneven" else 1.15)


@pytest.mark.parametrize(
    ("symbols", "local", "reports", "expected"),
    [(5, 1, 100, 0.364), (5, 1, 500, 0.1563), (5, 1, 6040, 0.04123), (5, 2, 100, 1.174), (2, 1, 500, 0.2157)],
)
def test_what_a_rating_loses_among_reports_on_the_same_item(
    symbols: int, local: float, reports: int, expected: float
) -> None:
    found = ShuffledChannel(k_ary_response(symbols, local)).epsilon(reports, 1e-6)
    assert found == pytest.approx(expected, rel=2e-3)


def test_the_bound_for_many_reports_is_close_to_what_a_server_can_tell() -> None:
    """All others at a third level: counts of the two levels in question alone tell 0.3584 among 100."""
    channel = k_ary_response(5, 1.0)
    lie, truth = channel.probabilities[0, 1], channel.probabilities[0, 0]
    reports, counts = 100, np.arange(101)

    def trinomial(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        rest = reports - 1 - first - second
        with np.errstate(invalid="ignore"):
            logs = gammaln(reports) - gammaln(first + 1) - gammaln(second + 1) - gammaln(rest + 1)
            logs = logs + (first + second) * np.log(lie) + rest * np.log(1 - 2 * lie)
        return np.where((first >= 0) & (second >= 0) & (rest >= 0), np.exp(logs), 0.0)

    first, second = np.meshgrid(counts, counts, indexing="ij")
    moved = trinomial(first - 1, second), trinomial(first, second - 1)
    rest = (1 - truth - lie) * trinomial(first, second)
    one, other = truth * moved[0] + lie * moved[1] + rest, lie * moved[0] + truth * moved[1] + rest
    for epsilon in (0.1, 0.25, 0.3584):
        told = float(np.maximum(0.0, one - np.exp(epsilon) * other).sum())
        assert told <= PrivacyBlanket(channel).delta(epsilon, reports) <= 1.35 * told


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    reports=st.integers(1, 300),
    more=st.integers(1, 300),
    share=st.floats(0, 1),
)
def test_more_reports_hide_more_and_none_hides_less_than_alone(
    seed: int, reports: int, more: int, share: float
) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(3, 2.0), 2) + 0.1
    blanket = PrivacyBlanket(Channel.from_probabilities(rows, [1.0, 2.0], [1.0, 1.5, 2.0], 10.0))
    epsilon = share * blanket.channel.epsilon
    few, many = blanket.delta(epsilon, reports), blanket.delta(epsilon, reports + more)
    # The grids of the two sums differ, by which either can be too large by about 2 %.
    assert many <= 1.03 * few
    assert few <= blanket.alone(epsilon)
    assert blanket.delta(blanket.channel.epsilon, reports) == 0


def test_symbols_that_tell_the_same_are_the_same_pair() -> None:
    rows = np.array([[0.3, 0.1, 0.3, 0.3], [0.1, 0.3, 0.3, 0.3], [0.1, 0.3, 0.3, 0.3]])
    channel = Channel.from_probabilities(rows, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], 2.0)
    blanket = PrivacyBlanket(channel)
    assert len(blanket.pairs) <= 2
    assert blanket.share == pytest.approx(0.8)
