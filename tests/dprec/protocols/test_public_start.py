"""Lists from products of item sets with public features."""

import numpy as np
import pytest
import scipy.sparse as sp

from dprec.catalogue import Catalogue
from dprec.lists.model import ItemTable, ListModel
from dprec.lists.products import COLUMNS
from dprec.protocols.gram import PairTableOptions
from dprec.protocols.public_start import PublicStartProtocol, TasteDevice
from dprec.ratings import POSITIVE
from tests import make
from tests.dprec.protocols.test_gram import ITEMS, some_sets
from tests.summing import played

HALVES = np.stack([np.arange(ITEMS) % 2 == 0, np.arange(ITEMS) % 2 == 1], axis=1)
NAMED = Catalogue(np.linspace(-1, 1, ITEMS)[:, None], HALVES, ("year",), ("even", "odd"))
"""Of which categories say nothing of the two kinds of users, and years say all."""


@pytest.mark.parametrize(
    "options",
    [PairTableOptions(items=8, popularity_share=0.2), PairTableOptions(items=ITEMS, popularity_share=0.0)],
)
def test_devices_rank_by_what_the_users_of_items_like(options: PairTableOptions) -> None:
    people, protocol = make.profiles_of_sets(some_sets()), PublicStartProtocol(table=options)
    _, devices = played(protocol, people, POSITIVE, multiplier=2.0, catalogue=NAMED)
    asked, device = devices[-2:]
    assert device.weights.shape == (options.items, COLUMNS)
    # They rank by the features that they have contributed.
    np.testing.assert_array_equal(device.features, asked.features)
    alone = make.profiles_of_sets(sp.csr_array(np.eye(ITEMS)[[0, ITEMS - 1]]))
    early, late = device.predictions(alone)
    assert (early - late)[: ITEMS // 2].mean() > (early - late)[ITEMS // 2 :].mean() + 0.2


def test_a_model_is_received_as_it_was_sent() -> None:
    random, options = np.random.default_rng(4), PairTableOptions(items=3, popularity_share=0.1)
    popularity = random.standard_normal(ITEMS).astype(np.float32).astype(float)
    bins = random.integers(0, 64, (1, ITEMS), dtype=np.uint8)
    public = ListModel(popularity, HALVES, bins, ItemTable.nothing())
    weights = random.uniform(-1, 1, (3, COLUMNS)).astype(np.float16).astype(float)
    sent = TasteDevice(options, public, np.array([1, 4, 5], dtype=np.int32), weights, 0.5)
    received = PublicStartProtocol(table=options).device(sent.encode(), ITEMS, POSITIVE)
    assert isinstance(received, TasteDevice)
    for name in ("items", "weights", "features", "share"):
        assert np.array_equal(getattr(received, name), getattr(sent, name))
    people = make.profiles_of_sets(some_sets())
    assert np.array_equal(received.predictions(people), sent.predictions(people))
