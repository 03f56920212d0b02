"""Comparisons run: the same as runs alone, and interrupted or killed, to the same table."""

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import compare, run
from simulation.comparison import running
from simulation.comparison.planning import load_comparison
from simulation.comparison.running import run_comparison
from simulation.console.command_line import main
from simulation.storage.files import write_atomically
from tests.refusals import refused_at
from tests.waiting import wait_until

CLEAR: dict[str, Any] = {
    "kind": "one-shot",
    "mechanism": {"kind": "none"},
    "completion": {"kind": "mf", "rank": 2},
}
PRIVATE = {**CLEAR, "privacy": {"epsilon": 1.0}, "mechanism": {"kind": "bounded-laplace"}}
PAIR = {
    "name": "pair",
    "dataset": {"kind": "synthetic", "users": 30, "items": 20, "ratings": 300},
    "split": {"kind": "holdout", "test_fraction": 0.2},
    "seeds": [1, 2],
    "epsilons": [0.5, 2.0],
    "protocols": [{"name": "clear", "protocol": CLEAR}, {"name": "private", "protocol": PRIVATE}],
    "baselines": False,
    "simulation": {"backend": "local"},
}


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    path = tmp_path / "pair.yaml"
    path.write_text(json.dumps(PAIR))
    return path


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the comparison, which runs once."""
    folder = tmp_path_factory.mktemp("compared")
    compare(PAIR, folder / "out", page=False)
    return folder / "out"


@pytest.fixture
def out(compared: Path, tmp_path: Path) -> Path:
    """Return a copy of the comparison's directory, which a test may change."""
    return Path(shutil.copytree(compared, tmp_path / "out"))


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "comparison.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_agrees_with_single_runs(pair: Path, tmp_path: Path) -> None:
    place = tmp_path / "population"
    compare(pair, tmp_path / "out", overrides=[f"simulation.devices_dir={place}"], page=False)
    cells = [path.name for path in (tmp_path / "out" / "cells").iterdir()]
    assert sorted(path.name for path in place.iterdir()) == sorted(cells)
    lines = rows(tmp_path / "out")
    assert len(lines) == 6
    for line in lines:
        key = line["name"] + (f"-eps{line['epsilon']}" if line["epsilon"] else "") + f"-seed{line['seed']}"
        cell = tmp_path / "out" / "cells" / key
        alone = run(
            cell / "config.yaml", tmp_path / key, overrides=["simulation.devices_dir=null"], page=False
        )
        assert (tmp_path / key / "predictions.csv.gz").read_bytes() == (
            cell / "predictions.csv.gz"
        ).read_bytes()
        assert (tmp_path / key / "traffic.csv").read_bytes() == (cell / "traffic.csv").read_bytes()
        assert float(line["rmse"]) == alone.summary["accuracy"]["rmse"]
        assert int(line["uplink_message_bytes"]) == alone.summary["traffic"]["uplink"]["message_bytes"]


def test_what_is_finished_is_not_done_again(pair: Path, out: Path) -> None:
    before = (out / "comparison.csv").read_bytes()
    cells = sorted((out / "cells").iterdir())
    (cells[0] / "summary.json").unlink()
    kept = {cell: (cell / "summary.json").stat().st_mtime_ns for cell in cells[1:]}
    (out / "comparison.csv").unlink()
    compare(pair, out, resume=True, page=False)
    assert (out / "comparison.csv").read_bytes() == before
    assert {cell: (cell / "summary.json").stat().st_mtime_ns for cell in cells[1:]} == kept


def test_seeds_and_epsilons_are_added_and_no_other_change_is_made(pair: Path, out: Path) -> None:
    kept = {cell: (cell / "summary.json").stat().st_mtime_ns for cell in (out / "cells").iterdir()}
    old = {(row["name"], row["epsilon"], row["seed"]): row["rmse"] for row in rows(out)}
    added = ["seeds=[1, 2, 3]", "epsilons=[0.5, 1.0, 2.0]"]
    assert not compare(pair, out, overrides=added, resume=True, page=False).failures
    assert {cell: (cell / "summary.json").stat().st_mtime_ns for cell in kept} == kept
    now = {(row["name"], row["epsilon"], row["seed"]): row["rmse"] for row in rows(out)}
    assert len(now) == 3 + 9
    assert old.items() <= now.items()
    with pytest.raises(InputError, match=r"seeds: .* accepted: more seeds or epsilons, or the configuration"):
        compare(pair, out, resume=True, page=False)
    with refused_at("comparison.yaml: dataset.users"):
        compare(pair, out, overrides=[*added, "dataset.users=31"], resume=True, page=False)


