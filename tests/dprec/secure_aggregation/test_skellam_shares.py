"""Shares of noise: the distribution that the accounting assumes, drawn by comparing integers."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import chisquare

from dprec.secure_aggregation.noise import TOTAL_BITS, SkellamTable, skellam_table


def draws_of_values(table: SkellamTable) -> dict[int, int]:
    """Return how many of 2**128 draws yield each value."""
    capacity = 1 << (TOTAL_BITS - table.column_bits)
    counts: dict[int, int] = {}
    columns = zip(*(part.tolist() for part in (table.high, table.low, table.own, table.other)), strict=True)
    for high, low, own, other in columns:
        limit = (high << 64) | low
        for value, draws in ((own, limit), (other, capacity - limit)):
            counts[value] = counts.get(value, 0) + draws
    return {value: draws for value, draws in counts.items() if draws}


@pytest.mark.parametrize("variance", [0.01, 0.7, 9.5, 900.0])
def test_the_table_holds_the_probabilities_of_bessel_functions(variance: float) -> None:
    counts = draws_of_values(skellam_table(variance))
    assert sum(counts.values()) == 1 << TOTAL_BITS
    assert all(counts[value] == counts[-value] for value in counts)
    values = np.array(sorted(counts))
    drawn = np.array([float(Fraction(counts[value], 1 << TOTAL_BITS)) for value in values.tolist()])
    exact = ive(np.abs(values), variance)
    np.testing.assert_allclose(drawn[exact > 1e-25], exact[exact > 1e-25], rtol=1e-9)
    spread = sum(Fraction(value**2 * draws, 1 << TOTAL_BITS) for value, draws in counts.items())
    assert float(spread) == pytest.approx(variance, rel=1e-12)


def test_draws_follow_the_table() -> None:
    # The chance of a false alarm is that of the test's level, 1e-9; the seed is fixed.
    table = skellam_table(2.0)
    words = np.random.default_rng(5).integers(0, 2**64, 200_000, dtype=np.uint64)
    drawn = table.draw(words, lambda places: words[places])
    inner = np.arange(-4, 5)
    probabilities = ive(np.abs(inner), 2.0)
    counts = [int((drawn == value).sum()) for value in inner]
    expected = np.append(probabilities, 1 - probabilities.sum()) * drawn.size
    assert chisquare([*counts, drawn.size - sum(counts)], expected).pvalue > 1e-9


def test_a_draw_that_its_first_word_leaves_open_is_decided_by_the_second() -> None:
    table = skellam_table(2.0)
    shift = np.uint64(64 - table.column_bits)
    column = int(np.flatnonzero((table.own != table.other) & (table.high > 0) & (table.low > 0))[0])
    word = np.array([(column << int(shift)) | int(table.high[column])] * 2, dtype=np.uint64)
    low = table.low[column]
    drawn = table.draw(word, lambda places: np.array([low - 1, low], dtype=np.uint64)[places])
    assert drawn.tolist() == [table.own[column], table.other[column]]


@pytest.mark.parametrize("variance", [0.0, -1.0, 1e9])
def test_a_variance_without_a_table_is_refused(variance: float) -> None:
    with pytest.raises(ValueError, match="variance"):
        skellam_table(variance)
