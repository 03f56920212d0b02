import numpy as np
import pytest
import scipy.sparse as sp

import dprec.completion.factors as factors_module
from dprec.completion import COMPLETIONS, Observations, check_rank, packed_outer, unpack
from dprec.completion.factors import column_blocks, map_blocks, pack, sparse_product
from dprec.completion.matrix_factorization import Side, WeightedCells, expected_squares, naming_iteration
from dprec.errors import InputError, RunError
from dprec.randomness import generator
from dprec.ratings import RatingScale
from tests.refusals import refused_at


def problem() -> tuple[Observations, np.ndarray, np.ndarray]:
    random = generator(1, "variational")
    users, items = np.nonzero(random.random((9, 7)) < 0.5)
    residuals = random.normal(size=users.size)
    cells = Observations.of(
        users.astype(np.int32), items.astype(np.int32), residuals, (9, 7), RatingScale.evenly(1, 5, 1)
    )
    return cells, residuals, random.uniform(0.2, 3.0, users.size)


def random_side(entities: int, rank: int, name: str) -> Side:
    random = generator(2, name)
    roots = random.normal(size=(entities, 1 + rank, 1 + rank))
    covariances = pack(roots @ roots.transpose(0, 2, 1) / 10)
    correlated = 0.1 * random.normal(size=(1 + rank, 1 + rank))
    prior = np.diag(random.uniform(0.5, 2, 1 + rank)) + correlated @ correlated.T
    return Side(random.normal(size=(entities, 1 + rank)), covariances, prior)


def test_packing_is_the_upper_triangle() -> None:
    vectors = generator(0, "packing").normal(size=(4, 3))
    matrices = unpack(packed_outer(vectors))
    np.testing.assert_allclose(matrices, vectors[:, :, None] * vectors[:, None, :])
    np.testing.assert_array_equal(pack(matrices), packed_outer(vectors))


def test_a_product_by_blocks_of_columns_is_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors_module, "_COLUMN_BYTES", 3 * 8)
    random = generator(0, "blocks")
    left, right = sp.random_array((6, 5), density=0.4, rng=random, format="csr"), random.normal(size=(5, 8))
    np.testing.assert_array_equal(sparse_product(left, column_blocks(right)), left @ right)


def test_sums_in_single_precision_give_the_same_posterior() -> None:
    random = generator(0, "precision")
    pattern = sp.random_array((40, 30), density=0.5, rng=random, format="csr")
    pattern.data = np.arange(pattern.nnz)
    residuals, side, other = (
        random.normal(size=pattern.nnz),
        random_side(40, 3, "own"),
        random_side(30, 3, "far"),
    )
    solved = [
        side.solve(WeightedCells.of(pattern, residuals, np.ones(pattern.nnz, dtype=dtype)), other, 0.5)
        for dtype in (np.float32, np.float64)
    ]
    (single, single_misfit), (double, double_misfit) = solved
    np.testing.assert_allclose(single.means, double.means, rtol=0, atol=1e-6)
    np.testing.assert_allclose(single.covariances, double.covariances, rtol=0, atol=1e-6)
    assert single_misfit == pytest.approx(double_misfit, rel=1e-6)
    assert not np.array_equal(single.means, double.means)


def test_a_transformed_side_has_the_moments_of_the_transformed_factors() -> None:
    side = random_side(4, 3, "factors")
    matrix = generator(0, "matrix").normal(size=(2, 3))
    whole = np.zeros((3, 4))
    whole[0, 0], whole[1:, 1:] = 1.0, matrix
    turned = side.transformed(matrix)
    np.testing.assert_allclose(turned.means, side.means @ whole.T)
    np.testing.assert_allclose(unpack(turned.covariances), whole @ unpack(side.covariances) @ whole.T)
    np.testing.assert_allclose(turned.prior, whole @ side.prior @ whole.T)


def test_learned_priors_are_the_moments_of_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec.completion.matrix_factorization._ROWS", 3)
    side = random_side(8, 2, "learned")
    moments = (side.means[:, :, None] * side.means[:, None, :] + unpack(side.covariances)).mean(axis=0)
    np.testing.assert_allclose(side.second_moments(), moments)
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


