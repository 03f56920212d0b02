"""A cluster of two Ray nodes on one machine gives the bits of one process, also when a node dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray.cluster_utils import Cluster

import simulation
from dprec.datasets import InMemory
from dprec.errors import RunError
from dprec.exchange import TRAIN
from simulation.comparison import cell_runs
from simulation.configuration.models import SimulationOptions
from simulation.engine import session as sessions
from simulation.engine.ray_cluster import ADDRESS, connected_to_ray, working_nodes
from simulation.engine.session import Session, open_session
from tests.paths import ROOT
from tests.simulation.divisions import bits, compare, divided
from tests.simulation.engine.faults_on_nodes import DISKLESS, ENDS, FaultyApp, run_unless_ending
from tests.waiting import PATIENCE_SECONDS, wait_until

QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 200,
    "health_check_failure_threshold": 5,
}
"""A daemon that was killed is missed after a second; one that is slow still has its ten."""

ROUNDS: dict[str, Any] = {
    "kind": "iterative",
    "gradient": {"kind": "one-bit"},
    "privacy": {"epsilon": 3.0, "per": "user"},
    "rounds": 3,
    "rank": 2,
    "downlink": {"dtype": "float16", "delta": True},
}


class TwoNodes:
    """A cluster whose second node may end; there is room for two workers on it, and for one on the first."""

    def __init__(self) -> None:
        head = {"num_cpus": 1, "include_dashboard": False, "node_name": "first"}
        self.cluster = Cluster(
            initialize_head=True, head_node_args={**head, "_system_config": QUICK_TO_NOTICE}
        )
        self.second: Any = None

    def complete(self) -> None:
        """Start the second node, unless it lives."""
        if not self.second_lives:
            self.second = self.cluster.add_node(num_cpus=2, node_name="second")

    @property
    def second_lives(self) -> bool:
        return self.second is not None and "raylet" in dict(self.second.live_processes())


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[TwoNodes]:
    try:
        nodes = TwoNodes()
    except Exception as error:  # whatever a machine refuses
        pytest.skip(f"no Ray cluster can be started here: {error}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ADDRESS, nodes.cluster.address)
        nodes.complete()
        try:
            yield nodes
        finally:
            nodes.cluster.shutdown()


def node_id(name: str) -> str:
    """Return the id of a node that is alive."""
    (node,) = (node for node, its_name in working_nodes().items() if its_name == name)
    return node


class TestTheNodesOfACluster:
    """One connection to the cluster and one session serve all, so their order matters."""

    @pytest.fixture(scope="class")
    def faults(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("faults")

    @pytest.fixture(scope="class")
    def joined(self, two_nodes: TwoNodes, faults: Path) -> Iterator[int]:
        """Join the cluster, whose nodes are checked."""
        with connected_to_ray(2, faults) as usable:
            yield usable

    @pytest.fixture(scope="class")
    def session(self, joined: int, faults: Path) -> Iterator[Session]:
        """Start a session whose devices have the faults."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sessions, "client_app", partial(FaultyApp, faults=faults))
            with open_session(SimulationOptions(backend="ray", workers=joined), 4) as session:
                yield session

    def test_what_a_dying_node_was_asked_is_done_again_elsewhere(
        self, session: Session, faults: Path, tiny: dict[str, Any], tmp_path: Path
    ) -> None:
        """In rounds of which devices remember the last broadcast, and which some have answered already."""
        tiny["protocol"] = ROUNDS
        expected = bits(None, divided(tiny, "local", 1, "all"), tmp_path / "local")
        (faults / ENDS).write_text(f"{node_id('second')} {TRAIN}")
        compare(expected, bits(session, divided(tiny, "ray", 2, 10), tmp_path / "run"))
        assert list(working_nodes().values()) == ["first"]

    def test_a_node_without_the_population_ends_the_run(
        self, session: Session, faults: Path, tiny: dict[str, Any], tmp_path: Path
    ) -> None:
        (faults / DISKLESS).write_text(f"{node_id('first')} population")
        message = r"^a node .*failed: /nowhere/.*population.json: not on .*\(on the Ray node first\)$"
        with pytest.raises(RunError, match=message):
            bits(session, divided(tiny, "ray", 2, 10), tmp_path / "run")


