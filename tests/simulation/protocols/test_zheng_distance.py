"""What the server sees is as far from the ratings as Zheng's Theorem 3 allows, in the units of an RMSE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dprec.accounting import PrivacyBudget
from dprec.completion import Observations
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.published_noise import modified_laplace_bound, randomized_response_bound
from dprec.privacy.calibration import CalibratedMechanism
from dprec.randomness import words
from dprec.ratings import Ratings, RatingScale
from simulation import compare, run
from simulation.protocols.reported_cells import RatedCells
from simulation.protocols.zheng_distance import RATING_NOISE, TOLERANCE, distance_per_cell
from tests.paths import CONFIGS

KINDS = ("zheng-laplace", "zheng-randomized-response")


def ratings_on(scale: RatingScale) -> Ratings:
    random = np.random.default_rng(5)
    users, items = np.nonzero(random.random((30, 20)) < 0.3)
    values = random.choice(scale.values, users.size)
    spaces = {"user_ids": np.arange(30), "item_ids": np.arange(20)}
    return Ratings.from_triples(users, items, values, scale, **spaces)


def distance(kind: str, epsilon: float, train: Ratings, *, accepted: int = 30) -> dict[str, Any]:
    """Send the ratings of the first users through a mechanism and measure."""
    calibrated = CalibratedMechanism(
        MECHANISMS[kind](), PrivacyBudget(epsilon=epsilon, per="cell"), train.scale, train.n_items
    )
    levels = np.zeros((train.n_users, train.n_items), dtype=np.uint8)
    levels[train.users, train.items] = train.levels
    channel = calibrated.reference_channel
    symbols = channel.sample(levels.ravel(), words(1, "distance", 0, levels.size)).reshape(levels.shape)
    values = channel.values[symbols]
    values[accepted:] = np.nan
    users, items = np.nonzero(~np.isnan(values))
    observed = Observations(
        users.astype(np.int32), items.astype(np.int32), values[users, items], levels.shape, train.scale
    )
    positions = np.full(levels.shape, -1)
    positions[train.users, train.items] = np.arange(train.count)
    at_shown = np.flatnonzero(positions[users, items] >= 0)
    rated = RatedCells(at_shown, positions[users, items][at_shown])
    assert rated.count == RatedCells.of(train, observed).count
    return distance_per_cell(calibrated, train, np.arange(30) < accepted, observed, rated)


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_units_are_those_of_the_ratings(step: float) -> None:
    train = ratings_on(RatingScale.evenly(1, 1 + 4 * step, step))
    cells = train.n_users, train.n_items, train.count
    found = distance("zheng-laplace", 2.0, train)
    bound = modified_laplace_bound(*cells, 2.0, TOLERANCE, RATING_NOISE) * 2 * step
    assert found["bound"] == pytest.approx(bound / np.sqrt(found["shown_cells"]))
    found = distance("zheng-randomized-response", 2.0, train)
    bound = randomized_response_bound(*cells, 5, 2.0, TOLERANCE, RATING_NOISE) * step
    assert found["bound"] == pytest.approx(bound / np.sqrt(found["shown_cells"]))


@pytest.mark.parametrize("kind", KINDS)
def test_almost_no_noise_is_no_distance_and_the_bound_falls(kind: str) -> None:
    train = ratings_on(RatingScale.evenly(1, 5, 1))
    found = [distance(kind, epsilon, train) for epsilon in (0.5, 2.0, 19.0)]
    assert found[0]["bound"] > found[1]["bound"] > found[2]["bound"]
    assert all(one["measured"] <= one["bound"] for one in found)
    # All of the ratings are shown then, hardly an item is made up, and noise of scale 4 / 19 remains.
    assert found[2]["shown_cells"] == found[2]["rated_cells"] == train.count
    assert found[2]["measured"] < 2 * np.sqrt(2) * 4 / 19


@pytest.mark.parametrize("kind", KINDS)
def test_users_whose_report_was_not_used_do_not_count(kind: str) -> None:
    train = ratings_on(RatingScale.evenly(1, 5, 1))
    fewer, everyone = distance(kind, 2.0, train, accepted=10), distance(kind, 2.0, train)
    assert fewer["shown_cells"] < everyone["shown_cells"]
    assert fewer["bound"] == pytest.approx(everyone["bound"], rel=0.2)


def test_nothing_shown_is_not_a_number() -> None:
    found = distance("zheng-laplace", 2.0, ratings_on(RatingScale.evenly(1, 5, 1)), accepted=0)
    assert found["bound"] is None
    assert found["measured"] is None


def test_other_mechanisms_have_none(tiny: dict[str, Any]) -> None:
    assert run(tiny).summary["distance"] == {}


def test_a_run_metrics_what_its_server_sees(tiny: dict[str, Any]) -> None:
    """Without noise to speak of, the server sees the train ratings."""
    tiny["protocol"]["mechanism"] = {"kind": "zheng-randomized-response"}
    tiny["protocol"]["privacy"] = {"epsilon": 20.0, "per": "cell"}
    summary = run(tiny).summary
    found = summary["distance"]
    assert found["measured"] == 0
    assert found["shown_cells"] == found["rated_cells"] == summary["dataset"]["train_ratings"]
    assert (found["tolerance"], found["rating_noise"]) == (0.05, 0.0)


@pytest.mark.thorough
def test_a_comparison_draws_bound_and_distance(tmp_path: Path) -> None:
    for preset in ("zheng-laplace", "zheng-rr", "plain-mf"):
        (tmp_path / f"{preset}.yaml").write_text((CONFIGS / f"{preset}.yaml").read_text())
    config = {
        "name": "small",
        "dataset": {"kind": "synthetic", "users": 40, "items": 30, "ratings": 400},
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "epsilons": [1.0, 3.0],
        "protocols": ["zheng-laplace", "zheng-rr", "plain-mf"],
        "simulation": {"backend": "local"},
    }
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(config))
    result = compare(tmp_path / "small.yaml", tmp_path / "out")
    private = [row for row in result.rows if row["epsilon"]]
    assert len(private) == 4
    assert all(row["distance_bound"] > row["distance_measured"] > 0 for row in private)
    assert "distance_bound" not in result.rows[-1]
    assert (result.directory / "figures" / "distance-epsilon.png").is_file()
    page = (result.directory / "report.html").read_text(encoding="utf-8")
    assert "at least 0.95" in page
