"""Lists from products of item sets with public features."""

import numpy as np
import pytest
import scipy.sparse as sp

from dprec.catalogue import Catalogue
from dprec.lists.model import POPULARITY_STEP, ListModel, PairTable
from dprec.lists.products import COLUMNS
from dprec.protocols.base import Public
from dprec.protocols.gram import ListTableOptions
from dprec.protocols.public_start import TASTES_STEP, PublicStartProtocol, TasteDevice
from dprec.ratings import POSITIVE
from tests import make
from tests.dprec.protocols.test_gram import ITEMS, some_sets
from tests.summing import played

HALVES = np.stack([np.arange(ITEMS) % 2 == 0, np.arange(ITEMS) % 2 == 1], axis=1)
NAMED = Catalogue(np.linspace(-1, 1, ITEMS)[:, None], HALVES, ("year",), ("even", "odd"))
"""Of which categories say nothing of the two kinds of users, and years say all."""


@pytest.mark.parametrize(
    "options",
    [ListTableOptions(items=8, popularity_share=0.2), ListTableOptions(items=ITEMS, popularity_share=0.0)],
)
def test_devices_rank_by_what_the_users_of_items_like(options: ListTableOptions) -> None:
    people, protocol = make.profiles_of_sets(some_sets()), PublicStartProtocol(table=options)
    _, devices = played(protocol, people, POSITIVE, multiplier=2.0, catalogue=NAMED)
    asked, device = devices[-2:]
    assert device.weights.shape == (options.items, COLUMNS)
    # They rank by the features that they have contributed.
    np.testing.assert_array_equal(device.features, asked.features)
    alone = make.profiles_of_sets(sp.csr_array(np.eye(ITEMS)[[0, ITEMS - 1]]))
    early, late = device.predictions(alone)
    assert (early - late)[: ITEMS // 2].mean() > (early - late)[ITEMS // 2 :].mean() + 0.2


def test_without_a_table_there_is_popularity_alone() -> None:
    sets, protocol = some_sets(), PublicStartProtocol(table=ListTableOptions(items=0))
    assert [each.n_rows for each in protocol.largest(Public(9, ITEMS, POSITIVE))] == [ITEMS]
    _, devices = played(protocol, make.profiles_of_sets(sets), POSITIVE)
    normalised = sp.diags_array(1 / np.sqrt(np.maximum(sets.sum(axis=1), 1))) @ sets
    apart = devices[-1].public.popularity - np.log(normalised.sum(axis=0))
    assert len(devices) == 2
    assert np.ptp(apart) <= 1.01 * POPULARITY_STEP


def test_a_model_is_received_within_half_a_step_and_sent_on_as_it_was_received() -> None:
    random, options = np.random.default_rng(4), ListTableOptions(items=3, popularity_share=0.1)
    popularity = random.standard_normal(ITEMS).astype(np.float32).astype(float)
    bins = random.integers(0, 64, (1, ITEMS), dtype=np.uint8)
    public = ListModel(popularity, HALVES, bins, PairTable.nothing())
    weights = random.uniform(-1, 1, (3, COLUMNS)).astype(np.float16).astype(float)
    sent = TasteDevice(options, public, np.array([1, 4, 5], dtype=np.int32), weights, 0.5)
    protocol = PublicStartProtocol(table=options)
    received = protocol.device(sent.encode(), ITEMS, POSITIVE)
    assert isinstance(received, TasteDevice)
    for name in ("items", "features", "share"):
        assert np.array_equal(getattr(received, name), getattr(sent, name))
    assert np.abs(received.weights - sent.weights).max() <= 0.51 * TASTES_STEP * np.sqrt((weights**2).mean())
    assert received.encode() == sent.encode()
