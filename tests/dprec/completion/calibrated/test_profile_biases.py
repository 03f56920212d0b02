"""Biases and popularity from answers about whole profiles."""

import numpy as np

from dprec.completion.calibrated.profile_biases import SIDE_PER_BIAS, ProfileFit
from dprec.observations import ProfileReports
from dprec.progress import silent
from dprec.randomness import generator


def planted(answers: int) -> tuple[ProfileReports, np.ndarray, np.ndarray]:
    """Return answers about 300 items, their biases, and the shares of users who rate them."""
    random, items = generator(4, "planted"), 300
    biases, shares = random.normal(0.0, 0.4, items), np.exp(random.normal(-4.0, 1.2, items)).clip(0, 0.9)
    unrated, rated = 1e-3, 0.01
    sides = np.clip((1 + biases * SIDE_PER_BIAS) / 2, 0, 1)
    expected = [unrated + (rated - unrated) * shares * side for side in (sides, 1 - sides)]
    above, below = (random.poisson(answers * each) for each in expected)
    return ProfileReports(above, below, answers, (0.9e-3, 1.1e-3), rated), biases, shares


def test_many_answers_tell_biases_and_popularity() -> None:
    reports, biases, shares = planted(30_000_000)
    fit = ProfileFit.of(reports, None, 40, silent)
    popular = shares > np.median(shares)
    assert np.corrcoef(fit.means[popular], biases[popular])[0, 1] > 0.95
    assert np.std((fit.means - biases) / np.sqrt(fit.variances)) < 1.4
    counts = fit.embedding(10).item_counts
    assert np.corrcoef(np.log(counts), np.log(shares))[0, 1] > 0.9
    assert abs(fit.unrated / 2e-3 - 1) < 0.02


def test_few_answers_say_little_and_the_fit_knows() -> None:
    reports, biases, _ = planted(300)
    fit = ProfileFit.of(reports, None, 40, silent)
    assert fit.means.std() < 0.1
    assert 0.7 < np.std(biases - fit.means) / np.sqrt(fit.variances.mean()) < 1.5
    assert fit.embedding(10).count_reliability < 0.85
