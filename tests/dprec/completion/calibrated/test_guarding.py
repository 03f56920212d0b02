"""Whatever malicious users report, they raise no item in lists above what honest reports say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.completion import Calibrated, ItemBiases, SymbolTables
from dprec.completion.calibrated.guarding import guarded_biases
from dprec.mechanisms import FisherOptimal, ThresholdBit
from dprec.observations import Observations, SymbolReports
from dprec.ordinal import cut_points, level_shares
from tests import make
from tests.make import STARS

CUTS = cut_points(level_shares("netflix", 5), 0.5)
CLOSE = 0.002
"""Biases are halved down to this."""


def guarded(rest: np.ndarray, symbols: np.ndarray, most: int, centre: float, epsilon: float) -> float:
    """Return the guarded bias of one item from reports on latent ratings that are known but for it."""
    channel = FisherOptimal(histogram="netflix").channel(STARS, epsilon).probabilities
    tables = SymbolTables.of([channel], CUTS)
    owners = np.zeros(symbols.size, dtype=np.int64)
    return float(
        guarded_biases(
            lambda biases: tables.at(rest + biases[owners], symbols)[0],
            (owners, np.ones_like(owners)),
            most,
            np.array([centre]),
            0.06,
        )[0]
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(0, 40), st.sampled_from([0.3, 1.0, 3.0]))
def test_malicious_users_never_raise_an_item_above_what_honest_reports_say(
    seed: int, honest: int, malicious: int, epsilon: float
) -> None:
    """Malicious users choose their symbols, and what is known of them; one more may be assumed."""
    draws = np.random.default_rng(seed)
    width = FisherOptimal(histogram="netflix").channel(STARS, epsilon).symbols
    symbols, rest = draws.integers(width, size=honest + malicious), draws.normal(0, 0.7, honest + malicious)
    if seed % 2:
        symbols[honest:], rest[honest:] = width - 1, draws.choice([-3.0, 0.0, 3.0])
    centre = float(draws.normal(0, 0.3))
    alone = guarded(rest[:honest], symbols[:honest], 0, centre, epsilon)
    for assumed in (malicious, malicious + 1):
        assert guarded(rest, symbols, assumed, centre, epsilon) <= alone + CLOSE
    assert guarded(rest, symbols, honest + malicious, centre, epsilon) <= centre + CLOSE


def reported(raters: np.ndarray, highs: np.ndarray, epsilon: float = 3.0) -> Observations:
    """Return bits on items of so many raters each, so many of them high."""
    items = np.repeat(np.arange(raters.size), raters)
    within = np.concatenate([np.arange(each) for each in raters])
    users, symbols = within, (within < highs[items]).astype(np.int64)
    order = np.lexsort((items, users))
    channel = ThresholdBit().channel(STARS, epsilon)
    reports = SymbolReports((channel.probabilities,), symbols[order], np.zeros(items.size, dtype=np.int64))
    shape = (int(raters.max()), raters.size)
    values = channel.values[symbols[order]]
    users, items = users[order].astype(np.int32), items[order].astype(np.int32)
    return make.observations(users, items, values, shape, evidence=reports)


@pytest.mark.parametrize(
    "completion", [Calibrated(histogram="netflix", factors=2), ItemBiases(histogram="netflix", dimensions=4)]
)
def test_lists_are_lower_by_the_reports_that_may_be_lies(completion: Calibrated | ItemBiases) -> None:
    """Few raters lose most, and predictions are not touched."""
    raters = np.array([12, 12, 60, 60, 200, 200])
    seen = reported(raters, np.array([12, 6, 60, 30, 200, 100]))
    model = completion.fit(seen, seed=1)
    before = model.predict(np.arange(6), np.arange(6))
    slight, large = model.cautions(seen, 2, 0.2), model.cautions(seen, 20, 0.2)
    assert (slight >= 0).all()
    assert (large >= slight - CLOSE).all()
    assert large[0] > large[2] > large[4]
    lowered = model.lowered(large)
    assert (lowered.predict(np.arange(6), np.arange(6)) <= before + CLOSE).all()
    assert (model.predict(np.arange(6), np.arange(6)) == before).all()
    assert lowered.predict_rows(np.arange(2), 6).shape == (2, 6)
