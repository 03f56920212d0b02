"""Latent ratings of several parts, solved in turn.

The likelihood of noisy counts against sums over all outcomes, and what it adds to normal equations.

Sums over the rated cells of users and items.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from dprec.completion import Regressed
from dprec.completion.calibrated.latent_ratings import Cells, CountLikelihood, LatentRatings
from dprec.completion.calibrated.regressions import Expected
from dprec.observations import NoisyCounts

USERS, ITEMS = 60, 40

Places = tuple[NDArray[np.int32], NDArray[np.int32]]


@pytest.fixture(scope="module")
def places() -> Places:
    users, items = np.nonzero(np.random.default_rng(1).random((USERS, ITEMS)) < 0.6)
    return users.astype(np.int32), items.astype(np.int32)


def start(factors: int, slopes: int) -> LatentRatings:
    random = np.random.default_rng(3)
    of_users, of_items = random.standard_normal((USERS, 2)), np.ones((ITEMS, 1))
    return LatentRatings(
        Regressed.prior(of_users, Expected(spread=(0.2,))),
        Regressed.prior(of_items, Expected(spread=(0.2,))),
        Regressed.at(np.zeros((USERS, slopes)), of_users, variance=0.1, spread=0.1),
        random.standard_normal((ITEMS, slopes)),
        Regressed.at(random.standard_normal((USERS, factors)), of_users, variance=0.1, spread=1.0),
        Regressed.at(np.zeros((ITEMS, factors)), of_items, variance=0.0, spread=0.1),
    )


@pytest.mark.parametrize(("factors", "slopes"), [(2, 0), (0, 2), (2, 1)])
def test_latent_ratings_that_are_seen_with_little_noise_are_recovered(
    places: Places, factors: int, slopes: int
) -> None:
    latent = start(factors, slopes)
    random = np.random.default_rng(4)
    true = random.standard_normal((USERS, 1)) + random.standard_normal(ITEMS)
    true += random.standard_normal((USERS, slopes)) @ latent.embeddings.T
    true += random.standard_normal((USERS, factors)) @ random.standard_normal((factors, ITEMS))
    seen, precision = true[places] + 0.3 * random.standard_normal(places[0].size), 1 / 0.3**2

    def looked_up(latent: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return precision * (seen - latent), np.full(latent.size, precision)

    cells = Cells(*places, looked_up)
    for sweep in range(60):
        latent = latent.with_item_biases(cells).with_item_factors(cells, learn=sweep > 5)
        latent = latent.with_user_biases(cells).with_slopes(cells).with_user_factors(cells)
    users, items = (side.ravel() for side in np.indices(true.shape))
    unseen = np.ones(true.shape, dtype=np.bool_)
    unseen[places] = False
    errors = (latent.means(users, items).reshape(true.shape) - true)[unseen]
    assert np.sqrt((errors**2).mean()) < 0.15 * true.std()
    variances = latent.variances(users, items).reshape(true.shape)[unseen]
    # The parts' posteriors are independent by assumption, which makes variances too small, not too large.
    assert 0.2 < variances.mean() / (errors**2).mean() < 1.5


def test_propensities_to_rate_are_no_part_of_a_latent_rating() -> None:
    random = np.random.default_rng(5)
    users, items = (
        Regressed.at(random.standard_normal((count, 2)), np.ones((count, 1)), variance=0.1, spread=1.0)
        for count in (USERS, ITEMS)
    )
    of = np.arange(ITEMS, dtype=np.int32)
    expected = users.means[of, 1] + items.means[of, 1]
    np.testing.assert_allclose(LatentRatings.of_biases(users, items).means(of, of), expected, rtol=1e-12)


CUTS = np.array([-1.0, 0.2, 0.9])
LATENT = np.concatenate([np.linspace(-1.2, 1.6, 40), [3.0]])


def likelihood(values: NDArray[np.int64], epsilon: float) -> CountLikelihood:
    """Return one row of the first 40 cells for every value, each of a user of its own."""
    rows = values.size
    counts = NoisyCounts(
        cells=np.tile(np.arange(40), rows),
        row_of=np.repeat(np.arange(rows), 40),
        users=np.arange(rows),
        values=values,
        sizes=np.full(rows, 40),
        epsilons=np.full(rows, epsilon),
        least_level=3,
    )
    return CountLikelihood.of(counts, CUTS)


def densities(level: float, epsilon: float) -> NDArray[np.float64]:
    """Return Pr(noisy count) if every latent rating is raised by a level: exactly, coin by coin."""
    shares = np.ones(1)
    for head in ndtr(LATENT[:40] + level - CUTS[1]):
        shares = np.convolve(shares, [1 - head, head])
    steps = np.arange(-1000, 1001)
    noise = np.exp(-epsilon * np.abs(steps))
    noise /= noise.sum()
    return sum(
        share * np.bincount(np.clip(count + steps, 0, 40), weights=noise, minlength=41)
        for count, share in enumerate(shares)
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_scores_are_those_of_the_exact_likelihood(epsilon: float) -> None:
    values, step = np.arange(41), 1e-3
    linearised = likelihood(values, epsilon).at(LATENT)
    slope = linearised[0][:40].sum()
    above, at, below = (densities(level, epsilon) for level in (step, 0.0, -step))
    exact = (np.log(above) - np.log(below)) / (2 * step)
    error = slope * linearised[1] - exact
    assert np.sqrt((at * error**2).sum()) < 0.07 * np.sqrt((at * exact**2).sum())


def test_a_user_of_several_counts_has_the_sum_of_what_they_say() -> None:
    one, both = likelihood(np.array([31]), 1.0), likelihood(np.array([31, 31]), 1.0)
    both = replace(both, counts=replace(both.counts, users=np.zeros(2, dtype=np.int64)))
    designs, vectors = np.column_stack([np.ones(40), np.linspace(-1, 1, 40)]), np.array([[0.1, -0.2]])
    items = np.arange(40, dtype=np.int32)
    single = one.about_users(one.at(LATENT), items, designs, vectors)
    double = both.about_users(both.at(LATENT), np.tile(items, 2), designs, vectors)
    for alone, together in zip(single, double, strict=True):
        np.testing.assert_allclose(together, 2 * alone)
    slopes = one.at(LATENT)[0] @ designs
    np.testing.assert_allclose(
        single[1][0] - single[0][0] @ vectors[0], slopes * one.at(LATENT)[1][0], atol=1e-12
    )
