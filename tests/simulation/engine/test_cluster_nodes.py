"""What a node computes with, and how a node is named that computes with something else."""

import platform
from pathlib import Path

import pytest

import dprec
from dprec.errors import RunError
from simulation.engine.cluster_nodes import _sources, check_same, installation


def test_an_installation_names_everything_that_bits_depend_on() -> None:
    own = installation()
    assert list(own) == ["dprec", "Python", "NumPy", "SciPy", "Flower", "sources"]
    assert own["dprec"] == dprec.__version__
    assert platform.python_version().startswith(own["Python"] + ".")


def test_the_same_installation_passes() -> None:
    check_same("n1", installation(), installation())


def test_what_differs_is_named_with_both_versions() -> None:
    theirs = {**installation(), "dprec": "0.0.9", "sources": "0123"}
    message = (
        rf"^the Ray node n1 has dprec 0\.0\.9, not {dprec.__version__}; sources 0123, not [0-9a-f]{{12}}$"
    )
    with pytest.raises(RunError, match=message):
        check_same("n1", theirs, installation())


def test_any_changed_source_changes_the_digest(tmp_path: Path) -> None:
    source = tmp_path / "clients" / "app.py"
    source.parent.mkdir()
    source.write_text("x = 1\n")
    (tmp_path / "notes.py").write_text("not of the packages\n")
    before = _sources(tmp_path)
    (tmp_path / "notes.py").write_text("changed\n")
    assert _sources(tmp_path) == before
    source.write_text("x = 2\n")
    after = _sources(tmp_path)
    assert after != before
    source.rename(tmp_path / "clients" / "apps.py")
    assert _sources(tmp_path) not in {before, after}