def test_a_killed_comparison_resumes_to_the_same_table(pair: Path, tmp_path: Path) -> None:
    # Enough cells that the last is far off when the first has ended.
    pair.write_text(pair.read_text().replace("seeds:\n- 1\n- 2\n", f"seeds: {list(range(8))}\n"))
    compare(pair, tmp_path / "whole", page=False)
    start = "from simulation.console.command_line import main; main()"
    command = [sys.executable, "-c", start, "compare", str(pair), "-o", str(tmp_path / "killed"), "--no-page"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: list(tmp_path.glob("killed/cells/*/summary.json")), process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(list(tmp_path.glob("killed/cells/*/summary.json"))) < 24
    compare(pair, tmp_path / "killed", resume=True, page=False)
    assert (tmp_path / "killed/comparison.csv").read_bytes() == (
        tmp_path / "whole/comparison.csv"
    ).read_bytes()


def test_a_failed_cell_is_reported_and_the_others_are_kept(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from simulation.comparison import cell_runs as cell_work

    whole = cell_work.run_prepared

    def fail_once(config: Any, *rest: Any, **named: Any) -> Any:
        if config.name == "private" and config.seed == 2:
            raise ZeroDivisionError("planted")
        return whole(config, *rest, **named)

    monkeypatch.setattr(cell_work, "run_prepared", fail_once)
    result = compare(pair, tmp_path / "out", page=False)
    assert sorted(result.failures) == ["private-eps0.5-seed2", "private-eps2.0-seed2"]
    assert "planted" in result.failures["private-eps0.5-seed2"]
    assert len(rows(tmp_path / "out")) == 4
    monkeypatch.setattr(cell_work, "run_prepared", whole)
    assert not compare(pair, tmp_path / "out", resume=True, page=False).failures
    assert len(rows(tmp_path / "out")) == 6


def test_an_interrupted_comparison_shows_what_is_finished_and_goes_on_to_the_same_table(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from simulation.comparison import cell_runs as cell_work

    out, whole = tmp_path / "out", cell_work.run_prepared
    begun = count()

    def interrupted(*given: Any, **named: Any) -> Any:
        if next(begun) == 3:
            raise KeyboardInterrupt
        return whole(*given, **named)

    monkeypatch.setattr(cell_work, "run_prepared", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(pair), "-o", str(out)])
    assert ended.value.code == 130
    finished, end = capsys.readouterr().err.splitlines()[-2:]
    assert finished.startswith(
        f"dprec: 3 of 6 runs are finished: {out / 'comparison.csv'}, {out / 'report.html'};"
    )
    assert f"; the same command with --resume -o {out} goes on" in finished
    assert end == "dprec: interrupted"
    assert len(rows(out)) == 3
    assert "<figcaption>" in (out / "report.html").read_text()
    assert list((out / "figures").glob("*.svg"))
    monkeypatch.setattr(cell_work, "run_prepared", whole)
    compare(pair, out, resume=True, page=False)
    compare(pair, tmp_path / "whole", page=False)
    assert (out / "comparison.csv").read_bytes() == (tmp_path / "whole" / "comparison.csv").read_bytes()


@pytest.mark.parametrize("full_at", ["comparison.csv", "noise.csv", "claim"])
def test_a_full_disk_says_how_far_it_is_and_how_to_go_on(
    pair: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    full_at: str,
) -> None:
    from simulation.comparison import tabulation
    from simulation.storage import directories

    def full(path: Path, *given: Any, **named: Any) -> None:
        if path.name == full_at or (full_at == "claim" and path.parent.name.startswith("private")):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write_atomically(path, *given, **named)

    for module in (tabulation, running, directories):
        monkeypatch.setattr(module, "write_atomically", full)
    monkeypatch.setattr(running, "sampled_noise", lambda _: [{"name": "a"}])
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(pair), "-o", str(out)])
    assert ended.value.code == 1
    how_far, end = capsys.readouterr().err.splitlines()[-2:]
    finished = 6 if full_at == "comparison.csv" else 0
    again = f"the same command with --resume -o {out} goes on"
    assert how_far == f"dprec: {finished} of 6 runs are finished; {again}"
    assert end.endswith(": No space left on device")


