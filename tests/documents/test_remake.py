"""Committed results are what their commands give: one cheap row of each."""

from pathlib import Path

import pytest

from docs.tables.moved import shows
from docs.tables.remake import Difference, checked, differences
from docs.tables.results import made_of, names
from tests.paths import DATA

# What is attacked, or collected week by week, takes half a minute.
CHECKED = [
    pytest.param(name, marks=[pytest.mark.nightly] * (name in ("attacks", "weekly")))
    for name in names()
    if made_of(name).cheapest is not None
]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is absent; set DPREC_DATA to its folder")
@pytest.mark.thorough
@pytest.mark.parametrize("name", CHECKED)
def test_a_row_made_anew_is_the_committed_one(name: str, tmp_path: Path) -> None:
    assert checked(name, DATA, tmp_path) == []


def test_what_moved_is_kept_of_accuracies_at_the_digits_shown() -> None:
    line = {
        "table": "ml-100k-u1",
        "protocol": "isgd",
        "figure": "rmse",
        "before": "1.1340",
        "after": "1.1352",
    }
    assert shows(line)
    assert not shows(line | {"after": "1.13401"})
    assert not shows(line | {"figure": "mae"})
    assert not shows(line | {"protocol": "of-an-earlier-table"})


def test_what_differs_is_told_figure_by_figure() -> None:
    key = ("bits", "1.0", "")
    before = {key: {"rmse": "0.95", "mae": "0.7", "status": "proved"}}
    near = {key: {"rmse": "0.9500000001", "mae": "0.7", "status": "proved"}}
    far = {key: {"rmse": "0.951", "mae": "0.7", "status": "claimed"}}
    assert list(differences("t", before, near, 1e-6)) == []
    assert sorted(differences("t", before, far, 1e-6)) == [
        Difference("t", *key, "rmse", "0.95", "0.951"),
        Difference("t", *key, "status", "proved", "claimed"),
    ]
