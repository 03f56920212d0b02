"""What a device makes of a list of items, and which lists it refuses."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from clients.delivery import receive_lists, receive_table
from clients.faults import FaultOptions
from clients.population import Partition, Received, open_population, write_population
from dprec.accounting import PrivacyBudget
from dprec.datasets import Synthetic
from dprec.exchange import PRIOR, OneShotSetup, Personalization, Recommendations, Refusal, RefusalCode
from dprec.mechanisms import ThresholdBit
from dprec.personalization import OrdinalProcess
from dprec.randomness import RunKeys
from dprec.wire import ItemListCodec, ItemTable

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


TABLE_ITEMS = 12
BIASES = ItemTable.of_biases(np.arange(4.0), np.zeros(TABLE_ITEMS), np.ones(TABLE_ITEMS))
TABLE = replace(BIASES, embeddings=np.ones((TABLE_ITEMS, 3)))


def predicting_cohort(folder: Path, *, predicts: bool = True) -> Partition:
    setup = OneShotSetup(mechanism=ThresholdBit(), privacy=PrivacyBudget(epsilon=1.0), predicts=predicts)
    write_population(
        folder,
        Synthetic(users=9, items=TABLE_ITEMS, ratings=40).load(),
        users_per_node=4,
        keys=RunKeys.derive(1).installed,
        faults=FaultOptions(),
        setup=setup,
    )
    return open_population(str(folder)).partition(1)


def priors(*numbers: float) -> bytes:
    return np.array(numbers, dtype=PRIOR).tobytes()


def test_a_cohort_takes_the_table_and_the_levels_of_its_users(tmp_path: Path) -> None:
    sent = Personalization(TABLE.encode(), priors(0.5, -1, 0, 2))
    table, received = receive_table(predicting_cohort(tmp_path / "run"), sent)
    assert received.tolist() == [[0.5], [-1], [0], [2]]
    np.testing.assert_allclose(table.embeddings, TABLE.embeddings)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (Personalization(TABLE.encode(), priors(0, 0, 0)), "priors of 12 bytes for 4 users"),
        (Personalization(TABLE.encode(), priors(0, np.nan, 0, 0)), "not finite"),
        (Personalization(TABLE.encode()[:-2], priors(0, 0, 0, 0)), "a table of"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path: Path, known: Personalization, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        receive_table(predicting_cohort(tmp_path / "run"), known)


def test_devices_that_predict_nothing_take_no_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="predict nothing"):
        receive_table(
            predicting_cohort(tmp_path / "run", predicts=False),
            Personalization(TABLE.encode(), priors(0, 0, 0, 0)),
        )