HEAD = """
import sys, time
from pathlib import Path
from ray.cluster_utils import Cluster
node = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}).head_node
pids = [str(each.process.pid) for kind in node.all_processes.values() for each in kind]
Path(sys.argv[1]).write_text(" ".join([node.address, *pids]))
time.sleep(600)
"""

RUN_ON_A_MORTAL_CLUSTER = """
from simulation.engine import head_watch
head_watch.PATIENCE_SECONDS = 2.0
from dprec.__main__ import main
main()
"""


def long_run(out: Path) -> list[str]:
    """Return the arguments of a run of many rounds, of which the first are soon finished."""
    changes = ["dataset={kind: synthetic, users: 40, items: 20, ratings: 300}", "protocol.rounds=4000"]
    changes += ["split={kind: holdout}", "protocol.privacy.epsilon=100", "simulation.workers=1"]
    return ["run", "pg-mf", "-o", str(out), *(word for change in changes for word in ("--set", change))]


def test_a_run_whose_cluster_dies_ends_with_one_line_on_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, out = tmp_path / "told", tmp_path / "out"
    command = long_run(out)
    with subprocess.Popen([sys.executable, "-c", HEAD, str(told)]) as head:
        try:
            wait_until(lambda: told.exists() and told.read_text(), head)
            address, *pids = told.read_text().split()
            monkeypatch.setenv(ADDRESS, address)
            script = [sys.executable, "-c", RUN_ON_A_MORTAL_CLUSTER, *command]
            with subprocess.Popen(script, stderr=subprocess.PIPE, text=True) as run:
                try:
                    wait_until((out / "checkpoint.npz").exists, run)
                finally:
                    for pid in pids:
                        os.kill(int(pid), signal.SIGKILL)
                _, said = run.communicate(timeout=PATIENCE_SECONDS)
        finally:
            head.kill()
    assert run.returncode == 1
    (line,) = (line for line in said.splitlines() if "is gone" in line)
    assert line.startswith(f"dprec: the head of the Ray cluster at {address} is gone")
    assert line.endswith(
        f"{out} holds the rounds that are finished; the same command with --resume -o {out} goes on"
    )


@pytest.mark.parametrize(
    "agent", ["DashboardAgent", pytest.param("RuntimeEnvAgent", marks=pytest.mark.nightly)]
)
def test_a_run_whose_own_ray_dies_ends_in_seconds_with_one_line_on_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    monkeypatch.delenv(ADDRESS, raising=False)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "dprec", *long_run(out), "--set", "simulation.backend=ray"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as run:
        try:
            wait_until((out / "checkpoint.npz").exists, run)
            (raylet,) = children(run.pid, "raylet")
            # Agents may start after the first round.
            wait_until(lambda: children(raylet, agent), run)
            (victim,) = children(raylet, agent)
            os.kill(victim, signal.SIGKILL)
            killed = time.monotonic()
            _, said = run.communicate(timeout=PATIENCE_SECONDS)
        finally:
            run.kill()
    assert run.returncode == 1
    assert time.monotonic() - killed < 60
    (line,) = (line for line in said.splitlines() if line.startswith("dprec: Ray's node process died"))
    assert line.endswith(
        f"{out} holds the rounds that are finished; the same command with --resume -o {out} goes on"
    )


def children(parent: int, words: str) -> list[int]:
    """Return the processes that another one has started and whose command has some words."""
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in found if words in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]]


def test_a_cell_whose_node_dies_runs_again_elsewhere(
    two_nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ratings are in no file that a node could read."""
    random = np.random.default_rng(3)
    cells = random.permutation(30 * 19)[:300]
    values = {
        "name": "both",
        "dataset": InMemory.of([cells // 19, cells % 19, random.integers(1, 6, 300)]),
        "split": {"kind": "holdout"},
        "seeds": [1, 2, 3],
        "protocols": ["blp-mf", "item-average"],
        "epsilons": [1.0],
        "baselines": False,
    }
    two_nodes.complete()
    (tmp_path / ENDS).write_text(f"{two_nodes.second.node_id} cell")
    monkeypatch.setattr(cell_runs, "run_together", run_unless_ending)
    joined = simulation.compare(values, tmp_path / "ray", page=False)
    assert not two_nodes.second_lives
    assert not joined.failures
    values["simulation"] = {"backend": "local"}
    assert joined.rows == simulation.compare(values, tmp_path / "local", page=False).rows
