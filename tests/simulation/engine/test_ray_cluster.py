"""Which Ray a run uses, what its nodes compute with, and that one that does not work ends the run."""

import io
import os
import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import ray

import dprec
from dprec.errors import InputError, RunError
from simulation.engine import ray_cluster
from simulation.engine.ray_cluster import ADDRESS, _sources, check_same, connected_to_ray, installation
from tests.waiting import wait_until

Starts = list[tuple[tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    """Return the list of what Ray is started with; it does not start."""
    calls: Starts = []
    monkeypatch.setattr(ray, "init", lambda *arguments, **options: calls.append((arguments, options)))
    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.setattr(ray_cluster, "own_node_watched", nullcontext)
    return calls


def test_a_ray_that_happens_to_run_is_not_joined(starts: Starts) -> None:
    with connected_to_ray(3) as usable:
        assert usable == 3
    (((address,), options),) = starts
    assert (address, options["num_cpus"]) == ("local", 3)


@pytest.mark.parametrize("address", ["nonsense", "nonsense:abc", "ray://localhost:10001", ":6379"])
def test_what_is_no_address_is_named(starts: Starts, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv(ADDRESS, address)
    with pytest.raises(InputError, match=f"^RAY_ADDRESS: {address} "), connected_to_ray(1):
        pass
    assert starts == []


@pytest.mark.parametrize(("listens", "found"), [(False, ".*refused"), (True, ".* there is no Ray cluster")])
def test_an_address_without_a_cluster_is_named(
    starts: Starts, monkeypatch: pytest.MonkeyPatch, listens: bool, found: str
) -> None:
    monkeypatch.setattr(ray_cluster, "_CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv(ADDRESS, address)
        if not listens:
            server.close()
        message = rf"^RAY_ADDRESS: {address} \({found}\); accepted: HOST:PORT of "
        with pytest.raises(InputError, match=message), connected_to_ray(1):
            pass
    assert starts == []


@pytest.mark.parametrize("name", ["TMPDIR", "RAY_TMPDIR"])
def test_a_folder_too_deep_for_rays_sockets_is_named(
    starts: Starts, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Linux takes 107 bytes, and the digits of the process count."""
    own = f"/ray/session_2000-01-01_00-00-00_000000_{os.getpid()}/sockets/plasma_store"
    longest = 107 - len(own)
    monkeypatch.setenv("TMPDIR", "/" + "t" * 200)
    monkeypatch.setenv(name, "/" + "t" * (longest - 1))
    with connected_to_ray(1):
        assert len(starts) == 1
    monkeypatch.setenv(name, "/" + "t" * longest)
    accepted = f"accepted: a path of at most {longest}, as Ray makes sockets there, or --set simulation"
    found = f"^{name}: /t+, a path of {longest + 1} bytes; {accepted}"
    with pytest.raises(InputError, match=found), connected_to_ray(1):
        pass
    assert len(starts) == 1


@pytest.mark.parametrize(
    ("limit", "likely"), [(None, ""), (2_560_000_000, "likely for the limit on memory of 2.6 GB .*; ")]
)
def test_a_ray_that_does_not_start_says_how_to_do_without_it(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, likely: str
) -> None:
    said = io.StringIO()

    def hangs(*_: object, **__: object) -> None:
        wait_until(said.getvalue)
        raise RuntimeError("timed\nout.")

    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.setattr(ray, "init", hangs)
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(ray_cluster, "_SLOW_SECONDS", 0.05)
    monkeypatch.setattr(ray_cluster, "memory_limit", lambda: limit)
    without = "--set simulation.backend=local"
    end = f"{without}, or --jobs 1 of a comparison, does without it$"
    with pytest.raises(RunError, match=f"^Ray did not start: timed out; {likely}{end}"), connected_to_ray(1):
        pass
    assert said.getvalue() == f"dprec: Ray has not started within 0.05 s; {without} does without it\n"


def test_what_differs_is_named_with_both_versions() -> None:
    theirs = {**installation(), "dprec": "0.0.9", "sources": "0123"}
    message = (
        rf"^the Ray node n1 has dprec 0\.0\.9, not {dprec.__version__}; sources 0123, not [0-9a-f]{{12}}$"
    )
    with pytest.raises(RunError, match=message):
        check_same("n1", theirs, installation())


def test_any_changed_source_changes_the_digest(tmp_path: Path) -> None:
    source = tmp_path / "clients" / "app.py"
    source.parent.mkdir()
    source.write_text("x = 1\n")
    (tmp_path / "notes.py").write_text("not of the packages\n")
    before = _sources(tmp_path)
    (tmp_path / "notes.py").write_text("changed\n")
    assert _sources(tmp_path) == before
    source.write_text("x = 2\n")
    after = _sources(tmp_path)
    assert after != before
    source.rename(tmp_path / "clients" / "apps.py")
    assert _sources(tmp_path) not in {before, after}
