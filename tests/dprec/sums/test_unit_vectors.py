import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.kernels import draws
from dprec.randomness import DRAWS
from dprec.sums.unit_vectors import VectorReports, candidate_keys, normals
from tests.interpreted import interpreted

EPSILONS = st.floats(0.01, 12.0)


def words_of(ranks_draws: list[int]) -> np.ndarray:
    return np.array([draw << 4 for draw in ranks_draws], dtype=np.uint64)


@settings(deadline=None)
@given(epsilon=EPSILONS)
def test_the_loss_is_exact_and_all_that_was_asked_for(epsilon: float) -> None:
    reports = VectorReports.of(epsilon)
    assert reports.epsilon <= epsilon
    assert reports.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert 1 <= reports.preferred <= reports.candidates / 2
    assert reports.candidates == 2**reports.bits


@settings(deadline=None)
@given(epsilon=EPSILONS)
def test_every_rank_has_the_draws_that_it_should(epsilon: float) -> None:
    """The first and last draw of each rank, counted: probabilities are these integers."""
    reports = VectorReports.of(epsilon)
    others = reports.candidates - reports.preferred
    edges = [rank * reports.fewest for rank in range(others + 1)]
    edges += [min(edges[-1] + rank * reports.most, DRAWS) for rank in range(1, reports.preferred + 1)]
    assert edges[-1] == DRAWS
    counts = np.diff(np.array(edges, dtype=object))
    assert max(counts) == reports.most
    assert min(counts) == reports.fewest
    expected = [*range(reports.preferred, reports.candidates), *range(reports.preferred)]
    assert reports._ranks(words_of(edges[:-1])).tolist() == expected
    assert reports._ranks(words_of([edge - 1 for edge in edges[1:]])).tolist() == expected


def test_the_noise_is_near_the_best_possible_in_high_dimension() -> None:
    """The limit of many candidates, 2.522 at 1, is the least noise of unit vectors in high dimension."""
    for epsilon, limit in ((1.0, 2.522), (2.0, 1.271), (4.0, 0.660), (8.0, 0.365)):
        deviation = VectorReports.of(epsilon).deviation
        assert limit * 0.999 < deviation < limit * 1.012


def test_sums_are_unbiased_and_as_noisy_as_stated() -> None:
    users, items = 30_000, 43
    reports = VectorReports.of(2.0)
    vector = np.zeros(items)
    vector[[0, 7, 8, 30]] = 0.1, 0.7, 0.5, 0.5
    cells = np.flatnonzero(vector)
    keys = candidate_keys(np.arange(users, dtype=np.uint64))
    chosen = reports.encode(
        np.arange(users + 1) * cells.size,
        np.tile(cells, users),
        np.tile(vector[cells], users),
        np.random.default_rng(5).integers(0, 2**64, users, dtype=np.uint64),
        keys,
    )
    mean = reports.estimate(reports.total(chosen, keys, items)) / users
    error = (mean - vector) * np.sqrt(users) / reports.deviation
    # 43 cells, each normal: one beyond 6 has a probability of 1e-7.
    assert np.abs(error).max() < 6
    # A chi-square of 39 degrees of freedom: outside of these with a probability of 1e-7.
    assert 9 < (np.delete(error, cells) ** 2).sum() < 105
    halves = [reports.total(chosen[part], keys[:, part], items) for part in (slice(9), slice(9, None))]
    assert np.array_equal(halves[0] + halves[1], reports.total(chosen, keys, items))


def test_parts_and_uncompiled_loops_give_the_same_reports() -> None:
    reports = VectorReports.of(1.0)
    indptr, cells = np.array([0, 2, 2, 5]), np.array([0, 9, 8, 15, 16])
    values = np.array([0.6, 0.8, 0.48, 0.64, 0.6])
    keys, secret = (
        candidate_keys(np.array([4, 5, 6], dtype=np.uint64)),
        np.array([1, 2**63, 2**64 - 1], dtype=np.uint64),
    )
    chosen = reports.encode(indptr, cells, values, secret, keys)
    for user in range(3):
        part = slice(indptr[user], indptr[user + 1])
        alone = reports.encode(
            np.array([0, part.stop - part.start]),
            cells[part],
            values[part],
            secret[user : user + 1],
            np.ascontiguousarray(keys[:, user : user + 1]),
        )
        assert alone[0] == chosen[user]
    module = interpreted("dprec.kernels.draws")
    products, again = np.zeros((2, 3, 16))
    draws.projections(keys, indptr, cells, values, normals(), products)
    module.projections(keys, indptr, cells, values, normals(), again)
    assert np.array_equal(products, again)
    sums, sums_again = np.zeros((2, 13), dtype=np.int64)
    draws.add_candidates(keys, chosen, normals(), sums)
    module.add_candidates(keys, chosen, normals(), sums_again)
    assert np.array_equal(sums, sums_again)
    assert products[1].tolist() == [0] * 16
