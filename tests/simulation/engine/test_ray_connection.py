"""Which Ray a run uses, and that a Ray or a runtime that does not work ends the run with its reason."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from dprec.errors import InputError, RunError
from simulation.configuration.models import SimulationOptions
from simulation.engine import runtime
from simulation.engine.ray_connection import ADDRESS, connected_to_ray
from simulation.engine.session import open_session
from tests.simulation.divisions import bits, compare, divided

Starts = list[tuple[tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    """Return the list of what Ray is started with; it does not start."""
    calls: Starts = []
    monkeypatch.setattr(ray, "init", lambda *arguments, **options: calls.append((arguments, options)))
    monkeypatch.delenv(ADDRESS, raising=False)
    return calls


def test_a_ray_that_happens_to_run_is_not_joined(starts: Starts) -> None:
    with connected_to_ray(3) as usable:
        assert usable == 3
    (((address,), options),) = starts
    assert (address, options["num_cpus"]) == ("local", 3)


@pytest.mark.parametrize("nothing", ["", " "])
def test_an_empty_address_names_no_cluster(
    starts: Starts, monkeypatch: pytest.MonkeyPatch, nothing: str
) -> None:
    monkeypatch.setenv(ADDRESS, nothing)
    with connected_to_ray(3) as usable:
        assert usable == 3
    assert [arguments for arguments, _ in starts] == [("local",)]


@pytest.mark.parametrize("address", ["nonsense", "nonsense:abc", "ray://", ":6379", f"{'a' * 64}.example:1"])
def test_what_is_no_address_is_named(starts: Starts, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv(ADDRESS, address)
    with pytest.raises(InputError, match=f"^RAY_ADDRESS: {address} "), connected_to_ray(1):
        pass
    assert starts == []


def test_an_address_without_a_cluster_is_named(starts: Starts, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv(ADDRESS, address)
    with (
        pytest.raises(InputError, match=rf"^RAY_ADDRESS: {address} \(.*refused\); accepted: "),
        connected_to_ray(1),
    ):
        pass
    assert starts == []


def test_a_ray_that_refuses_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise ValueError("no\nsuch thing")

    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(RunError, match=r"^Ray did not start: no such thing$"), connected_to_ray(1):
        pass


def test_a_runtime_that_dies_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def connected(workers: int) -> Iterator[int]:
        yield workers

    def crash(*_arguments: Any) -> None:
        try:
            raise OSError("no space left")
        except OSError as error:
            raise RuntimeError("Simulation Runtime crashed.") from error

    monkeypatch.setattr(runtime, "connected_to_ray", connected)
    monkeypatch.setattr(runtime, "_run_simulation", crash)
    message = "^Flower's simulation runtime ended: no space left$"
    with pytest.raises(RunError, match=message), open_session(SimulationOptions(), 2):
        pass


def test_a_run_joins_the_cluster_that_is_named(
    tmp_path: Path, tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many actors as it has room for, and the bits of any other run."""
    try:
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    except Exception as error:  # whatever a machine refuses
        pytest.skip(f"no Ray cluster can be started here: {error}")
    config = divided(tiny, "ray", 2, 20)
    try:
        monkeypatch.setenv(ADDRESS, cluster.address)
        with open_session(config.simulation, 2) as session:
            assert ray.get_runtime_context().gcs_address == cluster.address
            joined = bits(session, config, tmp_path / "joined")
        assert not ray.is_initialized()
    finally:
        cluster.shutdown()
    compare(bits(None, divided(tiny, "local", 1, "all"), tmp_path / "local"), joined)
