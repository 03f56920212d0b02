"""Commands as documents show them, run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.tables.results import DOCS
from dprec.errors import RunError

ROOT = DOCS.parent
PLACEHOLDER = "PATH/TO"
"""What stands for the folder of the data sets."""


def typed(command: str, data: Path | None = None) -> list[str]:
    """Return the arguments of a command that was typed, run by this interpreter."""
    program, *arguments = shlex.split(command if data is None else command.replace(PLACEHOLDER, str(data)))
    known = {"dprec": [sys.executable, "-m", "dprec"], "python": [sys.executable]}
    return [*known[program], *(str(ROOT / each) if (ROOT / each).is_file() else each for each in arguments)]


def run(arguments: Sequence[str], folder: Path) -> None:
    """Run a command in a folder; raises RunError with its last line if it fails."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"{shlex.join(arguments)}: exit {ended.returncode}: {last}")
