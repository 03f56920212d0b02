"""The graph of masks: neighbours of each other, and large enough by the probabilities that it states."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from dprec.errors import SettingError
from dprec.secure_aggregation import MaskGraph, graph_size
from dprec.secure_aggregation.graph import FAILURE, SECURITY


@pytest.mark.parametrize(("users", "degree"), [(9, 4), (9, 8), (8, 7), (50, 10)])
def test_neighbours_are_neighbours_of_each_other(users: int, degree: int) -> None:
    graph = MaskGraph.of(np.random.default_rng(1).permutation(users), degree)
    assert graph.neighbours.shape == (users, degree)
    for user, neighbours in enumerate(graph.neighbours):
        assert user not in neighbours
        assert len(set(neighbours.tolist())) == degree
        for column, neighbour in enumerate(neighbours):
            assert graph.neighbours[neighbour, graph.reverse[column]] == user


@pytest.mark.parametrize(
    ("users", "dropouts", "colluders"), [(60, 0.1, 3), (1000, 0.1, 10), (1000, 0.3, 10), (6040, 0.2, 0)]
)
def test_the_degree_keeps_what_it_promises(users: int, dropouts: float, colluders: int) -> None:
    size = graph_size(users, dropouts, colluders)
    absent = int(dropouts * users)
    colluding = hypergeom.sf(2 * size.threshold - size.degree - 1, users - 1, colluders, size.degree)
    answering = hypergeom.cdf(size.threshold - 1, users - 1, users - 1 - absent, size.degree)
    gap = hypergeom.sf(size.degree // 2 - 1, users, absent + colluders, size.degree // 2)
    assert users * answering <= FAILURE
    assert users * (colluding + gap) <= SECURITY


def test_more_to_bear_needs_more_neighbours() -> None:
    degrees = [graph_size(1000, *settings).degree for settings in ((0.0, 0), (0.1, 10), (0.3, 10), (0.3, 50))]
    assert degrees == sorted(set(degrees))


@pytest.mark.parametrize(
    ("users", "dropouts", "colluders"), [(2, 0.0, 0), (10, 0.5, 0), (20, 0.1, 17), (1000, 0.45, 200)]
)
def test_too_few_users_are_refused_in_one_line(users: int, dropouts: float, colluders: int) -> None:
    with pytest.raises(SettingError, match=f"{users} users, of whom .* collude; accepted: users - 1 >"):
        graph_size(users, dropouts, colluders)
