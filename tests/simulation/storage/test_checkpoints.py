"""Checkpoints: everything comes back bit for bit, or the file is refused with what is wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError
from dprec.privacy.ledger_arrays import ledger_arrays
from dprec.randomness import generator
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from simulation.storage.run_directory import CHECKPOINT, Checkpoints, RunDirectory
from strategies.iterative import State
from strategies.round_record import RoundRecord

USERS, ITEMS, RANK = 9, 6, 2


def state_after(rounds: int) -> State:
    draws = generator(rounds, "state")
    state = State.begin(np.arange(USERS) % 4 > 0, ITEMS, RANK, 1)
    if rounds:
        state.factors = draws.normal(size=(ITEMS, RANK))
        state.velocity = draws.normal(size=(ITEMS, RANK))
        state.best_factors = draws.normal(size=(ITEMS, RANK))
        state.broadcast = state.factors.astype(np.float16)
        state.holders = draws.random(USERS) < 0.5
        state.traffic.charge_uplink(slice(2, 5), 10, 20)
        state.traffic.charge_downlink(slice(None), 100, 200)
        for number in range(1, rounds + 1):
            state.privacy.charge(number, draws.random(USERS) < 0.5, 0.1 * number, draws.random(USERS))
        state.best_error, state.best_round = 0.1 + 0.2, rounds
    accuracy = {"rmse": 1 / 3, "k": 10, "f_score_at_k": None}
    state.records = [
        RoundRecord(number, 7, 2, accuracy if number % 2 else None, 1, 2, 3, 4, 0.1)
        for number in range(1, rounds + 1)
    ]
    return state


def contents(state: State) -> dict[str, Any]:
    arrays = {
        **{
            name: getattr(state, name)
            for name in ("factors", "velocity", "best_factors", "holders", "broadcast")
        },
        **{f"traffic {name}": column for name, column in vars(state.traffic).items()},
        **{f"privacy {name}": column for name, column in ledger_arrays(state.privacy).items()},
    }
    return {
        **{name: None if array is None else (array.dtype, array.tobytes()) for name, array in arrays.items()},
        "records": state.records,
        "best": (state.best_error, state.best_round),
    }


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / CHECKPOINT, {"seed": 1, "protocol.rounds": 5})


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_a_state_comes_back_bit_for_bit(checkpoints: Checkpoints, rounds: int) -> None:
    checkpoints.save(state_after(rounds))
    assert contents(checkpoints.load(state_after(0))) == contents(state_after(rounds))


def test_without_a_checkpoint_the_fresh_state_is_gone_on_from(checkpoints: Checkpoints) -> None:
    fresh = state_after(0)
    assert checkpoints.load(fresh) is fresh


def test_the_last_state_replaces_the_earlier_ones(checkpoints: Checkpoints) -> None:
    for rounds in (1, 2, 3):
        checkpoints.save(state_after(rounds))
    assert checkpoints.load(state_after(0)).rounds_done == 3
    assert [path.name for path in checkpoints.path.parent.iterdir()] == [CHECKPOINT]


@pytest.mark.parametrize(
    ("depends", "key", "found"),
    [
        ({"seed": 2, "protocol.rounds": 5}, "seed", "1 there and 2 now"),
        ({"seed": 1, "protocol.rounds": 6}, "protocol.rounds", "5 there and 6 now"),
        ({"seed": 1}, "protocol.rounds", "5 there and None now"),
        ({"seed": 1, "protocol.rounds": 5, "protocol.rank": 3}, "protocol.rank", "None there and 3 now"),
    ],
)
def test_a_checkpoint_of_another_configuration_is_refused_with_what_differs(
    checkpoints: Checkpoints, depends: dict[str, Any], key: str, found: str
) -> None:
    checkpoints.save(state_after(2))
    fresh = state_after(0)
    with pytest.raises(InputError) as caught:
        Checkpoints(checkpoints.path, depends).load(fresh)
    assert caught.value.where == f"{checkpoints.path}: {key}"
    assert caught.value.found == found
    assert contents(fresh) == contents(state_after(0))


@pytest.mark.parametrize(("users", "items"), [(USERS + 1, ITEMS), (USERS, ITEMS + 1)])
def test_a_checkpoint_of_other_ratings_is_refused(checkpoints: Checkpoints, users: int, items: int) -> None:
    checkpoints.save(state_after(2))
    with pytest.raises(InputError, match="of shape"):
        checkpoints.load(State.begin(np.ones(users, dtype=np.bool_), items, RANK, 1))


def test_a_checkpoint_without_a_history_of_losses_is_refused(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("simulation.storage.run_directory.ledger_arrays", lambda ledger: {})
        checkpoints.save(state_after(2))
    with pytest.raises(InputError, match=r"privacy ledger: .* delete it to start over"):
        checkpoints.load(state_after(0))


def refused(checkpoints: Checkpoints, content: bytes) -> None:
    checkpoints.path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        checkpoints.load(state_after(0))
    assert caught.value.where == str(checkpoints.path)
    assert caught.value.found == "truncated or damaged"
    assert "delete it" in caught.value.accepted


def test_a_truncated_checkpoint_is_refused(checkpoints: Checkpoints) -> None:
    checkpoints.save(state_after(2))
    whole = checkpoints.path.read_bytes()
    for length in {0, 1, 31, 32, 33, len(whole) // 2, len(whole) - 33, len(whole) - 32, len(whole) - 1}:
        refused(checkpoints, whole[:length])


def test_a_flipped_bit_anywhere_is_refused(checkpoints: Checkpoints) -> None:
    checkpoints.save(state_after(2))
    whole = checkpoints.path.read_bytes()
    draws = generator(1, "flips")
    places = {*range(64), *range(len(whole) - 96, len(whole)), *draws.integers(0, len(whole), 300).tolist()}
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(draws.integers(8))
        refused(checkpoints, bytes(damaged))


@pytest.mark.parametrize("content", [b"", b"nonsense", bytes(1000), b"PK\x03\x04" + bytes(100)])
def test_what_is_no_checkpoint_is_refused(checkpoints: Checkpoints, content: bytes) -> None:
    refused(checkpoints, content)


def test_a_checkpoint_depends_on_what_changes_a_result_alone(tmp_path: Path, tiny: dict[str, Any]) -> None:
    def depends(**simulation: Any) -> dict[str, Any]:
        config = parse_config({**tiny, "simulation": simulation})
        return RunDirectory(tmp_path).checkpoints(config, *load_ratings(config)).depends

    one = depends(backend="local", users_per_node=1)
    assert depends(backend="ray", workers=7) == one
    assert depends(backend="local", faults={"dropout": 0.5}) != one


def test_a_relative_path_is_the_same_data(
    tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = ("data.csv", str(tmp_path / "data.csv"))
    train, test = load_ratings(parse_config(tiny))
    configs = [parse_config({**tiny, "dataset": {"kind": "csv", "path": path}}) for path in paths]
    one, other = (RunDirectory(tmp_path).checkpoints(config, train, test) for config in configs)
    assert one.depends == other.depends


def test_other_ratings_of_the_same_shape_are_refused(tmp_path: Path, tiny: dict[str, Any]) -> None:
    config = parse_config(tiny)
    train, test = load_ratings(config)
    RunDirectory(tmp_path).checkpoints(config, train, test).save(state_after(2))
    same = replace(train, user_ids=train.user_ids.copy())
    assert RunDirectory(tmp_path).checkpoints(config, same, test).load(state_after(0)).rounds_done == 2
    levels = train.levels.copy()
    levels[-1] = levels[-1] % 5 + 1
    for changed in (
        replace(train, levels=levels),
        replace(train, user_ids=train.user_ids + 1),
        replace(train, item_ids=train.item_ids.astype(np.str_)),
    ):
        with pytest.raises(InputError, match=r"digest of the ratings: .* the configuration and data"):
            RunDirectory(tmp_path).checkpoints(config, changed, test).load(state_after(0))
