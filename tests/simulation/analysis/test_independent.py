"""What is to be taken of a comparison, against the same worked out from comparison.csv by other code.

`Own` reads the table with csv alone and shares nothing with the project. Tables are those that are kept with
the documents, and drawn ones: odd, unfinished, with holes, ties, claims, and intervals that are missing.
"""

import csv
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulation.analysis.decision import decision_grid
from simulation.analysis.protocol_results import ProtocolResult, by_evaluation, read_results
from simulation.storage.files import csv_of_rows

KEPT = sorted((Path(__file__).parents[3] / "docs" / "results").glob("*.csv"))
TRUSTS = ("local", "shuffle", "secure-aggregation", "central")
LOWER = {"rmse": True, "relative_error": True, "sign_accuracy": False}
UNITS = {"rating": "epsilon_per_rating", "user": "epsilon_per_user_max"}

Line = dict[str, str]


@dataclass
class Own:
    """A protocol at a budget, worked out from its lines."""

    lines: list[Line]
    base: list[Line]
    metric: str

    def mean(self, column: str) -> float | None:
        cells = [float(line[column]) for line in self.lines if line.get(column)]
        return math.fsum(cells) / len(cells) if cells else None

    def most(self, column: str) -> float | None:
        cells = [line.get(column) for line in self.lines]
        return max(float(cell) for cell in cells if cell) if all(cells) else None

    @property
    def name(self) -> str:
        return self.lines[0]["name"]

    @property
    def budget(self) -> float | None:
        return float(self.lines[0]["epsilon"]) if self.lines[0]["epsilon"] else None

    @property
    def trust(self) -> str:
        return max((line["trust"] for line in self.lines), key=TRUSTS.index)

    @property
    def hides(self) -> bool:
        return any(line["hides_rated_items"] == "True" for line in self.lines)

    @property
    def competes(self) -> bool:
        proved = all(line["status"] == "proved" for line in self.lines)
        return proved and not self.lines[0].get("baseline") and self.mean(self.metric) is not None

    @property
    def rank(self) -> float:
        reached = self.mean(self.metric) or 0.0
        return reached if LOWER[self.metric] else -reached

    @property
    def gained(self) -> tuple[float, float | None, float | None] | None:
        """The mean paired difference and the interval, or None without pairs."""
        by_fold: dict[str, list[float]] = {}
        for line in self.lines:
            for other in self.base:
                keys = ("fold", "seed", "train_ratings", "test_ratings")
                same = all(line.get(key) == other.get(key) for key in keys)
                if same and line.get(self.metric) and other.get(self.metric):
                    apart = float(other[self.metric]) - float(line[self.metric])
                    by_fold.setdefault(line.get("fold", ""), []).append(
                        apart if LOWER[self.metric] else -apart
                    )
        if not by_fold:
            return None
        mean = sum(sum(own) / len(own) for own in by_fold.values()) / len(by_fold)
        held = {
            (line.get("against"), line.get(f"{self.metric}_gain_low"), line.get(f"{self.metric}_gain_high"))
            for line in self.lines
        }
        against, low, high = held.pop()
        if held or against != self.base[0]["name"] or not low or not high or float(low) > float(high):
            return mean, None, None
        return mean, float(low), float(high)

    @property
    def better(self) -> bool:
        gained = self.gained
        return gained is not None and (gained[0] if gained[1] is None else gained[1]) >= 0.0005

    def keeps(self, unit: str, epsilon: float, delta: float | None) -> bool:
        summed, composed, needed = (
            self.most(column) for column in (UNITS[unit], "epsilon_composed_max", "delta")
        )
        if summed is not None and summed <= epsilon * (1 + 1e-9):
            return True
        allowed = delta is None or (needed is not None and needed <= delta * (1 + 1e-9))
        return unit == "user" and allowed and composed is not None and composed <= epsilon * (1 + 1e-9)

    def spent(self, kind: str) -> float | None:
        ways = [self.mean(f"{way}link_{kind}_mean_per_user") for way in ("up", "down")]
        return None if None in ways else sum(way for way in ways if way is not None)

    def is_(self, result: ProtocolResult) -> bool:
        return (self.name, self.budget) == (result.name, result.budget)


