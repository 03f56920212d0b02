"""A process whose own Ray dies says how to go on and ends; Ray is a stand-in made of other processes."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray._private import worker

from dprec.errors import interrupts_noted
from simulation.engine import head_watch
from simulation.engine.head_watch import own_node_watched
from tests.waiting import PATIENCE_SECONDS, wait_until

NODE = """
import subprocess, sys, time
agent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "DashboardAgent"])
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "a worker"])
print(agent.pid, other.pid, flush=True)
time.sleep(600)
"""
LINE = "dprec: Ray's node process died, so this process ends; --resume -o out goes on\n"


class Node:
    """A process with two children, of which the second may die."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", NODE], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.agent, self.worker = map(int, self.process.stdout.readline().split())
        # All that a process runs is known once it has its arguments.
        for pid in (self.agent, self.worker):
            wait_until(lambda pid=pid: "sleep" in Path(f"/proc/{pid}/cmdline").read_text())

    def live_processes(self) -> list[tuple[str, object]]:
        return [("raylet", self.process)] if self.process.poll() is None else []

    def dead_processes(self) -> list[tuple[str, object]]:
        return [] if self.live_processes() else [("raylet", self.process)]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    made = Node()
    monkeypatch.setattr(worker, "_global_node", made)
    try:
        yield made
    finally:
        for pid in (made.agent, made.worker, made.process.pid):
            subprocess.run(["kill", "-9", str(pid)], check=False, stderr=subprocess.DEVNULL)
        made.process.communicate()


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return what tells whether the process would have ended, and how."""
    told = SimpleNamespace(event=threading.Event(), codes=[])

    def end(code: int) -> None:
        told.codes.append(code)
        told.event.set()

    monkeypatch.setattr(head_watch.os, "_exit", end)
    return told


@pytest.mark.parametrize("victim", ["agent", "process"])
def test_a_process_ends_in_seconds_with_how_to_go_on(
    node: Node, victim: str, ended: SimpleNamespace, capfd: pytest.CaptureFixture[str]
) -> None:
    pid = node.agent if victim == "agent" else node.process.pid
    with interrupts_noted(lambda: "--resume -o out goes on"), own_node_watched():
        os.kill(node.worker, signal.SIGKILL)
        assert not ended.event.wait(5 * head_watch._LOOK_AT_OWN_SECONDS)
        os.kill(pid, signal.SIGKILL)
        assert ended.event.wait(PATIENCE_SECONDS)
    assert (ended.codes, capfd.readouterr().err) == ([1], LINE)


def test_a_process_that_ends_by_itself_meanwhile_does(
    node: Node, ended: SimpleNamespace, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = threading.Event()

    def how_to_go_on() -> str:
        asked.set()
        return "--resume -o out goes on"

    with interrupts_noted(how_to_go_on), own_node_watched():
        os.kill(node.agent, signal.SIGKILL)
        assert asked.wait(PATIENCE_SECONDS)
    assert (ended.codes, capfd.readouterr().err) == ([], LINE)


def test_an_interrupt_that_ends_ray_as_well_stays_one(
    node: Node, ended: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(head_watch, "_GRACE_SECONDS", 0.05)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with own_node_watched():
            os.kill(node.process.pid, signal.SIGKILL)
            assert not ended.event.wait(0.5)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capfd.readouterr().err == ""
