"""One simulation at a time in a process, whose identity is Flower's."""

import gc
import json
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError, RunError
from simulation.configuration.loading import load
from simulation.configuration.models import SimulationOptions
from simulation.engine import session
from simulation.engine.ray_cluster import check_memory, needed_memory
from simulation.engine.session import identity_restored, open_session
from simulation.execution import load_ratings, run_prepared


def test_a_simulation_in_another_thread_waits() -> None:
    order = []

    def another() -> None:
        with identity_restored():
            order.append("another")

    with identity_restored():
        thread = threading.Thread(target=another)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "another"]


def test_a_runtime_that_dies_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def connected(workers: int, folder: Path, accepted: str) -> Iterator[int]:
        assert folder.is_dir()
        assert "--population-dir" in accepted
        yield workers

    def crash(*_arguments: Any) -> None:
        try:
            raise OSError("no space left")
        except OSError as error:
            raise RuntimeError("Simulation Runtime crashed.") from error

    monkeypatch.setattr(session, "connected_to_ray", connected)
    monkeypatch.setattr(session, "_run_simulation", crash)
    message = "^Flower's simulation runtime ended: no space left$"
    with pytest.raises(RunError, match=message), open_session(SimulationOptions(backend="ray"), 2):
        pass


LOCAL = SimulationOptions(backend="local")


def traced(values: dict[str, Any], users: int) -> int:
    """Return the most bytes that Python and NumPy have allocated at a time during a run."""
    dataset = {"kind": "synthetic", "users": users, "items": 200, "ratings": 20 * users}
    config = load({**values, "dataset": dataset})
    train, test = load_ratings(config)
    gc.collect()
    tracemalloc.start()
    try:
        run_prepared(config, train, test, None)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.thorough
def test_the_model_is_no_less_than_what_runs_allocate(tiny: dict[str, Any]) -> None:
    tiny["protocol"]["completion"] = {"kind": "mf", "iterations": 1}
    traced(tiny, 500)  # what is computed once, and imports
    users = 3_000, 6_000  # both in several blocks of the completion, whose temporaries are no larger for more
    allocated = traced(tiny, users[1]) - traced(tiny, users[0])
    fewer, more = (needed_memory(size, 200, 20 * size, completion="mf", simulation=LOCAL) for size in users)
    assert allocated <= more - fewer <= 4 * allocated


MEASURED = """
import json, re, sys
from simulation.configuration.loading import load
from simulation.engine.ray_cluster import needed_memory
from simulation.execution import load_ratings, run_prepared

told = []
def needed(*sizes, **of_run):
    told.append(needed_memory(*sizes, **of_run))
import simulation.execution
simulation.execution.check_memory = needed
config = load(json.loads(sys.argv[1]))
run_prepared(config, *load_ratings(config), None)
# Of this program alone: what getrusage knows begins with what started it.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps([max(told), 1024 * peak]))
"""
PROTOCOLS_OF_LISTS: dict[str, dict[str, Any]] = {
    "ease": {"kind": "ease"},
    "ease of some": {"kind": "ease", "most_items": 2_000},
    "ials": {"kind": "ials", "sweeps": 1, "rank": 256},
    "popularity": {"kind": "popularity"},
    "gram": {
        "kind": "gram",
        "aggregation": {"kind": "central"},
        "privacy": {"epsilon": 4.0, "delta": 1e-6, "per": "user", "composition": "pld"},
    },
}


@pytest.mark.thorough
@pytest.mark.parametrize(("users", "items"), [(500, 400), (4_000, 3_000), (20_000, 6_000)])
@pytest.mark.parametrize("name", PROTOCOLS_OF_LISTS)
def test_lists_need_what_is_said_before(name: str, users: int, items: int) -> None:
    config = {
        "name": "lists",
        "seed": 1,
        "dataset": {
            "kind": "synthetic",
            "users": users,
            "items": items,
            "ratings": 20 * users,
            "positive": "> 0",
        },
        "split": {"kind": "user-holdout"},
        "protocol": PROTOCOLS_OF_LISTS[name],
        "simulation": {"backend": "local", "workers": 1},
    }
    command = [sys.executable, "-c", MEASURED, json.dumps(config)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    told, peak = json.loads(ran.stdout.splitlines()[-1])
    assert 0.85 * peak <= told <= 1.3 * peak


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"users": 10_000_000, "items": 2_000, "cells": 200_000_000, "completion": "mf"}
    needed = needed_memory(**sizes, simulation=LOCAL)
    for available in (None, needed + 1):
        monkeypatch.setattr(
            "simulation.engine.ray_cluster.available_memory", lambda available=available: available
        )
        check_memory(**sizes, simulation=LOCAL)
    monkeypatch.setattr("simulation.engine.ray_cluster.available_memory", lambda: 8e9)
    line = r"^memory: 10,000,000 users, 2,000 items and 200,000,000 cells need about [\d.]+ GB, 8.0 GB are "
    with pytest.raises(InputError, match=line):
        check_memory(**sizes, simulation=LOCAL)