def test_a_directory_that_is_taken_is_refused_before_ratings_are_read(
    pair: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_checked", lambda *_: pytest.fail("ratings are read"))
    with pytest.raises(InputError, match="it holds a comparison already"):
        compare(pair, out, page=False)


def test_while_it_runs_the_table_holds_what_is_finished(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(running, "_SHARE", float("inf"))
    held = []
    run_comparison(
        load_comparison(pair), tmp_path / "out", tabulated=lambda folder: held.append(len(rows(folder)))
    )
    assert held == [1, 2, 3, 4, 5, 6]


def test_a_budget_that_a_protocol_cannot_keep_is_refused_before_anything_runs(
    pair: Path, tmp_path: Path
) -> None:
    changes = ["protocols=[{name: one-bit-gradient}]", "binarization={kind: mean}", "epsilons=[1.0, 5000.0]"]
    with pytest.raises(InputError, match=r"pair\.yaml: one-bit-gradient: protocol\.privacy\.epsilon: 5000"):
        compare(pair, tmp_path / "out", overrides=changes, page=False)
    assert not (tmp_path / "out").exists()


def test_data_that_changed_are_not_mixed_in(pair: Path, tmp_path: Path) -> None:
    ratings, items = tmp_path / "ratings.csv", tmp_path / "items.csv"
    items.write_text("item,year\n1,1990\n2,1995\n")
    lines = [f"{user},{item},{1 + (user * item) % 5}" for user in range(8) for item in range(6)]
    ratings.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    overrides = [f"dataset={{kind: csv, path: {ratings}, items: {{path: {items}, numbers: [year]}}}}"]
    compare(pair, tmp_path / "out", overrides=overrides, page=False)
    ratings.write_text("user,item,rating\n" + "\n".join([*lines[:-1], f"{lines[-1][:-1]}5"]) + "\n")
    with refused_at("comparison.yaml: ratings.clear"):
        compare(pair, tmp_path / "out", resume=True, overrides=overrides, page=False)
    ratings.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    items.write_text("item,year\n1,1990\n3,1995\n")
    with refused_at("comparison.yaml: ratings.clear"):
        compare(pair, tmp_path / "out", resume=True, overrides=overrides, page=False)
    items.write_text("item,year\n2,1995\n1,1990\n")
    assert not compare(pair, tmp_path / "out", resume=True, overrides=overrides, page=False).failures


@pytest.mark.parametrize("damaged", ["", "{}", "{", "\xff"])
def test_a_damaged_summary_is_named(pair: Path, out: Path, damaged: str) -> None:
    cell = next((out / "cells").iterdir())
    (cell / "summary.json").write_text(damaged, encoding="latin-1")
    with pytest.raises(InputError, match=f"{cell.name}/summary.json: .* --resume runs the cell again"):
        compare(pair, out, resume=True, page=False)


def test_protocols_of_scaled_populations_that_do_not_suit_them_are_left_out_there_alone_and_told_once(
    tmp_path: Path,
) -> None:
    sums = {"kind": "sums-on-device", "privacy": {"epsilon": 1.0, "delta": 1e-6, "per": "user"}}
    scaled = {**PAIR["dataset"], "copies": 30, "simulated_up_to": 60}
    result = compare(
        {
            **PAIR,
            "seeds": [1],
            "epsilons": [1.0],
            "protocols": [
                *({"name": name, "protocol": PRIVATE} for name in ("private", "alike")),
                {"name": "sums", "protocol": sums},
            ],
            "populations": {"users": [60, 900, 1200], "dataset": scaled},
        },
        tmp_path / "out",
        page=False,
    )
    held = {(row["name"], row["population"]) for row in rows(tmp_path / "out")}
    own = {(name, population) for name in ("private", "alike", "sums") for population in ("", "60")}
    assert held == own | {("sums", "900"), ("sums", "1200")}
    assert result.comparison.left_out == {
        "private and alike of 900 and 1,200 users": "one that needs every user, where 30 simulated users "
        "stand for all; accepted: a protocol of sums, or --set dataset.simulated_up_to=null"
    }
