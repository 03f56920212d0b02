"""Whatever malicious users answer about all items, they raise none in lists above what honest reports say."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats
from dprec.completion.calibrated.guarding import least_biases
from dprec.mechanisms import HiddenThreshold
from dprec.observations import RowReports
from dprec.ordinal import level_probabilities
from tests.dprec.completion.calibrated.hidden_worlds import CUTS, STARS

CLOSE = 0.002
"""Biases are halved down to this."""
BINS = 4


class World:
    """One item, and users in bins of which propensity and bias are known."""

    def __init__(self, draws: np.random.Generator, epsilon: float) -> None:
        family = HiddenThreshold().family(PrivacyBudget(epsilon=epsilon, per="cell"), STARS, 1)
        one = np.ones(1, dtype=np.int64)
        evidence = family.evidence_of(one, np.zeros(1, dtype=np.uint16), one > 0)
        assert isinstance(evidence, RowReports)
        self.rated, self.unrated = evidence.channels[0], evidence.unrated
        self.typical = np.column_stack([draws.normal(0, 1, BINS), draws.normal(0, 0.5, BINS)])
        self.expected = np.array([[draws.normal(-3, 1), draws.normal(0, 0.3)]])
        root = draws.normal(0, 0.7, (2, 2))
        self.spread = root @ root.T + 0.05 * np.eye(2)

    def least(self, counts: np.ndarray, most: int) -> float:
        def given(latent: Floats) -> tuple[Floats, Floats]:
            levels, slopes = level_probabilities(latent, CUTS)
            return levels @ self.rated, slopes @ self.rated

        world = (self.typical, given, self.unrated, self.expected, self.spread)
        return float(least_biases(counts[None], *world, most)[0])


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 200), st.integers(0, 40), st.sampled_from([0.3, 1.0, 3.0]))
def test_malicious_users_never_raise_an_item_above_what_honest_reports_say(
    seed: int, honest: int, malicious: int, epsilon: float
) -> None:
    """Malicious users choose their symbols and their bin, and agree on few; one more may be assumed."""
    draws = np.random.default_rng(seed)
    world = World(draws, epsilon)
    shape = (BINS, world.unrated.size)
    cells = BINS * world.unrated.size
    shares = draws.dirichlet(np.ones(cells))
    counts = draws.multinomial(honest, shares).reshape(shape).astype(float)
    added = draws.multinomial(malicious, draws.dirichlet(np.full(cells, 0.01))).reshape(shape)
    alone = world.least(counts, 0)
    for assumed in (malicious, malicious + 1):
        assert world.least(counts + added, assumed) <= alone + CLOSE
    assert world.least(counts + added, honest + malicious) <= world.expected[0, 1] + CLOSE
