from typing import Any

import numpy as np
import pytest

from dprec.kernels.descent import descend, losses, order_by_symbol
from tests.interpreted import twin

USERS, ITEMS, RANK, CELLS = 5, 4, 3, 12


def ratings() -> tuple[Any, ...]:
    random = np.random.default_rng(0)
    users = np.sort(random.integers(0, USERS, CELLS)).astype(np.int32)
    return users, random.integers(0, ITEMS, CELLS).astype(np.int32), random.normal(size=CELLS)


def test_cells_are_ordered_by_symbol_and_stay_in_order_within_one() -> None:
    symbols = np.random.default_rng(1).integers(0, 7, 50)
    for kernel in (order_by_symbol, twin(order_by_symbol)):
        order = np.empty(50, dtype=np.int64)
        kernel(order, np.zeros(8, dtype=np.int64), symbols)
        assert order.tolist() == np.argsort(symbols, kind="stable").tolist()


def test_a_step_follows_the_gradient_of_each_rating_in_turn() -> None:
    for kernel in (descend, twin(descend)):
        users, items = np.array([[2.0]]), np.array([[3.0], [5.0]])
        cells = np.zeros(2, dtype=np.int32), np.array([1, 0], dtype=np.int32), np.ones(2)
        kernel(users, items, np.array([1, 0]), *cells, 0.5, 0.25)
        # First the item at 3, with an error of -5; then the other, with an error of 29.75.
        assert users.tolist() == [[-5.75 + 0.5 * (29.75 * 5 + 0.25 * 5.75)]]
        assert items.tolist() == [[3 + 0.5 * (-10 - 0.75)], [5 + 0.5 * (29.75 * -5.75 - 1.25)]]


@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_compiled_and_interpreted_steps_have_the_same_bits(penalty: float) -> None:
    cells, random = ratings(), np.random.default_rng(2)
    start = random.normal(size=(USERS, RANK)), random.normal(size=(ITEMS, RANK))
    order, results = random.permutation(CELLS), []
    for run, tell in ((descend, losses), (twin(descend), twin(losses))):
        users, items = start[0].copy(), start[1].copy()
        run(users, items, order, *cells, 0.05, penalty)
        lost = np.empty(CELLS)
        tell(lost, users, items, *cells, penalty)
        results.append((users.tolist(), items.tolist(), lost.tolist()))
    assert results[0] == results[1]
