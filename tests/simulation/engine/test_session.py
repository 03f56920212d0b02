"""One simulation at a time in a process, whose identity is Flower's."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import RunError
from simulation.configuration.models import SimulationOptions
from simulation.engine import session
from simulation.engine.session import identity_restored, open_session


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
        assert "--devices-dir" in accepted
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
