"""What nodes open of a population, and what messages bring beside it."""

import json
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from clients.faults import FaultOptions
from clients.memory import Memory
from clients.population import (
    Brought,
    HeldFactors,
    open_population,
    write_population,
)
from dprec.accounting import PrivacyBudget
from dprec.components import option
from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.exchange import IterativeSetup, OneShotSetup, Setup
from dprec.mechanisms import Channel, Mechanism
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.randomness import RunKeys
from dprec.ratings import Ratings, RatingScale
from dprec.wire import BroadcastOptions

KEYS = RunKeys.derive(10**30).installed
SETUP = OneShotSetup(mechanism=BoundedLaplace(), privacy=PrivacyBudget(epsilon=1.0))


def install(folder: Path, ratings: Ratings, *, users_per_node: int = 10, setup: Setup | None = SETUP) -> None:
    faults = FaultOptions()
    write_population(folder, ratings, users_per_node=users_per_node, keys=KEYS, faults=faults, setup=setup)


@pytest.fixture
def ratings() -> Ratings:
    return Synthetic(users=23, items=30, ratings=250).load()


@pytest.mark.parametrize("users_per_node", [1, 4, 23, 100])
def test_partitions_divide_the_population(tmp_path: Path, ratings: Ratings, users_per_node: int) -> None:
    folder = tmp_path / "run"
    install(folder, ratings, users_per_node=users_per_node)
    population = open_population(str(folder))
    assert population.n_users == 23
    assert population.n_items == 30
    assert population.keys == KEYS
    assert population.setup == SETUP
    assert population.scale.values.tolist() == ratings.scale.values.tolist()
    nodes = -(-23 // users_per_node)
    partitions = [population.partition(partition_id) for partition_id in range(nodes)]
    assert [user for partition in partitions for user in range(partition.start, partition.stop)] == list(
        range(23)
    )
    assert np.concatenate([partition.items for partition in partitions]).tolist() == ratings.items.tolist()
    assert np.concatenate([partition.levels for partition in partitions]).tolist() == ratings.levels.tolist()
    assert np.concatenate([partition.counts for partition in partitions]).tolist() == ratings.counts.tolist()


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
    install(tmp_path / "run", ratings)
    path = tmp_path / "run" / "population.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entry))
    with pytest.raises(InputError) as caught:
        open_population(str(tmp_path / "run"))
    assert caught.value.where.startswith(f"{path}, {key}")


def test_devices_answer_the_requests_of_their_own_protocol_alone(tmp_path: Path, ratings: Ratings) -> None:
    install(tmp_path / "run", ratings)
    population = open_population(str(tmp_path / "run"))
    assert population.installed(OneShotSetup) == SETUP
    with pytest.raises(ValueError, match="set up for one-shot"):
        population.installed(IterativeSetup)


OURS = BoundedLaplace()


@dataclass(frozen=True, kw_only=True)
class Truthful(Mechanism):
    """Every level as it is with one probability, and any other with the rest."""

    kind: str = "truthful"
    weights: Any = option("What a level's probability is multiplied by.", 1.0)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        same = 1 + np.expm1(epsilon) * np.eye(scale.levels)
        return Channel.from_probabilities(same * self.weights, scale.values, scale.values, epsilon)


def setup_of(mechanism: Mechanism) -> OneShotSetup:
    return OneShotSetup(mechanism=mechanism, privacy=PrivacyBudget(epsilon=1.0))


def population(folder: Path, setup: Setup | None) -> Path:
    """Write a population and return the file that describes it."""
    install(folder, Synthetic(users=5, items=6, ratings=20).load(), setup=setup)
    return folder / "population.json"


class Planted:
    """A pickle that makes a folder when it is read."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


def test_a_pickle_in_the_folder_is_never_read(tmp_path: Path) -> None:
    file, place = population(tmp_path / "run", None), tmp_path / "planted"
    (tmp_path / "run" / "setup.pickle").write_bytes(pickle.dumps(Planted(place)))
    with pytest.raises(InputError, match=f"^{file}, setup: none; accepted: a setup"):
        open_population(str(tmp_path / "run"))
    assert not place.exists()
    pickle.loads((tmp_path / "run" / "setup.pickle").read_bytes())
    assert place.exists()  # so it would have been noticed


def rename(file: Path, kind: str) -> None:
    values = json.loads(file.read_text())
    values["setup"]["mechanism"] = {"kind": kind}
    file.write_text(json.dumps(values))


@pytest.mark.parametrize("kind", ["os:system", "planted_module:Evil", "subprocess:Popen"])
def test_a_class_that_nobody_has_named_is_refused_without_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place = tmp_path / "planted"
    (tmp_path / "planted_module.py").write_text(f"import os\nos.mkdir({str(place)!r})\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = population(tmp_path / "run", setup_of(OURS))
    rename(file, kind)
    with pytest.raises(InputError) as caught:
        open_population(str(tmp_path / "run"), Brought(classes=frozenset({"own_geometric:Geometric"})))
    found = f"{kind!r}, a class that was not named when this run was started"
    accepted = "a component of dprec or own_geometric:Geometric"
    assert str(caught.value) == f"{file}, setup.mechanism.kind: {found}; accepted: {accepted}"
    assert not place.exists()


def test_a_class_of_a_module_is_told_by_its_name_and_settings(tmp_path: Path) -> None:
    setup = setup_of(Truthful(weights=2.0))
    brought = Brought.for_setup(setup)
    assert brought.setup is None
    assert brought.classes == {f"{__name__}:Truthful"}
    file = population(tmp_path / "run", setup)
    assert json.loads(file.read_text())["setup"]["mechanism"] == {
        "kind": f"{__name__}:Truthful",
        "weights": 2.0,
    }
    assert open_population(str(tmp_path / "run"), brought).setup == setup


@pytest.mark.parametrize("why", ["of the running program", "with an array"])
def test_what_has_no_name_or_no_settings_in_a_file_is_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    weights = np.full((5, 5), 2.0) if why == "with an array" else 2.0
    if why == "of the running program":
        monkeypatch.setattr(Truthful, "__module__", "__main__")
    brought = Brought.for_setup(setup_of(Truthful(weights=weights)))
    assert brought.setup is not None
    file = population(tmp_path / "run", None)
    assert json.loads(file.read_text())["setup"] is None
    opened = open_population(str(tmp_path / "run"), brought).setup
    assert isinstance(opened, OneShotSetup)
    assert type(opened.mechanism).__name__ == "Truthful"
    np.testing.assert_array_equal(opened.mechanism.weights, weights)  # type: ignore[attr-defined]


ROUNDS = 4
OPTIONS = BroadcastOptions(delta=True)
FACTORS = np.arange(6, dtype="<f4").reshape(3, 2)


@pytest.fixture
def context() -> Context:
    return Context(1, 1, {}, RecordDict(), {})


LONG = bytes(range(256)) * 40
"""As long as item factors are."""


@pytest.mark.parametrize(
    ("broadcast", "other"),
    [
        (b"broadcast", b"other"),
        (b"broadcast", b""),
        (b"broadcast", b"broadcast "),
        *((LONG, LONG[:at] + b"\xaa" + LONG[at + 1 :]) for at in (0, 15, 16, 64, 5000, len(LONG) - 1)),
        (LONG, LONG[:-1]),
        (LONG, LONG + LONG),
    ],
)
def test_another_broadcast_for_the_same_round_is_refused(
    context: Context, broadcast: bytes, other: bytes
) -> None:
    memory = Memory(context, "run", ROUNDS)
    memory.answer_once(2, broadcast)
    with pytest.raises(ValueError, match="asked for round 2 again, after round 2 was answered"):
        memory.answer_once(2, other)
    # The refusal has changed nothing.
    memory.answer_once(2, broadcast)


def test_an_earlier_round_is_refused_even_for_the_same_broadcast(context: Context) -> None:
    memory = Memory(context, "run", ROUNDS)
    memory.answer_once(1, b"broadcast")
    memory.answer_once(3, b"broadcast")
    for earlier in (1, 2):
        with pytest.raises(ValueError, match=f"asked for round {earlier} again, after round 3"):
            memory.answer_once(earlier, b"broadcast")
    memory.answer_once(4, b"other")


@pytest.mark.parametrize("round_index", [0, -1, ROUNDS + 1, 2**40])
def test_no_round_beyond_those_that_the_budget_was_divided_by(context: Context, round_index: int) -> None:
    memory = Memory(context, "run", ROUNDS)
    with pytest.raises(ValueError, match=f"asked for round {round_index} of {ROUNDS}"):
        memory.answer_once(round_index, b"broadcast")
    memory.answer_once(1, b"other")


def test_another_run_has_a_memory_of_its_own(context: Context) -> None:
    first, second = Memory(context, "first", ROUNDS), Memory(context, "second", ROUNDS)
    first.answer_once(3, b"broadcast")
    second.answer_once(1, b"other")
    with pytest.raises(ValueError, match="round 1 again, after round 3"):
        first.answer_once(1, b"other")
    first.hold(FACTORS)
    assert second.held(OPTIONS, FACTORS.shape) is None


def test_a_resumed_run_is_remembered(context: Context) -> None:
    memory = Memory(context, "run", ROUNDS, HeldFactors(2, FACTORS))
    held = memory.held(OPTIONS, FACTORS.shape)
    assert held is not None
    assert held.tolist() == FACTORS.tolist()
    with pytest.raises(ValueError, match="round 1 again, after round 2"):
        memory.answer_once(1, FACTORS.tobytes())
    with pytest.raises(ValueError, match="round 2 again, after round 2"):
        memory.answer_once(2, (FACTORS + 1).tobytes())
    memory.answer_once(2, FACTORS.tobytes())
    memory.answer_once(3, b"other")
    memory.hold(FACTORS + 1)
    held = memory.held(OPTIONS, FACTORS.shape)
    assert held is not None
    assert held.tolist() == (FACTORS + 1).tolist()
