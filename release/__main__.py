"""`make release`: build what is committed, check it, try it on every supported Python, list what is in it.

Nothing is uploaded. `dist/` then holds the distributions, a bill of materials of each and `SHA256SUMS`.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from release.bill_of_materials import bill_of, hashes_in_report
from release.building import Built, build, build_pilot, copy_sources, epoch_of, sha256_of, uncommitted
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
        whole, pilot = built = build_twice(work, epoch)
        check_metadata(path for each in built for path in each.paths)
        tried = {version: _tried(built, work / version, python) for version, python in pythons().items()}
        hashes = {**hashes_in_report(_report()), **{each.name: sha256_of(each.wheel) for each in built}}
        environments = zip(built, tried[here], ("sbom.json", "sbom-pilot.json"), strict=True)
        bills = {
            name: bill_of(each.name, environment.packages, hashes, epoch)
            for each, environment, name in environments
        }
        _write(ROOT / "dist", [*whole.paths, *pilot.paths], bills)
    if untried := [version for version in SUPPORTED if version not in tried]:
        print(f"not tried, since there is none here: Python {', '.join(untried)}")
    if lacks := lacking(ROOT):
        print(f"dist/ is whole, and not to be published yet: {'; '.join(lacks)}")


def build_twice(work: Path, epoch: int) -> tuple[Built, Built]:
    """Build both distributions in two folders of different lengths; exits unless every bit is the same."""
    first, second = (_built(copy_sources(ROOT, work / name), epoch) for name in ("one", "another"))
    for one, another in zip(first, second, strict=True):
        if one.digests != another.digests:
            sys.exit(f"release: two builds differ: {one.digests} and {another.digests}")
    return first


def _built(sources: Path, epoch: int) -> tuple[Built, Built]:
    folder = sources.with_name(f"dist-of-{sources.name}")
    return build(sources, folder / "whole", epoch), build_pilot(sources, folder / "pilot", epoch)


def check_metadata(paths: Iterable[Path]) -> None:
    """Check the metadata as an index would; raises CalledProcessError."""
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *map(str, paths)]
    subprocess.run(command, stdout=sys.stderr, check=True)


def _tried(built: tuple[Built, Built], folder: Path, python: str) -> tuple[Environment, Environment]:
    """Install each wheel in an empty environment, and type what the README says in an empty directory."""
    whole, pilot = (Environment.empty(folder / each.name, python) for each in built)
    for environment, wheels in ((whole, built[:1]), (pilot, built)):
        environment.install("--require-hashes", "--requirement", str(LOCKED))
        environment.install("--no-deps", *(str(each.wheel) for each in wheels))
    empty = folder / "empty"
    empty.mkdir()
    typed = written_programs((ROOT / "README.md").read_text(encoding="utf-8"), empty)
    for environment, commands in ((whole, (DEMO, *typed)), (pilot, [["dprec-pilot", "--help"]])):
        for words in commands:
            print(f"Python {folder.name}: {' '.join(words)}", flush=True)
            environment.run(words, empty)
    return whole, pilot


def _report() -> str:
    """Return pip's report of the files that are installed from the lock."""
    options = ("--dry-run", "--ignore-installed", "--quiet", "--report", "-", "--require-hashes")
    command = [sys.executable, "-m", "pip", "install", *options, "--requirement", str(LOCKED)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _write(folder: Path, distributions: Iterable[Path], bills: Mapping[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in distributions:
        shutil.copy(path, folder)
    for name, bill in bills.items():
        (folder / name).write_text(bill, encoding="utf-8")
    sums = "".join(f"{sha256_of(path)}  {path.name}\n" for path in sorted(folder.iterdir()))
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums, end="")


if __name__ == "__main__":
    main()
