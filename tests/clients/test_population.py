"""What nodes open of a population, what messages bring beside it, and what devices remember."""

import json
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from clients.memory import Memory
from clients.population import Brought, HeldQuestion, open_population
from dprec.accounting import PrivacyBudget
from dprec.components import option
from dprec.errors import InputError
from dprec.mechanisms import Channel, Mechanism
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.protocols.base import Protocol
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.one_shot import OneShotProtocol
from dprec.randomness import RunKeys
from dprec.ratings import RatingScale
from dprec.wire import BroadcastOptions
from tests import make
from tests.builders import populated
from tests.make import synthetic

RATINGS = synthetic(23, 30, 250)
BUDGET = PrivacyBudget(epsilon=1.0)
SETUP = make.one_shot(BoundedLaplace(), BUDGET)


def described(folder: Path, protocol: Protocol | None = SETUP, size: int = 10) -> Path:
    """Write a population and return the file that describes it."""
    return populated(folder, RATINGS, protocol, size) / "population.json"


@pytest.mark.parametrize("users_per_node", [1, 4, 23, 100])
def test_partitions_divide_the_population(tmp_path: Path, users_per_node: int) -> None:
    described(tmp_path / "run", size=users_per_node)
    population = open_population(str(tmp_path / "run"))
    assert (population.n_users, population.n_items) == (23, 30)
    assert population.keys == RunKeys.derive(1).installed
    assert population.protocol == SETUP
    assert population.scale.values.tolist() == RATINGS.scale.values.tolist()
    partitions = [population.partition(number) for number in range(-(-23 // users_per_node))]
    assert [user for part in partitions for user in range(part.start, part.stop)] == list(range(23))
    for name in ("items", "levels", "counts"):
        parts = np.concatenate([getattr(part, name) for part in partitions])
        assert parts.tolist() == getattr(RATINGS, name).tolist()


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"users_per_node": 0}, "users_per_node"),
        ({"keys": {}}, "keys.devices"),
        ({"protocol": {"kind": "one-shot", "mechanism": {"kind": "lies"}}}, "protocol.mechanism"),
        ({"epsilons": "0120"}, "epsilons"),
        ({"epsilons": "two"}, "epsilons"),
    ],
)
def test_the_error_names_file_and_key_of_a_damaged_description(
    tmp_path: Path, entry: dict[str, Any], key: str
) -> None:
    file = described(tmp_path / "run")
    file.write_text(json.dumps(json.loads(file.read_text()) | entry))
    with pytest.raises(InputError) as caught:
        open_population(str(tmp_path / "run"))
    assert caught.value.where.startswith(f"{file}, {key}")


def test_every_device_has_the_epsilon_that_its_user_has_chosen(tmp_path: Path) -> None:
    chosen = np.arange(23, dtype=np.uint8) % 10
    populated(tmp_path / "run", RATINGS, SETUP, 5, epsilons=chosen)
    population = open_population(str(tmp_path / "run"))
    numbers = [population.partition(number).numbers for number in range(5)]
    assert np.concatenate([own for own in numbers if own is not None]).tolist() == chosen.tolist()
    described(tmp_path / "other")
    assert open_population(str(tmp_path / "other")).partition(0).numbers is None


def test_devices_answer_the_requests_of_their_own_protocol_alone(tmp_path: Path) -> None:
    described(tmp_path / "run")
    population = open_population(str(tmp_path / "run"))
    assert population.installed(OneShotProtocol) == SETUP
    with pytest.raises(ValueError, match="take part in one-shot"):
        population.installed(IterativeProtocol)


@dataclass(frozen=True, kw_only=True)
class Truthful(Mechanism):
    """Every level as it is with one probability, and any other with the rest."""

    kind: str = "truthful"
    weights: Any = option("What a level's probability is multiplied by.", 1.0)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        same = 1 + np.expm1(epsilon) * np.eye(scale.levels)
        return Channel.from_probabilities(same * self.weights, scale.values, scale.values, epsilon)


