import numpy as np

from dprec.completion.calibrated.hidden_sets import CellLikelihood
from dprec.mechanisms import ZhengRandomizedResponse
from tests.dprec.completion.calibrated.hidden_worlds import CUTS, STARS

CHANNEL = ZhengRandomizedResponse().channel(STARS, 1.0).probabilities
ROWS = CHANNEL[0], CHANNEL[1:]
PROPENSITY, LATENT = np.array([-4.0, 0.0, 1.0]), np.array([-1.0, 0.3, 2.0])


def test_probabilities_sum_to_one_and_slopes_are_their_derivatives() -> None:
    at = CellLikelihood.at(PROPENSITY, LATENT, ROWS, CUTS, 0.4)
    np.testing.assert_allclose(at.probabilities.sum(axis=-1), 1)
    step = 1e-5
    for slopes, moves in ((at.by_propensity, (step, 0.0)), (at.by_latent, (0.0, step))):
        ahead, behind = (
            CellLikelihood.at(PROPENSITY + sign * moves[0], LATENT + sign * moves[1], ROWS, CUTS, 0.4)
            for sign in (1, -1)
        )
        np.testing.assert_allclose(
            (ahead.probabilities - behind.probabilities) / (2 * step), slopes, atol=1e-9
        )


def test_the_extremes_are_the_rows_of_the_channel() -> None:
    never = CellLikelihood.at(np.array([-50.0]), np.array([0.0]), ROWS, CUTS)
    np.testing.assert_allclose(never.probabilities[0], CHANNEL[0], atol=1e-12)
    always = CellLikelihood.at(np.array([50.0]), np.array([30.0]), ROWS, CUTS)
    np.testing.assert_allclose(always.probabilities[0], CHANNEL[5], atol=1e-12)


def test_uncertain_latent_ratings_are_averaged_over() -> None:
    nodes, masses = np.polynomial.hermite_e.hermegauss(30)
    drawn = CellLikelihood.at(np.full(30, 0.5), 0.3 + 0.8 * nodes, ROWS, CUTS)
    averaged = CellLikelihood.at(np.array([0.5]), np.array([0.3]), ROWS, CUTS, 0.64)
    np.testing.assert_allclose(
        averaged.probabilities[0], masses @ drawn.probabilities / masses.sum(), rtol=1e-9
    )
