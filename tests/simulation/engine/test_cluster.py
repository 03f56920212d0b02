"""A cluster of two Ray nodes on one machine gives the bits of one process, also when a node dies."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster

from dprec.errors import InputError, RunError
from dprec.messages import TRAIN
from simulation.configuration.models import SimulationOptions
from simulation.engine import cluster_nodes, runtime
from simulation.engine.cluster_nodes import check_nodes, working_nodes
from simulation.engine.ray_connection import ADDRESS, connected_to_ray
from simulation.engine.session import Session, open_session
from tests.simulation.divisions import bits, compare, divided, one_shot
from tests.simulation.engine.faults_on_nodes import DISKLESS, ENDS, FaultyApp

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
    """A cluster whose second node may end."""

    def __init__(self) -> None:
        head = {"num_cpus": 1, "include_dashboard": False, "node_name": "first"}
        self.cluster = Cluster(
            initialize_head=True, head_node_args={**head, "_system_config": QUICK_TO_NOTICE}
        )
        self.second: Any = None

    def complete(self) -> None:
        """Start the second node, unless it runs."""
        if self.second is not None and self.second.alive():
            return
        self.second = self.cluster.add_node(num_cpus=1, node_name="second")


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


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def joined(two_nodes: TwoNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Join the cluster, whose nodes are checked."""
    with connected_to_ray(2, tmp_path_factory.mktemp("seen")) as usable:
        yield usable


@pytest.fixture(scope="module")
def session(joined: int, faults: Path) -> Iterator[Session]:
    """Start a session whose devices have the faults, with a worker on each node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "client_app", partial(FaultyApp, faults=faults))
        with open_session(SimulationOptions(backend="ray", workers=joined), 4) as session:
            yield session


def node_id(name: str) -> str:
    """Return the id of a node that is alive."""
    (node,) = (node for node, its_name in working_nodes().items() if its_name == name)
    return node


def test_a_node_with_other_versions_is_named(joined: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert joined == 2
    own = cluster_nodes.installation()
    monkeypatch.setattr(cluster_nodes, "installation", lambda: {**own, "SciPy": "0.1"})
    with pytest.raises(RunError, match=rf"^the Ray node (first|second) has SciPy {own['SciPy']}, not 0\.1$"):
        check_nodes(None, "")


def test_a_node_that_does_not_see_a_folder_is_named(joined: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^{tmp_path}/no: not on the Ray node \w+; accepted: seen$"):
        check_nodes(tmp_path / "no", "seen")


def test_what_a_dying_node_was_asked_is_done_again_elsewhere(
    session: Session, faults: Path, tiny: dict[str, Any], tmp_path: Path
) -> None:
    """In rounds of which devices remember the last broadcast, and which some have answered already."""
    tiny["protocol"] = ROUNDS
    expected = bits(None, divided(tiny, "local", 1, "all"), tmp_path / "local")
    (faults / ENDS).write_text(f"{node_id('second')} {TRAIN}")
    compare(expected, bits(session, divided(tiny, "ray", 2, 10), tmp_path / "run"))
    assert list(working_nodes().values()) == ["first"]


def test_what_is_left_of_a_cluster_goes_on(session: Session, tiny: dict[str, Any], tmp_path: Path) -> None:
    values = one_shot(tiny, "per rating")
    expected = bits(None, divided(values, "local", 1, "all"), tmp_path / "local")
    compare(expected, bits(session, divided(values, "ray", 2, 10), tmp_path / "run"))


def test_a_node_without_the_population_ends_the_run(
    session: Session, faults: Path, tiny: dict[str, Any], tmp_path: Path
) -> None:
    (faults / DISKLESS).write_text(node_id("first"))
    message = r"^a node .*failed: /nowhere/.*population.json: not on .*\(on the Ray node first\)$"
    with pytest.raises(RunError, match=message):
        bits(session, divided(tiny, "ray", 2, 10), tmp_path / "run")
