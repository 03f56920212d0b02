"""The solver reaches the optimum, by its own test and by a bound on what is left."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from dprec.completion import Link, SignLikelihood
from dprec.completion.one_bit.completion import fit_biases
from dprec.completion.one_bit.projections import (
    Domain,
    NuclearProjection,
    project_bounded,
)
from dprec.completion.one_bit.solver import minimise, minimise_bounded
from dprec.randomness import generator

LINKS: list[Link] = [Link(), Link(0.3)]
links = pytest.mark.parametrize("link", LINKS, ids=str)


def davenport(
    link: Link, size: int = 120, share: float = 0.4
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Draw signs as Davenport et al., section 4.1, do: a product of uniform factors, largest entry 1."""
    random = generator(3, "davenport")
    matrix = random.uniform(-0.5, 0.5, (size, 1)) @ random.uniform(-0.5, 0.5, (1, size))
    matrix /= np.abs(matrix).max()
    rows, columns = (each.astype(np.int32) for each in np.nonzero(random.random(matrix.shape) < share))
    signs = np.where(random.random(rows.size) < link.probability(matrix[rows, columns]), 1.0, -1.0)
    return rows, columns, signs


@links
@pytest.mark.parametrize("flips", [(0.0, 0.0), (0.2, 0.2), (0.1, 0.4)])
def test_slopes_are_the_derivative_of_the_value(link: Link, flips: tuple[float, float]) -> None:
    random = generator(0, "slopes")
    signs, entries, linear = np.array([1.0, -1.0] * 4), random.normal(size=8), random.normal(size=8)
    given_plus = np.where(signs > 0, 1 - flips[0], flips[0])
    given_minus = np.where(signs > 0, flips[1], 1 - flips[1])
    likelihood = SignLikelihood(link, given_plus, given_minus, linear)
    chances = link.probability(entries) * given_plus + link.probability(-entries) * given_minus
    value, slopes = likelihood.value_and_slopes(entries)
    assert value == pytest.approx(-np.log(chances).sum() + linear @ entries)
    for cell in range(8):
        ahead, behind = entries.copy(), entries.copy()
        ahead[cell] += 1e-6
        behind[cell] -= 1e-6
        rise = likelihood.value_and_slopes(ahead)[0] - likelihood.value_and_slopes(behind)[0]
        assert slopes[cell] == pytest.approx(rise / 2e-6, abs=1e-6)
    shifted, _ = likelihood.beyond(entries).value_and_slopes(np.zeros(8))
    assert shifted == pytest.approx(value)


@links
@pytest.mark.parametrize("bounded", [False, True])
def test_from_zero_the_objective_comes_within_1e_4_of_a_long_run(link: Link, bounded: bool) -> None:
    size = 30 if bounded else 60
    rows, columns, signs = davenport(link, size)
    likelihood = SignLikelihood.of_signs(link, signs)
    shape = (size, size)
    domain = Domain(rows, columns, shape, size, 1.0) if bounded else Domain(rows, columns, shape, size / 2)
    solve: Any = minimise_bounded if bounded else minimise
    found = solve(likelihood, domain, iterations=500, tolerance=1e-3)
    longer = solve(likelihood, domain, iterations=500, tolerance=1e-6)
    assert found.reason == "optimal"
    assert longer.objective <= found.objective <= longer.objective * (1 + 1e-4)
    assert found.objective < found.objectives[0]
    assert found.iterations == len(found.objectives) - 1 < longer.iterations
    if not bounded:
        # No point of the ball can be lower than the tangent at this one.
        _, slopes = likelihood.value_and_slopes(domain.cells(longer.point))  # type: ignore[arg-type]
        gradient = np.zeros(shape)
        gradient[rows, columns] = slopes
        tangent = (slopes * domain.cells(longer.point)).sum()  # type: ignore[arg-type]
        gap = tangent + domain.radius * np.linalg.norm(gradient, 2)
        assert 0 <= gap <= 1e-3 * longer.objective


