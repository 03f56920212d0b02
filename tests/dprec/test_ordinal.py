import numpy as np
import pytest
from scipy import integrate, stats

from dprec.ordinal import NETFLIX, cut_points, level_probabilities, level_shares

SHARES = (0.1, 0.2, 0.4, 0.3)


@pytest.mark.parametrize("variance", [0.0, 0.5, 2.0])
def test_over_everybody_the_levels_have_their_shares(variance: float) -> None:
    cuts = cut_points(SHARES, variance)
    assert (np.diff(cuts) > 0).all()
    if variance == 0:
        shares = level_probabilities(np.zeros(1), cuts)[0][0]
    else:
        prior = stats.norm(scale=np.sqrt(variance))
        shares = [
            integrate.quad(
                lambda t, k=k: prior.pdf(t) * level_probabilities(np.array([t]), cuts)[0][0, k], -9, 9
            )[0]
            for k in range(4)
        ]
    np.testing.assert_allclose(shares, SHARES, atol=1e-8)


def test_slopes_are_the_derivatives_of_the_probabilities() -> None:
    cuts, latent = cut_points(SHARES, 0.5), np.linspace(-3, 3, 13)
    above, below = (level_probabilities(latent + step, cuts)[0] for step in (1e-6, -1e-6))
    probabilities, slopes = level_probabilities(latent, cuts)
    np.testing.assert_allclose(slopes, (above - below) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(slopes.sum(axis=1), 0, atol=1e-15)


def test_far_levels_keep_their_digits_on_both_sides() -> None:
    cuts, latent = cut_points(SHARES, 0.5), np.linspace(-9, 9, 7)
    probabilities, slopes = level_probabilities(latent, cuts)
    mirrored, falling = level_probabilities(-latent, -cuts[::-1])
    np.testing.assert_allclose(probabilities, mirrored[:, ::-1], rtol=1e-12)
    np.testing.assert_allclose(slopes, -falling[:, ::-1], rtol=1e-12)
    # The log probability of a normal tail falls by about its distance.
    assert (np.abs(slopes / probabilities) < 12).all()


@pytest.mark.parametrize(("levels", "joined"), [(5, 1), (10, 2), (15, 3)])
def test_the_public_histogram_fits_any_scale(levels: int, joined: int) -> None:
    shares = np.array(level_shares("netflix", levels))
    assert (shares > 0).all()
    np.testing.assert_allclose(shares.reshape(5, joined).sum(axis=1), NETFLIX)
    np.testing.assert_allclose(shares.reshape(5, joined), shares[::joined, None].repeat(joined, axis=1))


def test_two_levels_halve_the_middle_star() -> None:
    one, two, three, four, five = NETFLIX
    np.testing.assert_allclose(level_shares("netflix", 2), [one + two + three / 2, three / 2 + four + five])
