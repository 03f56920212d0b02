"""Which cells run first, and how the noise of mechanisms is held against theory."""

from itertools import groupby
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dprec.mechanisms import MECHANISMS
from simulation.comparison.cell_runs import CellQueue
from simulation.comparison.noise import exact_probabilities, noise_edges, sampled_noise
from simulation.comparison.planning import load_comparison
from simulation.comparison.templates import Cell
from simulation.configuration.strict_yaml import read_yaml
from tests.make import STARS
from tests.paths import CONFIGS

SMALL: dict[str, Any] = {
    "name": "order",
    "dataset": {"kind": "synthetic", "users": 12, "items": 9, "ratings": 60},
    "split": {"kind": "holdout"},
    "seeds": [1, 2],
    "epsilons": [1.0],
    "baselines": False,
}
SIGNS = ["one-bit-clear", "one-bit-objective", "one-bit-output"]


@pytest.fixture
def cells() -> list[Cell]:
    """Return cells of cheap, costly and shared fits, the cheap ones first."""
    protocols = ["item-average", "blp-mf", "isgd", "zheng-rr", *SIGNS]
    return list(load_comparison({**SMALL, "protocols": protocols}).cells)


def test_of_what_is_known_the_costliest_come_first(cells: list[Cell]) -> None:
    seconds = {"item-average": 1.0, "blp-mf": 3.0, "isgd": 9.0, "zheng-rr": 2.0}
    queue = CellQueue([cell for cell in cells if cell.protocol in seconds])
    order = []
    for _ in range(8):
        order += queue.next()
        queue.ended(order[-1], seconds[order[-1].protocol])
    assert [cell.protocol for cell in order[:4]] == [*seconds]
    assert [cell.protocol for cell in order[4:]] == ["isgd", "blp-mf", "zheng-rr", "item-average"]
    assert [cell.seed for cell in order] == [1] * 4 + [2] * 4
    assert not queue


def test_an_interrupted_comparison_has_the_baselines_and_then_a_run_of_every_protocol() -> None:
    protocols = ["zheng-laplace", "blp-mf", "isgd", "one-bit-clear", "plain-mf"]
    values = {**SMALL, "protocols": protocols, "epsilons": [0.5, 1.0, 3.0], "baselines": True}
    cells = load_comparison(values).cells
    baselines = {cell.protocol for cell in cells if cell.baseline}
    named = {cell.protocol for cell in cells} - baselines
    queue, order = CellQueue(cells), []
    while queue:
        order += queue.next()
        queue.ended(order[-1], 1.0)
    first, then = len(baselines), len(baselines) + len(named)
    assert {cell.protocol for cell in order[:first]} == baselines
    assert {cell.protocol for cell in order[first:then]} == named
    assert {cell.seed for cell in order[:then]} == {1}
    assert {cell.epsilon for cell in order[:then]} == {None, 1.0}
    assert {cell.key for cell in order} == {cell.key for cell in cells}


def test_cells_with_one_fit_run_one_after_the_other(cells: list[Cell]) -> None:
    bounded = [cell for cell in cells if cell.protocol.startswith("one-bit")]
    queue, together = CellQueue(bounded), []
    while queue:
        together.append([cell.key for cell in queue.next()])
    # The splits of the two seeds differ, and so do the fits; no fit is shared with the objective's.
    assert together == [
        ["one-bit-clear-seed1", "one-bit-output-eps1.0-seed1"],
        ["one-bit-objective-eps1.0-seed1"],
        ["one-bit-clear-seed2", "one-bit-output-eps1.0-seed2"],
        ["one-bit-objective-eps1.0-seed2"],
    ]


def test_quick_runs_one_cell_of_every_protocol() -> None:
    values = {**SMALL, "protocols": ["item-average", "blp-mf"], "seeds": [3, 4], "epsilons": [4.0, 0.5, 1.0]}
    keys = [cell.key for cell in load_comparison(values, ["quick=true"]).cells]
    assert keys == ["item-average-seed3", "blp-mf-eps1.0-seed3"]


SHARES = np.array([0.06, 0.11, 0.27, 0.34, 0.22])
FALSE_ALARM = 1e-7
"""Per test, by Bonferroni over the intervals, for draws from the theory itself. The grid of 4096 symbols
moves a share of bounded Laplace by up to about 0.3 standard errors, which raises it to less than 1e-6."""


def test_draws_agree_with_theory() -> None:
    values = read_yaml(CONFIGS / "experiments" / "neera-fig2.yaml")
    small = {key: SMALL[key] for key in ("dataset", "split")}
    rows = sampled_noise(load_comparison({**values, **small, "noise_samples": 100_000, "seeds": [3]}))
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
