"""Runs of sums that are interrupted go on after the last round, with the bits of one that was not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.protocols.registry import PROTOCOLS
from dprec.protocols.sums import SumsProtocol
from simulation import run
from simulation.storage.run_directory import CHECKPOINT, LESSON, Checkpoints
from strategies.sums import SumRounds
from tests.killed import results
from tests.make import small_run
from tests.refusals import refused_at

KINDS = [each.kind for each in PROTOCOLS if issubclass(each, SumsProtocol)]
IN_ROUNDS: dict[str, dict[str, Any]] = {
    "dp-als": {"factorization": {"rank": 2, "bias_rounds": 2, "factor_rounds": 2}},
    "dp-cmf": {"factorization": {"rank": 2, "bias_rounds": 2, "factor_rounds": 2}},
    "dp-ials": {"factorization": {"rank": 2, "rounds": 2, "item_share": 0.5}},
    "privirec": {"filters": {"rank": 4, "iterations": 2}, "aggregation": {"kind": "central"}},
    "public-start": {"table": {"items": 5, "popularity_share": 0.2}},
    "popularity": {"search": {"numbers": 64, "rounds": 3}},
    "gram": {
        "table": {
            "items": 5,
            "popularity_share": 0.4,
            "search": {"numbers": 64, "rounds": 2},
            "groups": 2,
            "grouped_items": 8,
        }
    },
}
ROUNDS = {
    "dp-als": 4,
    "dp-cmf": 4,
    "privirec": 4,
    "dp-ials": 3,
    "popularity": 3,
    "gram": 4,
    "pairs-in-blanket": 1,
    "public-start": 2,
    "sums-on-device": 2,
}
FAULTS = {"dropout": 0.1, "straggle": 0.1, "corrupt": 0.1}


def configured(kind: str, **own: Any) -> dict[str, Any]:
    """Return a run of several rounds, where the protocol has more than one."""
    privacy = {"epsilon": 4.0, "per": "user", "composition": "pld"}
    protocol = {"kind": kind, "privacy": privacy, **IN_ROUNDS.get(kind, {})}
    values = small_run(protocol, 40, 20, 400, split={"kind": "user-holdout", "test_fraction": 0.2})
    values["simulation"] = {"backend": "local", "users_per_node": 7}
    if PROTOCOLS[kind].predicted == "lists":
        values["dataset"]["positive"] = ">= 4"
    return values | own


class Killed(BaseException):
    """Stands for the end of the process."""


def killed(values: dict[str, Any], folder: Path, after: int) -> None:
    """Run until a round has been kept, and no further."""
    save = Checkpoints.save

    def dying(self: Checkpoints, state: Any) -> None:
        save(self, state)
        if len(state.records) == after:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", dying)
        with pytest.raises(Killed):
            run(values, folder, resume=True, page=False)


def result_of(folder: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    summary = json.loads((folder / "summary.json").read_text())
    told = {key: summary.get(key) for key in ("noise", "completion")}
    return {**results(folder), **told, "rounds": [{**line, "seconds": None} for line in lines]}


def resumed_after_every_round(values: dict[str, Any], folder: Path) -> int:
    """Compare a run that is killed after every round with one that is not; return the rounds."""
    run(values, folder / "alone", page=False)
    expected = result_of(folder / "alone")
    rounds = len(expected["rounds"])
    for number in range(1, rounds + 1):
        killed(values, folder / "killed", number)
    run(values, folder / "killed", resume=True, page=False)
    assert result_of(folder / "killed") == expected
    # Nothing is left of what only an unfinished run needs.
    names = [{path.name for path in (folder / each).iterdir()} for each in ("alone", "killed")]
    assert names[0] == names[1]
    return rounds


@pytest.mark.parametrize("kind", KINDS)
def test_every_protocol_goes_on_after_every_round(kind: str, tmp_path: Path) -> None:
    assert resumed_after_every_round(configured(kind), tmp_path) == ROUNDS[kind]


@pytest.fixture
def rounds() -> dict[str, Any]:
    """Return a run of four rounds."""
    return configured("dp-als")


AGGREGATIONS: list[dict[str, Any]] = [
    {"kind": "secure-aggregation", "norm": 1024, "colluders": 0, "dropouts": 0.4},
    {"kind": "local"},
]


@pytest.mark.parametrize("aggregation", AGGREGATIONS, ids=lambda each: each["kind"])
def test_a_run_goes_on_whoever_adds_up_and_whatever_is_lost_on_the_way(
    aggregation: dict[str, Any], rounds: dict[str, Any], tmp_path: Path
) -> None:
    rounds["simulation"]["faults"] = FAULTS
    rounds["protocol"]["aggregation"] = aggregation
    if aggregation["kind"] == "local":
        rounds["protocol"]["privacy"]["composition"] = "sum"
    resumed_after_every_round(rounds, tmp_path)


def test_users_who_represent_a_population_go_on(rounds: dict[str, Any], tmp_path: Path) -> None:
    rounds["dataset"] |= {"copies": 4000, "simulated_up_to": 40}
    resumed_after_every_round(rounds, tmp_path)
    assert json.loads((tmp_path / "killed" / "summary.json").read_text())["dataset"]["represents"] == 4000


def test_failed_releases_stay_failed(
    rounds: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is spoiled, so that nothing can be solved, and one has too few devices."""
    teach, learn = SumRounds._teach, SumRounds._learn

    def spoiled(self: SumRounds, number: int, *told: Any) -> None:
        def unsolvable(*_: Any) -> None:
            raise np.linalg.LinAlgError

        with monkeypatch.context() as patch:
            if number == 3:
                patch.setattr(self.server, "learn", unsolvable)
            teach(self, number, *told)

    def too_few(self: SumRounds, number: int, arriving: Any) -> int:
        with monkeypatch.context() as patch:
            if number == 4:
                patch.setattr(type(self.aggregation), "can_release", lambda *_: False)
            return learn(self, number, arriving)

    monkeypatch.setattr(SumRounds, "_teach", spoiled)
    monkeypatch.setattr(SumRounds, "_learn", too_few)
    resumed_after_every_round(rounds, tmp_path)
    notes = json.loads((tmp_path / "killed" / "summary.json").read_text())["privacy"]["notes"]
    assert any("Of 4 releases 2 failed" in note for note in notes)


