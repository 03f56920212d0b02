"""What cells cost: which run first, and what a comparison will take, said before it starts."""

import csv
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.stats import binom

from dprec.datasets import Synthetic
from dprec.mechanisms import MECHANISMS
from dprec.ratings import RatingScale
from simulation.comparison import cell_runs as module
from simulation.comparison.cell_runs import Sample, Schedule, announce_estimate
from simulation.comparison.planning import Comparison, load_comparison
from simulation.comparison.running import exact_probabilities, noise_edges, sampled_noise
from simulation.comparison.templates import Cell
from simulation.configuration.strict_yaml import read_yaml
from simulation.console.command_line import main
from simulation.pages import report
from tests.paths import CONFIGS, preset_file

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


def test_of_what_is_known_the_costliest_come_first(cells: list[Cell]) -> None:
    seconds = {"item-average": 1.0, "blp-mf": 3.0, "isgd": 9.0, "zheng-rr": 2.0}
    schedule = Schedule([cell for cell in cells if cell.protocol in seconds])
    order = []
    for _ in range(8):
        order.append(schedule.next_for(1))
        schedule.ended(order[-1], seconds[order[-1].protocol])
    assert [cell.protocol for cell in order[:4]] == [*seconds]
    assert [cell.protocol for cell in order[4:]] == ["isgd", "blp-mf", "zheng-rr", "item-average"]
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


def test_a_long_comparison_is_estimated_from_each_protocol_on_a_few_users(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = load_comparison(CONFIG).cells
    samples, ran, words = {(cell.protocol, None): sample for cell in cells}, [], list[str]()
    announce_estimate(cells, samples, 1, words.append)
    assert words == []
    clock = iter(np.arange(0.0, 1000.0, 100.0))
    monkeypatch.setattr(module, "_TIMED_FROM", 0)
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(module, "run_prepared", lambda config, *_: ran.append(config.name))
    announce_estimate(cells, samples, 2, words.append)
    assert ran == ["item-average", "blp-mf", "zheng-rr"]
    # Each took 100 s on a part of the ratings, or of the users, who report about every item.
    of_ratings, of_users = 40_000 / sample.train.count, 2000 / sample.train.n_users
    minutes = round(100 * (2 * of_ratings + 6 * of_ratings + 6 * of_users) / 2 / 60)
    assert words == [
        f"14 runs on 2 workers may take about {minutes} minutes: an estimate, from each protocol timed on a "
        "few users"
    ]


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


STARS = RatingScale.evenly(1, 5, 1)
SHARES = np.array([0.06, 0.11, 0.27, 0.34, 0.22])
FALSE_ALARM = 1e-7
"""Per test, by Bonferroni over the intervals, for draws from the theory itself. The grid of 4096 symbols
moves a share of bounded Laplace by up to about 0.3 standard errors, which raises it to less than 1e-6."""


@pytest.fixture
def comparison(tmp_path: Path) -> Any:
    """Return a function that reads neera-fig2 on a small population, with changed keys."""

    def changed(**changes: Any) -> Path:
        values = read_yaml(CONFIGS / "experiments" / "neera-fig2.yaml")
        values |= {
            "dataset": {"kind": "synthetic", "users": 40, "items": 30, "ratings": 400},
            "split": {"kind": "holdout", "test_fraction": 0.2},
            "simulation": {"backend": "local"},
            **changes,
        }
        for preset in ("blp-mf", "zheng-rr", "plain-mf"):
            (tmp_path / f"{preset}.yaml").write_text((preset_file(preset)).read_text())
        path = tmp_path / "fig2.yaml"
        path.write_text(yaml.safe_dump(values))
        return path

    return changed


def loaded(path: Path) -> Comparison:
    return load_comparison(path)


def test_draws_agree_with_theory(comparison: Any) -> None:
    rows = sampled_noise(loaded(comparison(noise_samples=100_000, seeds=[3])))
    intervals = [row for row in rows if row["theoretical_probability"] > 0]
    for row in rows:
        share, probability = row["sampled_share"], row["theoretical_probability"]
        drawn = round(share * 100_000)
        if probability == 0:
            assert drawn == 0
            continue
        tail = min(binom.cdf(drawn, 100_000, probability), binom.sf(drawn - 1, 100_000, probability))
        assert 2 * tail > FALSE_ALARM / len(intervals), row
    keys = [(name, epsilon) for (name, epsilon), _ in groupby(rows, lambda r: (r["protocol"], r["epsilon"]))]
    assert keys == [("blp-mf", 0.1), ("blp-mf", 1.0), ("laplace-svd", 0.1), ("laplace-svd", 1.0)]
    for _, group in groupby(rows, lambda r: (r["protocol"], r["epsilon"])):
        lines = list(group)
        assert sum(row["sampled_share"] for row in lines) == pytest.approx(1)
        assert sum(row["theoretical_probability"] for row in lines) == pytest.approx(1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("kind", ["bounded-laplace", "clamped-laplace", "laplace", "randomized-response"])
def test_intervals_hold_all_of_the_noise(kind: str, epsilon: float) -> None:
    channel = MECHANISMS[kind]().channel(STARS, epsilon)
    edges = noise_edges(channel, STARS)
    assert edges.size > 8
    np.testing.assert_allclose(np.diff(edges), edges[1] - edges[0])
    assert exact_probabilities(edges, channel, SHARES).sum() == pytest.approx(1)


def test_differences_of_levels_are_distinguished() -> None:
    channel = MECHANISMS["randomized-response"]().channel(STARS, np.log(4))
    edges = noise_edges(channel, STARS)
    np.testing.assert_allclose((edges[1:] + edges[:-1]) / 2, np.arange(-4, 5))
    chances = exact_probabilities(edges, channel, SHARES)
    # Kept with 4 / 8, any other level with 1 / 8: 5 becomes 1 with 0.22 / 8.
    np.testing.assert_allclose(chances[[0, 4, 8]], [0.22 / 8, 0.5, 0.06 / 8])
