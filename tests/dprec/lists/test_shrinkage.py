import numpy as np
import pytest

from dprec.lists import gram
from dprec.lists.gram import posterior_means


def draws(numbers: np.ndarray, deviation: float) -> np.ndarray:
    return numbers + deviation * np.random.default_rng(1).standard_normal(numbers.size)


def test_rare_spikes_are_kept_and_the_rest_is_shrunk() -> None:
    numbers = np.ones(20_000)
    numbers[::200] = 60
    noisy = draws(numbers, 5.0)
    means = posterior_means(noisy, 5.0, np.ones(20_000))
    assert means.min() >= 0
    # The best that is possible with the prior known is about 0.6; noise itself has a mean square of 25.
    assert ((means - numbers) ** 2).mean() < 1.0
    assert means[::200] == pytest.approx(60, abs=5 * 5)


def test_a_prior_fitted_by_a_part_of_the_numbers_is_that_of_all_whatever_their_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Rows of four, of which one column alone stands out; every second number would tell nothing of it.
    numbers = np.tile([1.0, 60.0, 1.0, 1.0], 10_000)
    noisy = draws(numbers, 20.0)
    means = posterior_means(noisy, 20.0, np.ones(numbers.size))
    monkeypatch.setattr(gram, "_FITTED", numbers.size // 2)
    assert posterior_means(noisy, 20.0, np.ones(numbers.size)) == pytest.approx(means, abs=1.0)