def read(path: Path, same: Callable[[Line], bool], metric: str) -> list[Own]:
    with path.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if same(line) and not line.get("population")]
    forms: dict[str, list[Line]] = {}
    for line in lines:
        if line.get("baseline") == "nothing-sent" and line.get(metric):
            forms.setdefault(line["name"], []).append(line)
    # Of several forms, with public data and without, the most accurate one.
    base = min((Own(own, own, metric) for own in forms.values()), key=lambda own: own.rank, default=None)
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["name"], line["epsilon"]), []).append(line)
    return [Own(own, base.lines if base else [], metric) for own in groups.values()]


def chosen(every: list[Own]) -> Own | None:
    """The most accurate of those that beat nothing sent, or of all."""
    pool = [each for each in every if each.better] or every
    return min(pool, key=lambda each: (each.rank, each.name, each.budget or 0.0), default=None)


def kept_as_a_comparison(path: Path, folder: Path) -> Path:
    """Copy a table of the documents, which has the columns of comparison.csv."""
    return Path(shutil.copy(path, folder / "comparison.csv"))


def drawn(draw: int, folder: Path) -> Path:
    """Write a table with holes, ties, claims, baselines that are missing, and odd intervals."""
    random = np.random.default_rng(draw)
    folds, seeds = ["u1", "u2"][: 1 + draw % 2], [1, 2, 3][: 1 + draw % 3]
    runs = [(fold, seed) for fold in folds for seed in seeds]
    base = {run: round(float(random.uniform(0.9, 1.1)), 3) for run in runs}
    rows: list[dict[str, Any]] = []
    if draw % 5:
        quiet = {
            "name": "quiet",
            "epsilon": "",
            "baseline": "nothing-sent",
            "status": "proved",
            "trust": "local",
        }
        rows += [{**quiet, "fold": fold, "seed": seed, "rmse": base[fold, seed]} for fold, seed in runs]
    for place in range(int(random.integers(1, 12))):
        trust, hides = TRUSTS[random.integers(4)], bool(random.integers(2))
        status = ["proved", "proved", "proved", "claimed", "none"][random.integers(5)]
        for epsilon in random.permutation([0.5, 1.0, 3.0])[: random.integers(1, 4)]:
            gain = round(float(random.choice([-0.2, 0.0003, 0.0006, 0.01, 0.05, 0.1])), 4)
            width = float(random.choice([0.0001, 0.01, 0.08]))
            ends: dict[str, Any] = {"rmse_gain_low": gain - width, "rmse_gain_high": gain + width}
            ends = [ends, ends, {"rmse_gain_low": gain}, {"rmse_gain_low": 1.0, "rmse_gain_high": 0.5}, {}][
                random.integers(5)
            ]
            spends = float(epsilon) * random.choice([0.5, 1.0, 1.0, 300.0])
            same = {
                "name": f"p{place}", "epsilon": float(epsilon), "baseline": "", "status": status,
                "trust": trust,
                "hides_rated_items": hides, "against": random.choice(["quiet", "other"]), **ends,
                "epsilon_per_rating": [float(epsilon), ""][int(random.integers(4) == 0)],
                "epsilon_per_user_max": [spends, ""][int(random.integers(4) == 0)],
                "epsilon_composed_max": [0.7 * spends, ""][random.integers(2)],
                "delta": float(random.choice([1e-6, 1e-3])), "uplink_message_mean_per_user": 400.0 + place,
                "downlink_message_mean_per_user": 24_000.0, "uplink_network_mean_per_user": 21_000.0 + place,
                "downlink_network_mean_per_user": ["", 30_000.0][random.integers(2)],
            }  # fmt: skip
            for fold, seed in runs:
                if random.random() < 0.9:
                    value = ["", round(base[fold, seed] - gain, 4)][int(random.random() < 0.95)]
                    rows.append({**same, "fold": fold, "seed": seed, "rmse": value})
    rows += [{"name": "plain", "epsilon": "", "status": "none", "trust": "central", "seed": 1, "rmse": 0.7}]
    columns = dict.fromkeys(key for row in rows for key in row)
    full = [{**dict.fromkeys(columns, ""), "dataset": "d", **row} for row in rows]
    (folder / "comparison.csv").write_text("".join(csv_of_rows(full)))
    return folder / "comparison.csv"


