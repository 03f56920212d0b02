"""Lists from sums: whatever malicious users add, no item is worth more than honest users say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import offsets
from dprec.private_als.statistics import StatisticsContributions
from dprec.protocols.private_als import FactorizationOptions, ItemDevice, ItemModel, ItemServer
from tests.make import STARS

ITEMS, USERS, MEAN = 40, 300, 0.4
OPTIONS = FactorizationOptions(rank=0, fewest=16)
CLIPS = 0.5 * 4, 0.3 * 4
"""The largest targets of the first round and of the second."""


def learned(counts: np.ndarray, sums: list[np.ndarray], noise: float, malicious: int) -> ItemServer:
    """Return what is learned of two rounds, given the mean."""
    server = ItemServer(OPTIONS, STARS, ITEMS, 1, malicious)
    server._counts, server._offset, server._count_noise, server._users = counts, MEAN, noise, USERS
    for place, each in enumerate(sums):
        server._learn_biases(each, noise, first=place == 0)
    return server


@given(st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([0.0, 1.0, 13.0]))
def test_malicious_users_never_raise_an_item_above_what_honest_sums_say(
    seed: int, malicious: int, noise: float
) -> None:
    """Malicious users have any weights up to the largest, and targets up to the clips; noise is the same."""
    draws = np.random.default_rng(seed)
    counts = draws.gamma(0.5, 40, ITEMS)
    honest = [
        np.clip(draws.normal(0, 0.4, ITEMS) + MEAN * (place == 0), -clip, clip) * counts
        for place, clip in enumerate(CLIPS)
    ]
    added = malicious * draws.choice([1.0, draws.random()]) / np.sqrt(OPTIONS.fewest)
    share = draws.choice([1.0, draws.uniform(-1, 1)])
    drawn = [noise * draws.standard_normal(ITEMS) for _ in range(3)]
    alone = learned(counts + drawn[0], [honest[0] + drawn[1], honest[1] + drawn[2]], noise, 0)
    lied = [
        each + share * clip * added + own for each, clip, own in zip(honest, CLIPS, drawn[1:], strict=True)
    ]
    with_malicious = learned(counts + added + drawn[0], lied, noise, malicious)
    lists = with_malicious.best.biases - with_malicious.cautions()
    assert (lists <= alone.best.biases + 1e-9).all()
    assert (with_malicious.cautions() >= 0).all()


def test_one_rating_counts_no_more_than_one_of_the_fewest() -> None:
    """Whoever has more ratings than that counts as before."""
    counts = np.array([0, 1, 4, 5, 12])
    items = np.concatenate([np.arange(each) for each in counts]).astype(np.int32)
    factors = np.ones((counts.size, 1), dtype=np.float32)
    contributions = StatisticsContributions(offsets(counts), items, np.ones_like(items), factors)
    for fewest in (1, 5, 30):
        layout = ItemDevice(
            FactorizationOptions(rank=0, fewest=fewest), ItemModel.begin(12, 0, 3.0), 4.0
        ).release(1)
        weights = contributions.user_weights(layout)[1:]
        assert weights.max() <= layout.largest * (1 + 1e-12)
        np.testing.assert_allclose(weights, 1 / np.sqrt(np.maximum(counts[1:], fewest)))


def test_cautions_are_sent_with_the_model() -> None:
    model = ItemModel.begin(6, 0, 3.0)
    cautious = ItemModel(3.0, model.biases, model.weights, model.factors, 1.0, np.linspace(0, 1, 6))
    read = ItemModel.decode(cautious.encode(), 6, 0).cautions
    assert read is not None
    np.testing.assert_allclose(read, np.linspace(0, 1, 6), atol=1 / 250)
    assert ItemModel.decode(model.encode(), 6, 0).cautions is None
    for hostile in (cautious.encode()[:-1], cautious.encode() + b"x"):
        with pytest.raises(ValueError, match=r"\d+ bytes"):
            ItemModel.decode(hostile, 6, 0)
