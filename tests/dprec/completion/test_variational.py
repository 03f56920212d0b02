from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dprec.completion.factors as factors_module
import dprec.completion.matrix_factorization as module
from dprec.completion import COMPLETIONS, MatrixFactorization, Observations, unpack
from dprec.completion.factors import inner_products, pack, products_of_rows
from dprec.completion.matrix_factorization import Side, WeightedCells, expected_squares, solve_in_turn
from dprec.randomness import generator
from tests import make


def problem() -> tuple[Observations, np.ndarray, np.ndarray]:
    random = generator(1, "variational")
    users, items = np.nonzero(random.random((9, 7)) < 0.5)
    residuals = random.normal(size=users.size)
    return make.observations(users, items, residuals, (9, 7)), residuals, random.uniform(0.2, 3.0, users.size)


def random_side(entities: int, rank: int, name: str) -> Side:
    random = generator(2, name)
    roots = random.normal(size=(entities, 1 + rank, 1 + rank))
    covariances = np.ascontiguousarray(pack(roots @ roots.transpose(0, 2, 1) / 10))
    correlated = 0.1 * random.normal(size=(1 + rank, 1 + rank))
    prior = np.diag(random.uniform(0.5, 2, 1 + rank)) + correlated @ correlated.T
    return Side(random.normal(size=(entities, 1 + rank)), covariances, prior)


def test_learned_priors_are_the_moments_of_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec.completion.matrix_factorization._LANES", 3)
    monkeypatch.setattr("dprec.completion.matrix_factorization._MOMENTS", 1)
    side = random_side(8, 2, "learned")
    moments = (side.means[:, :, None] * side.means[:, None, :] + unpack(side.covariances)).mean(axis=0)
    np.testing.assert_allclose(side.second_moments, moments)
    np.testing.assert_allclose(side.with_learned_variances().prior, np.diag(np.diag(moments)))
    moments[0, 1:] = moments[1:, 0] = 0.0
    np.testing.assert_allclose(side.with_learned_covariance().prior, moments, atol=2e-9)


def test_expected_squares_agree_with_draws_from_the_posterior() -> None:
    cells, residuals, _ = problem()
    users, items = random_side(9, 2, "users"), random_side(7, 2, "items")
    random = generator(3, "posterior")
    draws = 200_000

    def drawn(side: Side, entity: int) -> np.ndarray:
        return random.multivariate_normal(side.means[entity], unpack(side.covariances)[entity], draws)

    found = expected_squares(users, items, cells, residuals)
    for cell in range(0, residuals.size, 7):
        user, item = drawn(users, cells.users[cell]), drawn(items, cells.items[cell])
        error = residuals[cell] - user[:, 0] - item[:, 0] - (user[:, 1:] * item[:, 1:]).sum(axis=1)
        assert found[cell] == pytest.approx((error**2).mean(), rel=0.05)


def copy_of(side: Side) -> Side:
    return replace(side, means=side.means.copy(), covariances=side.covariances.copy())


def in_two_ways(monkeypatch: pytest.MonkeyPatch, users: Side, items: Side, *cells: Any) -> Iterator[Any]:
    """Yield what is solved by item, and in one pass over ranges of users."""
    monkeypatch.setattr("dprec.completion.matrix_factorization._LANES", 3)
    monkeypatch.setattr("dprec.completion.matrix_factorization._MOMENTS", 30)
    monkeypatch.setattr("dprec.completion.matrix_factorization._RANGES", 3)
    for one_pass in (100, 0):
        monkeypatch.setattr("dprec.completion.matrix_factorization._ONE_PASS", one_pass)
        weighted = WeightedCells.of(*cells)
        assert (weighted.by_item is None) == (one_pass == 0)
        yield solve_in_turn(copy_of(users), copy_of(items), weighted, 0.5)


