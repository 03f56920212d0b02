"""Without being told, a run is in one process where Ray does not pay; nothing here starts Ray."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import RunError
from simulation import run
from simulation.comparison import cell_runs
from simulation.comparison.cell_runs import CellEnd, run_cells
from simulation.comparison.planning import load_comparison
from simulation.configuration.models import SimulationOptions
from simulation.engine import choosing, session
from simulation.engine.choosing import RAY_PAYS_FROM, chosen
from tests.simulation.conftest import TINY

AUTO = SimulationOptions()
USERS = TINY["dataset"]["users"]


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.parametrize(
    ("options", "users", "backend"),
    [
        (AUTO, RAY_PAYS_FROM - 1, "local"),
        (AUTO, RAY_PAYS_FROM, "ray"),
        (replace(AUTO, workers=1), RAY_PAYS_FROM - 1, "local"),
        (replace(AUTO, workers=2), 10, "ray"),
        (replace(AUTO, backend="ray"), 10, "ray"),
        (replace(AUTO, backend="local", workers=2), RAY_PAYS_FROM, "local"),
    ],
)
def test_size_chooses_unless_somebody_does(options: SimulationOptions, users: int, backend: str) -> None:
    assert chosen(options, users) == replace(options, backend=backend)


def test_a_cluster_that_is_named_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert chosen(AUTO, 10).backend == "ray"
    assert chosen(replace(AUTO, backend="local"), 10).backend == "local"


def without_ray(*_: object) -> Any:
    raise RunError("Ray is asked for")


def test_a_small_run_starts_no_ray_and_a_large_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "connected_to_ray", without_ray)
    values = {**TINY, "simulation": {}}
    said = run(values).summary["environment"]["backend"]
    assert said == f"local ({USERS:,} users, auto: ray from {RAY_PAYS_FROM:,})"
    assert run(values, simulation={"backend": "local"}).summary["environment"]["backend"] == "local"
    monkeypatch.setattr(choosing, "RAY_PAYS_FROM", USERS)
    with pytest.raises(RunError, match=r"^Ray is asked for$"):
        run(values)


@pytest.mark.parametrize(
    ("cells", "jobs", "backend", "beside"),
    [
        (2, None, "auto", True),
        (2, 1, "auto", False),
        (1, None, "auto", False),
        (2, None, "local", False),
        (1, 1, "ray", True),
    ],
)
def test_a_comparison_uses_ray_for_cells_beside_one_another(
    cells: int,
    jobs: int | None,
    backend: str,
    beside: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    used = []

    def noting(how: str) -> Any:
        def ran(cells: Any, *_: object) -> Iterator[tuple[Any, CellEnd]]:
            used.append(how)
            yield from ((cell, CellEnd("not run")) for cell in cells)

        return ran

    monkeypatch.setattr(cell_runs, "_on_ray", noting("ray"))
    monkeypatch.setattr(cell_runs, "_in_this_process", noting("local"))
    monkeypatch.setattr(cell_runs.os, "cpu_count", lambda: 2)
    shared = {key: value for key, value in TINY.items() if key not in ("protocol", "seed", "simulation")}
    protocols = [{"name": "blp", "protocol": TINY["protocol"]}]
    comparison = load_comparison({**shared, "protocols": protocols, "epsilons": [1.0], "seeds": [1, 2]})
    ended = list(run_cells(comparison.cells[:cells], tmp_path, jobs, backend, b""))
    assert [cell for cell, _ in ended] == [*comparison.cells[:cells]]
    assert used == ["ray" if beside else "local"]
