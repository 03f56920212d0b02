"""The documents name files that exist, and the version that is released."""

import re

import pytest
import yaml

from dprec import __version__
from dprec.protocols.registry import PROTOCOLS
from tests.paths import ROOT

DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
PLACEHOLDERS = ("NAME", "..")


def named_paths(document: str) -> set[str]:
    """Return what stands between backticks and looks like a path of the project."""
    text = (ROOT / document).read_text(encoding="utf-8")
    paths = re.findall(r"`([\w./*-]+/[\w./*-]*|[\w-]+\.(?:md|toml|cff))`", text)
    return {path for path in paths if not any(word in path for word in PLACEHOLDERS)}


def exists(path: str) -> bool:
    """Whether a path exists in the project, or in one of its packages where the text is about that."""
    if path.startswith(("pilot/", "dprec_pilot/")) and not (ROOT / "pilot").exists():
        return True
    return any(ROOT.glob(path)) or any(ROOT.glob(f"*/{path}"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_that_a_document_names_exists(document: str) -> None:
    paths = named_paths(document)
    assert paths
    assert [path for path in sorted(paths) if not exists(path)] == []


def test_every_package_of_the_simulation_is_in_the_architecture() -> None:
    described = named_paths("ARCHITECTURE.md")
    folders = {f"simulation/{path.parent.name}/" for path in ROOT.glob("simulation/*/__init__.py")}
    modules = {f"simulation/{path.name}" for path in ROOT.glob("simulation/*.py") if path.stem != "__init__"}
    assert (folders | modules) - described == set()


def test_the_architecture_names_the_file_of_every_protocol() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = text.partition("| kinds; ")[2].partition("\n\n")[0].splitlines()[2:]
    named = {}
    for group in "; ".join(row.split(" | ")[0].removeprefix("| ") for row in rows).split("; "):
        kinds, _, file = group.partition(" (")
        named |= {kind: file.strip("`)") or f"{kind.replace('-', '_')}.py" for kind in kinds.split(", ")}
    files = {kind: f"{PROTOCOLS[kind].__module__.rpartition('.')[2]}.py" for kind in PROTOCOLS.kinds}
    assert named == files


def test_citation_and_changelog_state_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert f"## {__version__}, " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
