"""What benchmarks share: commands in this checkout, an earlier one and peers, in turn; their costs; and rows.

A benchmark lists lines, each a command of Python. `main` runs it in this checkout, with ``--before TREE`` in
an earlier one by the same interpreter, and with ``--peers PYTHON`` beside another package, all of them in
turn and several times. The best figures of each become a row of docs/results/benchmarks/SCRIPT.csv, of which
docs/scale.md is made. Linux only. Let nothing else run meanwhile.
"""

import argparse
import csv
import ctypes
import datetime
import gzip
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from process_memory import memory, processes_below, processor_seconds

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "benchmarks"
DATA = Path(os.environ.get("DPREC_DATA", ROOT.parent / "shared" / "data"))
"""The folder of real ratings."""

OUT = "{out}"
"""In a command, a folder that is made for each run of it."""

ANEW = "draws and defaults of the versions differ"
CPU, MEMORY, ELAPSED = "CPU s", "MB", "s"
Figures = dict[str, float]
"""By unit; the least is the best."""
Job = Callable[..., Mapping[str, Any]]
"""Returns figures by unit, and perhaps a digest of its results under ``bits``."""

AS_WRITTEN = argparse.RawDescriptionHelpFormatter
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
_SAMPLE_SECONDS, _SAMPLING_SHARE, _GRACE_SECONDS = 0.1, 0.05, 10.0


@dataclass(frozen=True)
class Peer:
    """Another package beside which a line is measured, by arguments of an interpreter.

    ``package`` is its distribution, which says its version; ``here`` is whether the project depends on it, as
    otherwise the interpreter is that of ``--peers``.
    """

    package: str
    command: tuple[str, ...]
    here: bool = False


@dataclass(frozen=True)
class Line:
    """What is measured, by which arguments of the interpreter."""

    what: str
    command: tuple[str, ...]
    before: tuple[str, ...] | None = None
    """In an earlier checkout: by default the same, and empty if it cannot do this."""
    peer: Peer | None = None
    settings: str = ""
    """What a reader has to know of them."""
    units: tuple[str, ...] = (CPU, MEMORY)
    """What is kept."""


@dataclass(frozen=True)
class Row:
    """A line of a CSV; figures that were not measured are empty."""

    what: str
    unit: str
    before: float | None = None
    after: float | None = None
    peer: float | None = None
    beside: str = ""
    """The peer, with its version."""
    bits: str = ""
    """Whether results before and after have the same bits: same, other, or empty if not compared."""
    settings: str = ""
    made: str = ""
    """The checkouts, the day and the machine."""


@dataclass(frozen=True)
class Cost:
    """What one run of a command took, and a digest of its results; the digest is empty if it has none."""

    figures: Figures = field(default_factory=dict)
    bits: str = ""


def beside(package: str, name: str, *arguments: Any) -> Peer:
    """Return a peer that does a job of peers.py."""
    return Peer(package, job(str(Path(__file__).with_name("peers.py")), name, *arguments))


def job(script: str, name: str, *arguments: Any) -> tuple[str, ...]:
    """Return the command that calls a job of a script."""
    return script, "--job", name, json.dumps(arguments)


def dprec_run(preset: str, *settings: str) -> tuple[str, ...]:
    """Return the command of a run without a page."""
    changes = (word for each in settings for word in ("--set", each))
    return "-m", "dprec", "run", preset, "-o", f"{OUT}/run", "--no-page", "--quiet", *changes


def alternated(sides: Mapping[str, Callable[[], Cost]], times: int) -> dict[str, list[Cost]]:
    """Return the costs of each side, which are measured in turn and so often."""
    turns = [{name: measured() for name, measured in sides.items()} for _ in range(times)]
    return {name: [turn[name] for turn in turns] for name in sides}


def best(costs: Sequence[Cost]) -> Cost:
    """Return the least of each figure; bits that differ from time to time are none."""
    least = {unit: min(cost.figures[unit] for cost in costs) for unit in costs[0].figures}
    bits = {cost.bits for cost in costs}
    return Cost(least, bits.pop() if len(bits) == 1 else "")


def rows_of(line: Line, found: Mapping[str, Cost], peer: str, made: str) -> list[Row]:
    """Return a row for each unit of a line, given the best cost of each side."""
    before, after = (found.get(side, Cost()).bits for side in ("before", "after"))
    bits = ("same" if before == after else "other") if before and after else ""
    rows = []
    for unit in line.units:
        sides = {side: round(cost.figures[unit], 6) for side, cost in found.items() if unit in cost.figures}
        rows.append(Row(line.what, unit, **sides, beside=peer, bits=bits, settings=line.settings, made=made))
    return rows


def cost_of(python: str, command: Sequence[str], tree: Path) -> Cost:
    """Run a command of Python in a checkout; return its cost.

    Processor time and peak memory are those of all processes that it begins; what it prints last, if that is
    a JSON object, replaces and adds figures. Raises RuntimeError if it fails.
    """
    environment = {**os.environ, "PYTHONPATH": str(tree), "DPREC_DATA": str(DATA)}
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryFile("w+") as said:
        words = [python, *(word.replace(OUT, out) for word in command)]
        spent, code = _watched(
            partial(subprocess.Popen, words, cwd=tree, env=environment, stdout=said, stderr=subprocess.STDOUT)
        )
        said.seek(0)
        printed = said.read().strip()
        if code:
            raise RuntimeError(f"{' '.join(words)}\n{printed[-2000:]}\nended with {code}")
        told: dict[str, Any] = {}
        with suppress(json.JSONDecodeError):
            told = json.loads(printed.rpartition("\n")[2]) if printed.endswith("}") else {}
        bits = str(told.pop("bits", "")) or _digest(Path(out))
    return Cost(spent | told, bits)