@links
@pytest.mark.parametrize("flips", [0.0, 0.3])
def test_alternating_directions_reach_what_projected_gradients_reach(link: Link, flips: float) -> None:
    """Both constraints hold exactly, and bind; a linear term stands for the noise of the objective."""
    rows, columns, signs = davenport(link, 24, 0.6)
    linear = generator(1, "linear").laplace(0.0, 0.3, signs.size)
    given_plus = np.where(signs > 0, 1 - flips, flips)
    likelihood = SignLikelihood(link, given_plus, 1 - given_plus, linear)
    ball = Domain(rows, columns, (24, 24), 8.0, 0.6)
    slow = minimise(likelihood, ball, iterations=100, tolerance=1e-4)
    fast = minimise_bounded(likelihood, ball, iterations=500, tolerance=1e-4)
    assert (slow.reason, fast.reason) == ("optimal", "optimal")
    gained = slow.objectives[0] - slow.objective
    assert fast.objective == pytest.approx(slow.objective, abs=1e-4 * gained)
    assert np.linalg.norm(fast.point - slow.point) <= 0.02 * np.linalg.norm(slow.point)
    assert np.abs(fast.point).max() <= 0.6
    assert np.linalg.norm(fast.point, "nuc") == pytest.approx(8.0, rel=1e-4)
    assert np.linalg.norm(fast.point, "nuc") <= 8.0 * (1 + 1e-12)


@links
@pytest.mark.parametrize("flips", [0.0, 0.3])
def test_biases_are_where_their_objective_is_flat(link: Link, flips: float) -> None:
    rows, columns, signs = davenport(link)
    likelihood = SignLikelihood(
        link, np.where(signs > 0, 1 - flips, flips), np.where(signs > 0, flips, 1 - flips)
    )
    biases = fit_biases(likelihood, rows, columns, (120, 121), 2.0)
    value, slopes = likelihood.value_and_slopes(biases.at(rows, columns))
    by_row = np.bincount(rows, weights=slopes, minlength=120) + 2.0 * biases.users
    by_column = np.bincount(columns, weights=slopes, minlength=121) + 2.0 * biases.items
    assert value + biases.penalty(2.0) < likelihood.value_and_slopes(np.zeros(rows.size))[0]
    assert max(abs(slopes.sum()) / rows.size, *np.abs(by_row) / 48, *np.abs(by_column) / 48) < 0.02
    assert biases.items[120] == 0.0


Matrix = NDArray[np.float64]


def nuclear(matrix: Matrix) -> float:
    return float(np.linalg.norm(matrix, "nuc"))


def brute_force(matrix: Matrix, radius: float, seed: int) -> Matrix:
    """Minimise ||A B^T - V||^2 with (||A||^2 + ||B||^2) / 2 <= radius, whose products are the ball."""
    rows, columns = matrix.shape
    rank = min(rows, columns)
    start = generator(seed, "brute force").normal(size=(rows + columns) * rank) * 0.3

    def split(x: Matrix) -> tuple[Matrix, Matrix]:
        return x[: rows * rank].reshape(rows, rank), x[rows * rank :].reshape(columns, rank)

    def loss(x: Matrix) -> tuple[float, Matrix]:
        left, right = split(x)
        miss = left @ right.T - matrix
        return float((miss**2).sum()) / 2, np.concatenate([(miss @ right).ravel(), (miss.T @ left).ravel()])

    budget = {"type": "ineq", "fun": lambda x: radius - x @ x / 2, "jac": lambda x: -x}
    found = minimize(
        loss, start, jac=True, method="SLSQP", constraints=[budget], options={"maxiter": 2000, "ftol": 1e-16}
    )
    left, right = split(found.x)
    return left @ right.T


@pytest.mark.parametrize("seed", range(12))
def test_the_nuclear_projection_is_the_brute_force_solution(seed: int) -> None:
    random = generator(seed, "matrices")
    shape = [(3, 3), (4, 2), (2, 4), (3, 4)][seed % 4]
    matrix = random.normal(size=shape)
    radius = nuclear(matrix) * random.uniform(0.1, 0.9)
    projected = NuclearProjection(radius)(matrix)
    np.testing.assert_allclose(projected, brute_force(matrix, radius, seed), atol=1e-6)
    # The normal cone says it without an algorithm: no point of the ball lies further that way.
    left_over = matrix - projected
    assert nuclear(projected) <= radius * (1 + 1e-12)
    assert radius * np.linalg.norm(left_over, 2) - (left_over * projected).sum() <= 1e-12


