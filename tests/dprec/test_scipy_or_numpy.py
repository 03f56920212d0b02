"""Without SciPy, sparse rows add up to the same bits, and predictions agree but for rounding."""

import numpy as np
import pytest

from dprec import scipy_or_numpy
from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats, Ints, offsets
from dprec.completion import Profiles
from dprec.completion.factors import solve_user_factors
from dprec.exchange import OneShotSetup
from dprec.mechanisms import FisherOptimal, RandomizedResponse
from dprec.scipy_or_numpy import (
    SparseRows,
    factor_and_solve,
    needing_scipy,
    normal_below,
    normal_quantiles,
    solve_by_factors,
    sparse_rows,
)
from dprec.secure_aggregation.masking import graph_size

USERS, ITEMS, RANK = 40, 60, 7
BUDGET = PrivacyBudget(epsilon=1.0, per="rating")


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(3)


def some_rows(random: np.random.Generator) -> tuple[Floats, Ints, Ints]:
    """Return entries of many magnitudes, whose sums depend on their order; the first row has none."""
    counts = random.integers(1, ITEMS, USERS)
    counts[0] = 0
    items = [np.sort(random.choice(ITEMS, count, replace=False)) for count in counts]
    values = random.standard_normal(counts.sum()) * 10.0 ** random.integers(-8, 8, counts.sum())
    return values, np.concatenate(items), offsets(counts)


def test_sparse_rows_have_the_bits_of_scipys(random: np.random.Generator) -> None:
    values, items, indptr = some_rows(random)
    whole, lean = sparse_rows(values, items, indptr, ITEMS), SparseRows(values, items, indptr, ITEMS)
    assert not isinstance(whole, SparseRows)
    dense, line = random.standard_normal((ITEMS, RANK)), random.standard_normal(ITEMS)
    chosen = np.sort(random.choice(ITEMS, 20, replace=False))
    assert lean.shape == whole.shape
    for expected, got in (
        (whole @ dense, lean @ dense),
        (whole @ line, lean @ line),
        (whole[5:9] @ dense, lean[5:9] @ dense),
        (whole[:, chosen] @ dense[chosen], lean[:, chosen] @ dense[chosen]),
    ):
        assert expected.tobytes() == np.asarray(got).tobytes()
    assert lean[:, chosen].shape == (USERS, 20)


def test_factors_of_users_have_the_same_bits(
    random: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, items, indptr = some_rows(random)
    profiles = Profiles(indptr, items.astype(np.int32), values, ITEMS)
    factors = random.standard_normal((ITEMS, RANK))
    expected = solve_user_factors(profiles, factors, 0.1)
    monkeypatch.setattr(scipy_or_numpy, "has_scipy", lambda: False)
    assert isinstance(profiles.to_sets(), SparseRows)
    assert solve_user_factors(profiles, factors, 0.1).tobytes() == expected.tobytes()


def test_the_normal_distribution_agrees_but_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.linspace(-30, 30, 2_001).reshape(3, -1)
    expected = normal_below(values)
    monkeypatch.setattr(scipy_or_numpy, "has_scipy", lambda: False)
    assert np.allclose(normal_below(values), expected, rtol=1e-12, atol=0)
    assert normal_below(np.array([-np.inf, 0.0, np.inf])).tolist() == [0.0, 0.5, 1.0]
    assert normal_below(np.zeros(0)).shape == (0,)


def test_quantiles_agree_but_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = np.concatenate([[0.0, 1e-300, 1e-9], np.linspace(0.001, 0.999, 500), [1 - 1e-9, 1.0]])
    expected = normal_quantiles(shares)
    monkeypatch.setattr(scipy_or_numpy, "has_scipy", lambda: False)
    assert np.allclose(normal_quantiles(shares), expected, rtol=1e-12, atol=1e-15)


def test_a_secure_sum_has_the_same_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = [(12, 0.17, 2), (100, 0.05, 10), (1_000, 0.1, 50), (5_000, 0.3, 500), (100_000, 0.05, 1_000)]
    expected = [graph_size.__wrapped__(*each) for each in sums]
    monkeypatch.setattr(scipy_or_numpy, "has_scipy", lambda: False)
    assert [graph_size.__wrapped__(*each) for each in sums] == expected


def test_systems_are_solved_alike(random: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    half = random.standard_normal((4, 9, 9))
    systems, sides = half @ half.swapaxes(1, 2) + np.eye(9), random.standard_normal((4, 9))
    rows = random.standard_normal((4, 5, 9))
    results = []
    for has_scipy in (True, False):
        monkeypatch.setattr(scipy_or_numpy, "has_scipy", lambda has_scipy=has_scipy: has_scipy)
        factors, solved, turned = systems.copy(), sides.copy(), rows.copy()
        factor_and_solve(factors, solved)
        solve_by_factors(factors, turned)
        assert np.allclose((systems @ solved[:, :, None])[:, :, 0], sides)
        assert np.allclose(turned @ np.triu(factors), rows)
        results.append((np.triu(factors), solved, turned))
        with pytest.raises(np.linalg.LinAlgError):
            factor_and_solve(-systems, sides.copy())
    for with_scipy, without in zip(*results, strict=True):
        assert np.allclose(with_scipy, without, rtol=1e-10)


def test_a_protocol_names_what_needs_scipy() -> None:
    lean = OneShotSetup(mechanism=RandomizedResponse(), privacy=BUDGET)
    whole = OneShotSetup(mechanism=FisherOptimal(), privacy=BUDGET)
    assert list(needing_scipy(lean)) == []
    assert list(needing_scipy(whole)) == [FisherOptimal()]
