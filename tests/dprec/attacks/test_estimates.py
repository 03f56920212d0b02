"""Figures with chance in them: their intervals."""

import numpy as np
import pytest
from scipy.stats import norm

from dprec.attacks.bounds import Estimate, Roc


def test_an_interval_of_true_positives_holds_the_truth_as_often_as_it_says() -> None:
    """Scores one deviation apart: .0924 at 1 %. Five of a hundred intervals fail, if they are 95 % ones.

    More than 18 fail with a probability below 1e-6 even so.
    """
    random, true = np.random.default_rng(1), float(norm.sf(norm.isf(0.01) - 1))
    missed, labels = 0, np.arange(1000) < 500
    for _ in range(100):
        roc = Roc.of_scores(random.standard_normal(1000) + labels, labels, ~labels)
        estimate = Estimate.of_true_positives(roc, 0.01, 500, 500)
        assert estimate.low <= estimate.measured <= estimate.high
        missed += not estimate.low <= true <= estimate.high
    assert missed <= 18


def test_an_end_of_an_interval_is_that_of_clopper_and_pearson_at_half_of_its_failure() -> None:
    """30 of 100 members are above all others: from any threshold on that lets none of these through."""
    from scipy.stats import beta

    labels = np.arange(1100) < 100
    roc = Roc.of_scores(np.where(np.arange(1100) < 30, 2.0, np.where(labels, 0.0, 1.0)), labels, ~labels)
    estimate = Estimate.of_true_positives(roc, 0.01, 100, 1000)
    assert estimate.low == pytest.approx(beta.ppf(0.0125, 30, 71), rel=1e-6)
