import csv
import errno
import json
import math
import os
import stat
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError, RunError
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.privacy.composition import total_loss
from dprec.privacy.loss_distribution import LossDistribution
from simulation import run
from simulation.configuration.models import parse_config
from simulation.configuration.strict_yaml import dump_yaml
from simulation.execution import load_ratings
from simulation.result import RunResult
from simulation.storage import claims, integrity
from simulation.storage.directories import check_same_config
from simulation.storage.files import write_atomically
from simulation.storage.run_directory import RunDirectory, timestamped

FILES = {"config.yaml", "summary.json", "rounds.jsonl", "traffic.csv", "predictions.csv"}

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


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_contract(tmp_path: Path, tiny: dict[str, Any]) -> None:
    config = parse_config(tiny)
    train, test = load_ratings(config)
    result = run(config, tmp_path / "a" / "b", page=False)
    folder = tmp_path / "a" / "b"
    assert {path.name for path in folder.iterdir()} >= FILES
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]

    summary = json.loads((folder / "summary.json").read_text())
    assert summary["schema"] == 1
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
    by_hand = total_loss(
        [(LossDistribution.of(BoundedLaplace().channel(train.scale, 1.0)), max(train.counts))]
    )
    assert max(composed) == pytest.approx(by_hand.epsilon(1e-6), rel=1e-12)
    spent = [float(row["epsilon_per_user"]) for row in traffic]
    stated = {"max": max(spent), "mean": statistics.fmean(spent), "median": statistics.median(spent)}
    assert summary["privacy"]["epsilon_per_user"] == pytest.approx(stated)
    assert spent == pytest.approx([float(n) for n in train.counts], rel=1e-9)

    header, *_ = (folder / "predictions.csv").read_text().splitlines()
    assert header == "user,item,rating,prediction"
    predictions = lines(folder / "predictions.csv")
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


def test_a_number_that_does_not_apply_is_empty_or_null(tmp_path: Path, tiny: dict[str, Any]) -> None:
    tiny["protocol"] = {
        "kind": "one-shot",
        "mechanism": {"kind": "none"},
        "completion": {"kind": "mf", "rank": 2},
    }
    # Nobody rates at the upper end of this scale, so that nothing is relevant.
    data = tmp_path / "data.csv"
    rows = (f"{user},{item},{1 + (user + item) % 5}" for user in range(20) for item in range(10))
    data.write_text("\n".join(["user,item,rating", *rows]))
    tiny["dataset"] = {"kind": "csv", "path": str(data), "high": 6.0}
    tiny["evaluation"] = {"relevant_from": 6}
    run(tiny, tmp_path / "run", page=False)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["privacy"]["trusts_server"] is True
    assert summary["privacy"]["epsilon_per_rating"] is None
    assert summary["privacy"]["epsilon_per_user"]["max"] is None
    assert summary["privacy"]["epsilon_composed"] == {"max": None, "mean": None, "median": None}
    assert summary["accuracy"]["recall_at_k"] is None
    assert {row["epsilon_per_user"] for row in lines(tmp_path / "run" / "traffic.csv")} <= {"", "0.0"}
    for text in ((tmp_path / "run" / name).read_text() for name in FILES):
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
    with pytest.raises(InputError) as caught:
        run(tiny, tmp_path, page=False)
    assert caught.value.where == str(tmp_path)
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
        ("published", False),
        ("noise_samples", False),
        ("simulation.workers", False),
        ("cells.blp-eps0.5-foldu1-seed1.simulation.backend", False),
        ("simulation.faults.dropout", True),
        ("cells.blp-eps0.5-seed1.simulation.faults.dropout", True),
        ("cells.blp-eps0.5-seed1.protocol.kind", True),
        ("name", True),
        ("seeds", True),
        ("evaluation.top_k", True),
    ],
)
def test_only_what_changes_no_figure_may_differ(tmp_path: Path, key: str, matters: bool) -> None:
    def written(value: int) -> str:
        values: dict[str, Any] = {"name": "x"}
        *parents, last = key.split(".") if not key.startswith("cells") else key.rsplit(".", 2)
        place = values
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
        return dump_yaml(values)

    path = tmp_path / "comparison.yaml"
    path.write_text(written(1))
    check_same_config(path, written(1))
    if matters:
        with pytest.raises(InputError, match="1 there and 2 now"):
            check_same_config(path, written(2))
    else:
        check_same_config(path, written(2))


def test_other_files_in_the_directory_are_left_alone(tmp_path: Path, tiny: dict[str, Any]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    run(tiny, tmp_path, page=False)
    assert (tmp_path / "notes.txt").read_text() == "mine"


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


def test_a_full_disk_is_no_mistake_in_what_was_typed(
    tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(claims, "write_atomically", full)
    with pytest.raises(RunError, match="No space left on device"):
        run(tiny, tmp_path / "out", page=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_is_refused(tmp_path: Path, tiny: dict[str, Any]) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(InputError, match="Permission denied"):
        run(tiny, tmp_path / "run", page=False)


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

    monkeypatch.setattr(integrity, "write_atomically", full_disk)
    with pytest.raises(RunError, match="No space left on device"):
        run(tiny, tmp_path, page=False)
    assert not (tmp_path / "summary.json").exists()
    assert (tmp_path / "predictions.csv").exists()


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomically(path, "old")

    def interrupted() -> Any:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, interrupted())
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["file.txt"]
    write_atomically(path, iter(["new", "er ✓"]))
    assert path.read_text(encoding="utf-8") == "newer ✓"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_runs_without_a_directory_get_one_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = timestamped("x")
    first.mkdir(parents=True)
    second = timestamped("x")
    assert first != second
    assert first.parent == second.parent == Path("runs")


def test_identifiers_that_need_quotes_come_back(tmp_path: Path, tiny: dict[str, Any]) -> None:
    data = tmp_path / "ratings.csv"
    names = ["a,b", 'c"d', "é", " e"]
    with data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "item", "rating"])
        writer.writerows(
            [user, f"item {item}", 1 + (index + item) % 5]
            for index, user in enumerate(names)
            for item in range(6)
        )
    tiny["dataset"] = {"kind": "csv", "path": str(data)}
    result = run(tiny, tmp_path / "run", page=False)
    assert {row["user"] for row in lines(tmp_path / "run" / "traffic.csv")} == set(
        map(str, result.traffic["user"])
    )
    assert len(result.traffic["user"]) == 4
