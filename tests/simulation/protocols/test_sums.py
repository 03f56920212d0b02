"""Protocols of sums: each with everybody who can add up."""

from typing import Any

import numpy as np
import pytest

import simulation
from dprec.sums import AGGREGATIONS
from simulation.protocols import PROTOCOLS
from simulation.protocols.sums import SummedProtocol

KINDS = [each.kind for each in PROTOCOLS if issubclass(each, SummedProtocol)]
DATA: dict[str, Any] = {"kind": "synthetic", "users": 40, "items": 20, "ratings": 400}


@pytest.mark.parametrize("aggregation", AGGREGATIONS.kinds)
@pytest.mark.parametrize("kind", KINDS)
def test_every_one_runs_whoever_adds_up(kind: str, aggregation: str) -> None:
    lists = PROTOCOLS[kind].predicted == "lists"
    composition = "sum" if aggregation == "local" else "pld"
    config = {
        "name": kind,
        "seed": 1,
        "dataset": {**DATA, "positive": ">= 4"} if lists else DATA,
        "split": {"kind": "user-holdout", "test_fraction": 0.2},
        "protocol": {
            "kind": kind,
            "privacy": {"epsilon": 4.0, "per": "user", "composition": composition},
            "aggregation": {"kind": aggregation, **OPTIONS.get(aggregation, {})},
        },
        "simulation": {"backend": "local"},
    }
    found = simulation.run(config, page=False)
    assert np.isfinite(found.predictions["prediction"]).all()
    assert found.summary["privacy"]["trust"] == AGGREGATIONS[aggregation].trust
    assert found.summary["privacy"]["epsilon_composed"]["max"] == pytest.approx(4.0, rel=0.02)


OPTIONS: dict[str, dict[str, Any]] = {"secure": {"norm": 1024, "colluders": 0}, "shuffle": {"colluders": 0}}
