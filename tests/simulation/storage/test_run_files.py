"""What a run stored comes back as it was, or with a clear error that names the file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.accounting import PrivacyAccountant, PrivacyBudget
from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.randomness import generator
from dprec.ratings import Ratings, RatingScale
from dprec.reports import DeviceChannel
from simulation import run
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from simulation.protocols.domains import AlterEgo, LayeredDomain, LearnedDomains
from simulation.storage.run_files import (
    ExampleUser,
    line_of,
    parse_rounds,
    read_device_channel,
    read_example,
    read_ledger,
    read_run,
    shown_names,
    write_channel,
    write_ledger,
    written_rounds,
)
from strategies.participation import RoundRecord
from tests.refusals import refused_at

ROUNDS = (
    RoundRecord(1, 40, 2, {"rmse": 1.25, "mae": None, "k": 10}, 1, 2, 3, 4, 0.5),
    RoundRecord(2, 41, 1, None, 5, 6, 7, 8, 0.25),
)


def test_rounds_come_back() -> None:
    text = "".join(written_rounds(ROUNDS))
    assert parse_rounds(text, "rounds.jsonl") == ROUNDS
    assert [json.loads(line) for line in text.splitlines()] == [line_of(record) for record in ROUNDS]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"replies": "many"}, "line 2: replies: 'many'; accepted: an integer"),
        ({"uplink": {"payload_bytes": 1}}, "line 2: uplink.message_bytes: missing"),
        ({"more": 1}, "line 2: more: an unknown key"),
    ],
)
def test_a_line_that_is_no_round_is_named(change: dict[str, object], complaint: str) -> None:
    first, second = (line_of(record) for record in ROUNDS)
    text = f"{json.dumps(first)}\n{json.dumps({**second, **change})}\n"
    with pytest.raises(InputError, match=complaint):
        parse_rounds(text, "rounds.jsonl")


def test_a_line_that_is_no_json_is_named() -> None:
    with refused_at("rounds.jsonl, line 2"):
        parse_rounds(f"{json.dumps(line_of(ROUNDS[0]))}\n{{\n", "rounds.jsonl")


def device(kind: str = "bounded-laplace") -> DeviceChannel:
    mechanism = MECHANISMS[kind](kind=kind)
    budget = PrivacyBudget(epsilon=2.0, per="user")
    scale = RatingScale.evenly(1.0, 5.0, 1.0)
    made = mechanism.family(budget, scale, 200).device_channel(np.array([3, 5, 9]))
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


def test_no_file_no_channel(tmp_path: Path, tiny: dict[str, Any]) -> None:
    tiny["protocol"] = {**tiny["protocol"], "privacy": None, "mechanism": {"kind": "none"}}
    run(tiny, tmp_path, page=False)
    assert not (tmp_path / "channel.npz").exists()
    assert read_run(tmp_path).channel is None


def test_a_level_that_no_test_rating_has_is_in_the_channel_and_on_the_page(
    tmp_path: Path, tiny: dict[str, Any]
) -> None:
    data = tmp_path / "ratings.csv"
    # One rating alone is a 4, and the split leaves it in the training ratings.
    rows = [(user, item, (1, 2, 3, 5)[(user + item) % 4]) for user in range(20) for item in range(10)]
    rows[0] = (0, 0, 4)
    data.write_text("\n".join(["user,item,rating", *(f"{u},{i},{r}" for u, i, r in rows)]))
    tiny["dataset"] = {"kind": "csv", "path": str(data), "low": 1, "high": 5}
    _, test = load_ratings(parse_config(tiny))
    assert 4 not in test.values
    result = run(tiny, tmp_path / "run")
    assert result.summary["dataset"]["levels"] == [1, 2, 3, 4, 5]
    stored = read_device_channel(tmp_path / "run")
    assert stored is not None
    assert stored.channel.inputs.tolist() == [1, 2, 3, 4, 5]
    assert stored.channel.epsilon == pytest.approx(1.0, rel=1e-3)
    assert "is read as" in (tmp_path / "run" / "report.html").read_text()


def test_x_map_with_noise_on_the_device_shows_its_mechanism(tmp_path: Path, tiny: dict[str, Any]) -> None:
    tiny["dataset"] = {"kind": "synthetic-domains", "users": 40, "items": 60, "ratings": 800}
    tiny["split"] = {"kind": "cold-start", "test_fraction": 0.4}
    tiny["protocol"] = {
        "kind": "x-map",
        "privacy": {"epsilon": 1.0, "per": "rating"},
        "mechanism": {"kind": "laplace"},
        "replacement": {"selection": "best"},
    }
    run(tiny, tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "What the mechanism sends" in page
    assert "no mechanism that maps a rating" not in page
    stored = read_device_channel(tmp_path / "run")
    assert stored is not None
    assert stored.channel.epsilon == pytest.approx(1.0, rel=1e-3)


def contents(ledger: PrivacyAccountant) -> dict[str, tuple[str, Any]]:
    return {name: (str(array.dtype), array.tolist()) for name, array in ledger.to_arrays().items()}


def ledger_of(users: int, rounds: int, seed: int) -> PrivacyAccountant:
    draws = generator(seed, "ledger")
    ledger = PrivacyAccountant(rated=draws.random(users) < 0.8)
    by_user = draws.random(users)
    for round_index in range(1, rounds + 1):
        ledger.step(round_index, draws.random(users) < 0.6, 0.1 * round_index, by_user)
    return ledger


@settings(deadline=None)
@given(users=st.integers(1, 20), rounds=st.integers(0, 5), seed=st.integers(0, 1000))
def test_the_history_comes_back(
    tmp_path_factory: pytest.TempPathFactory, users: int, rounds: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    written = ledger_of(users, rounds, seed)
    write_ledger(folder, written)
    assert contents(read_ledger(folder)) == contents(written)


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


def test_names_are_kept_of_the_items_that_are_shown() -> None:
    users, items = np.repeat([0, 1], [2, 12]), np.concatenate([np.arange(2), np.arange(12)])
    scale = RatingScale.evenly(1.0, 5.0, 1.0)
    test = Ratings.from_triples(users, items + 100, np.full(14, 3.0), scale, item_ids=np.arange(100, 112))
    names = {str(item): f"Film {item}" for item in range(100, 112) if item != 103}
    ego = AlterEgo("1", (1.0, 5.0), 1, 1, before=(("111", 4.0),), after=(("unknown", 2.0),))
    side = LayeredDomain("films", *[0] * 5)
    shown = {*map(str, range(100, 110)), "111"} - {"103"}
    assert shown_names(names, test, LearnedDomains(side, side, 0, ego)) == {
        item: f"Film {item}" for item in shown
    }
    assert shown_names({}, test, None) == {}
