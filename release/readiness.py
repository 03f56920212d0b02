"""What a release still lacks before it can be published."""

import re
import tomllib
from pathlib import Path


def lacking(root: Path) -> list[str]:
    """Return what the documents of a checkout do not state yet, in words."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+), (.+)$", changes, re.MULTILINE)
    lacks = []
    if not project.get("urls"):
        lacks.append("pyproject.toml has no urls")
    if newest is None or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", newest[2]):
        lacks.append("CHANGELOG.md has no date of the newest version")
    if not re.search("^date-released:", citation, re.MULTILINE):
        lacks.append("CITATION.cff has no date-released")
    return lacks
