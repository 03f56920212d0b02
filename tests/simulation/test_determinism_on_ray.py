"""On Ray, too, a run's bits do not depend on how the work is divided. One start of Ray serves all runs."""

import copy
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.mechanisms import Channel, Mechanism
from dprec.ratings import RatingScale
from simulation.configuration.models import SimulationOptions
from simulation.engine.ray_cluster import connected_to_ray
from simulation.engine.session import Session, open_session
from tests.documents.pages import write_files
from tests.simulation.divisions import PROTOCOLS, Expected, bits, compare, divided, one_shot

OWN = textwrap.dedent("""
    from dataclasses import dataclass

    import numpy as np

    from dprec.mechanisms import Channel, Mechanism
    from dprec.components.options import option
    from dprec.ratings import RatingScale


    @dataclass(frozen=True, kw_only=True)
    class Flat(Mechanism):
        slope: float = option("Share of the budget that is used.", 1.0, gt=0, le=1)

        def channel(self, scale: RatingScale, epsilon: float) -> Channel:
            levels = np.arange(scale.levels)
            steps = np.abs(levels[:, None] - levels) / (scale.levels - 1)
            probabilities = np.exp(-self.slope * epsilon * steps)
            return Channel.from_probabilities(probabilities, scale.values, scale.values, epsilon)
""")

DIVISIONS: list[int | str] = [1, 7, "all"]


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    """Start Ray once, with a processor for every worker of both sessions."""
    with connected_to_ray(3):
        yield


@pytest.fixture(scope="module", params=[1, 2], ids=["1 worker", "2 workers"])
def ray_session(ray: None, request: pytest.FixtureRequest) -> Iterator[tuple[int, Session]]:
    """Start the workers once for all runs that have the same number of them."""
    with open_session(SimulationOptions(backend="ray", workers=request.param), 40) as session:
        yield request.param, session


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_on_ray(
    tmp_path: Path, tiny: dict[str, Any], ray_session: tuple[int, Session], expected: Expected, protocol: str
) -> None:
    workers, session = ray_session
    values = one_shot(tiny, protocol)
    for users_per_node in DIVISIONS:
        config = divided(values, "ray", workers, users_per_node)
        compare(expected(values), bits(session, config, tmp_path / str(users_per_node)))


REPORTS: list[dict[str, Any]] = [
    {"gradient": {"kind": "one-bit"}, "privacy": {"epsilon": 3.0, "per": "user"}},
    {"gradient": {"kind": "one-bit-reduced", "dimensions": 7}, "privacy": {"epsilon": 3.0, "per": "user"}},
    {"gradient": {"kind": "full"}},
]
BUDGET = {"epsilon": 3.0, "per": "user", "composition": "pld"}
ON_SETS: dict[str, dict[str, Any]] = {
    "dp-ials": {"kind": "dp-ials", "privacy": BUDGET, "factorization": {"rank": 3, "item_share": 0.5}},
    "fcf": {"kind": "federated", "model": {"kind": "fcf"}, "rounds": 3, "privacy": BUDGET},
    "fmf-ldp-sets": {
        "kind": "iterative",
        "gradient": {"kind": "sampled-signs-of-sets"},
        "privacy": {"epsilon": 3.0, "per": "user"},
        "rounds": 3,
        "rank": 2,
    },
}
SEVERAL_ROUNDS: dict[str, dict[str, Any]] = {
    **{
        name: {
            "dataset": {"kind": "synthetic", "users": 40, "items": 30, "ratings": 400, "positive": ">= 4"},
            "split": {"kind": "user-holdout"},
            "protocol": protocol,
        }
        for name, protocol in ON_SETS.items()
    },
    **{
        report["gradient"]["kind"]: {
            "protocol": {
                "kind": "iterative",
                **report,
                "rounds": 3,
                "rank": 2,
                "sampling": {"fraction": 0.7},
                "downlink": {"dtype": "float16", "delta": True},
            },
            "simulation": {"faults": {"dropout": 0.1, "straggle": 0.1, "corrupt": 0.1}},
        }
        for report in REPORTS
    },
    "slopes": {
        "binarization": {"kind": "mean"},
        "protocol": {
            "kind": "gradient-perturbation",
            "privacy": {"epsilon": 4.0, "per": "rating"},
            "completion": {"kind": "one-bit"},
            "rounds": 2,
        },
    },
    "replacements": {
        "dataset": {"kind": "synthetic-domains", "users": 40, "items": 30, "ratings": 400},
        "split": {"kind": "cold-start", "test_fraction": 0.4},
        "protocol": {
            "kind": "x-map",
            "mechanism": {"kind": "none"},
            "replacement": {"selection": "private", "epsilon": 0.6},
            "recommendation": {"epsilon": 0.6},
        },
    },
}