Case = tuple[list[ProtocolResult], list[Own], str]


def parts(path: Path) -> Iterator[Case]:
    """Yield each thing that a table predicts: its results, the same by other code, and the metric."""
    for evaluation, results in by_evaluation(read_results(path)).items():
        metric, data = evaluation.metric.column, (evaluation.dataset, evaluation.panel or "")

        def same(line: Line, data: tuple[str, str] = data) -> bool:
            return (line["dataset"], line.get("panel", "")) == data

        known = {each.name for each in results}
        every = [each for each in read(path, same, metric) if each.name in known]
        yield list(results), every, metric


def cases(folder: Path) -> Iterator[Case]:
    for table in KEPT:
        yield from parts(kept_as_a_comparison(table, folder))
    for draw in range(60):
        yield from parts(drawn(draw, folder))


def metric_of(results: list[ProtocolResult]) -> Any:
    evaluation = next(each.evaluation for each in results if each.evaluation)
    return evaluation.metric


@pytest.mark.parametrize("unit", ["rating", "user"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_cell_of_the_grid_is_that_of_the_table(tmp_path: Path, unit: Any, delta: float | None) -> None:
    seen = filled = 0
    for results, every, _ in cases(tmp_path):
        for cell in decision_grid(results, metric_of(results), unit, delta):
            seen += 1
            within = [each for each in every if each.competes and each.keeps(unit, cell.epsilon, delta)]
            own = chosen([each for each in within if (each.hides, each.trust) == (cell.hides, cell.trust)])
            assert (own is None) == (cell.best is None)
            if own is None or cell.best is None:
                continue
            filled += 1
            assert own.is_(cell.best), (own.name, own.budget, cell.best.name, cell.best.budget)
            assert cell.best.bytes_per_user == pytest.approx(own.spent("message"))
            assert cell.best.network_bytes_per_user == pytest.approx(own.spent("network"))
            check_gain(cell, own)
            check_less(cell, own, within)
    assert seen > 300
    assert filled > 100


def check_gain(cell: Any, own: Own) -> None:
    assert (cell.against is None) == (own.gained is None)
    if own.gained is None:
        assert not cell.nothing_sent_wins
        return
    mean, low, high = own.gained
    assert (cell.against.low, cell.against.high) == (low, high)
    assert cell.against.mean == pytest.approx(mean, abs=1e-12)
    assert cell.nothing_sent_wins == (not own.better)
    excludes = low is not None and high is not None and (low >= 0.0005 or high <= -0.0005)
    assert cell.against.significant == excludes
    assert (" better" in cell.against.written) <= (low is None or low > 0)


def check_less(cell: Any, own: Own, within: list[Own]) -> None:
    """Check who needs less trust, protects as much and is as accurate at three decimals."""
    less = [
        each
        for each in within
        if TRUSTS.index(each.trust) < TRUSTS.index(own.trust) and each.hides >= own.hides
    ]
    best = chosen(less)
    as_good = best is not None and best.rank - own.rank < 0.0005 and best.better >= own.better
    expected = best if as_good else None
    assert (cell.with_less is None) == (expected is None)
    if expected is not None:
        assert expected.is_(cell.with_less)
