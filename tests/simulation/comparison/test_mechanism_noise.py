"""The noise that a comparison draws agrees with its theory, and reaches table and page."""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.stats import binom

from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.ratings import RatingScale
from simulation import compare
from simulation.comparison.mechanism_noise import exact_probabilities, noise_edges, sampled_noise
from simulation.comparison.planning import Comparison, load_comparison
from simulation.configuration.strict_yaml import read_yaml
from tests.paths import CONFIGS

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
        for preset in ("blp-mf", "laplace-svd", "zheng-rr", "plain-mf"):
            (tmp_path / f"{preset}.yaml").write_text((CONFIGS / f"{preset}.yaml").read_text())
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


@pytest.mark.thorough
def test_the_comparison_keeps_and_shows_the_noise(comparison: Any, tmp_path: Path) -> None:
    directory = compare(comparison(epsilons=[1.0], noise_samples=2000), tmp_path / "out").directory
    with (directory / "noise.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    columns = ["protocol", "mechanism", "epsilon", "low", "high", "sampled_share", "theoretical_probability"]
    assert list(lines[0]) == columns
    assert {line["mechanism"] for line in lines} == {"bounded-laplace", "laplace"}
    assert (directory / "figures" / "noise-epsilon-1.svg").is_file()
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert "Noise, sampled and in theory" in page
    assert "of its noise outside the panel" in page


def test_nothing_is_drawn_unless_it_is_asked_for(comparison: Any) -> None:
    assert sampled_noise(loaded(comparison(noise_samples=None))) == []


def test_a_comparison_without_such_a_mechanism_is_refused(comparison: Any, tmp_path: Path) -> None:
    path = comparison(protocols=["zheng-rr", "plain-mf"])
    with pytest.raises(InputError, match="noise_samples"):
        compare(path, tmp_path / "out", page=False)
    assert not (tmp_path / "out").exists()


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