@pytest.mark.parametrize("shape", [(80, 120), (120, 80)])
def test_a_projection_from_the_last_singular_vectors_comes_near_the_closest_point(
    shape: tuple[int, int],
) -> None:
    random = generator(7, "nearby")
    matrix, further = random.normal(size=shape), random.normal(size=shape)
    matrix += 3 * random.normal(size=(shape[0], 4)) @ random.normal(size=(4, shape[1]))
    project = NuclearProjection(nuclear(matrix) / 3)
    closest = project(matrix)
    np.testing.assert_array_equal(closest, NuclearProjection(project.radius)(matrix))
    for _ in range(12):
        nearby = project(matrix + 1e-3 * further)
        assert nuclear(nearby) <= project.radius * (1 + 1e-12)
    expected = NuclearProjection(project.radius)(matrix + 1e-3 * further)
    assert 0 < np.linalg.norm(nearby - expected) <= 1e-4 * np.linalg.norm(expected)
    np.testing.assert_array_equal(project.whole(matrix + 1e-3 * further), expected)
    # Vectors of too few directions, or of others, are of no use: the whole matrix is decomposed.
    project.right_vectors = random.normal(size=(shape[1], 3))
    np.testing.assert_array_equal(project(matrix), closest)


def dykstra(matrix: Matrix, radius: float, bound: float, steps: int) -> Matrix:
    """Project onto the intersection by another algorithm (Boyle and Dykstra, 1986)."""
    point, first, second = matrix.copy(), np.zeros_like(matrix), np.zeros_like(matrix)
    for _ in range(steps):
        inside = NuclearProjection(radius)(point + first)
        first += point - inside
        point = np.clip(inside + second, -bound, bound)
        second += inside - point
    return point


@pytest.mark.parametrize("seed", range(3))
def test_the_intersection_meets_both_constraints_and_is_the_closest_point(seed: int) -> None:
    random = generator(seed, "intersection")
    matrix = 3 * np.outer(random.normal(size=12), random.normal(size=9)) + random.normal(size=(12, 9))
    bound, radius = 1.0, float(np.sqrt(12 * 9))
    projected = project_bounded(matrix, radius, bound)
    assert nuclear(projected) <= radius * (1 + 1e-9)
    assert np.abs(projected).max() <= bound * (1 + 1e-9)
    np.testing.assert_allclose(projected, dykstra(matrix, radius, bound, 4000), atol=1e-3)


def derivative(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (values[2:] - values[:-2]) / (x[2:] - x[:-2])


@links
def test_derivatives_are_those_of_the_logarithm(link: Link) -> None:
    x = np.linspace(-3, 3, 20001)
    np.testing.assert_allclose(link.hazard(x)[1:-1], derivative(link.log_probabilities(x)[0], x), atol=1e-5)
    np.testing.assert_allclose(link.curvature(x)[1:-1], -derivative(link.hazard(x), x), atol=1e-4)
    np.testing.assert_allclose(link.density(x)[1:-1], derivative(link.probability(x), x), atol=1e-5)
    assert link.curvature(x).max() <= link.largest_curvature * (1 + 1e-12)


@links
def test_the_tails_keep_their_digits(link: Link) -> None:
    sigma = link.sigma or 1.0
    far = np.array([-1e6, -1e3, -50, 50, 1e3, 1e6]) * sigma
    with np.errstate(over="ignore"):
        for values in (*link.log_probabilities(far), link.hazard(far), link.curvature(far)):
            assert np.all(np.isfinite(values))
    if link.sigma is None:
        np.testing.assert_allclose(link.log_probabilities(far[:3])[0], far[:3], rtol=1e-12)
        np.testing.assert_allclose(link.hazard(far[:3]), 1, rtol=1e-12)
    else:
        # log Phi(-t) ~ -t^2 / 2 - log(t sqrt(2 pi)), and the hazard ~ t, for large t.
        t = -far[:2] / sigma
        np.testing.assert_allclose(
            link.log_probabilities(far[:2])[0], -(t**2) / 2 - np.log(t * np.sqrt(2 * np.pi)), rtol=1e-9
        )
        np.testing.assert_allclose(link.hazard(far[:2]), t / sigma, rtol=1e-5)
