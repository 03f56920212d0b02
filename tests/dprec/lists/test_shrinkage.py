import numpy as np
import pytest

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
