from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dprec.kernels import compilation
from dprec.kernels.effects import add_weighted, inner_products, look_up, normal_equations

USERS, ITEMS, CELLS = 5, 4, 13
RANDOM = np.random.default_rng(0)
OWNERS, OTHERS = (RANDOM.integers(0, size, CELLS).astype(np.int32) for size in (USERS, ITEMS))
SLOPES, INFORMATION = RANDOM.normal(size=(2, CELLS))


def interpreted(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return compilation._interpreted(getattr(kernel, "py_func", kernel))


def written(kernel: Callable[..., Any], shapes: list[tuple[int, ...]], *given: Any) -> list[np.ndarray]:
    """Return what a kernel adds to zeros, the same compiled and interpreted."""
    compiled, plain = ([np.zeros(shape) for shape in shapes] for _ in range(2))
    kernel(*compiled, *given)
    interpreted(kernel)(*plain, *given)
    assert [each.tolist() for each in compiled] == [each.tolist() for each in plain]
    return compiled


@pytest.mark.parametrize("dimensions", [0, 1, 3])
def test_a_product_of_every_cell(dimensions: int) -> None:
    left, right = RANDOM.normal(size=(USERS, dimensions)), RANDOM.normal(size=(ITEMS, dimensions))
    (products,) = written(inner_products, [(CELLS,)], OWNERS, OTHERS, left, right)
    np.testing.assert_allclose(products, (left[OWNERS] * right[OTHERS]).sum(axis=1), rtol=1e-13)


def test_tables_are_read_between_points_and_their_ends_count_beyond() -> None:
    grid = np.linspace(-8, 8, 401)
    tables = np.column_stack([grid, 2 * grid + 1]), np.column_stack([grid**0, 3 - grid])
    latent = np.array([-1.23, 0.0, 7.99, 1e9, -1e300, np.nan])
    columns, channels = np.array([0, 1, 1, 0, 1, 0]), np.array([1, 0, 1, 0, 1, 1])
    slopes, information = written(look_up, [(6,), (6,)], latent, columns, channels, *tables, 8.0)
    # The last place is a thousandth of a step before the end of the grid.
    np.testing.assert_allclose(slopes, [-1.23, 1, 16.98, 7.99996, -15, -8], atol=1e-9)
    np.testing.assert_allclose(information, [4.23, 1, -4.99, 1, 11, 11], atol=1e-9)


@pytest.mark.parametrize("dimensions", [0, 1, 3])
def test_normal_equations_are_those_of_a_sum_over_the_reports(dimensions: int) -> None:
    own, vectors = RANDOM.normal(size=(USERS, dimensions)), RANDOM.normal(size=(ITEMS, dimensions))
    moments = RANDOM.normal(size=(ITEMS, dimensions**2))
    shapes = [(USERS, dimensions**2), (USERS, dimensions)]
    given = OWNERS, OTHERS, own, vectors, moments, SLOPES, INFORMATION
    precision, target = written(normal_equations, shapes, *given)
    expected = [np.zeros(shape) for shape in shapes]
    np.add.at(expected[0], OWNERS, INFORMATION[:, None] * moments[OTHERS])
    scores = INFORMATION * (own[OWNERS] * vectors[OTHERS]).sum(axis=1) + SLOPES
    np.add.at(expected[1], OWNERS, scores[:, None] * vectors[OTHERS])
    np.testing.assert_allclose(precision, expected[0], rtol=1e-12)
    np.testing.assert_allclose(target, expected[1], rtol=1e-12)


def test_weighted_vectors_add_up_by_row() -> None:
    rows, vectors = RANDOM.integers(0, 3, CELLS), RANDOM.normal(size=(ITEMS, 2))
    (sums,) = written(add_weighted, [(3, 2)], rows, OTHERS, SLOPES, vectors)
    expected = np.zeros((3, 2))
    np.add.at(expected, rows, SLOPES[:, None] * vectors[OTHERS])
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
