"""The directory of a comparison: begun once, and never over something else."""

import subprocess
import sys
from pathlib import Path

import pytest

from dprec.errors import InputError
from simulation.storage.directories import COMPARISON, CONFIG, alone, claim
from tests.refusals import refused_at

ONE, OTHER, COSMETIC = "name: a\nseeds: [1]\n", "name: a\nseeds: [2]\n", "name: a\nseeds: [1]\ntitle: A\n"


def test_a_directory_is_claimed_once(tmp_path: Path) -> None:
    directory = claim(tmp_path / "a" / "b", CONFIG, ONE)
    assert (directory / "config.yaml").read_text() == ONE
    with refused_at("b"):
        claim(directory, CONFIG, ONE)


@pytest.mark.parametrize("result", ["comparison.csv", "cells/a/summary.json"])
def test_a_comparison_of_which_nothing_is_finished_begins_again(tmp_path: Path, result: str) -> None:
    claim(tmp_path, COMPARISON, ONE)
    (tmp_path / "cells" / "a").mkdir(parents=True)
    claim(tmp_path, COMPARISON, ONE)
    with pytest.raises(InputError, match=r"seeds: \[1\] there and \[2\] now"):
        claim(tmp_path, COMPARISON, OTHER)
    (tmp_path / result).touch()
    with pytest.raises(InputError, match=r"it holds a comparison already; accepted: .* or --resume"):
        claim(tmp_path, COMPARISON, ONE)


def test_the_same_comparison_goes_on_with_what_a_page_shows_changed(tmp_path: Path) -> None:
    claim(tmp_path, COMPARISON, ONE)
    with pytest.raises(InputError, match=r"seeds: \[1\] there and \[2\] now"):
        claim(tmp_path, COMPARISON, OTHER, resume=True)
    assert (tmp_path / "comparison.yaml").read_text() == ONE
    claim(tmp_path, COMPARISON, COSMETIC, resume=True)
    assert (tmp_path / "comparison.yaml").read_text() == COSMETIC


@pytest.mark.parametrize("name", ["config.yaml", "summary.json", "comparison.csv", "report.html"])
@pytest.mark.parametrize("resume", [False, True])
def test_what_something_else_left_is_not_written_over(tmp_path: Path, name: str, resume: bool) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(InputError, match=f"it holds {name} of something else"):
        claim(tmp_path, COMPARISON, ONE, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("file", [COMPARISON, CONFIG])
@pytest.mark.parametrize("resume", [False, True])
def test_nothing_is_written_among_the_files_of_a_pilots_server(
    tmp_path: Path, file: str, resume: bool
) -> None:
    for name in ("config.yaml", "deployment.json"):
        (tmp_path / name).write_text(ONE)
    with pytest.raises(InputError, match=r"it is of a pilot's server \(deployment\.json\); accepted: a new"):
        claim(tmp_path, file, ONE, resume=resume)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "deployment.json"]


def test_no_other_process_writes_to_a_directory(tmp_path: Path) -> None:
    other_one = (
        "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX);"
        "print('claimed', flush=True); input()"
    )
    command = [sys.executable, "-c", other_one, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed\n"
        with pytest.raises(InputError, match="another process writes to it"), alone(tmp_path):
            pass
        other.communicate("\n")
    with alone(tmp_path):
        assert list(tmp_path.iterdir()) == []
    with alone(tmp_path):
        claim(tmp_path, COMPARISON, ONE)


def test_what_a_killed_process_has_half_written_is_removed(tmp_path: Path) -> None:
    claim(tmp_path, COMPARISON, ONE)
    (tmp_path / ".dprec-comparison.csv-abc").write_text("half")
    (tmp_path / ".mine").write_text("mine")
    claim(tmp_path, COMPARISON, ONE, resume=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine", "comparison.yaml"]
