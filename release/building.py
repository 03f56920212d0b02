"""The distributions: built from what git knows of a checkout, bit by bit the same wherever that is."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Built:
    """The files of a distribution."""

    wheel: Path
    sdist: Path | None = None
    """None where a wheel alone is built."""

    @property
    def name(self) -> str:
        """The name of the distribution."""
        return self.wheel.name.split("-")[0].replace("_", "-")

    @property
    def version(self) -> str:
        """Its version."""
        return self.wheel.name.split("-")[1]

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [path for path in (self.sdist, self.wheel) if path is not None]

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of all files, by their names."""
        return {path.name: sha256_of(path) for path in self.paths}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy_sources(root: Path, folder: Path) -> Path:
    """Copy the files of a checkout that git knows, or would add; return the folder."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():  # and was not deleted
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    return folder


def uncommitted(root: Path) -> list[str]:
    """Return what differs from the last commit of a checkout, a line a file."""
    return _git(root, "status", "--porcelain").splitlines()


def epoch_of(root: Path) -> int:
    """Return when the last commit of a checkout was made, in seconds since 1970."""
    return int(_git(root, "log", "-1", "--format=%ct"))


def build(sources: Path, output: Path, epoch: int) -> Built:
    """Build the sdist, and the wheel from what is in it.

    ``epoch``: the time of all files in them, in seconds since 1970. Raises CalledProcessError.
    """
    output.mkdir(parents=True, exist_ok=True)
    _hatch("sdist", sources, output, epoch)
    (sdist,) = output.glob("*.tar.gz")
    unpacked = output / "unpacked"
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    _hatch("wheel", unpacked / sdist.name.removesuffix(".tar.gz"), output, epoch)
    shutil.rmtree(unpacked)
    (wheel,) = output.glob("*.whl")
    return Built(wheel, sdist)


def build_pilot(sources: Path, output: Path, epoch: int) -> Built:
    """Build the wheel of dprec-pilot; see `build`."""
    _hatch("wheel", sources / "pilot", output, epoch)
    (wheel,) = output.glob("*.whl")
    return Built(wheel)


def _hatch(target: str, sources: Path, output: Path, epoch: int) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(output)]
    timed = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        subprocess.run(command, cwd=sources, env=timed, capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as error:
        error.add_note(error.stderr)
        raise


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
