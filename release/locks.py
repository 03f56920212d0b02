"""The locked environments of `make`: every distribution with its version and the SHA-256 of its files.

`python -m release.locks` writes `requirements/` anew, from `pyproject.toml` and the versions of
`constraints.txt`. A lock holds on every platform and on every supported Python: its lines have markers, and
hashes of all files of a version. So pip refuses a file that is not one of those, wherever it comes from.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = "constraints.txt"
LOCKS: Mapping[str, Sequence[str]] = {
    "run.txt": ("pyproject.toml", "--group", "build"),
    "test.txt": ("pyproject.toml", "--group", "build", "--extra", "test"),
    "release.txt": ("--group", "release"),
}
"""The files of `requirements/`, and what uv is to resolve for each."""

_OLDEST = "3.11.5"
"""The oldest Python for which everything that is locked can be had."""

_HEADER = f"# Written by `python -m release.locks`, from pyproject.toml and {CONSTRAINTS}.\n"


def locked(wanted: Sequence[str], root: Path = ROOT) -> str:
    """Return the contents of a lock; asks the package index.

    Raises subprocess.CalledProcessError when there is no index, or no solution.
    """
    options = ("--universal", "--generate-hashes", "--no-header", "--no-annotate", "--quiet")
    command = [find_uv_bin(), "pip", "compile", *wanted, *options, "--python-version", _OLDEST]
    finished = subprocess.run(
        [*command, "--constraint", CONSTRAINTS], cwd=root, stdout=subprocess.PIPE, text=True, check=True
    )
    return _HEADER + finished.stdout


def pins_of(text: str) -> dict[str, str]:
    """Return the version of every distribution that a lock, or the constraints, name."""
    lines = (
        line.partition(";")[0].strip(" \\") for line in text.splitlines() if line and line[0] not in " #"
    )
    return {_canonical(name): version for name, _, version in (line.partition("==") for line in lines)}


def hashes_of(text: str) -> dict[str, frozenset[str]]:
    """Return the SHA-256 of the files of every distribution of a lock."""
    hashes: dict[str, frozenset[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("    --hash=sha256:"):
            hashes[name] |= {line.partition("sha256:")[2].strip(" \\")}
        elif line and line[0] not in " #":
            name = _canonical(line.partition("==")[0])
            hashes[name] = frozenset()
    return hashes


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def main() -> None:
    """Write all locks."""
    folder = ROOT / "requirements"
    folder.mkdir(exist_ok=True)
    for name, wanted in LOCKS.items():
        (folder / name).write_text(locked(wanted), encoding="utf-8")
        print(f"requirements/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