def test_a_weighted_half_step_solves_the_weighted_normal_equations() -> None:
    cells, residuals, weights = problem()
    users, items = random_side(9, 2, "users"), random_side(7, 2, "items")
    items = Side(items.means, np.zeros_like(items.covariances), items.prior)
    solved, misfit = users.solve(WeightedCells.of(cells.by_user, residuals, weights), items)
    for user in range(9):
        mine = cells.users == user
        design = items.means[cells.items[mine]].copy()
        target = residuals[mine] - design[:, 0]
        design[:, 0] = 1.0
        gram = design.T @ (weights[mine, None] * design) + np.linalg.inv(users.prior)
        np.testing.assert_allclose(
            solved.means[user], np.linalg.solve(gram, design.T @ (weights[mine] * target))
        )
        np.testing.assert_allclose(unpack(solved.covariances)[user], np.linalg.inv(gram))
    squares = expected_squares(solved, items, cells, residuals)
    assert misfit == pytest.approx(weights @ squares)


def test_a_half_step_averages_over_what_is_uncertain_about_the_other_side() -> None:
    cells, residuals, weights = problem()
    users, items = random_side(9, 2, "users"), random_side(7, 2, "items")
    solved, misfit = users.solve(WeightedCells.of(cells.by_user, residuals, weights), items)
    # Moments of (effect, factors), with 1 in place of the effect.
    seconds = items.means[:, :, None] * items.means[:, None, :] + unpack(items.covariances)
    design, with_bias = items.means.copy(), seconds[:, 0].copy()
    design[:, 0], with_bias[:, 0] = 1.0, items.means[:, 0]
    grams = seconds.copy()
    grams[:, 0, :] = grams[:, :, 0] = design
    for user in range(9):
        mine = cells.users == user
        rated, own = cells.items[mine], weights[mine]
        gram = np.einsum("r,rij->ij", own, grams[rated]) + np.linalg.inv(users.prior)
        target = own @ (design[rated] * residuals[mine, None] - with_bias[rated])
        np.testing.assert_allclose(solved.means[user], np.linalg.solve(gram, target))
    assert misfit == pytest.approx(weights @ expected_squares(solved, items, cells, residuals))


def test_a_uniform_weight_is_an_inverse_noise_variance() -> None:
    cells, residuals, _ = problem()
    users, items = random_side(9, 2, "users"), random_side(7, 2, "items")
    ones = np.ones(residuals.size)
    plain, _ = users.solve(WeightedCells.of(cells.by_user, residuals, ones), items, 0.25)
    weighted, _ = users.solve(WeightedCells.of(cells.by_user, residuals, 4 * ones), items)
    np.testing.assert_allclose(plain.means, weighted.means)
    np.testing.assert_allclose(plain.covariances, weighted.covariances)


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


def test_blocks_cover_the_rows_in_order() -> None:
    assert map_blocks(lambda rows: (rows.start, rows.stop), 10, 4) == [(0, 4), (4, 8), (8, 10)]
    assert map_blocks(lambda rows: rows.start, 0, 4) == []


@pytest.mark.parametrize("kind", ["mf", "mog-mf", "mog-mf-variational"])
def test_results_do_not_depend_on_the_number_of_processors(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dprec.completion.matrix_factorization._ROWS", 4)
    monkeypatch.setattr("dprec.completion.factors.BLOCK", 4)
    monkeypatch.setattr("dprec.completion.matrix_factorization._CELL_BLOCK", 5)
    monkeypatch.setattr("dprec.completion.gradient_descent.BLOCK", 4)
    monkeypatch.setattr("dprec.completion.mixtures.BLOCK", 5)
    cells, _, _ = problem()
    predictions = []
    for processors in (1, 2, 3):
        monkeypatch.setattr(factors_module.os, "cpu_count", lambda processors=processors: processors)
        completed = COMPLETIONS[kind](rank=2, iterations=8).fit(cells, seed=0)
        predictions.append(completed.predict(cells.users, cells.items))
    np.testing.assert_array_equal(predictions[0], predictions[1])
    np.testing.assert_array_equal(predictions[0], predictions[2])


def test_failures_name_the_iteration() -> None:
    with (
        pytest.raises(RunError, match="MF failed in iteration 7: Singular matrix"),
        naming_iteration("MF", 7),
    ):
        np.linalg.inv(np.zeros((2, 2)))


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1)])
def test_one_user_or_one_item_has_no_factors(shape: tuple[int, int]) -> None:
    with pytest.raises(
        InputError, match=f"ratings: users x items = {shape[0]} x {shape[1]}; accepted: at least 2"
    ):
        check_rank(1, shape)
    with refused_at("rank"):
        check_rank(2, (2, 9))