class Planted:
    """A pickle that makes a folder when it is read."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


def test_a_pickle_in_the_folder_is_never_read(tmp_path: Path) -> None:
    file, place = described(tmp_path / "run", None), tmp_path / "planted"
    (tmp_path / "run" / "protocol.pickle").write_bytes(pickle.dumps(Planted(place)))
    with pytest.raises(InputError, match=f"^{file}, protocol: none; accepted: a protocol"):
        open_population(str(tmp_path / "run"))
    assert not place.exists()
    pickle.loads((tmp_path / "run" / "protocol.pickle").read_bytes())
    assert place.exists()  # so it would have been noticed


@pytest.mark.parametrize("kind", ["os:system", "planted_module:Evil", "subprocess:Popen"])
def test_a_class_that_nobody_has_named_is_refused_without_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place = tmp_path / "planted"
    (tmp_path / "planted_module.py").write_text(f"import os\nos.mkdir({str(place)!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = described(tmp_path / "run")
    values = json.loads(file.read_text())
    values["protocol"]["mechanism"] = {"kind": kind}
    file.write_text(json.dumps(values))
    with pytest.raises(InputError) as caught:
        open_population(str(tmp_path / "run"), Brought(classes=frozenset({"own_geometric:Geometric"})))
    found = f"{kind!r}, a class that was not named when this run was started"
    accepted = "a component of dprec or own_geometric:Geometric"
    assert str(caught.value) == f"{file}, protocol.mechanism.kind: {found}; accepted: {accepted}"
    assert not place.exists()


@pytest.mark.parametrize("how", ["named", "of the running program", "with an array"])
def test_what_has_no_name_or_no_settings_in_a_file_is_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    weights = np.full((5, 5), 2.0) if how == "with an array" else 2.0
    if how == "of the running program":
        monkeypatch.setattr(Truthful, "__module__", "__main__")
    protocol = make.one_shot(Truthful(weights=weights), BUDGET)
    brought = Brought.for_protocol(protocol)
    assert (brought.protocol is None) == (how == "named")
    file = described(tmp_path / "run", protocol if how == "named" else None)
    if how == "named":
        named = f"{__name__}:Truthful"
        assert brought.classes == {named}
        assert json.loads(file.read_text())["protocol"]["mechanism"] == {"kind": named, "weights": 2.0}
    opened: Any = open_population(str(tmp_path / "run"), brought).protocol
    assert type(opened.mechanism).__name__ == "Truthful"
    np.testing.assert_array_equal(opened.mechanism.weights, weights)


ROUNDS = 4
OPTIONS = BroadcastOptions(delta=True)
FACTORS = np.arange(6, dtype="<f4").reshape(3, 2)
LONG = bytes(range(256)) * 40
"""As long as item factors are."""


@pytest.fixture
def memory() -> Memory:
    return Memory(Context(1, 1, {}, RecordDict(), {}), "run", ROUNDS)


@pytest.mark.parametrize(
    ("broadcast", "other"),
    [
        (b"broadcast", b""),
        (b"broadcast", b"broadcast "),
        *((LONG, LONG[:at] + b"\xaa" + LONG[at + 1 :]) for at in (0, 15, 16, 64, 5000, len(LONG) - 1)),
        (LONG, LONG[:-1]),
        (LONG, LONG + LONG),
    ],
)
def test_another_broadcast_for_the_same_round_is_refused(
    memory: Memory, broadcast: bytes, other: bytes
) -> None:
    memory.answer_once(2, broadcast)
    with pytest.raises(ValueError, match="asked for round 2 again, after round 2 was answered"):
        memory.answer_once(2, other)
    # The refusal has changed nothing.
    memory.answer_once(2, broadcast)


def test_an_earlier_round_is_refused_even_for_the_same_broadcast(memory: Memory) -> None:
    memory.answer_once(1, b"broadcast")
    memory.answer_once(3, b"broadcast")
    for earlier in (1, 2):
        with pytest.raises(ValueError, match=f"asked for round {earlier} again, after round 3"):
            memory.answer_once(earlier, b"broadcast")
    memory.answer_once(4, b"other")


@pytest.mark.parametrize("round_index", [0, -1, ROUNDS + 1, 2**40])
def test_no_round_beyond_those_that_the_budget_was_divided_by(memory: Memory, round_index: int) -> None:
    with pytest.raises(ValueError, match=f"asked for round {round_index} of {ROUNDS}"):
        memory.answer_once(round_index, b"broadcast")
    memory.answer_once(1, b"other")


def test_another_run_has_a_memory_of_its_own_and_a_resumed_one_is_remembered() -> None:
    context = Context(1, 1, {}, RecordDict(), {})
    first = Memory(context, "first", ROUNDS, HeldQuestion(2, b"sent", b"asked"))
    second = Memory(context, "second", ROUNDS)
    second.answer_once(1, b"other")
    assert second.held() is None
    for round_index, question in ((1, b"asked"), (2, b"sent")):
        with pytest.raises(ValueError, match=f"round {round_index} again, after round 2"):
            first.answer_once(round_index, question)
    first.answer_once(2, b"asked")
    first.answer_once(3, b"other")
    for sent in (b"sent", b"sent later"):
        assert first.held() == sent
        first.hold(b"sent later")
