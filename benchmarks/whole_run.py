"""A whole run on generated ratings: processor seconds and peak memory of each of its parts.

    python benchmarks/whole_run.py [--users 1200000] [--ratings 24000000] [--split holdout] [--set KEY=VALUE]

The run is that of blp-mf with item averages, as `dprec run` does it: a data set is loaded and split, devices
report and are sent lists (protocol), predictions are judged, the directory is written, and its page is
drawn. Imports, and the loading of compiled loops, are outside the parts. Seconds are those of this process
and of Ray together, and so is the last peak; peaks of parts are those of this process alone.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from process_memory import measured, peak_resident, processor_seconds

from dprec.datasets import Synthetic
from dprec.splits import RandomSplit
from dprec.start import return_memory
from simulation import execution, run, verbs
from simulation.evaluation import Evaluator
from simulation.storage.run_directory import RunDirectory

TIMED: tuple[tuple[Any, str, str], ...] = (
    (Synthetic, "load", "load"),
    (RandomSplit, "split", "split"),
    (execution, "run_protocol", "protocol"),
    (Evaluator, "judged", "judging"),
    (Evaluator, "nothing_sent", "judging"),
    (RunDirectory, "write", "writing"),
    (verbs, "_draw", "page"),
)
"""Functions, by what holds them and their names, and of which part they are."""


def peak_megabytes() -> float:
    """Return the most that this process has held since it was last asked, on Linux."""
    peak = peak_resident() / 2**20
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak


class Parts:
    """Seconds of a processor and peak megabytes, by part; a part within another does not count as that."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.peaks: dict[str, float] = defaultdict(float)
        self._open = ["else"]
        self._since = processor_seconds(os.getpid())

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
        part, now = self._open[-1], processor_seconds(os.getpid())
        self.seconds[part] += now - self._since
        self.peaks[part] = max(self.peaks[part], peak_megabytes())
        self._since = now


def run_in_parts(result: Connection, chosen: argparse.Namespace) -> None:
    """Run, and send the seconds and peaks of parts."""
    from dprec.kernels.compilation import prepare

    return_memory()
    prepare()
    parts = Parts()
    for owner, name, part in TIMED:
        setattr(owner, name, parts.timed(getattr(owner, name), part))
    settings = (
        "protocol.completion.kind=item-average",
        f"dataset={{kind: synthetic, users: {chosen.users}, ratings: {chosen.ratings}}}",
        f"split={{kind: {chosen.split}}}",
        *chosen.set,
    )
    with tempfile.TemporaryDirectory() as folder:
        run("blp-mf", Path(folder) / "run", overrides=settings)
    parts.close()
    result.send((dict(parts.seconds), dict(parts.peaks)))


def main() -> None:
    """Print a line for each part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1_200_000)
    parser.add_argument("--ratings", type=int, default=24_000_000)
    parser.add_argument("--split", default="holdout", help="kind of the split")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    chosen, began = parser.parse_args(), time.perf_counter()
    [((seconds, peaks), peak)] = measured(run_in_parts, chosen)
    print(f"{chosen.users:,} users, {chosen.ratings:,} ratings, split: {chosen.split}")
    for part, spent in seconds.items():
        print(f"{part:10}{spent:8.2f} s{peaks[part]:8.0f} MB")
    together, elapsed = sum(seconds.values()), time.perf_counter() - began
    print(f"{'together':10}{together:8.2f} s{peak.everything / 2**20:8.0f} MB, {elapsed:.0f} s elapsed")


if __name__ == "__main__":
    main()
