"""Lists from products of item sets with public features."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dprec.catalogue import Catalogue
from dprec.lists import ListMethod, TableOptions
from dprec.lists.method import ListDevice
from dprec.lists.model import ItemTable, ListModel
from dprec.lists.products import COLUMNS, TasteModel
from tests import make
from tests.dprec.lists.test_method import ITEMS, learned, some_sets
from tests.hostile import devices_sent
from tests.make import STARS

HALVES = np.stack([np.arange(ITEMS) % 2 == 0, np.arange(ITEMS) % 2 == 1], axis=1)
NAMED = Catalogue(np.linspace(-1, 1, ITEMS)[:, None], HALVES, ("year",), ("even", "odd"))
"""Of which categories say nothing of the two kinds of users, and years say all."""


@pytest.mark.parametrize(
    "options", [TableOptions(items=8, popularity_share=0.2), TableOptions(items=ITEMS, popularity_share=0.0)]
)
def test_devices_rank_by_what_the_users_of_items_like(options: TableOptions) -> None:
    sets = some_sets()
    _, _, device = learned(sets, options, 2.0, NAMED, of_features=True)
    assert isinstance(device.model, TasteModel)
    assert device.model.weights.shape == (options.items, COLUMNS)
    early, late = (sp.csr_array(np.eye(ITEMS)[[item]]) for item in (0, ITEMS - 1))
    difference = (device.model.scores(early) - device.model.scores(late))[0]
    assert difference[: ITEMS // 2].mean() > difference[ITEMS // 2 :].mean() + 0.2


def a_model() -> TasteModel:
    random = np.random.default_rng(4)
    public = ListModel(
        random.standard_normal(ITEMS).astype(np.float32).astype(float),
        HALVES,
        random.integers(0, 64, (1, ITEMS), dtype=np.uint8),
        ItemTable.nothing(),
    )
    weights = random.uniform(-1, 1, (3, COLUMNS)).astype(np.float16).astype(float)
    return TasteModel(public, np.array([1, 4, 5], dtype=np.int32), weights, 0.5)


def test_a_model_is_received_as_it_was_sent() -> None:
    sent = a_model()
    received = TasteModel.decode(sent.encode(), ITEMS)
    for name in ("items", "weights", "features"):
        assert np.array_equal(getattr(received, name), getattr(sent, name))
    assert received.share == sent.share
    assert np.array_equal(received.scores(some_sets()), sent.scores(some_sets()))


@given(data=st.data())
def test_no_bytes_of_a_server_harm_a_device(data: st.DataObject) -> None:
    method = ListMethod(options=TableOptions(items=3, popularity_share=0.1), of_features=True)
    good = b"\3" + a_model().encode()
    for device in devices_sent(data, good, lambda sent: method.device(sent, ITEMS, STARS)):
        assert isinstance(device, ListDevice)
        profiles, layout = make.profiles_of_sets(some_sets()), device.layout(2)
        assert layout.n_rows == 3 * COLUMNS
        words = np.zeros(profiles.items.size, dtype=np.uint64)
        vectors = device.contributions(profiles, layout, 2, words).vectors(layout)
        assert (vectors.numbers >= 0).all()
        assert np.isfinite(device.predictions(profiles)).all()
