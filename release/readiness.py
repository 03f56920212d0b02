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
    released = re.search(r"^date-released: (\S+)$", citation, re.MULTILINE)
    lacks = []
    if not project.get("urls"):
        lacks.append("pyproject.toml has no urls")
    if newest is None or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", newest[2]):
        lacks.append("CHANGELOG.md has no date of the newest version")
    if released is None:
        lacks.append("CITATION.cff has no date-released")
    elif newest and released[1] != newest[2]:
        lacks.append(f"CITATION.cff has the date {released[1]}, CHANGELOG.md {newest[2]}")
    return lacks
