"""What the server sees is as far from the ratings as Zheng's Theorem 3 allows, in the units of an RMSE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from simulation import compare, run
from tests.paths import CONFIGS


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
    assert (result.directory / "figures" / "distance-epsilon.svg").is_file()
    page = (result.directory / "report.html").read_text(encoding="utf-8")
    assert "at least 0.95" in page
