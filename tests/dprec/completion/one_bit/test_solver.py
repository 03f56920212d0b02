"""The solver reaches the optimum, by its own test and by a bound on what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.completion import Link, SignLikelihood
from dprec.completion.one_bit.completion import fit_biases
from dprec.completion.one_bit.projections import BoundedNuclearBall, NuclearBall
from dprec.completion.one_bit.solver import Gaussian, Logistic, minimise, minimise_bounded
from dprec.randomness import generator

LINKS: list[Link] = [Logistic(), Gaussian(0.3)]
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
    domain = (
        BoundedNuclearBall(rows, columns, shape, size, 1.0)
        if bounded
        else NuclearBall(rows, columns, shape, size / 2)
    )
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
    ball = BoundedNuclearBall(rows, columns, (24, 24), 8.0, 0.6)
    slow = minimise(likelihood, ball, iterations=100, tolerance=1e-4)
    fast = minimise_bounded(likelihood, ball, iterations=500, tolerance=1e-4)
    assert (slow.reason, fast.reason) == ("optimal", "optimal")
    gained = slow.objectives[0] - slow.objective
    assert fast.objective == pytest.approx(slow.objective, abs=1e-4 * gained)
    assert np.linalg.norm(fast.point - slow.point) <= 0.02 * np.linalg.norm(slow.point)
    assert np.abs(fast.point).max() <= 0.6
    assert np.linalg.norm(fast.point, "nuc") == pytest.approx(8.0, rel=1e-4)
    assert np.linalg.norm(fast.point, "nuc") <= 8.0 * (1 + 1e-12)


def test_it_stops_at_the_iterations_it_is_given() -> None:
    link = Logistic()
    rows, columns, signs = davenport(link, 40)
    ball = NuclearBall(rows, columns, (40, 40), 20.0)
    seen: list[tuple[str, int, int]] = []
    found = minimise(
        SignLikelihood.of_signs(link, signs),
        ball,
        iterations=3,
        tolerance=1e-9,
        progress=lambda *step: seen.append(step),
    )
    assert (found.reason, found.iterations) == ("iterations", 3)
    assert seen == [("completing", done, 3) for done in (1, 2, 3)]


def test_the_best_iterate_is_kept() -> None:
    link = Gaussian(0.3)
    rows, columns, signs = davenport(link, 40)
    likelihood = SignLikelihood.of_signs(link, signs)
    for iterations in (1, 2, 4, 7, 11):
        ball = NuclearBall(rows, columns, (40, 40), 20.0)
        found = minimise(likelihood, ball, iterations=iterations, tolerance=1e-12)
        assert likelihood.value_and_slopes(ball.cells(found.point))[0] == found.objective
        assert found.objective == min(found.objectives)


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
