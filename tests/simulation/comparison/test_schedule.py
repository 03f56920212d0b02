"""What cells cost: which run first, and what a comparison will take, said before it starts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import Synthetic
from simulation import compare
from simulation.comparison import schedule as module
from simulation.comparison.planning import load_comparison
from simulation.comparison.schedule import Estimate, Sample, Schedule, estimate, typical_seconds
from simulation.comparison.templates import Cell
from simulation.console.command_line import main
from simulation.pages import report

DATASET = "dataset={kind: synthetic, users: 12, items: 9, ratings: 60}"


@pytest.fixture
def cells(tmp_path: Path) -> list[Cell]:
    """Return cells of cheap, costly and shared fits, the cheap ones first."""
    path = tmp_path / "comparison.yaml"
    path.write_text(
        "name: order\nseeds: [1, 2]\nepsilons: [1.0]\nbaselines: false\n"
        "dataset: {kind: synthetic}\nsplit: {kind: holdout}\n"
        "protocols: [item-average, blp-mf, isgd, zheng-rr, "
        "one-bit-clear, one-bit-objective, one-bit-output]\n"
    )
    return list(load_comparison(path, [DATASET]).cells)


def test_one_of_every_protocol_and_then_the_costliest_come_first(cells: list[Cell]) -> None:
    schedule = Schedule([cell for cell in cells if not cell.protocol.startswith("one-bit")])
    order = [schedule.next_for(worker % 2) for worker in range(8)]
    costly = ["zheng-rr", "isgd", "blp-mf", "item-average"]
    assert [cell.protocol for cell in order] == [*reversed(costly), *costly]
    assert [cell.seed for cell in order] == [1] * 4 + [2] * 4
    assert not schedule


def test_an_interrupted_comparison_has_the_baselines_and_then_a_run_of_every_protocol(tmp_path: Path) -> None:
    path = tmp_path / "comparison.yaml"
    path.write_text(
        "name: order\nseeds: [1, 2]\nepsilons: [0.5, 1.0, 3.0]\nsplit: {kind: holdout}\n"
        "dataset: {kind: synthetic}\nprotocols: [zheng-laplace, blp-mf, isgd, one-bit-clear, plain-mf]\n"
    )
    cells = load_comparison(path, [DATASET]).cells
    baselines = {cell.protocol for cell in cells if cell.baseline}
    protocols = {cell.protocol for cell in cells} - baselines
    schedule, order = Schedule(cells), []
    for worker in range(len(cells)):
        order.append(schedule.next_for(worker % 2))
        schedule.ended(order[-1], 1.0)
    first, then = len(baselines), len(baselines) + len(protocols)
    assert {cell.protocol for cell in order[:first]} == baselines
    assert {cell.protocol for cell in order[first:then]} == protocols
    assert {cell.seed for cell in order[:then]} == {1}
    assert {cell.epsilon for cell in order[:then]} == {None, 1.0}
    assert {cell.key for cell in order} == {cell.key for cell in cells}


def test_what_a_cell_took_counts_for_those_like_it(cells: list[Cell]) -> None:
    first = {cell.protocol: cell for cell in reversed(cells)}
    kept = ("item-average", "zheng-rr")
    schedule = Schedule(
        [cell for cell in cells if cell.protocol in kept and cell is not first[cell.protocol]]
    )
    schedule.ended(first["item-average"], 90.0)
    schedule.ended(first["zheng-rr"], 1.0)
    assert schedule.next_for(1).protocol == "item-average"


def test_cells_with_one_fit_stay_with_the_worker_that_has_it(cells: list[Cell]) -> None:
    bounded = [cell for cell in cells if cell.protocol.startswith("one-bit")]
    schedule = Schedule(bounded)
    taken: dict[str, list[str]] = {"one": [], "other": []}
    while schedule:
        for worker, own in taken.items():
            if schedule:
                own.append(schedule.next_for(worker).key)
    # The splits of the two seeds differ, and so do the fits.
    assert taken["one"][:2] == ["one-bit-clear-seed1", "one-bit-output-eps1.0-seed1"]
    # No fit is shared with the objective's: it is the first cell of its protocol.
    objective, *others = taken["other"]
    assert objective == "one-bit-objective-eps1.0-seed1"
    assert others == ["one-bit-clear-seed2", "one-bit-output-eps1.0-seed2"]
    assert taken["one"][2:] == ["one-bit-objective-eps1.0-seed2"]


def test_a_cell_of_a_lost_worker_waits_again(cells: list[Cell]) -> None:
    schedule = Schedule(cells)
    cell = schedule.next_for("lost")
    schedule.again(cell, "lost")
    assert len(schedule) == len(cells)
    assert cell in [schedule.next_for("next") for _ in cells]


CONFIG: dict[str, Any] = {
    "name": "some",
    "dataset": {"kind": "synthetic", "users": 40, "items": 30, "ratings": 400},
    "split": {"kind": "holdout"},
    "seeds": [3, 4],
    "epsilons": [4.0, 0.5, 1.0],
    "baselines": False,
    "protocols": ["item-average", "blp-mf", "zheng-rr"],
    "simulation": {"backend": "local"},
}


@pytest.fixture
def sample() -> Sample:
    ratings = Synthetic(users=2000, items=50, ratings=40_000).load()
    return Sample.of(ratings, ratings)


def test_a_sample_is_the_first_users_and_knows_the_size_of_all(sample: Sample) -> None:
    ratings = Synthetic(users=2000, items=50, ratings=40_000).load()
    assert (sample.users, sample.items, sample.ratings) == (2000, 50, 40_000)
    few = sample.train.n_users
    assert 10_000 <= sample.train.count <= 10_000 + ratings.counts.max()
    assert sample.train.count == ratings.counts[:few].sum()
    np.testing.assert_array_equal(sample.train.cells, ratings.cells[: sample.train.count])


def test_time_grows_with_what_is_reported_and_with_fewer_workers(sample: Sample) -> None:
    cells = load_comparison(CONFIG).cells
    samples = {(cell.protocol, None): sample for cell in cells}
    sizes = {"zheng-rr": 2000 * 50 / (943 * 1682)}  # every cell of the matrix is reported
    expected = sum(typical_seconds(cell) * sizes.get(cell.protocol, 40_000 / 80_000) for cell in cells)
    one, two = (estimate(cells, samples, workers) for workers in (1, 2))
    assert one.seconds == pytest.approx(expected)
    assert (one.runs, one.tried, two.seconds) == (14, 0, pytest.approx(expected / 2))


def test_costly_protocols_of_a_long_comparison_are_timed(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = load_comparison(CONFIG).cells
    ran: list[str] = []
    clock = iter(np.arange(0.0, 1000.0, 100.0))
    monkeypatch.setattr(module, "_SAMPLED_FROM", 0.0)
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(module, "run_prepared", lambda config, *_: ran.append(config.name))
    found = estimate(cells, {(cell.protocol, None): sample for cell in cells}, 1)
    whole = {"item-average": 2 * 0.5 * 0.5, "blp-mf": 6 * 0.5, "zheng-rr": 6 * 15 * 2000 * 50 / (943 * 1682)}
    costly = [name for name, seconds in whole.items() if seconds >= 0.04 * sum(whole.values())]
    assert ran == costly == ["item-average", "blp-mf", "zheng-rr"]
    assert found.tried == 3
    # Each took 100 s on a part of the ratings, or of the users, who report about every item.
    of_ratings, of_users = 40_000 / sample.train.count, 2000 / sample.train.n_users
    assert found.seconds == pytest.approx(100 * (2 * of_ratings + 6 * of_ratings + 6 * of_users))


def test_an_estimate_says_what_it_rests_on() -> None:
    words = Estimate(64, 2760.0, 2, 5).words
    assert words.startswith("64 runs on 2 workers may take about 46 minutes: an estimate, from each of 5 ")
    words = Estimate(3, 3 * 3600.0, 1, 0).words
    assert words.startswith("3 runs on 1 worker may take about 3.0 hours: an estimate, from what such ")
    assert not Estimate(3, 59.0, 1, 0).is_worth_a_line


def test_it_is_said_before_the_first_run_and_of_what_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SAID_FROM", 0.0)
    said: list[str] = []

    def hear(words: str) -> None:
        assert not list((tmp_path / "out").glob("cells/*/summary.json")) or said
        said.append(words)

    short = {**CONFIG, "protocols": ["item-average", "blp-mf"], "seeds": [3], "epsilons": [1.0]}
    compare(short, tmp_path / "out", page=False, announce=hear)
    assert [words.split(" on ")[0] for words in said] == ["2 runs"]
    (tmp_path / "out" / "cells" / "blp-mf-eps1.0-seed3" / "summary.json").unlink()
    compare(short, tmp_path / "out", page=False, resume=True, announce=hear)
    assert [words.split(" on ")[0] for words in said] == ["2 runs", "1 run"]


def test_quick_runs_one_cell_of_every_protocol_and_says_so_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [cell.key for cell in load_comparison(CONFIG, ["quick=true"]).cells]
    assert keys == ["item-average-seed3", "blp-mf-eps1.0-seed3", "zheng-rr-eps1.0-seed3"]
    ratings = tmp_path / "ratings.csv"
    Synthetic(users=40, items=30, ratings=400).load().to_csv(ratings)
    path = tmp_path / "some.yaml"
    path.write_text(
        "name: some\ndataset: {kind: synthetic, users: 40, items: 30, ratings: 400}\nsplit: {kind: holdout}\n"
        "seeds: [3, 4]\nepsilons: [0.5, 1.0]\nprotocols: [blp-mf]\nbaselines: false\n"
        "simulation: {backend: local}\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(path), "--quick", "--no-page", "-o", str(tmp_path / "out")])
    assert ended.value.code == 0
    assert "Quick: only the first seed and fold and the middle ε" in " ".join(capsys.readouterr().out.split())
    with (tmp_path / "out" / "comparison.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["quick"], row["epsilon"], row["seed"]) == ("True", "1.0", "3")
    report(tmp_path / "out")
    assert "only the first seed and fold and the middle ε" in (tmp_path / "out" / "report.html").read_text()
