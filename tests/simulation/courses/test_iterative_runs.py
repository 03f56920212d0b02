"""Iterative runs from the outside: killed, resumed, divided, starved of reports, stopped early."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyLossDistribution, compose
from dprec.datasets import Synthetic
from dprec.errors import RunError
from dprec.gradients import OneBitGradient
from dprec.protocols.base import Public
from dprec.protocols.iterative import FactorsDevice, IterativeProtocol
from dprec.protocols.rounds import EarlyStopping
from dprec.ratings import Ratings
from simulation import load, run
from simulation.courses.rounds import BroadcastCourse
from simulation.storage import run_directory
from strategies.participation import RoundRecord
from strategies.roster import Roster
from strategies.training import BroadcastRounds
from tests.killed import configuration, kill_repeatedly, of_gradients, of_sums, results

ROUNDS = 6
GRADIENTS = [
    {"gradient": {"kind": "one-bit"}, "privacy": {"epsilon": 3.0, "per": "user"}},
    {"gradient": {"kind": "full"}},
]


@pytest.fixture
def rounds(tiny: dict[str, Any]) -> dict[str, Any]:
    """Return an iterative run in which everything is switched on."""
    return {
        **tiny,
        "protocol": {
            "kind": "iterative",
            **copy.deepcopy(GRADIENTS[0]),
            "rounds": ROUNDS,
            "rank": 2,
            "step": {"size": 0.05},
            "sampling": {"fraction": 0.7},
            "downlink": {"dtype": "float16", "delta": True},
        },
        "simulation": {
            "backend": "local",
            "users_per_node": 7,
            "faults": {"dropout": 0.1, "straggle": 0.1, "corrupt": 0.1},
        },
    }


def lines_of(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    return [{**line, "seconds": None} for line in lines]


def result_of(folder: Path) -> dict[str, Any]:
    return {**results(folder), "rounds": lines_of(folder)}


def test_a_user_pays_for_its_rounds_and_never_more_than_the_budget(rounds: dict[str, Any]) -> None:
    rounds["simulation"]["faults"] = {}
    traffic = run(rounds).traffic
    taken = (traffic["messages"] - 2) / 2
    assert np.unique(taken).size > 1
    np.testing.assert_allclose(traffic["epsilon_per_user"], taken * 3.0 / ROUNDS, rtol=1e-8)
    rounds["protocol"]["sampling"] = {}
    spent = run(rounds).traffic["epsilon_per_user"]
    np.testing.assert_allclose(spent, 3.0, rtol=1e-8)
    assert (spent <= 3.0).all()


def test_every_round_says_the_largest_loss_so_far(rounds: dict[str, Any]) -> None:
    rounds["protocol"]["privacy"] |= {"composition": "pld", "delta": 1e-6}
    result = run(rounds)
    history = result.privacy.history
    expected = [
        replace(result.privacy, history=history[:number]).get_epsilon(1e-6).max()
        for number in range(1, ROUNDS + 1)
    ]
    assert len(history) == ROUNDS
    said = [line["epsilon"] for line in result.rounds]
    assert said == pytest.approx(expected, rel=1e-12)
    assert said == sorted(said)
    assert said[0] < said[-1] == result.summary["privacy"]["epsilon_composed"]["max"]


@pytest.mark.thorough
@pytest.mark.parametrize("protocol", [of_gradients, of_sums])
def test_a_run_that_is_killed_ends_with_the_same_bits(tmp_path: Path, protocol: Any) -> None:
    total = 40
    values = configuration(protocol(total))
    run(values, tmp_path / "alone", page=False)
    ended = list(kill_repeatedly(tmp_path, values, total, kills=1, seed=2))
    assert len(ended) == 1
    assert ended[-1] > 0
    assert results(tmp_path / "killed") == results(tmp_path / "alone")
    assert lines_of(tmp_path / "killed") == lines_of(tmp_path / "alone")
    # Nothing of the killed writes is left.
    assert {path.name for path in (tmp_path / "killed").iterdir()} == {
        path.name for path in (tmp_path / "alone").iterdir()
    }


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("gradient", "early_stopping"),
    [(GRADIENTS[0], None), (GRADIENTS[1], {"patience": 4, "validation_fraction": 0.2})],
    ids=["one-bit", "full, early stopping"],
)
def test_a_run_killed_in_any_round_ends_with_the_same_bits(
    tmp_path: Path,
    rounds: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    gradient: dict[str, Any],
    early_stopping: dict[str, Any] | None,
) -> None:
    rounds["protocol"].pop("privacy")
    rounds["protocol"].update(gradient)
    if early_stopping:
        rounds["protocol"]["early_stopping"] = early_stopping
    run(rounds, tmp_path / "alone", page=False)
    saved = run_directory.Checkpoints.save

    def dying(self: run_directory.Checkpoints, state: Any) -> None:
        # Alternately with the state of the round kept, and lost.
        if len(state.records) % 2:
            saved(self, state)
            raise Killed
        if lives.pop():
            raise Killed
        saved(self, state)

    lives = [False, True] * ROUNDS
    monkeypatch.setattr(run_directory.Checkpoints, "save", dying)
    deaths = 0
    for _ in range(3 * ROUNDS):
        try:
            run(rounds, tmp_path / "killed", resume=True, page=False)
            break
        except Killed:
            deaths += 1
    assert deaths >= 4
    assert result_of(tmp_path / "killed") == result_of(tmp_path / "alone")


def test_without_any_report_the_run_fails_keeps_its_state_and_can_go_on(
    tmp_path: Path, rounds: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds["protocol"]["max_empty_rounds"] = 2
    silent = {**rounds, "simulation": {"backend": "local", "faults": {"dropout": 1.0}}}
    for done in (2, 3):
        with pytest.raises(RunError, match=rf"round {done}.*max_empty_rounds"):
            run(silent, tmp_path / "mute", resume=True, page=False)
        assert (tmp_path / "mute" / "checkpoint.npz").exists()
        assert not (tmp_path / "mute" / "summary.json").exists()

    # An outage of the nodes, not of the configuration: afterwards the run goes on as if nothing was.
    installed = BroadcastRounds.aggregate_train

    def outage(self: Any, server_round: int, replies: Any) -> Any:
        return installed(self, server_round, [] if server_round in (3, 4) else replies)

    monkeypatch.setattr(BroadcastRounds, "aggregate_train", outage)
    with pytest.raises(RunError):
        run(rounds, tmp_path / "run", page=False)
    monkeypatch.undo()
    lines = run(rounds, tmp_path / "run", resume=True, page=False).rounds
    assert [line["replies"] == 0 for line in lines] == [False, False, True, True, False, False]


def test_early_stopping_keeps_the_best_round(rounds: dict[str, Any]) -> None:
    """Steps that are far too long get worse and worse."""
    rounds["protocol"].update(
        rounds=40,
        step={"size": 5.0, "decay": 0.0},
        early_stopping={"patience": 3, "validation_fraction": 0.3},
        sampling={},
    )
    result = run(rounds)
    done = len(result.rounds)
    assert done < 40
    notes = result.summary["privacy"]["notes"]
    assert any(f"Stopped after round {done} with the factors of round {done - 3}" in note for note in notes)
    assert result.summary["accuracy"]["rmse"] == pytest.approx(result.rounds[done - 4]["accuracy"]["rmse"])
    # A round that was not run is not paid for.
    assert result.summary["privacy"]["epsilon_per_user"]["max"] <= done * 3.0 / 40
    assert result.summary["traffic"]["rounds"] == done


SEED = 3
STOPPING = EarlyStopping(patience=2, validation_fraction=0.25)
TRAIN: Ratings = Synthetic(users=20, items=10, ratings=120).load()


PROTOCOL = IterativeProtocol(gradient=OneBitGradient(), rounds=4, rank=2, early_stopping=STOPPING)


class Fixed(FactorsDevice):
    """A device that predicts one number."""

    def predicting(self, held: Ratings) -> dict[str, Any]:
        return {"predict": lambda users, items: np.full(users.size, self.factors[0, 0])}


def test_only_the_ratings_held_back_judge_and_the_best_round_is_remembered() -> None:
    held_back = TRAIN.select(STOPPING.held_back(TRAIN, SEED))
    mean, course = float(held_back.values.mean()), BroadcastCourse(PROTOCOL)
    rounds = BroadcastRounds(
        protocol=PROTOCOL,
        public=Public.of(TRAIN),
        seed=SEED,
        public_seed=SEED,
        group="",
        roster=Roster((None,), TRAIN.n_users, TRAIN.n_users),
        rated=TRAIN.counts > 0,
    )
    stopped, learned = [], []
    for number, distance in enumerate((2.0, 0.0, 1.0, 3.0), start=1):
        rounds.records.append(RoundRecord(number, 1, 0, None, 0, 0, 0, 0, 0.0))
        learned.append(Fixed(PROTOCOL, np.full((TRAIN.n_items, 2), mean + distance)))
        course.remember_best(rounds, learned[-1], TRAIN, SEED)
        stopped.append(course.exhausted(rounds))
    assert rounds.best_round == 2
    assert rounds.best is learned[1]
    assert rounds.best_error == np.sqrt(np.mean((held_back.values - mean) ** 2))
    assert stopped == [False, False, False, True]


def test_devices_hold_no_rating_that_is_held_back() -> None:
    held_back = STOPPING.held_back(TRAIN, SEED)
    held = BroadcastCourse(PROTOCOL).held_ratings(TRAIN, SEED)
    assert held.users.tolist() == TRAIN.users[~held_back].tolist()
    assert held.items.tolist() == TRAIN.items[~held_back].tolist()


def protocol_of(*settings: str) -> IterativeProtocol:
    budget = "protocol.privacy={epsilon: 1, per: user, composition: pld, delta: 1e-6}"
    protocol = load("pg-mf", ["protocol.rounds=50", budget, *settings]).protocol
    assert isinstance(protocol, IterativeProtocol)
    return protocol


def test_fifty_bits_keep_to_the_budget_with_more_than_the_share_of_a_sum() -> None:
    composed, added = protocol_of(), protocol_of("protocol.privacy.composition=sum")
    assert added.epsilon_per_round == pytest.approx(1 / 50)
    assert 1.7 < composed.epsilon_per_round * 50 < 1.75
    for protocol, spent in ((composed, 1.0), (added, 0.557)):
        channel = protocol._channel_at(protocol.epsilon_per_round)
        together = compose([(PrivacyLossDistribution.of(channel), 50)]).epsilon(1e-6)
        assert 0.995 * spent < together <= 1.0
        assert together == pytest.approx(spent, rel=0.01)
