import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.faults import FaultOptions
from clients.population import HeldFactors, open_population, write_held_factors, write_population
from dprec.datasets.synthetic import Synthetic
from dprec.errors import InputError
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.privacy.calibration import PrivacyBudget
from dprec.ratings import Ratings
from dprec.run_keys import RunKeys
from dprec.setups import IterativeSetup, OneShotSetup

KEYS = RunKeys.derive(10**30).installed
SETUP = OneShotSetup(mechanism=BoundedLaplace(), privacy=PrivacyBudget(epsilon=1.0))


@pytest.fixture
def ratings() -> Ratings:
    return Synthetic(users=23, items=30, ratings=250).load()


@pytest.mark.parametrize("users_per_node", [1, 4, 23, 100])
def test_cohorts_divide_the_population(tmp_path: Path, ratings: Ratings, users_per_node: int) -> None:
    folder = tmp_path / "run"
    write_population(
        folder,
        ratings,
        users_per_node=users_per_node,
        keys=KEYS,
        faults=FaultOptions(),
        setup=SETUP,
    )
    population = open_population(str(folder))
    assert population.n_users == 23
    assert population.n_items == 30
    assert population.keys == KEYS
    assert population.setup == SETUP
    assert population.scale.values.tolist() == ratings.scale.values.tolist()
    nodes = -(-23 // users_per_node)
    cohorts = [population.cohort(partition) for partition in range(nodes)]
    assert [user for cohort in cohorts for user in range(cohort.start, cohort.stop)] == list(range(23))
    assert np.concatenate([cohort.items for cohort in cohorts]).tolist() == ratings.items.tolist()
    assert np.concatenate([cohort.levels for cohort in cohorts]).tolist() == ratings.levels.tolist()
    assert np.concatenate([cohort.counts for cohort in cohorts]).tolist() == ratings.counts.tolist()


def test_a_node_beyond_the_population_hosts_nobody(tmp_path: Path, ratings: Ratings) -> None:
    write_population(
        tmp_path / "run",
        ratings,
        users_per_node=10,
        keys=KEYS,
        faults=FaultOptions(),
        setup=SETUP,
    )
    cohort = open_population(str(tmp_path / "run")).cohort(3)
    assert cohort.size == 0
    assert cohort.items.size == 0


def test_a_population_is_never_written_over(tmp_path: Path, ratings: Ratings) -> None:
    write_population(
        tmp_path / "run",
        ratings,
        users_per_node=10,
        keys=KEYS,
        faults=FaultOptions(),
        setup=SETUP,
    )
    with pytest.raises(FileExistsError):
        write_population(
            tmp_path / "run",
            ratings,
            users_per_node=10,
            keys=KEYS,
            faults=FaultOptions(),
            setup=SETUP,
        )


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"fingerprint": 30}, "fingerprint"),
        ({"users_per_node": 0}, "users_per_node"),
        ({"keys": {}}, "keys.devices"),
        ({"ratings": None}, "ratings"),
        ({"faults": {"dropout": 2.0}}, "faults"),
        ({"setup": {"kind": "one-shot", "mechanism": {"kind": "lies"}}}, "setup.mechanism"),
    ],
)
def test_the_error_names_file_and_key_of_a_damaged_description(
    tmp_path: Path, ratings: Ratings, entry: dict[str, Any], key: str
) -> None:
    write_population(
        tmp_path / "run",
        ratings,
        users_per_node=10,
        keys=KEYS,
        faults=FaultOptions(),
        setup=SETUP,
    )
    path = tmp_path / "run" / "population.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entry))
    with pytest.raises(InputError) as caught:
        open_population(str(tmp_path / "run"))
    assert caught.value.where.startswith(f"{path}, {key}")


def test_devices_answer_the_requests_of_their_own_protocol_alone(tmp_path: Path, ratings: Ratings) -> None:
    write_population(
        tmp_path / "run",
        ratings,
        users_per_node=10,
        keys=KEYS,
        faults=FaultOptions(),
        setup=SETUP,
    )
    population = open_population(str(tmp_path / "run"))
    assert population.installed(OneShotSetup) == SETUP
    with pytest.raises(ValueError, match="set up for one-shot"):
        population.installed(IterativeSetup)


@pytest.mark.parametrize("text", ["", "{}", '{"round": 0}', '{"round": "2"}'])
def test_the_error_names_the_file_of_a_damaged_record_of_the_held_factors(
    tmp_path: Path, ratings: Ratings, text: str
) -> None:
    write_population(
        tmp_path / "run",
        ratings,
        users_per_node=10,
        keys=KEYS,
        faults=FaultOptions(),
        setup=SETUP,
    )
    write_held_factors(tmp_path / "run", HeldFactors(2, np.zeros((30, 2), dtype=np.float32)))
    path = tmp_path / "run" / "held.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        open_population(str(tmp_path / "run"))
    assert caught.value.where.startswith(f"{path}, ")
