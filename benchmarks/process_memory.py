"""Runs a job in processes of its own and measures their memory and processor time (Linux).

Memory is PSS, sampled while they run: private pages, and shared ones divided among those who share them. So
the sum over a process and its children counts every page once, Ray's object store included.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_SAMPLE_SECONDS = 1.0
"""To look at a process of several gigabytes takes a core a tenth of a second."""

GIGABYTE = 2.0**30


@dataclass(frozen=True)
class Peak:
    """The most memory at any time, in bytes: of all processes together, and of the first of them alone."""

    everything: float = 0.0
    driver: float = 0.0

    def with_sample(self, root: int) -> Peak:
        """Return the peak after one more look at a process and its children."""
        driver, others = _pss(root), sum(_pss(process) for process in processes_below(root))
        return Peak(max(self.everything, driver + others), max(self.driver, driver))


def measured(job: Callable[..., None], *arguments: Any) -> Iterator[tuple[Any, Peak]]:
    """Run a job in its own processes; yield each of its results with the peak since the one before.

    Parameters
    ----------
    job : callable
        Gets a connection to send results through, and then the arguments.
    *arguments
        Can be pickled.
    """
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe(duplex=False)
    process = spawn.Process(target=job, args=(there, *arguments))
    process.start()
    there.close()
    peak = Peak()
    try:
        while True:
            if here.poll(_SAMPLE_SECONDS):
                yield _received(here), peak
                peak = Peak()
            peak = peak.with_sample(process.pid or 0)
    except EOFError:
        process.join()
    finally:
        process.terminate()
    if process.exitcode:
        raise RuntimeError(f"{job.__name__} failed")


def _received(here: Connection) -> Any:
    return here.recv()


def processes_below(root: int) -> set[int]:
    """Return the children of a process, and theirs."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The command, in brackets, may contain blanks; the state and the parent follow it.
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    tree = {root}
    while grown := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= grown
    return tree - {root}


def processor_seconds(root: int) -> float:
    """Return the processor time of a process, its children, and those of them that have ended."""
    ticks = 0
    for process in (root, *processes_below(root)):
        try:
            columns = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended, and counts with its parent
            continue
        ticks += sum(map(int, columns[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_resident() -> float:
    """Return the most bytes that this process has held in memory."""
    # What getrusage knows begins with what started it.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _pss(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0.0
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0.0)
