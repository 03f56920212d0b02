"""What a device does with bytes of a server that it does not trust."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.completion import Profiles
from dprec.secret_sets import SecretSetOptions, SecretSets
from dprec.sums import UNIT, Releases
from dprec.wire import ItemTable
from tests.hostile import devices_sent
from tests.make import STARS

ITEMS = 9
METHOD = SecretSets(options=SecretSetOptions(features=4, split=(0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)))
PROFILES = Profiles(
    np.array([0, 3, 3, 4]), np.array([0, 3, 8, 2], dtype=np.int32), np.array([1.0, 5.0, 4.0, 3.0]), ITEMS
)


def a_table(width: int) -> ItemTable:
    random = np.random.default_rng(0)
    nothing = np.zeros((ITEMS, 0))
    means, embeddings = random.normal(0, 1, ITEMS), random.normal(0, 1, (ITEMS, width))
    cuts = METHOD.options.cuts(STARS)
    return ItemTable(
        cuts, means, np.ones(ITEMS), embeddings, nothing, means[:, None], nothing.astype(np.bool_)
    )


@given(data=st.data())
def test_no_bytes_of_a_server_harm_a_device_or_lengthen_what_it_contributes(data: st.DataObject) -> None:
    for device in devices_sent(data, a_table(3).encode(), lambda sent: METHOD.device(sent, ITEMS, STARS)):
        for number in (1, 2, 3):
            layout = device.layout(number)
            vectors = device.contributions(PROFILES, layout, number, np.zeros(0, dtype=np.uint64))
            for user in range(PROFILES.n_users):
                own = vectors.of_users(slice(user, user + 1)).vectors(layout).numbers
                assert sum(int(each) ** 2 for each in own.ravel()) <= int(1 / UNIT) ** 2
        assert np.isfinite(device.predictions(PROFILES)).all()


def test_no_more_features_count_than_were_agreed_on() -> None:
    for width, used in ((3, 3), (4, 4), (5, 4)):
        layout = METHOD.device(a_table(width).encode(), ITEMS, STARS).layout(2)
        assert layout.n_rows == ITEMS + used + 2 * ITEMS * used
    first, second, third = METHOD.largest_layouts(Releases(3, ITEMS, STARS))
    assert (first.n_rows, second.n_rows, third.n_rows) == (18, 85, 72)


def test_the_probes_are_as_long_as_contributions_get() -> None:
    lengths = []
    for layout, contributions in METHOD.probes(1):
        vectors = contributions.vectors(layout)
        units = vectors.numbers[:, 0].astype(np.float64) * UNIT
        lengths.append(np.sqrt(np.add.reduceat(units**2, vectors.indptr[:-1])).max())
    assert lengths == pytest.approx([1, 1, 1], abs=1e-8)
    assert max(lengths) <= 1
