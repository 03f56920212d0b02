"""Loops over rated cells for effects and factors on a latent rating."""

from dprec.arrays import Floats, Int32s, Ints
from dprec.kernels.compilation import Table, Written, compiled


@compiled
def inner_products(
    products: Written[Floats], users: Int32s, items: Int32s, of_users: Table[Floats], of_items: Table[Floats]
) -> None:
    """Write the inner product of the user's and the item's vectors for every cell."""
    for cell in range(users.size):
        u, i = users[cell], items[cell]
        product = 0.0
        for k in range(of_users.shape[1]):
            product += of_users[u, k] * of_items[i, k]
        products[cell] = product


@compiled
def row_products(products: Written[Table[Floats]], of_users: Table[Floats], by_factor: Table[Floats]) -> None:
    """Write the inner products of every user and item, whose vectors are columns; see `inner_products`."""
    for user in range(products.shape[0]):
        products[user, :] = 0.0
        for k in range(by_factor.shape[0]):
            for item in range(products.shape[1]):
                products[user, item] += of_users[user, k] * by_factor[k, item]


@compiled
def look_up(
    slopes: Written[Floats],
    information: Written[Floats],
    latent: Floats,
    columns: Ints,
    channels: Ints,
    slope_table: Table[Floats],
    information_table: Table[Floats],
    reach: float,
) -> None:
    """Read each symbol's slope and its channel's information at latent ratings, between points of a grid."""
    points = slope_table.shape[0]
    per_unit, last = (points - 1) / (2 * reach), points - 1.001
    for cell in range(latent.size):
        place = (latent[cell] + reach) * per_unit
        if not place > 0.0:  # nor is what is no number
            place = 0.0
        elif place > last:
            place = last
        below = int(place)
        share = place - below
        at, above = slope_table[below, columns[cell]], slope_table[below + 1, columns[cell]]
        slopes[cell] = at + share * (above - at)
        at, above = information_table[below, channels[cell]], information_table[below + 1, channels[cell]]
        information[cell] = at + share * (above - at)


@compiled
def normal_equations(
    precision: Written[Table[Floats]],
    target: Written[Table[Floats]],
    owners: Int32s,
    others: Int32s,
    means: Table[Floats],
    vectors: Table[Floats],
    moments: Table[Floats],
    slopes: Floats,
    information: Floats,
) -> None:
    """Add what each report says of the vector x of its owner, by which another's y is multiplied.

    Fisher scoring: the weight is the report's information, the pseudo-observation x . y + slope / weight.
    ``moments``: the second moments of every y, flat; ``precision`` is so too.
    """
    for cell in range(owners.size):
        o, i = owners[cell], others[cell]
        product = 0.0
        for k in range(target.shape[1]):
            product += means[o, k] * vectors[i, k]
        score = information[cell] * product + slopes[cell]
        for k in range(target.shape[1]):
            target[o, k] += score * vectors[i, k]
        for k in range(precision.shape[1]):
            precision[o, k] += information[cell] * moments[i, k]


@compiled
def add_weighted(
    sums: Written[Table[Floats]], rows: Ints, items: Int32s, weights: Floats, vectors: Table[Floats]
) -> None:
    """Add weight times the item's vector to the sum of each cell's row."""
    for cell in range(rows.size):
        for k in range(sums.shape[1]):
            sums[rows[cell], k] += weights[cell] * vectors[items[cell], k]
