"""What a run stored comes back as it was, or with a clear error that names the file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyAccountant, PrivacyBudget
from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.reports import DeviceChannel
from simulation import run
from simulation.storage.run_files import (
    ExampleUser,
    line_of,
    parse_rounds,
    read_device_channel,
    read_example,
    read_ledger,
    write_channel,
    written_rounds,
)
from strategies.participation import RoundRecord
from tests.make import STARS

ROUNDS = (
    RoundRecord(1, 40, 2, {"rmse": 1.25, "mae": None, "k": 10}, 1, 2, 3, 4, 0.5),
    RoundRecord(2, 41, 1, None, 5, 6, 7, 8, 0.25, {"late": 1}, 0.75, {"norm": 2.5, "clip": 1.0}),
)


def test_rounds_come_back() -> None:
    text = "".join(written_rounds(ROUNDS))
    assert parse_rounds(text, "rounds.jsonl") == ROUNDS
    assert [json.loads(line) for line in text.splitlines()] == [line_of(record) for record in ROUNDS]


def test_a_line_without_losses_and_who_was_asked_is_read() -> None:
    line = {key: value for key, value in line_of(ROUNDS[0]).items() if key not in ("asked", "epsilon")}
    assert parse_rounds(json.dumps(line), "rounds.jsonl") == ROUNDS[:1]
    assert [line_of(record)["asked"] for record in ROUNDS] == [42, 42]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"replies": "many"}, "line 2: replies: 'many'; accepted: an integer"),
        ({"uplink": {"payload_bytes": 1}}, "line 2: uplink.message_bytes: missing"),
    ],
)
def test_a_line_that_is_no_round_is_named(change: dict[str, object], complaint: str) -> None:
    first, second = (line_of(record) for record in ROUNDS)
    text = f"{json.dumps(first)}\n{json.dumps({**second, **change})}\n"
    with pytest.raises(InputError, match=complaint):
        parse_rounds(text, "rounds.jsonl")


def device(kind: str = "bounded-laplace") -> DeviceChannel:
    mechanism = MECHANISMS[kind](kind=kind)
    budget = PrivacyBudget(epsilon=2.0, per="user")
    made = mechanism.family(budget, STARS, 200).device_channel(np.array([3, 5, 9]))
    assert made is not None
    return made


@pytest.mark.parametrize("kind", ["bounded-laplace", "zheng-randomized-response", "laplace"])
def test_the_channel_comes_back_to_the_last_draw(tmp_path: Path, kind: str) -> None:
    written = device(kind)
    write_channel(tmp_path, written)
    read = read_device_channel(tmp_path)
    assert read is not None
    assert (read.cells, read.per_user) == (written.cells, written.per_user)
    assert read.channel.weights.dtype == np.uint64
    np.testing.assert_array_equal(read.channel.weights, written.channel.weights)
    np.testing.assert_array_equal(read.channel.inputs, written.channel.inputs)
    np.testing.assert_array_equal(read.channel.values, written.channel.values)


def contents(ledger: PrivacyAccountant) -> dict[str, tuple[str, Any]]:
    return {name: (str(array.dtype), array.tolist()) for name, array in ledger.to_arrays().items()}


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_run_keeps_its_history(tmp_path: Path, tiny: dict[str, Any], rounds: int) -> None:
    if rounds > 1:
        gradient = {"kind": "one-bit"}
        budget = {"epsilon": 3.0, "per": "user"}
        tiny["protocol"] = {
            "kind": "iterative", "privacy": budget, "gradient": gradient, "rounds": rounds, "rank": 2,
        }  # fmt: skip
    result = run(tiny, tmp_path / "run", page=False)
    ledger = read_ledger(tmp_path / "run")
    assert [charge.round_index for charge in ledger.history] == list(range(1, rounds + 1))
    assert contents(ledger) == contents(result.privacy)
    assert ledger.get_epsilon(per="rating").tobytes() == result.traffic["epsilon_per_rating"].tobytes()
    assert ledger.get_epsilon().tobytes() == result.traffic["epsilon_per_user"].tobytes()
    again = run(tiny, tmp_path / "run", resume=True, page=False)
    assert contents(again.privacy) == contents(ledger)


HEADER = "user,item,rating,prediction\n"


def test_the_first_user_with_enough_test_ratings_is_the_example(tmp_path: Path) -> None:
    file = tmp_path / "predictions.csv"
    few = "".join(f"one,{item},3,2.5\n" for item in range(4))
    many = "".join(f"two,i{item},4,3.5\n" for item in range(12))
    file.write_text(HEADER + few + many)
    assert read_example(file) == ExampleUser("two", tuple((f"i{item}", 4.0, 3.5) for item in range(10)))
    file.write_text(HEADER + few)
    assert read_example(file) is None
