"""What goes wrong on one node of a cluster: an app or a cell that ends it, an app without its disk.

A module of its own, since the workers of the cluster import it.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ray
from flwr.app import Context, Message

from clients.app import client_app
from clients.population import Brought
from simulation.comparison.cell_runs import CellEnd, Job, SharedRatings, run_together
from tests.waiting import wait_until

ENDS = "ends"
"""File that names a node to end and the type of a message; the node answers one, and ends at the next. Other
nodes wait with such messages until then, so that it is asked for sure."""

DISKLESS = "diskless"
"""File that names a node which does not see something, and what."""


def named(file: Path) -> list[str]:
    """Return what a file says about the node of this worker, nothing if it is about another one."""
    node, *rest = file.read_text().split() if file.exists() else ["nobody"]
    return rest if node == ray.get_runtime_context().get_node_id() else []


def end_node() -> None:
    """End the node of this worker as a power failure does: its Ray daemon, then the worker."""
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class FaultyApp:
    """The app of a session; which node has a fault is in files beside the test.

    Parameters
    ----------
    root : str
        Folder of the populations.
    brought : mapping
        What messages bring, by run key.
    faults : Path
        Folder of the files.
    """

    root: str
    brought: Mapping[str, Brought]
    faults: Path

    def __call__(self, message: Message, context: Context) -> Message:
        answered, ending, ends = (self.faults / name for name in ("answered", "ending", ENDS))
        if message.metadata.message_type in named(ends):
            if answered.exists():
                ending.touch()
                end_node()
            answered.touch()
        elif ends.exists() and message.metadata.message_type in ends.read_text().split():
            wait_until(ending.exists)
        root = "/nowhere" if named(self.faults / DISKLESS) else self.root
        return client_app(root, self.brought)(message, context)


def run_unless_ending(shared: SharedRatings, jobs: Sequence[Job], scratch: str) -> list[CellEnd]:
    """Run cells of a comparison, unless the node is to end; other nodes wait until it does."""
    folder = Path(jobs[0][1]).parents[2]
    if "cell" in named(folder / ENDS):
        (folder / "ending").touch()
        end_node()
    wait_until((folder / "ending").exists)
    return run_together(shared, jobs, scratch)
