"""The comparison directory: claimed once, and never over something else."""

from pathlib import Path

import pytest

from dprec.errors import InputError
from simulation.storage.directories import ComparisonDirectory, check_table
from tests.refusals import refused_at

ONE, OTHER, COSMETIC = "name: a\nseeds: [1]\n", "name: a\nseeds: [2]\n", "name: a\nseeds: [1]\ntitle: A\n"


def test_a_directory_is_claimed_once(tmp_path: Path) -> None:
    directory = ComparisonDirectory.claim_for(tmp_path / "a" / "b", ONE)
    assert (directory.path / "comparison.yaml").read_text() == ONE
    assert directory.cells == tmp_path / "a" / "b" / "cells"
    with refused_at("b"):
        ComparisonDirectory.claim_for(directory.path, ONE)


def test_the_same_comparison_goes_on_with_what_a_page_shows_changed(tmp_path: Path) -> None:
    ComparisonDirectory.claim_for(tmp_path, ONE)
    with pytest.raises(InputError, match=r"seeds: \[1\] there and \[2\] now"):
        ComparisonDirectory.claim_for(tmp_path, OTHER, resume=True)
    assert (tmp_path / "comparison.yaml").read_text() == ONE
    ComparisonDirectory.claim_for(tmp_path, COSMETIC, resume=True)
    assert (tmp_path / "comparison.yaml").read_text() == COSMETIC


@pytest.mark.parametrize("name", ["config.yaml", "summary.json", "comparison.csv", "report.html"])
@pytest.mark.parametrize("resume", [False, True])
def test_what_something_else_left_is_not_written_over(tmp_path: Path, name: str, resume: bool) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(InputError, match=f"it holds {name} of something else"):
        ComparisonDirectory.claim_for(tmp_path, ONE, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_tables_are_written_whole(tmp_path: Path) -> None:
    directory = ComparisonDirectory.claim_for(tmp_path, ONE)
    directory.write_tables([{"name": "a", "rmse": 1.0}], [{"name": "a", "total_s": 2.0}])
    directory.write_noise([{"low": -1.0, "high": 1.0}])
    assert (tmp_path / "comparison.csv").read_text() == "name,rmse\na,1.0\n"
    assert (tmp_path / "timing.csv").read_text() == "name,total_s\na,2.0\n"
    assert (tmp_path / "noise.csv").read_text() == "low,high\n-1.0,1.0\n"


def test_a_table_that_was_cut_or_changed_is_refused(tmp_path: Path) -> None:
    directory = ComparisonDirectory.claim_for(tmp_path, ONE)
    directory.write_tables([{"name": "a", "rmse": 1.0}, {"name": "b", "rmse": 2.0}], [{"name": "a"}])
    table = tmp_path / "comparison.csv"
    check_table(table)
    check_table(tmp_path / "timing.csv")
    table.write_text("name,rmse\na,1.0\n")
    with pytest.raises(InputError, match=r"comparison\.csv: 1 row; accepted: .* --resume writes it again"):
        check_table(table)
    table.write_text("name,rmse\na,1.0\nb,1.0\n")
    with refused_at("comparison.csv"):
        check_table(table)
    directory.write_tables([{"name": "c"}], [])
    check_table(table)


def test_a_table_alone_is_accepted_and_a_damaged_record_is_named(tmp_path: Path) -> None:
    table = tmp_path / "comparison.csv"
    table.write_text("name\na\n")
    check_table(table)
    (tmp_path / "tables.json").write_text('{"files": {"comparison.csv": {"rows": 1, "sha256": "x"}}}')
    with refused_at("tables.json: files.comparison.csv.sha256"):
        check_table(table)