def test_what_an_attack_remembers_is_in_no_checkpoint_so_the_run_begins_again(
    rounds: dict[str, Any], tmp_path: Path
) -> None:
    rounds["attacks"] = [{"kind": "membership"}]
    saved: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", lambda *state: saved.append(state))
        patch.setattr(Checkpoints, "keep", lambda *lesson: saved.append(lesson))
        run(rounds, tmp_path, page=False)
    assert not saved


def flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda whole: whole[:-1],
    "empty": lambda whole: b"",
    "flipped in the header": lambda whole: flipped(whole, 20),
    "flipped in a number": lambda whole: flipped(whole, -8),
}


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_release_is_refused(
    damage: Callable[[bytes], bytes], number: int, rounds: dict[str, Any], tmp_path: Path
) -> None:
    killed(rounds, tmp_path, 2)
    path = tmp_path / LESSON.format(number)
    path.write_bytes(damage(path.read_bytes()))
    with refused_at(str(path)) as caught:
        run(rounds, tmp_path, resume=True, page=False)
    assert caught.value.accepted == "the file of the run; delete checkpoint.npz to start over"
    (tmp_path / CHECKPOINT).unlink()
    run(rounds, tmp_path, resume=True, page=False)


def test_a_release_that_is_missing_is_refused(rounds: dict[str, Any], tmp_path: Path) -> None:
    killed(rounds, tmp_path, 2)
    (tmp_path / LESSON.format(1)).unlink()
    with refused_at(str(tmp_path / LESSON.format(1))) as caught:
        run(rounds, tmp_path, resume=True, page=False)
    assert "No such file" in caught.value.found


def test_a_checkpoint_of_another_run_is_refused(rounds: dict[str, Any], tmp_path: Path) -> None:
    """Whole, or one release of it."""
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    killed(rounds, own, 2)
    killed(rounds | {"seed": 2}, foreign, 2)
    for name, where in ((LESSON.format(2), LESSON.format(2)), (CHECKPOINT, f"{CHECKPOINT}: seed")):
        before = (own / name).read_bytes()
        (own / name).write_bytes((foreign / name).read_bytes())
        with refused_at(f"{own}/{where}"):
            run(rounds, own, resume=True, page=False)
        (own / name).write_bytes(before)
    run(rounds, own, resume=True, page=False)
