"""Every protocol with other numbers of users: which cells there are, and what comes of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import compare
from simulation.analysis.populations import population_words
from simulation.analysis.protocol_results import read_rows
from simulation.comparison.planning import Comparison, load_comparison

PROTOCOL = {
    "kind": "one-shot",
    "privacy": {"epsilon": 1.0},
    "mechanism": {"kind": "bounded-laplace"},
    "completion": {"kind": "item-average"},
}
CLEAR = {"kind": "one-shot", "mechanism": {"kind": "none"}, "completion": {"kind": "mf", "rank": 2}}
VALUES: dict[str, Any] = {
    "name": "sizes",
    "dataset": {"kind": "synthetic", "users": 20, "items": 30, "ratings": 300},
    "split": {"kind": "k-fold", "folds": 3, "fold": 0},
    "folds": [0, 2],
    "seeds": [1, 2],
    "epsilons": [1.0, 2.0],
    "protocols": [
        {"name": "averages", "protocol": PROTOCOL},
        {"name": "plain", "protocol": CLEAR},
    ],
    "baselines": False,
    "simulation": {"backend": "local"},
}


def load(populations: Any, **changes: Any) -> Comparison:
    return load_comparison({**VALUES, "populations": populations, **changes})


def test_ratings_per_user_stay_the_same() -> None:
    cells = [cell for cell in load({"users": [40, 10]}).cells if cell.population]
    assert {(cell.population, cell.config.dataset.known_size()) for cell in cells} == {
        ("40", (40, 30, 600)),
        ("10", (10, 30, 150)),
    }
    assert {cell.config.split.fold for cell in cells} == {0}  # type: ignore[attr-defined]


def test_populations_come_beside_the_comparisons_own_ratings() -> None:
    plain = load_comparison(VALUES).cells
    cells = load({"users": [40], "epsilons": [5.0], "protocols": ["averages"]}, baselines=True).cells
    assert [cell for cell in cells if cell.population is None and cell.baseline is None] == list(plain)
    others = [cell for cell in cells if cell.population]
    assert [(cell.protocol, cell.epsilon, cell.seed, cell.baseline) for cell in others] == [
        ("averages", 5.0, 1, None),
        ("averages", 5.0, 2, None),
        ("nothing-sent", None, 1, "nothing-sent"),
        ("nothing-sent", None, 2, "nothing-sent"),
    ]
    assert others[0].key == "averages-users40-eps5.0-seed1"


def test_given_data_are_populations_too() -> None:
    given = [{"kind": "synthetic-domains", "users": 40, "items": 60, "ratings": 800}]
    cells = [cell for cell in load({"datasets": given}).cells if cell.population]
    assert {(cell.population, cell.config.dataset.kind) for cell in cells} == {("synthetic-domains",) * 2}


@pytest.mark.parametrize(
    ("populations", "found"),
    [
        ({"users": [1]}, "populations.users[0]"),
        ({"users": [40, 40]}, "populations: 40 twice"),
        (
            {"users": [40], "protocols": ["absent"]},
            "populations.protocols: 'absent'; accepted: averages, plain",
        ),
        (
            {"users": [40], "dataset": {"kind": "movielens-1m", "path": "x"}},
            "populations.dataset: 'movielens-1m'",
        ),
        ({"sizes": [40]}, "populations.sizes"),
        ({"users": []}, "populations.users: none; accepted: numbers of users, or datasets"),
        ({}, "populations.users: none"),
    ],
)
def test_bad_populations_are_one_line(populations: Any, found: str) -> None:
    with pytest.raises(InputError) as caught:
        load(populations)
    assert found in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_has_a_line_for_every_population_and_resumes(tmp_path: Path) -> None:
    values = {
        **VALUES,
        "populations": {"users": [40, 80], "epsilons": [1.0]},
        "baselines": True,
        "folds": None,
    }
    result = compare(values, tmp_path / "out", page=False)
    assert not result.failures
    with (tmp_path / "out" / "comparison.csv").open(newline="") as file:
        lines = [row for row in csv.DictReader(file) if row["name"] == "averages" and row["seed"] == "1"]
    assert [(row["users"], row["population"], row["epsilon"]) for row in lines] == [
        ("20", "", "1.0"),
        ("20", "", "2.0"),
        ("40", "40", "1.0"),
        ("80", "80", "1.0"),
    ]
    assert all(row["against"] == "nothing-sent" and row["rmse_gain"] for row in lines)
    (words,) = population_words(read_rows(tmp_path / "out" / "comparison.csv"))
    assert words.startswith("averages ")
    assert compare(values, tmp_path / "out", resume=True, page=False).rows == result.rows
