"""The comparison directory: claimed once, and never over something else."""

import subprocess
import sys
from pathlib import Path

import pytest

from dprec.errors import InputError
from simulation.storage.directories import ComparisonDirectory
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


def test_no_other_process_writes_to_a_directory_that_is_claimed(tmp_path: Path) -> None:
    claim = (
        "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX);"
        "print('claimed', flush=True); input()"
    )
    command = [sys.executable, "-c", claim, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed\n"
        with pytest.raises(InputError, match="another process writes to it"):
            ComparisonDirectory.claim_for(tmp_path, ONE, resume=True)
        other.communicate("\n")
    first = ComparisonDirectory.claim_for(tmp_path, ONE, resume=True)
    assert ComparisonDirectory.claim_for(tmp_path, ONE, resume=True).path == first.path


def test_what_a_killed_process_has_half_written_is_removed(tmp_path: Path) -> None:
    ComparisonDirectory.claim_for(tmp_path, ONE)
    (tmp_path / ".dprec-comparison.csv-abc").write_text("half")
    (tmp_path / ".mine").write_text("mine")
    ComparisonDirectory.claim_for(tmp_path, ONE, resume=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine", "comparison.yaml"]
