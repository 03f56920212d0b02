"""Stochastic gradient descent on the factors of users and items, one rating after the other."""

from dprec.arrays import Floats, Int32s, Ints
from dprec.kernels.compilation import Table, Written, compiled


@compiled
def order_by_symbol(order: Written[Ints], begins: Written[Ints], symbols: Ints) -> None:
    """Write the places of all cells by their symbols, and those of one symbol ascending.

    ``begins``: a 0 for each symbol, and one more.
    """
    for cell in range(symbols.size):
        begins[symbols[cell] + 1] += 1
    for symbol in range(1, begins.size):
        begins[symbol] += begins[symbol - 1]
    for cell in range(symbols.size):
        order[begins[symbols[cell]]] = cell
        begins[symbols[cell]] += 1


@compiled
def descend(
    of_users: Written[Table[Floats]],
    of_items: Written[Table[Floats]],
    order: Ints,
    users: Int32s,
    items: Int32s,
    values: Floats,
    step: float,
    penalty: float,
) -> None:
    """Step u_u and v_i down the gradient of each rating's loss in turn."""
    for place in range(order.size):
        cell = order[place]
        u, i = users[cell], items[cell]
        product = 0.0
        for k in range(of_users.shape[1]):
            product += of_users[u, k] * of_items[i, k]
        error = values[cell] - product
        for k in range(of_users.shape[1]):
            left, right = of_users[u, k], of_items[i, k]
            of_users[u, k] = left + step * (error * right - penalty * left)
            of_items[i, k] = right + step * (error * left - penalty * right)


@compiled
def losses(
    lost: Written[Floats],
    of_users: Table[Floats],
    of_items: Table[Floats],
    users: Int32s,
    items: Int32s,
    values: Floats,
    penalty: float,
) -> None:
    """Write (r_ui - u_u . v_i)^2 + lambda (|u_u|^2 + |v_i|^2) of every rating."""
    for cell in range(values.size):
        u, i = users[cell], items[cell]
        product, left, right = 0.0, 0.0, 0.0
        for k in range(of_users.shape[1]):
            product += of_users[u, k] * of_items[i, k]
            left += of_users[u, k] * of_users[u, k]
            right += of_items[i, k] * of_items[i, k]
        error = values[cell] - product
        lost[cell] = error * error + penalty * (left + right)
