"""On Ray, too, a run's bits do not depend on how the work is divided. One start of Ray serves all runs."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.mechanisms import Channel, Mechanism
from dprec.ratings import RatingScale
from simulation.configuration.models import SimulationOptions
from simulation.engine.ray_cluster import connected_to_ray
from simulation.engine.session import open_session
from tests.documents.pages import write_files
from tests.dprec.protocols.test_sums_of_ones_own import VALUES as OF_OWN_SUMS
from tests.simulation.conftest import TINY, presets
from tests.simulation.courses.test_clients_of_models import FAULTS
from tests.simulation.courses.test_clients_of_models import values as of_a_client
from tests.simulation.divisions import PROTOCOLS, Expected, bits, compare, divided, one_shot
from tests.simulation.test_own_family import VALUES as OF_OWN_FAMILY

ROUNDS: dict[str, Any] = {
    "protocol": {
        "kind": "iterative",
        "gradient": {"kind": "one-bit"},
        "privacy": {"epsilon": 3.0, "per": "user"},
        "rounds": 3,
        "rank": 2,
        "sampling": {"fraction": 0.7},
        "downlink": {"dtype": "float16", "delta": True},
    },
    "simulation": {"faults": {"dropout": 0.1, "straggle": 0.1, "corrupt": 0.1}},
}
OF_PRESETS = (
    *("dp-ials", "fcf", "federated-mf", "fmf-ldp-sets", "global-mean", "nothing-sent", "one-bit-gradient"),
    *("own-budgets-on-device", "pg-mf-reduced", "x-map"),
)
RUNS: dict[str, dict[str, Any]] = {
    **{name: one_shot(TINY, name) for name in PROTOCOLS},
    "rounds with faults": {**TINY, **ROUNDS},
    "a family of one's own": OF_OWN_FAMILY,
    "sums of one's own": OF_OWN_SUMS,
    "a model of one client": of_a_client("Personal", FAULTS, sampling={"clients": 20}, trust="local"),
    **{name: presets()[name] for name in OF_PRESETS},
}
BY_USER = *PROTOCOLS, "rounds with faults"
"""Runs with a node per user, too; it takes its time on Ray, and is the same for every kind of report."""


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    """Start Ray once, with a processor for every worker of both sessions."""
    with connected_to_ray(3):
        yield


@pytest.fixture(scope="module")
def on_ray(ray: None, request: pytest.FixtureRequest) -> Iterator[Callable[..., dict[str, Any]]]:
    """Return what runs on workers that start once for all runs that have the same number of them."""
    with open_session(SimulationOptions(backend="ray", workers=request.param), 40) as session:

        def ran(values: dict[str, Any], users_per_node: int | str, folder: Path) -> dict[str, Any]:
            return bits(session, divided(values, "ray", request.param, users_per_node), folder)

        yield ran


ONE_WORKER, TWO_WORKERS = (
    pytest.mark.parametrize("on_ray", [workers], indirect=True, scope="module") for workers in (1, 2)
)


@TWO_WORKERS
@pytest.mark.parametrize("name", RUNS)
def test_with_two_workers(tmp_path: Path, on_ray: Any, expected: Expected, name: str) -> None:
    for users_per_node in (1, 7, "all") if name in BY_USER else (7, "all"):
        compare(expected(RUNS[name]), on_ray(RUNS[name], users_per_node, tmp_path / str(users_per_node)))


@TWO_WORKERS
@pytest.mark.parametrize("trust", ["central", "local"])
def test_federated_models_of_ones_own_on_ray(
    tmp_path: Path, on_ray: Any, expected: Expected, monkeypatch: pytest.MonkeyPatch, trust: str
) -> None:
    write_files("docs/federated.md", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    privacy = {"epsilon": 2.0, "per": "user", "composition": "pld"}
    model = {"kind": "federated_factors:Factors"}
    protocol = {"kind": "federated", "model": model, "rounds": 2, "trust": trust, "privacy": privacy}
    values = {**TINY, "protocol": protocol}
    for users_per_node in (7, "all"):
        compare(expected(values), on_ray(values, users_per_node, tmp_path / str(users_per_node)))


OWN = textwrap.dedent("""
    from dprec.mechanisms import Mechanism, RandomizedResponse

    class Half(Mechanism):
        def channel(self, scale, epsilon):
            return RandomizedResponse().channel(scale, epsilon / 2)
""")


class Coarse(Mechanism):
    """A class that no other process can import: it travels as its code."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        same = 1 + np.expm1(epsilon) * np.eye(scale.levels)
        return Channel.from_probabilities(same, scale.values, scale.values, epsilon)


@TWO_WORKERS
@pytest.mark.parametrize("where", ["a file", "the running program"])
def test_user_defined_mechanisms_on_ray(
    tmp_path: Path, tiny: dict[str, Any], on_ray: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "a file":
        # Its folder is not the current one, and the workers started without it.
        module = f"own_mechanism_{tmp_path.name}"
        (tmp_path / f"{module}.py").write_text(OWN)
        monkeypatch.syspath_prepend(str(tmp_path))
        tiny["protocol"]["mechanism"] = {"kind": f"{module}:Half"}
    else:
        monkeypatch.setattr(Coarse, "__module__", "__main__")
        tiny["protocol"]["mechanism"] = Coarse()
    expected = bits(None, divided(tiny, "local", 1, "all"), tmp_path / "expected")
    compare(expected, on_ray(tiny, 7, tmp_path / "7"))


@ONE_WORKER
@pytest.mark.parametrize("name", BY_USER)
def test_with_one_worker(tmp_path: Path, on_ray: Any, expected: Expected, name: str) -> None:
    compare(expected(RUNS[name]), on_ray(RUNS[name], 7, tmp_path / "7"))
