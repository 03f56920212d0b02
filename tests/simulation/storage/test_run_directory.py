"""The run directory: the contract of its files, who may write to it, and checkpoints, whole or refused."""

import csv
import gzip
import io
import json
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec import formats
from dprec.accounting import PrivacyLossDistribution, compose
from dprec.datasets import InMemory
from dprec.errors import InputError, RunError
from dprec.gradients import FullGradient
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.protocols.base import Public
from dprec.protocols.iterative import FactorsDevice, FactorsServer, IterativeProtocol
from dprec.randomness import generator
from dprec.wire import BroadcastOptions
from simulation import diff, run
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from simulation.result import RunResult
from simulation.storage import directories, files, run_directory
from simulation.storage.files import write_atomically
from simulation.storage.run_directory import CHECKPOINT, Checkpoints, RunDirectory
from strategies.participation import RoundRecord
from strategies.roster import Roster
from strategies.training import BroadcastRounds
from tests.make import STARS
from tests.refusals import refused_at

FILES = {"config.yaml", "summary.json", "rounds.jsonl", "traffic.csv", "predictions.csv.gz"}

TRAFFIC = (
    "user,ratings,uplink_payload_bytes,uplink_message_bytes,downlink_payload_bytes,"
    "downlink_message_bytes,uplink_network_bytes,downlink_network_bytes,messages,epsilon_per_rating,epsilon_per_user,epsilon_composed"
)

SUMMARY: dict[str, set[str]] = {
    "dataset": {"kind", "users", "items", "train_ratings", "test_ratings", "scale"},
    "accuracy": {"rmse", "mae", "precision_at_k", "recall_at_k", "f_score_at_k", "k"},
    "privacy": {"epsilon_per_rating", "epsilon_per_user", "trusts_server", "hides_rated_items", "notes"},
    "traffic": {"rounds", "users", "uplink", "downlink"},
    "time": {"total_s", "startup_s", "clients_s", "server_s"},
}


def text_of(path: Path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def lines(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of(path), newline="")))


def test_the_contract(tmp_path: Path, tiny: dict[str, Any]) -> None:
    config = parse_config(tiny)
    train, test = load_ratings(config)
    result = run(config, tmp_path / "a" / "b", page=False)
    folder = tmp_path / "a" / "b"
    assert {path.name for path in folder.iterdir()} >= FILES
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]

    summary = json.loads((folder / "summary.json").read_text())
    assert summary["schema"] == formats.NUMBER
    assert (summary["name"], summary["protocol"]) == ("tiny", "one-shot")
    assert (summary["mechanism"], summary["completion"]) == ("bounded-laplace", "mf")
    for section, keys in SUMMARY.items():
        assert keys <= set(summary[section]), section
    assert summary["dataset"]["train_ratings"] + summary["dataset"]["test_ratings"] == 400
    assert summary["dataset"]["scale"] == [1.0, 5.0]
    assert set(summary["privacy"]["epsilon_per_user"]) == {"max", "mean", "median"}
    assert summary["accuracy"] == result.summary["accuracy"]
    assert {"python", "flwr", "ray", "dprec"} <= set(summary["environment"])

    header, *_ = (folder / "traffic.csv").read_text().splitlines()
    assert header == TRAFFIC
    traffic = lines(folder / "traffic.csv")
    assert [int(row["user"]) for row in traffic] == train.user_ids.tolist()
    assert [int(row["ratings"]) for row in traffic] == train.counts.tolist()
    for direction in ("uplink", "downlink"):
        for size in ("payload", "message"):
            total = sum(int(row[f"{direction}_{size}_bytes"]) for row in traffic)
            assert total == summary["traffic"][direction][f"{size}_bytes"]
    composed = [float(row["epsilon_composed"]) for row in traffic]
    assert max(composed) == summary["privacy"]["epsilon_composed"]["max"]
    assert (summary["privacy"]["delta"], summary["privacy"]["composition"]) == (1e-6, "pld")
    by_hand = compose(
        [(PrivacyLossDistribution.of(BoundedLaplace().channel(train.scale, 1.0)), max(train.counts))]
    )
    assert max(composed) == pytest.approx(by_hand.epsilon(1e-6), rel=1e-12)
    spent = [float(row["epsilon_per_user"]) for row in traffic]
    stated = {"max": max(spent), "mean": statistics.fmean(spent), "median": statistics.median(spent)}
    assert summary["privacy"]["epsilon_per_user"] == pytest.approx(stated)
    assert spent == pytest.approx([float(n) for n in train.counts], rel=1e-9)

    predictions = lines(folder / "predictions.csv.gz")
    assert list(predictions[0]) == ["user", "item", "rating", "prediction"]
    assert [int(row["user"]) for row in predictions] == test.user_ids[test.users].tolist()
    assert [int(row["item"]) for row in predictions] == test.item_ids[test.items].tolist()
    errors = [float(row["prediction"]) - float(row["rating"]) for row in predictions]
    rmse = math.sqrt(math.fsum(error**2 for error in errors) / len(errors))
    assert rmse == pytest.approx(summary["accuracy"]["rmse"], rel=1e-12)

    (only,) = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    assert (only["round"], only["replies"], only["failures"]) == (1, 40, 0)
    assert only["accuracy"] == summary["accuracy"]
    assert only["uplink"]["payload_bytes"] == summary["traffic"]["uplink"]["payload_bytes"]
    assert only["downlink"]["message_bytes"] == summary["traffic"]["downlink"]["message_bytes"]
    assert only["seconds"] >= 0


