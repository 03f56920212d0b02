import numpy as np
import pytest

from dprec.completion.calibrated.hidden_sets import HiddenReports
from dprec.mechanisms import HiddenThreshold, ZhengLaplace
from tests.dprec.completion.calibrated.hidden_worlds import planted_levels, reported


def test_symbols_are_counted_by_bin_with_those_that_are_not_sent() -> None:
    seen = reported(planted_levels(30, 20)[0], HiddenThreshold(), 1.0)
    reports = HiddenReports.of(seen, seen.evidence)
    table = np.zeros((30, 20), dtype=np.int64)
    table[reports.users, reports.items] = reports.symbols
    bins = np.arange(30) % 4
    counts = reports.of_items(bins, 4)
    expected = [[[(table[bins == b, i] == z).sum() for z in range(3)] for b in range(4)] for i in range(20)]
    np.testing.assert_array_equal(counts, expected)
    by_user = reports.of_users(np.arange(20) % 3, 3)
    np.testing.assert_array_equal(
        by_user.sum(axis=1), [[(row == z).sum() for z in range(3)] for row in table]
    )


def test_the_symbols_of_a_fine_grid_are_merged_and_keep_their_likelihood() -> None:
    seen = reported(planted_levels(30, 20)[0], ZhengLaplace(), 1.0)
    reports = HiddenReports.of(seen, seen.evidence)
    assert reports.unrated.size == 16
    assert reports.symbols.min() > 0
    np.testing.assert_allclose(reports.rated.sum(axis=1), 1)
    assert reports.unrated.sum() == pytest.approx(1)
    # "?" stays as it is, and neighbours stay in order.
    assert reports.unrated[0] == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert (np.diff(reports.symbols[np.argsort(seen.values)]) >= 0).all()
