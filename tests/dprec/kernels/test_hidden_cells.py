import numpy as np
from scipy.special import expit, ndtr

from dprec.kernels.hidden_cells import add_evidence
from tests.interpreted import twin

RANDOM = np.random.default_rng(0)
OWNERS, BINS, KINDS, REACH = 3, 2, 3, 8.0
UNRATED = np.array([0.5, 0.3, 0.2])
LOW, HIGH = np.array([0.1, 0.7, 0.2]), np.array([0.2, 0.2, 0.6])
SIZES, COUNTS = np.array([4.0, 7.0]), RANDOM.integers(0, 5, (OWNERS, BINS, KINDS)).astype(np.float64)
MASSES, NODES = np.array([0.25, 0.75]), np.array([-1.0, 0.5])


def given(latent: np.ndarray) -> np.ndarray:
    """Return Pr(symbol | latent rating, rated) of two levels, cut at 0."""
    return ndtr(-latent)[..., None] * LOW + ndtr(latent)[..., None] * HIGH


def log_likelihood(propensity: np.ndarray, latent: np.ndarray) -> np.ndarray:
    """Return the mean over the nodes of each owner's log likelihood."""
    share = expit(propensity[..., None] + NODES)[..., None]
    probabilities = (1 - share) * UNRATED + share * given(latent)[:, :, None]
    return np.einsum("n,obz,obnz->o", MASSES, COUNTS, np.log(probabilities))


def evidence(propensity: np.ndarray, latent: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes and information, the same compiled and interpreted."""
    grid = np.linspace(-REACH, REACH, points)
    heights = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    shares = expit(propensity[..., None] + NODES).reshape(OWNERS, -1)
    read = latent, shares, MASSES, COUNTS.reshape(OWNERS, -1), SIZES, UNRATED, given(grid)
    found = []
    for kernel in (add_evidence, twin(add_evidence)):
        slopes, information = np.zeros((OWNERS, 2)), np.zeros((OWNERS, 3))
        kernel(slopes, information, *read, heights[:, None] * (HIGH - LOW), REACH)
        found.append((slopes, information))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    return found[0]


PROPENSITY, LATENT = RANDOM.normal(size=(2, OWNERS, BINS))


def test_slopes_are_the_derivatives_of_the_log_likelihood() -> None:
    slopes, _ = evidence(PROPENSITY, LATENT, 4001)
    for column, moves in enumerate(((1e-5, 0.0), (0.0, 1e-5))):
        ahead, behind = (
            log_likelihood(PROPENSITY + sign * moves[0], LATENT + sign * moves[1]) for sign in (1, -1)
        )
        np.testing.assert_allclose(slopes[:, column], (ahead - behind) / 2e-5, rtol=1e-5)


def test_beyond_the_grid_its_ends_count() -> None:
    ends = np.full((OWNERS, BINS), REACH)
    for latent, end in ((ends * 1e300, ends), (ends * np.inf, ends), (ends * np.nan, -ends)):
        for found, expected in zip(
            evidence(PROPENSITY, latent, 9), evidence(PROPENSITY, end, 9), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
