"""What processes take while they run: their memory and processor time (Linux)."""

import os
from pathlib import Path


def memory(root: int) -> float:
    """Return the bytes of a process and all below it.

    They are PSS: private pages, and shared ones divided among those who share them. So every page counts
    once, Ray's object store included. To look at several gigabytes takes a core a tenth of a second.
    """
    return sum(_bytes(process, "smaps_rollup", "Pss:") for process in (root, *processes_below(root)))


def peak_resident() -> float:
    """Return the most bytes that this process has held in memory."""
    # What getrusage knows begins with what started it.
    return _bytes(os.getpid(), "status", "VmHWM:")


def processes_below(root: int) -> set[int]:
    """Return the children of a process, and theirs."""
    processes = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    parents = {process: int(stat[1]) for process in processes if (stat := _stat(process))}
    tree = {root}
    while grown := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= grown
    return tree - {root}


def processor_seconds(root: int) -> float:
    """Return the processor time of a process, its children, and those of them that have ended."""
    ticks = sum(int(each) for process in (root, *processes_below(root)) for each in _stat(process)[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[str]:
    # The command, in brackets, may contain blanks; the state and the parent follow it.
    return _said(process, "stat").rpartition(")")[2].split()


def _bytes(process: int, file: str, name: str) -> float:
    lines = _said(process, file).splitlines()
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith(name)), 0.0)


def _said(process: int, file: str) -> str:
    """Return what the kernel says of a process, or nothing if it has ended; its parent counts its time."""
    try:
        return Path(f"/proc/{process}/{file}").read_text()
    except OSError:
        return ""
