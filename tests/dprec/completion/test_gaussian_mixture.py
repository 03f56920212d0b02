from __future__ import annotations

import numpy as np
import pytest

from dprec.completion.mixtures import GaussianMixture


def test_responsibilities_are_those_of_the_densities() -> None:
    mixture = GaussianMixture(np.array([0.6, 0.4]), np.array([0.5, 3.0]))
    squares = np.array([0.0, 1.0, 9.0, 1e6])
    gamma, log_likelihood = mixture.responsibilities(squares)
    heights = mixture.shares / np.sqrt(2 * np.pi * mixture.variances)
    densities = heights[:, None] * np.exp(-squares / (2 * mixture.variances[:, None]))
    near = densities[:, :3]
    np.testing.assert_allclose(gamma[:, :3], near / near.sum(axis=0))
    # The density of the last underflows; in logarithms it still belongs to the wider component.
    np.testing.assert_array_equal(gamma[:, 3], [0.0, 1.0])
    last = np.log(heights[1]) - 1e6 / 6.0
    assert log_likelihood == pytest.approx(np.log(near.sum(axis=0)).sum() + last)


def test_a_component_without_cells_keeps_its_variance() -> None:
    mixture = GaussianMixture(np.array([1.0, 0.0]), np.array([1.0, 5.0]))
    gamma, _ = mixture.responsibilities(np.array([1.0, 4.0]))
    again = mixture.estimated(gamma, np.array([1.0, 4.0]))
    np.testing.assert_allclose(again.shares, [1, 0])
    np.testing.assert_allclose(again.variances, [2.5, 5.0])


def test_precisions_are_averages_over_the_components() -> None:
    mixture = GaussianMixture(np.array([0.6, 0.4]), np.array([0.5, 4.0]))
    gamma = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    np.testing.assert_allclose(mixture.precisions(gamma), [2.0, 0.25, 1.125])


def test_a_random_start_is_a_mixture_around_the_variance_and_follows_the_seed() -> None:
    first, again, other = (GaussianMixture.at_random(2.0, 3, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.variances, again.variances)
    assert not np.array_equal(first.shares, other.shares)
    assert first.shares.sum() == pytest.approx(1)
    assert np.all((first.variances >= 0.5) & (first.variances <= 8))