def _digest(out: Path) -> str:
    predictions = [gzip.decompress(path.read_bytes()) for path in sorted(out.rglob("predictions.csv.gz"))]
    return hashlib.sha256(b"".join(predictions)).hexdigest() if predictions else ""


def _watched(begin: Callable[[], subprocess.Popen[str]]) -> tuple[Figures, int]:
    """Return what a process and all below it took, and how the first of them ended.

    Those that lose their parent become children of this process, which has no others and reaps them. Those
    that a parent ignored are counted as they were last seen. Memory is sampled; see `process_memory`.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    began, first = time.perf_counter(), begin()
    reaped, seen, peak, ended = 0.0, 0.0, 0.0, float("inf")
    while True:
        try:
            process, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if process:
            reaped += usage.ru_utime + usage.ru_stime
            peak = max(peak, 1024.0 * usage.ru_maxrss)
            if process == first.pid:
                first.returncode, ended = os.waitstatus_to_exitcode(status), time.perf_counter()
            continue
        looked = time.process_time()
        seen, peak = max(seen, processor_seconds(first.pid)), max(peak, memory(first.pid))
        if time.perf_counter() > ended + _GRACE_SECONDS:
            for each in processes_below(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
        time.sleep(max(_SAMPLE_SECONDS, (time.process_time() - looked) / _SAMPLING_SHARE))
    return {CPU: max(reaped, seen), MEMORY: peak / 1e6, ELAPSED: ended - began}, first.returncode


def _printed(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _made(trees: Mapping[str, Path]) -> str:
    at = "rev-parse", "--short=8", "HEAD"
    commits = [f"{side} {_printed('git', '-C', str(tree), *at)}" for side, tree in trees.items()]
    processors = Path("/proc/cpuinfo").read_text()
    model = processors.partition("model name\t: ")[2].partition("\n")[0] or platform.machine()
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    machine = f"{os.cpu_count()} cores of {model}, {gigabytes:.0f} GB"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return "; ".join([*commits, day, machine, f"Python {platform.python_version()}"])


def keep(path: Path, measured: Iterable[Row], order: Sequence[str]) -> None:
    """Write rows to a CSV in place of those of the same lines, in the order of lines."""
    fresh = [asdict(row) for row in measured]
    again, before = {row["what"] for row in fresh}, list[dict[str, Any]]()
    if path.is_file():
        before = [*csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    every = [*fresh, *(row for row in before if row["what"] not in again and row["what"] in order)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(every, key=lambda row: order.index(row["what"])))


def measured(line: Line, trees: Mapping[str, Path], peers: str | None, times: int) -> list[Row]:
    """Return the rows of a line: in every checkout, and beside its peer if there is an interpreter for it."""
    commands = {"before": line.command if line.before is None else line.before, "after": line.command}
    trees = {side: tree for side, tree in trees.items() if commands[side]}
    sides = {side: partial(cost_of, sys.executable, commands[side], tree) for side, tree in trees.items()}
    version, peer = "", line.peer
    python = sys.executable if peer and peer.here else peers
    if peer is not None and python is not None:
        sides["peer"] = partial(cost_of, python, peer.command, ROOT)
        told = f"from importlib.metadata import version; print(version({peer.package!r}))"
        version = f"{peer.package} {_printed(python, '-c', told)}"
    found = {side: best(costs) for side, costs in alternated(sides, times).items()}
    return rows_of(line, found, version, _made(trees))


def main(script: str, description: str | None, lines: Sequence[Line], jobs: Mapping[str, Job] = {}) -> None:
    name = Path(script).stem
    parser = argparse.ArgumentParser(description=description, formatter_class=AS_WRITTEN)
    parser.add_argument("--before", type=Path, metavar="TREE", help="an earlier checkout")
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has the peers")
    parser.add_argument("--times", type=int, default=3, help="how often everything is measured")
    parser.add_argument("--write", action="store_true", help=f"keep the rows in {name}.csv of {RESULTS.name}")
    parser.add_argument("--job", nargs=2, metavar=("NAME", "JSON"), help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*", help="measure the lines alone that contain one of these words")
    given = parser.parse_args()
    if given.job:
        print(json.dumps(jobs[given.job[0]](*json.loads(given.job[1]))))
        return
    trees = {"before": given.before.resolve()} if given.before else {}
    asked = [line for line in lines if not given.words or any(word in line.what for word in given.words)]
    if given.times < 1 or not asked or not all((tree / "dprec").is_dir() for tree in trees.values()):
        lines_there = "; ".join(line.what for line in lines)
        parser.error(f"--times is at least 1, --before holds dprec/, and words are of: {lines_there}")
    for line in asked:
        rows = measured(line, {**trees, "after": ROOT}, given.peers, given.times)
        for row in rows:
            sides = f"before {row.before}, after {row.after}, peer {row.peer}"
            print(f"{row.what}: {sides}, {row.unit}", row.beside, row.bits, flush=True)
        if given.write:
            keep(RESULTS / f"{name}.csv", rows, [each.what for each in lines])
