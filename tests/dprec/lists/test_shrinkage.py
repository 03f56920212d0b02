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


def test_without_noise_to_speak_of_numbers_stay() -> None:
    numbers = np.random.default_rng(2).gamma(0.3, 100, 500)
    means = posterior_means(numbers, 1e-3, np.full(500, 30.0))
    np.testing.assert_allclose(means, numbers, atol=5e-3)


def test_noise_alone_is_told_from_the_base() -> None:
    """Where nothing is known of single numbers, the mean is near the base."""
    means = posterior_means(draws(np.full(5_000, 2.0), 40.0), 40.0, np.full(5_000, 2.0))
    assert means.std() < 1.0
    assert means.mean() == pytest.approx(2.0, abs=1.5)


def test_the_means_follow_their_bases() -> None:
    base = np.geomspace(0.5, 50, 5_000)
    means = posterior_means(draws(base, 3.0), 3.0, base)
    assert ((means - base) ** 2).mean() < 2.5


def test_no_numbers_have_no_means() -> None:
    assert posterior_means(np.zeros(0), 1.0, np.zeros(0)).size == 0
