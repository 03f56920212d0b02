"""What is built, tried where nothing else is: installed with what is locked; what the README says to type."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

SUPPORTED = ("3.11", "3.12", "3.13")
"""Minor versions of Python."""

VARIABLE = "DPREC_PYTHONS"
"""Environment variable with paths of interpreters, separated as in PATH, which come before those of PATH."""

_BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")


def pythons() -> dict[str, str]:
    """Return an interpreter of each supported version that there is here, by its version."""
    named = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    on_path = filter(None, (shutil.which(f"python{version}") for version in SUPPORTED))
    found: dict[str, str] = {}
    for path in (*named, sys.executable, *on_path):
        version = _version(path)
        if version in SUPPORTED:
            found.setdefault(version, path)
    return {version: found[version] for version in SUPPORTED if version in found}


def _version(path: str) -> str | None:
    """Return the minor version of an interpreter; None if it cannot be run."""
    said = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        finished = subprocess.run([path, "-c", said], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return finished.stdout.strip() if finished.returncode == 0 else None


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    path: Path

    @property
    def programs(self) -> Path:
        """The folder of its programs."""
        return self.path / "bin"

    @property
    def packages(self) -> Path:
        """The folder of what is installed."""
        (folder,) = self.path.glob("lib/python*/site-packages")
        return folder

    @classmethod
    def empty(cls, path: Path, python: str) -> "Environment":
        """Make one in which nothing is installed."""
        _uv("venv", "--python", python, str(path))
        return cls(path)

    def install(self, *what: str) -> None:
        """Install what pip's arguments name; raises CalledProcessError."""
        _uv("pip", "install", "--python", str(self.programs / "python"), *what)

    def run(self, words: list[str], folder: Path) -> str:
        """Run a program in a folder, as after activation, and return what it prints.

        Raises CalledProcessError, with a note of what it said last.
        """
        ours = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        surroundings = {**ours, "PATH": f"{self.programs}{os.pathsep}{ours['PATH']}"}
        found = shutil.which(words[0], path=surroundings["PATH"]) or words[0]
        try:
            finished = subprocess.run(
                [found, *words[1:]], cwd=folder, env=surroundings, capture_output=True, text=True, check=True
            )
        except subprocess.CalledProcessError as error:
            error.add_note(error.stderr[-2000:])
            raise
        return finished.stdout


def _uv(*arguments: str) -> None:
    subprocess.run([find_uv_bin(), *arguments, "--quiet"], check=True)


def written_programs(readme: str, folder: Path) -> list[list[str]]:
    """Write what a README shows to a folder, and return what it says to type there.

    Files are those whose name is the first line of a block; other blocks of Python are programs. Commands are
    those of dprec which need no data but `ratings.csv` and `pairs.csv`.
    """
    write_ratings(folder)
    typed = []
    for number, (language, code) in enumerate(_BLOCK.findall(readme)):
        if language == "bash":
            lines = (shlex.split(line, comments=True) for line in code.splitlines())
            typed += [words for words in lines if words[:1] == ["dprec"] and "PATH/TO" not in " ".join(words)]
            continue
        named = _FILE.match(code)
        name = named[1] if named else f"block_{number}.py"
        (folder / name).write_text(code, encoding="utf-8")
        if not named:
            typed.append(["python", name])
    return typed


def write_ratings(folder: Path) -> None:
    """Write the ratings of 60 made-up users to ratings.csv, and their items alone to pairs.csv."""
    cells = [(user, item) for user in range(60) for item in range(30) if (user * 7 + item * 5) % 3]
    rated = [f"u{user},i{item},{1 + (user * 7 + item * 3 + user * item) % 5}\n" for user, item in cells]
    (folder / "ratings.csv").write_text("user,item,rating\n" + "".join(rated), encoding="utf-8")
    pairs = [line.rpartition(",")[0] + "\n" for line in rated]
    (folder / "pairs.csv").write_text("user,item\n" + "".join(pairs), encoding="utf-8")
