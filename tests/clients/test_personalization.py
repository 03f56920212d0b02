from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clients.faults import FaultOptions
from clients.personalization import receive_table
from clients.population import Partition, open_population, write_population
from dprec.accounting import PrivacyBudget
from dprec.datasets import Synthetic
from dprec.exchange import PRIOR, OneShotSetup, Personalization
from dprec.mechanisms import ThresholdBit
from dprec.randomness import RunKeys
from dprec.wire import ItemTable

ITEMS = 12
BIASES = ItemTable.of_biases(np.arange(4.0), np.zeros(ITEMS), np.ones(ITEMS))
TABLE = replace(BIASES, embeddings=np.ones((ITEMS, 3)))


def partition(folder: Path, *, predicts: bool = True) -> Partition:
    setup = OneShotSetup(mechanism=ThresholdBit(), privacy=PrivacyBudget(epsilon=1.0), predicts=predicts)
    write_population(
        folder,
        Synthetic(users=9, items=ITEMS, ratings=40).load(),
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
    table, received = receive_table(partition(tmp_path / "run"), sent)
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
        receive_table(partition(tmp_path / "run"), known)


def test_devices_that_predict_nothing_take_no_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="predict nothing"):
        receive_table(
            partition(tmp_path / "run", predicts=False), Personalization(TABLE.encode(), priors(0, 0, 0, 0))
        )
