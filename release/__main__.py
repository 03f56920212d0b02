"""`make release`: build what is committed, check it, try it on every supported Python, list what is in it.

Nothing is uploaded. `dist/` then holds the sdist, the wheel, `sbom.json` and `SHA256SUMS`.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from release.bill_of_materials import bill_of, hashes_in_report
from release.building import Built, build, copy_sources, epoch_of, sha256_of, uncommitted
from release.readiness import lacking
from release.trial import SUPPORTED, Environment, pythons, written_programs

ROOT = Path(__file__).resolve().parents[1]
LOCKED = ROOT / "requirements" / "run.txt"
DEMO = ["dprec", "compare", "compare-quick"]
"""What `make demo` runs."""


def main() -> None:
    """Make `dist/`; exits with what went wrong."""
    if changed := uncommitted(ROOT):
        sys.exit(f"release: {changed[0].split()[-1]} is not committed; accepted: a checkout without changes")
    epoch, here = epoch_of(ROOT), "{}.{}".format(*sys.version_info)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        built = build_twice(work, epoch)
        check_metadata((built.sdist, built.wheel))
        tried = {version: _tried(built, work / version, python) for version, python in pythons().items()}
        hashes = {**hashes_in_report(_report()), built.name: sha256_of(built.wheel)}
        bill = bill_of(built.name, tried[here].packages, hashes, epoch)
        _write(ROOT / "dist", built, bill)
    if untried := [version for version in SUPPORTED if version not in tried]:
        print(f"not tried, since there is none here: Python {', '.join(untried)}")
    if lacks := lacking(ROOT):
        print(f"dist/ is whole, and not to be published yet: {'; '.join(lacks)}")


def build_twice(work: Path, epoch: int) -> Built:
    """Build in two folders of different lengths; exits unless every bit is the same."""
    first, second = (
        build(copy_sources(ROOT, work / name), work / f"dist-of-{name}", epoch) for name in ("one", "another")
    )
    if first.digests != second.digests:
        sys.exit(f"release: two builds differ: {first.digests} and {second.digests}")
    return first


def check_metadata(paths: Iterable[Path]) -> None:
    """Check the metadata as an index would; raises CalledProcessError."""
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *map(str, paths)]
    subprocess.run(command, stdout=sys.stderr, check=True)


def _tried(built: Built, folder: Path, python: str) -> Environment:
    """Install the wheel in an empty environment, and type what the README says in an empty directory."""
    environment, empty = Environment.empty(folder / "environment", python), folder / "empty"
    environment.install("--require-hashes", "--requirement", str(LOCKED))
    environment.install("--no-deps", str(built.wheel))
    empty.mkdir()
    for words in (DEMO, *written_programs((ROOT / "README.md").read_text(encoding="utf-8"), empty)):
        print(f"Python {folder.name}: {' '.join(words)}", flush=True)
        environment.run(words, empty)
    return environment


def _report() -> str:
    """Return pip's report of the files that are installed from the lock."""
    options = ("--dry-run", "--ignore-installed", "--quiet", "--report", "-", "--require-hashes")
    command = [sys.executable, "-m", "pip", "install", *options, "--requirement", str(LOCKED)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _write(folder: Path, built: Built, bill: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in (built.sdist, built.wheel):
        shutil.copy(path, folder)
    (folder / "sbom.json").write_text(bill, encoding="utf-8")
    names = (built.sdist.name, built.wheel.name, "sbom.json")
    sums = "".join(f"{sha256_of(folder / name)}  {name}\n" for name in names)
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums, end="")


if __name__ == "__main__":
    main()
