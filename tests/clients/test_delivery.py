"""What a device makes of a list of items, and which lists it refuses."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from clients.delivery import receive_lists
from clients.population import Partition, Received
from dprec.exchange import Recommendations, Refusal, RefusalCode
from dprec.personalization import OrdinalProcess
from dprec.wire import ItemListCodec

ITEMS = 8
LISTS = ItemListCodec(ITEMS).encode(np.array([[7, 0, 3], [2, -1, -1]]), np.full((2, 3), 4.5))


def partition(shown: list[Received]) -> Partition:
    return cast(
        Partition, SimpleNamespace(size=2, population=SimpleNamespace(n_items=ITEMS, show=shown.append))
    )


def test_the_ratings_of_a_list_are_shown_to_the_user() -> None:
    shown: list[Received] = []
    receive_lists(partition(shown), Recommendations(LISTS))
    predicted = shown[0].predictions(OrdinalProcess())
    assert [np.flatnonzero(~np.isnan(row)).tolist() for row in predicted] == [[0, 3, 7], [2]]
    assert np.nanmin(predicted) == np.nanmax(predicted) == 4.5


@pytest.mark.parametrize(
    "lists", [LISTS[:1], [*LISTS, b""], [LISTS[0], LISTS[1][1:]], [b"\xff" * 6, LISTS[1]]]
)
def test_a_malformed_delivery_is_refused(lists: list[bytes]) -> None:
    shown: list[Received] = []
    with pytest.raises(Refusal) as refusal:
        receive_lists(partition(shown), Recommendations(lists))
    assert refusal.value.code == RefusalCode.MALFORMED_REQUEST
    assert not shown
