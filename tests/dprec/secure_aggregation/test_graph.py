"""Who shares masks with whom, the keys of streams, and vectors as they are sent."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import hypergeom

from dprec.errors import SettingError
from dprec.secure_aggregation import MaskGraph, graph_size, unpack_vector
from dprec.secure_aggregation.graph import FAILURE, SECURITY
from dprec.secure_aggregation.messages import SEALED_BYTES, MessageSizes
from dprec.secure_aggregation.noise import honest_shares
from dprec.secure_aggregation.streams import KEY_BYTES, derived_key, stream
from tests.paths import ROOT

SECRETS, PURPOSES, CONTEXTS = (b"one", b"other"), ("noise", "polynomials", ""), (b"", b"sum 1", b"sum 2")


def test_secret_purpose_and_context_each_change_a_key() -> None:
    """Two of 18 keys are the same by chance once in 10**74."""
    keys = {derived_key(*parts) for parts in product(SECRETS, PURPOSES, CONTEXTS)}
    assert len(keys) == len(SECRETS) * len(PURPOSES) * len(CONTEXTS)
    assert {len(key) for key in keys} == {KEY_BYTES}
    words = {stream(key, 1, np.dtype("<u8")).tolist()[0] for key in keys}
    assert len(words) == len(keys)


@pytest.mark.parametrize("data", [bytes(3), bytes(5), b"\x00\x00\x00\x01"])
def test_a_damaged_vector_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="masked vector"):
        unpack_vector(data, 2, 13)


@pytest.mark.parametrize(("users", "degree"), [(9, 4), (9, 8), (8, 7), (50, 10)])
def test_neighbours_are_neighbours_of_each_other(users: int, degree: int) -> None:
    graph = MaskGraph.of(np.random.default_rng(1).permutation(users), degree)
    assert graph.neighbours.shape == (users, degree)
    for user, neighbours in enumerate(graph.neighbours):
        assert user not in neighbours
        assert len(set(neighbours.tolist())) == degree
        for column, neighbour in enumerate(neighbours):
            assert graph.neighbours[neighbour, graph.reverse[column]] == user
    order = np.random.default_rng(1).permutation(users)
    alone = [MaskGraph.neighbours_of(user, order, degree) for user in range(users)]
    np.testing.assert_array_equal(alone, graph.neighbours)


@pytest.mark.parametrize(
    ("users", "dropouts", "colluders"),
    [
        (60, 0.1, 3),
        (1000, 0.1, 10),
        (1000, 0.3, 10),
        (6040, 0.2, 0),
        # With everybody there, only a gap of colluders decides the degree.
        (10_000, 0.0, 5),
        (10_000, 0.0, 2500),
    ],
)
def test_the_degree_keeps_what_it_promises(users: int, dropouts: float, colluders: int) -> None:
    size = graph_size(users, dropouts, colluders)
    absent = int(dropouts * users)
    colluding = hypergeom.sf(2 * size.threshold - size.degree - 1, users - 1, colluders, size.degree)
    answering = hypergeom.cdf(size.threshold - 1, users - 1, users - 1 - absent, size.degree)
    gap = hypergeom.sf(size.degree // 2 - 1, users, absent + colluders, size.degree // 2)
    assert users * answering <= FAILURE
    assert users * (colluding + gap) <= SECURITY


@pytest.mark.parametrize(
    ("users", "dropouts", "colluders"), [(2, 0.0, 0), (10, 0.5, 0), (20, 0.1, 17), (1000, 0.45, 200)]
)
def test_too_few_users_are_refused_in_one_line(users: int, dropouts: float, colluders: int) -> None:
    with pytest.raises(SettingError, match=f"{users} users, of whom .* collude; accepted: users - 1 >"):
        graph_size(users, dropouts, colluders)


def test_the_price_of_colluders_is_as_documented() -> None:
    text = " ".join((ROOT / "docs" / "whole-profiles.md").read_text(encoding="utf-8").split())
    sizes, shares = {}, {}
    for colluders in (5, 1000, 20_000):
        sizes[colluders] = MessageSizes(graph_size(200_000, 0.1, colluders).degree, 0, 1)
        shares[colluders] = honest_shares(200_000, 0.1, colluders)
    few, some, many = (size.degree for size in sizes.values())
    variance = shares[5] / shares[20_000]
    up, down = (
        (sum(getattr(sizes[20_000], way)) - sum(getattr(sizes[5], way))) / 1000
        for way in ("uplink", "downlink")
    )
    assert (
        f"5 colluders take {few} neighbours, and {shares[5]:,} shares of noise count; 1,000 take {some}, and "
        f"{shares[1000]:,} count; 20,000 take {many}, and {shares[20_000]:,} count: {variance - 1:.1%} more "
        f"variance, so {variance**0.5 - 1:.0%} more noise, and {many - few} more encrypted shares of "
        f"{SEALED_BYTES} bytes each way; with keys and revealed shares, {up:.1f} kB more up and {down:.0f} "
        "kB down."
    ).replace("%", " %") in text
