"""A whole run on generated ratings: processor seconds and peak memory of each of its parts.

    python benchmarks/whole_run.py [--users 1200000] [--ratings 24000000] [--split holdout]

The run is that of blp-mf with item averages, in one process, as from the command line: a data set is loaded
and split, devices report and are sent lists (protocol), predictions are judged, and the directory is written.
Imports, and the loading of compiled loops, are outside the parts, but in the peak.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dprec.datasets import Synthetic
from dprec.splits import RandomSplit
from dprec.start import return_memory
from simulation import execution, run
from simulation.evaluation import Evaluator
from simulation.storage.run_directory import RunDirectory

TIMED: tuple[tuple[Any, str, str], ...] = (
    (Synthetic, "load", "load"),
    (RandomSplit, "split", "split"),
    (execution, "run_protocol", "protocol"),
    (Evaluator, "judged", "judging"),
    (Evaluator, "nothing_sent", "judging"),
    (RunDirectory, "write", "writing"),
)
"""Functions, by what holds them and their names, and of which part they are."""


def peak_megabytes() -> float:
    """Return the most that this process has held since it was last asked, on Linux."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return int(status["VmHWM"].split()[0]) / 1024


class Parts:
    """Seconds of a processor and peak megabytes, by part; a part within another does not count as that."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.peaks: dict[str, float] = defaultdict(float)
        self._open = ["else"]
        self._since = time.process_time()

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return a function whose calls count as a part."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            self.close()
            self._open.append(part)
            try:
                return function(*arguments, **named)
            finally:
                self.close()
                self._open.pop()

        return call

    def close(self) -> None:
        """Count what has passed since the last change as the part that is open."""
        part, now = self._open[-1], time.process_time()
        self.seconds[part] += now - self._since
        self.peaks[part] = max(self.peaks[part], peak_megabytes())
        self._since = time.process_time()


def main() -> None:
    """Run, and print a line for each part."""
    from dprec.kernels.compilation import prepare

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1_200_000)
    parser.add_argument("--ratings", type=int, default=24_000_000)
    parser.add_argument("--split", default="holdout", help="kind of the split")
    chosen = parser.parse_args()
    return_memory()
    prepare()
    parts = Parts()
    for owner, name, part in TIMED:
        setattr(owner, name, parts.timed(getattr(owner, name), part))
    settings = (
        "protocol.completion.kind=item-average",
        f"dataset={{kind: synthetic, users: {chosen.users}, ratings: {chosen.ratings}}}",
        f"split={{kind: {chosen.split}}}",
        "simulation.backend=local",
    )
    with tempfile.TemporaryDirectory() as folder:
        run("blp-mf", Path(folder) / "run", overrides=settings, page=False)
    parts.close()
    print(f"{chosen.users:,} users, {chosen.ratings:,} ratings, split: {chosen.split}")
    for part, seconds in parts.seconds.items():
        print(f"{part:10}{seconds:8.2f} s{parts.peaks[part]:8.0f} MB")
    print(f"{'together':10}{sum(parts.seconds.values()):8.2f} s{max(parts.peaks.values()):8.0f} MB")


if __name__ == "__main__":
    main()