def half_step(
    side: Side, other: Side, own: np.ndarray, others: np.ndarray, *cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and covariances of one side, entity by entity."""
    residuals, weights = cells
    # Moments of (effect, factors), with 1 in place of the effect.
    seconds = other.means[:, :, None] * other.means[:, None, :] + unpack(other.covariances)
    design, with_bias = other.means.copy(), seconds[:, 0].copy()
    design[:, 0], with_bias[:, 0] = 1.0, other.means[:, 0]
    grams = seconds.copy()
    grams[:, 0, :] = grams[:, :, 0] = design
    means, covariances = [], []
    for entity in range(len(side.means)):
        mine = own == entity
        rated, precision = others[mine], weights[mine] / 0.5
        gram = np.einsum("r,rij->ij", precision, grams[rated]) + np.linalg.inv(side.prior)
        target = precision @ (design[rated] * residuals[mine, None] - with_bias[rated])
        means.append(np.linalg.solve(gram, target))
        covariances.append(np.linalg.inv(gram))
    return np.array(means), np.array(covariances)


def test_both_halves_average_over_what_is_uncertain_about_the_other_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells, residuals, weights = problem()
    # As they are rounded.
    residuals = residuals.astype(np.float32).astype(np.float64)
    users, items = random_side(9, 2, "users"), random_side(7, 2, "items")
    for new_users, new_items, misfit in in_two_ways(monkeypatch, users, items, cells, residuals, weights):
        sides = (users, items, cells.users, cells.items), (items, new_users, cells.items, cells.users)
        for solved, side in zip((new_users, new_items), sides, strict=True):
            means, covariances = half_step(*side, residuals, weights)
            np.testing.assert_allclose(solved.means, means, atol=2e-6)
            np.testing.assert_allclose(unpack(solved.covariances), covariances, atol=2e-6)
        squares = expected_squares(new_users, new_items, cells, residuals)
        assert misfit == pytest.approx(weights @ squares, rel=1e-6)


def test_divergence_is_that_of_two_normals() -> None:
    side = random_side(5, 2, "divergence")
    expected = 0.0
    for mean, covariance in zip(side.means, unpack(side.covariances), strict=True):
        expected += 0.5 * (
            np.trace(np.linalg.solve(side.prior, covariance))
            + mean @ np.linalg.solve(side.prior, mean)
            - mean.size
            + np.linalg.slogdet(side.prior)[1]
            - np.linalg.slogdet(covariance)[1]
        )
    assert side.divergence() == pytest.approx(expected)


@pytest.mark.parametrize("place", [-1, 3, 2**32])
def test_products_of_vectors_that_are_not_there_are_refused(place: int) -> None:
    vectors, here, there = np.ones((3, 2)), np.array([1, 2]), np.array([0, place])
    np.testing.assert_array_equal(inner_products(vectors, vectors, here, here), [2, 2])
    for places in ((here, there), (there, here)):
        with pytest.raises(IndexError, match="accepted: 0 to 2"):
            inner_products(vectors, vectors, *places)
    with pytest.raises(ValueError, match="vectors of 2 and of 1 dimensions"):
        inner_products(vectors, vectors[:, :1], here, here)


def test_products_of_rows_are_those_of_cells_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors_module, "BLOCK", 20)
    random = generator(5, "rows")
    left, right = random.normal(size=(11, 5)), random.normal(size=(7, 5))
    users, items = np.indices((11, 7))
    cells = inner_products(left, right, users.ravel(), items.ravel())
    assert products_of_rows(left, right).tobytes() == cells.tobytes()


@pytest.mark.parametrize("one_pass", [0, 8])
@pytest.mark.parametrize("kind", ["mf", "mog-mf", "mog-mf-variational"])
def test_results_do_not_depend_on_the_number_of_processors(
    kind: str, one_pass: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dprec.completion.matrix_factorization._ONE_PASS", one_pass)
    monkeypatch.setattr("dprec.completion.matrix_factorization._LANES", 4)
    monkeypatch.setattr("dprec.completion.matrix_factorization._MOMENTS", 1)
    monkeypatch.setattr("dprec.completion.factors.BLOCK", 4)
    monkeypatch.setattr("dprec.completion.gradient_descent.BLOCK", 4)
    monkeypatch.setattr("dprec.completion.mixtures.BLOCK", 5)
    cells, _, _ = problem()
    predictions = []
    for processors in ("1", "2", "3,1"):
        monkeypatch.setenv("OMP_NUM_THREADS", processors)
        completed = COMPLETIONS[kind](rank=2, iterations=8).fit(cells, seed=0)
        predictions.append(completed.predict(cells.users, cells.items))
    np.testing.assert_array_equal(predictions[0], predictions[1])
    np.testing.assert_array_equal(predictions[0], predictions[2])


def sparse_ratings(noise_variance: float | None) -> tuple[Observations, np.ndarray]:
    """Return 15 ratings of each of 400 users, whose factors explain little, and the matrix without noise."""
    random, shape = generator(4, "sparse ratings"), (400, 300)
    users = np.repeat(np.arange(400), 15)
    items = np.sort(random.random(shape).argsort(axis=1)[:, :15], axis=1).ravel()
    truth = 3 + random.normal(size=(400, 1)) / 3 + random.normal(size=300) / 3
    truth += 0.2 * random.normal(size=(400, 2)) @ random.normal(size=(2, 300))
    values = truth[users, items] + 0.8 * random.normal(size=users.size)
    return make.observations(users, items, values, shape, noise_variance=noise_variance), truth


def test_sweeps_of_clean_ratings_end_by_those_held_out_which_the_last_one_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = []

    def counted(users: Side, items: Side, cells: WeightedCells, noise: float) -> tuple[Side, Side, float]:
        weights.append(float(cells.by_user.weights.sum()))
        return solve_in_turn(users, items, cells, noise)

    monkeypatch.setattr(module, "solve_in_turn", counted)
    seen, truth = sparse_ratings(None)
    stopped = MatrixFactorization().fit(seen, seed=1)
    assert len(weights) == stopped.diagnostics["sweeps"] < 20
    # 6,000 ratings, of which a share of .05 has a standard deviation of 17.
    assert weights[0] == pytest.approx(5700, abs=85)
    assert (set(weights[1:-1]), weights[-1]) == ({weights[0]}, 6000)
    noisy, _ = sparse_ratings(1e-3)
    to_the_end = MatrixFactorization().fit(noisy, seed=1)
    assert set(weights[stopped.diagnostics["sweeps"] :]) == {6000}
    cells = np.divmod(np.arange(truth.size), 300)
    errors = [np.abs(model.predict(*cells) - truth.ravel()).mean() for model in (stopped, to_the_end)]
    assert errors[0] < errors[1]
    assert MatrixFactorization(iterations=2).fit(seen, seed=1).diagnostics["sweeps"] == 2