@pytest.mark.parametrize("protocol", sorted(SEVERAL_ROUNDS))
def test_several_rounds_on_ray(
    tmp_path: Path, tiny: dict[str, Any], ray_session: tuple[int, Session], expected: Expected, protocol: str
) -> None:
    workers, session = ray_session
    values = {**tiny, **copy.deepcopy(SEVERAL_ROUNDS[protocol])}
    # A node per user takes its time on Ray, and is the same for every kind of report.
    for users_per_node in DIVISIONS if protocol == "one-bit" else DIVISIONS[1:]:
        config = divided(values, "ray", workers, users_per_node)
        compare(expected(values), bits(session, config, tmp_path / str(users_per_node)))


BASELINES: dict[str, dict[str, Any]] = {
    "nothing sent": {"kind": "nothing-sent"},
    "one mean each": {
        "kind": "global-mean",
        "mechanism": {"kind": "laplace"},
        "privacy": {"epsilon": 1.0, "per": "user"},
    },
}


@pytest.mark.parametrize("baseline", sorted(BASELINES))
def test_baselines_on_ray(
    tmp_path: Path, tiny: dict[str, Any], ray_session: tuple[int, Session], expected: Expected, baseline: str
) -> None:
    workers, session = ray_session
    values = {**tiny, "protocol": copy.deepcopy(BASELINES[baseline])}
    compare(expected(values), bits(session, divided(values, "ray", workers, 7), tmp_path / "7"))


@pytest.mark.parametrize("trust", ["central", "local"])
def test_federated_models_of_ones_own_on_ray(
    tmp_path: Path,
    tiny: dict[str, Any],
    ray_session: tuple[int, Session],
    expected: Expected,
    monkeypatch: pytest.MonkeyPatch,
    trust: str,
) -> None:
    workers, session = ray_session
    write_files("docs/federated.md", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    privacy = {"epsilon": 2.0, "per": "user", "composition": "pld"}
    model = {"kind": "federated_factors:Factors"}
    protocol = {"kind": "federated", "model": model, "rounds": 2, "trust": trust, "privacy": privacy}
    values = {**tiny, "protocol": protocol}
    for users_per_node in (7, "all"):
        config = divided(values, "ray", workers, users_per_node)
        compare(expected(values), bits(session, config, tmp_path / str(users_per_node)))


class Coarse(Mechanism):
    """A class that no other process can import: it travels as its code."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        same = 1 + np.expm1(epsilon) * np.eye(scale.levels)
        return Channel.from_probabilities(same, scale.values, scale.values, epsilon)


@pytest.mark.parametrize("where", ["a file", "the running program"])
def test_user_defined_mechanisms_on_ray(
    tmp_path: Path,
    tiny: dict[str, Any],
    ray_session: tuple[int, Session],
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    workers, session = ray_session
    if where == "a file":
        # Its folder is not the current one, and the workers started without it.
        module = f"own_mechanism_{workers}"
        (tmp_path / f"{module}.py").write_text(OWN)
        monkeypatch.syspath_prepend(str(tmp_path))
        tiny["protocol"]["mechanism"] = {"kind": f"{module}:Flat", "slope": 0.5}
    else:
        monkeypatch.setattr(Coarse, "__module__", "__main__")
        tiny["protocol"]["mechanism"] = Coarse()
    expected = bits(None, divided(tiny, "local", 1, "all"), tmp_path / "expected")
    compare(expected, bits(session, divided(tiny, "ray", workers, 7), tmp_path / "7"))