def test_large_tables_are_parquet_and_read_as_such(
    tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    written = run(tiny, small, page=False)
    monkeypatch.setattr(files, "MOST_ROWS_OF_CSV", 39)
    run(tiny, large)
    names = {path.name for path in large.iterdir()}
    assert names >= {"traffic.parquet", "predictions.parquet", "report.html"}
    assert not names & {"traffic.csv", "predictions.csv.gz"}
    again = run(tiny, large, resume=True, page=False)
    for one, other in ((again.predictions, written.predictions), (again.traffic, written.traffic)):
        assert {name: column.tolist() for name, column in one.items()} == {
            name: column.tolist() for name, column in other.items()
        }
    assert diff(small, large).same_ratings
    with refused_at(str(large)):
        run(tiny, large)
    (large / "traffic.parquet").unlink()
    with refused_at(str(large / "traffic.csv")):
        run(tiny, large, resume=True)


def test_a_number_that_does_not_apply_is_empty_or_null(tmp_path: Path, tiny: dict[str, Any]) -> None:
    tiny["protocol"] |= {"privacy": None, "mechanism": {"kind": "none"}}
    # Nobody rates at the upper end of this scale, so that nothing is relevant.
    users, items = np.divmod(np.arange(200), 10)
    tiny["dataset"] = InMemory.of((users, items, 1 + (users + items) % 5), low=1, high=6, step=1)
    tiny["evaluation"] = {"relevant_from": 6}
    run(tiny, tmp_path / "run", page=False)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["privacy"]["trusts_server"] is True
    assert summary["privacy"]["epsilon_per_rating"] is None
    assert summary["privacy"]["epsilon_per_user"]["max"] is None
    assert summary["privacy"]["epsilon_composed"] == {"max": None, "mean": None, "median": None}
    assert summary["accuracy"]["recall_at_k"] is None
    assert {row["epsilon_per_user"] for row in lines(tmp_path / "run" / "traffic.csv")} <= {"", "0.0"}
    for text in (text_of(tmp_path / "run" / name) for name in FILES):
        assert "NaN" not in text
        assert "Infinity" not in text


def test_the_loss_per_user_is_the_budget_where_that_is_what_is_promised(tiny: dict[str, Any]) -> None:
    tiny["protocol"]["privacy"] = {"epsilon": 2.0, "per": "user"}
    result = run(tiny)
    assert result.traffic["epsilon_per_user"] == pytest.approx(np.full(40, 2.0), rel=1e-6)
    assert (result.traffic["epsilon_composed"] <= result.traffic["epsilon_per_user"]).all()


def test_a_composed_budget_is_kept_by_the_composed_loss_and_not_by_the_sum(tiny: dict[str, Any]) -> None:
    tiny["protocol"]["privacy"] = {"epsilon": 1.0, "per": "user", "composition": "pld", "delta": 1e-3}
    tiny["dataset"]["users"], tiny["dataset"]["items"] = 12, 60
    result = run(tiny)
    composed, counts = result.traffic["epsilon_composed"], result.traffic["ratings"]
    assert (composed[counts > 1] > 0.998).all()
    assert (composed <= 1.0).all()
    assert (result.traffic["epsilon_per_user"][counts >= 20] > 1.5).all()
    assert (counts >= 20).sum() > 6
    privacy = result.summary["privacy"]
    assert (privacy["delta"], privacy["composition"]) == (1e-3, "pld")
    assert any("delta = 0.001: it bounds the composed loss, not the sum" in note for note in privacy["notes"])


def test_nothing_is_written_without_a_directory(
    tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(tiny)
    assert list(tmp_path.iterdir()) == []
    assert result.predictions["prediction"].shape == result.predictions["rating"].shape


@pytest.mark.parametrize("file", sorted(FILES))
def test_a_directory_that_holds_a_run_is_refused_and_left_alone(
    tmp_path: Path, tiny: dict[str, Any], file: str
) -> None:
    (tmp_path / file).write_text("precious")
    with refused_at(str(tmp_path)):
        run(tiny, tmp_path, page=False)
    assert [path.name for path in tmp_path.iterdir()] == [file]
    assert (tmp_path / file).read_text() == "precious"


def test_a_finished_run_is_not_repeated_over(tmp_path: Path, tiny: dict[str, Any]) -> None:
    run(tiny, tmp_path, page=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(InputError, match="a finished run"):
        RunDirectory.claim(tmp_path, parse_config({**tiny, "seed": 2}))
    with pytest.raises(InputError, match="seed: 1 there and 2 now"):
        RunDirectory.claim(tmp_path, parse_config({**tiny, "seed": 2}), resume=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("key", "matters"),
    [
        ("title", False),
        ("simulation.workers", False),
        ("cells.blp-eps0.5-foldu1-seed1.simulation.backend", False),
        ("simulation.faults.dropout", True),
        ("cells.blp-eps0.5-seed1.simulation.faults.dropout", True),
        ("evaluation.top_k", True),
    ],
)
def test_only_what_changes_no_figure_may_differ(key: str, matters: bool) -> None:
    assert directories.matters(key) is matters


@pytest.mark.parametrize("place", ["/proc/dprec", "/dev/null/run", "FILE", "FILE/run"])
def test_a_directory_that_cannot_be_written_is_refused(
    tmp_path: Path, tiny: dict[str, Any], place: str
) -> None:
    (tmp_path / "file").write_text("")
    path = place.replace("FILE", str(tmp_path / "file"))
    with pytest.raises(InputError) as caught:
        run(tiny, path, page=False)
    assert caught.value.where.startswith(path.removesuffix("/run"))
    assert caught.value.accepted == "a directory that can be read and written"


def test_the_configuration_is_there_before_anything_runs(
    tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> RunResult:
        assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["simulation.execution"], "run_in", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tiny, tmp_path, page=False)
    monkeypatch.undo()
    with pytest.raises(InputError, match="an unfinished run"):
        run(tiny, tmp_path, page=False)
    with pytest.raises(InputError) as caught:
        run({**tiny, "seed": 2}, tmp_path, resume=True, page=False)
    assert caught.value.where.endswith("config.yaml: seed")
    run(tiny, tmp_path, resume=True, page=False)
    assert {path.name for path in tmp_path.iterdir()} >= FILES


def test_a_result_that_cannot_be_written_fails_the_run_and_the_summary_never_appears(
    tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(path: Path, content: object) -> None:
        if path.name == "rounds.jsonl":
            raise OSError(28, "No space left on device")
        write_atomically(path, content)  # type: ignore[arg-type]

    monkeypatch.setattr(run_directory, "write_atomically", full_disk)
    with pytest.raises(RunError, match="No space left on device") as caught:
        run(tiny, tmp_path, page=False)
    assert caught.value.__notes__ == [
        f"nothing is finished; the same command with --resume -o {tmp_path} begins again"
    ]
    assert not (tmp_path / "summary.json").exists()
    assert (tmp_path / "predictions.csv.gz").exists()


USERS, ITEMS, RANK = 9, 6, 2


def state_after(rounds: int) -> BroadcastRounds:
    draws = generator(rounds, "state")
    downlink = BroadcastOptions(dtype="float16")
    state = BroadcastRounds(
        protocol=IterativeProtocol(gradient=FullGradient(), rounds=5, rank=RANK, downlink=downlink),
        public=Public(USERS, ITEMS, STARS),
        seed=1,
        public_seed=1,
        group="",
        roster=Roster((None,) * USERS, USERS, 1),
        rated=np.arange(USERS) % 4 > 0,
    )
    if rounds:
        assert isinstance(state.server, FactorsServer)
        state.best = FactorsDevice(state.server.protocol, downlink.rounded(draws.normal(size=(ITEMS, RANK))))
        state.server.factors = draws.normal(size=(ITEMS, RANK))
        state.server.velocity = draws.normal(size=(ITEMS, RANK))
        state.broadcast = state.server.held
        state.holders = draws.random(USERS) < 0.5
        state.traffic.charge_uplink(slice(2, 5), 10, 20)
        state.traffic.charge_downlink(slice(None), 100, 200, kind="train", example=b"factors")
        for number in range(1, rounds + 1):
            state.accountant.step(number, draws.random(USERS) < 0.5, 0.1 * number, draws.random(USERS))
        state.best_error, state.best_round = 0.1 + 0.2, rounds
    accuracy = {"rmse": 1 / 3, "k": 10, "f_score_at_k": None}
    state.records = [
        RoundRecord(number, 7, 2, accuracy if number % 2 else None, 1, 2, 3, 4, 0.1)
        for number in range(1, rounds + 1)
    ]
    return state


def contents(state: BroadcastRounds) -> dict[str, Any]:
    assert state.server.arrays is not None
    arrays = {
        **state.server.arrays,
        "holders": state.holders,
        **{f"traffic {name}": column for name, column in state.traffic.columns.items()},
        **{f"privacy {name}": column for name, column in state.accountant.to_arrays().items()},
    }
    return {
        **{name: (array.dtype, array.tobytes()) for name, array in arrays.items()},
        "devices": [None if each is None else each.encode() for each in (state.broadcast, state.best)],
        "first user": state.traffic.first_user,
        "records": state.records,
        "best": (state.best_error, state.best_round),
    }


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / CHECKPOINT, lambda: {"seed": 1, "protocol.rounds": 5})


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_a_state_comes_back_bit_for_bit(checkpoints: Checkpoints, rounds: int) -> None:
    checkpoints.save(state_after(rounds))
    state = state_after(0)
    checkpoints.load(state)
    assert contents(state) == contents(state_after(rounds))


@pytest.mark.parametrize(
    ("depends", "key", "found"),
    [
        ({"seed": 2, "protocol.rounds": 5}, "seed", "1 there and 2 now"),
        ({"seed": 1, "protocol.rounds": 6}, "protocol.rounds", "5 there and 6 now"),
        ({"seed": 1, "protocol.rounds": 5, "protocol.rank": 3}, "protocol.rank", "None there and 3 now"),
    ],
)
def test_a_checkpoint_of_another_configuration_is_refused_with_what_differs(
    checkpoints: Checkpoints, depends: dict[str, Any], key: str, found: str
) -> None:
    checkpoints.save(state_after(2))
    fresh = state_after(0)
    with refused_at(f"{checkpoints.path}: {key}") as caught:
        Checkpoints(checkpoints.path, lambda: depends).load(fresh)
    assert caught.value.found == found
    assert contents(fresh) == contents(state_after(0))


@pytest.mark.parametrize("damage", [lambda whole: whole[:-100], lambda whole: b"nonsense"])
def test_what_is_no_whole_checkpoint_is_refused(
    checkpoints: Checkpoints, damage: Callable[[bytes], bytes]
) -> None:
    checkpoints.save(state_after(2))
    checkpoints.path.write_bytes(damage(checkpoints.path.read_bytes()))
    with refused_at(str(checkpoints.path)) as caught:
        checkpoints.load(state_after(0))
    assert "delete it to start over" in caught.value.accepted


def test_other_ratings_of_the_same_shape_are_refused(tmp_path: Path, tiny: dict[str, Any]) -> None:
    config = parse_config(tiny)
    train, test = load_ratings(config)
    RunDirectory(tmp_path).checkpoints(config, train, test).save(state_after(2))
    same = replace(train, user_ids=train.user_ids.copy())
    resumed = state_after(0)
    RunDirectory(tmp_path).checkpoints(config, same, test).load(resumed)
    assert len(resumed.records) == 2
    levels = train.levels.copy()
    levels[-1] = levels[-1] % 5 + 1
    for changed in (
        replace(train, levels=levels),
        replace(train, user_ids=train.user_ids + 1),
        replace(train, item_ids=train.item_ids.astype(np.str_)),
    ):
        with refused_at("checkpoint.npz: digest of the ratings"):
            RunDirectory(tmp_path).checkpoints(config, changed, test).load(state_after(0))
