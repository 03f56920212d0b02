"""Run and comparison directories, written as `dprec` writes them but without running anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dprec.mechanisms import MECHANISMS
from dprec.privacy.calibration import CalibratedMechanism, PrivacyBudget
from dprec.privacy.device_channel import device_channel
from dprec.ratings import RatingScale
from simulation.comparison.planning import Cell
from simulation.comparison.rows import lines
from simulation.storage.channel_file import write_channel
from simulation.storage.names import CELLS, COMPARISON, TABLE, TIMINGS, cell_key
from simulation.storage.tables import to_csv

USERS, ITEMS, TEST_RATINGS = 120, 200, 400
HOSTILE = "<script>alert('x')</script>&\"$x_$"

Directories = Callable[..., Path]


def write_run(
    directory: Path,
    *,
    name: str = "blp-mog-mf",
    protocol: str = "one-shot",
    mechanism: str = "bounded-laplace",
    completion: str = "mog-mf",
    epsilon: float | None = 1.0,
    per: str = "rating",
    rmse: float = 1.1,
    rounds: int = 1,
    seed: int = 1,
    notes: Sequence[str] = ("Which items a user rated is not hidden.",),
    measure: str = "rmse",
    downlink: int = 110,
    hides: bool = False,
    dataset: str = "synthetic",
) -> Path:
    """Write a run directory."""
    directory.mkdir(parents=True)
    draw = np.random.default_rng(seed)
    ratings = np.clip(draw.lognormal(3.4, 0.8, USERS), 1, ITEMS).astype(int)
    sent = ITEMS if hides else ratings
    up_payload = rounds * (20 + sent * 2) + np.zeros(USERS, dtype=int)
    up_message = up_payload + rounds * 195
    down_message = np.full(USERS, rounds * downlink)
    per_rating = np.full(USERS, np.nan if epsilon is None else epsilon)
    per_user = (
        np.full(USERS, np.nan)
        if epsilon is None
        else epsilon * (sent if per == "rating" else 1) * np.ones(USERS)
    )
    truth = draw.integers(1, 6, TEST_RATINGS).astype(float)
    predicted = np.clip(3 + 0.4 * (truth - 3) + draw.normal(0, 0.5, TEST_RATINGS), 1, 5)
    values = rmse + 1.2 / np.arange(1, rounds + 1) - 1.2 / rounds
    accuracy = {
        "rmse": None,
        "mae": None,
        "precision_at_k": 0.6,
        "recall_at_k": 0.7,
        "f_score_at_k": 0.65,
        "k": 10,
    }
    if measure == "rmse":
        accuracy |= {"rmse": rmse, "mae": 0.8 * rmse}
    else:
        accuracy |= {measure: rmse}
    config: dict[str, Any] = {
        "name": name,
        "seed": seed,
        "dataset": {"kind": dataset},
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "protocol": {"kind": protocol, "mechanism": {"kind": mechanism}, "completion": {"kind": completion}},
    }
    if epsilon is not None:
        config["protocol"]["privacy"] = {"epsilon": epsilon, "per": "cell" if hides else per}
    summary = {
        "schema": 1,
        "name": name,
        "protocol": protocol,
        "mechanism": mechanism,
        "completion": completion,
        "dataset": {
            "kind": dataset,
            "users": USERS,
            "items": ITEMS,
            "train_ratings": int(ratings.sum()),
            "test_ratings": TEST_RATINGS,
            "scale": [1.0, 5.0],
            "users_only_in_test": 0,
            "items_only_in_test": 3,
        },
        "accuracy": accuracy,
        "privacy": {
            "epsilon_per_rating": epsilon,
            "epsilon_per_user": {
                key: None if epsilon is None else float(of(per_user))
                for key, of in (("max", np.max), ("mean", np.mean), ("median", np.median))
            },
            "trusts_server": epsilon is None,
            "hides_rated_items": hides,
            "notes": list(notes),
        },
        "traffic": {
            "rounds": rounds,
            "users": USERS,
            "uplink": _direction(up_payload, up_message),
            "downlink": _direction(np.zeros(USERS, dtype=int), down_message),
            "deployed_factor": 2.5,
        },
        "completion_diagnostics": {
            "pi": [0.2, 0.5, 0.3],
            "sigma": [0.4, 0.9, 1.6],
            "log_likelihood": (-9000 - 3000 * 0.8 ** np.arange(30)).tolist(),
            "steps": 30,
        },
        "time": {"total_s": 1.5, "startup_s": 0.2, "clients_s": 0.4, "server_s": 0.8},
        "peak_memory_mb": 170.0,
        "environment": {"python": "3.11", "simulation": {"backend": "ray"}},
    }
    lines = [
        {
            "round": number,
            "replies": USERS,
            "failures": 0,
            "accuracy": {**accuracy, measure: float(value)},
            "uplink": {"payload_bytes": 0, "message_bytes": int(up_message.sum() / rounds)},
            "downlink": {"payload_bytes": 0, "message_bytes": int(down_message.sum() / rounds)},
            "seconds": 0.25,
        }
        for number, value in enumerate(values, start=1)
    ]
    columns = {
        "user": np.arange(USERS),
        "ratings": ratings,
        "uplink_payload_bytes": up_payload,
        "uplink_message_bytes": up_message,
        "downlink_payload_bytes": np.zeros(USERS, dtype=int),
        "downlink_message_bytes": down_message,
        "messages": np.full(USERS, 2 * rounds),
        "epsilon_per_rating": per_rating,
        "epsilon_per_user": per_user,
    }
    predictions = {
        "user": np.zeros(TEST_RATINGS, dtype=int),
        "item": np.arange(TEST_RATINGS),
        "rating": truth,
        "prediction": predicted,
    }
    if epsilon is not None and protocol == "one-shot":
        budget = PrivacyBudget(epsilon=epsilon, per="cell" if hides else per)  # type: ignore[arg-type]
        scale = RatingScale.evenly(1.0, 5.0, 1.0)
        device = device_channel(CalibratedMechanism(MECHANISMS[mechanism](), budget, scale, ITEMS), ratings)  # type: ignore[call-arg]
        assert device is not None
        write_channel(directory, device)
    (directory / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    (directory / "summary.json").write_text(json.dumps(summary))
    (directory / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (directory / "traffic.csv").write_text(_csv(columns))
    (directory / "predictions.csv").write_text(_csv(predictions))
    return directory


def _direction(payload: Any, message: Any) -> dict[str, float]:
    return {
        "payload_bytes": int(payload.sum()),
        "message_bytes": int(message.sum()),
        "payload_mean_per_user": float(payload.mean()),
        "payload_max_per_user": int(payload.max()),
        "message_mean_per_user": float(message.mean()),
        "message_p95_per_user": float(np.percentile(message, 95)),
        "message_max_per_user": int(message.max()),
    }


def _csv(columns: dict[str, Any]) -> str:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join("" if str(value) == "nan" else str(value) for value in row) for row in rows]
    return "\n".join([",".join(columns), *lines]) + "\n"


def write_comparison(
    directory: Path,
    protocols: Sequence[dict[str, Any]],
    *,
    epsilons: Sequence[float] = (0.5, 1.0, 3.0),
    seeds: Sequence[int] = (1, 2),
    **config: Any,
) -> Path:
    """Write a comparison directory; a protocol's rmse is that at the largest epsilon."""
    cells: list[Any] = []
    for protocol in protocols:
        private = protocol.get("epsilon", 1.0) is not None
        for epsilon in epsilons if private else [None]:
            for seed in seeds:
                key = cell_key(protocol["name"], epsilon, None, seed)
                settings = {**protocol, "epsilon": epsilon}
                settings["rmse"] = protocol["rmse"] + 0.01 * seed + (0.2 / epsilon if epsilon else 0)
                write_run(directory / CELLS / key, seed=seed, **settings)
                cells.append(Cell(key, protocol["name"], epsilon, None, seed, None))  # type: ignore[arg-type]
    rows, timings = zip(*(lines(cell, directory / CELLS) for cell in cells), strict=True)
    (directory / TABLE).write_text(to_csv(rows))
    (directory / TIMINGS).write_text(to_csv(timings))
    values = {
        "name": "study",
        "match": {"epsilon": "rating"},
        **config,
        "cells": {cell.key: {} for cell in cells},
    }
    (directory / COMPARISON).write_text(yaml.safe_dump(values, sort_keys=False))
    return directory


PROTOCOLS: list[dict[str, Any]] = [
    {"name": "plain-mf", "mechanism": "none", "epsilon": None, "rmse": 0.93},
    {"name": "blp-mog-mf", "rmse": 1.05},
    {"name": "isgd", "mechanism": "clamped-laplace", "completion": "mf", "rmse": 1.0},
    {
        "name": "zheng-rr",
        "mechanism": "zheng-randomized-response",
        "completion": "mf",
        "rmse": 1.3,
        "hides": True,
    },
    {"name": "pg-mf", "protocol": "pg-mf", "per": "user", "rounds": 10, "rmse": 1.35, "downlink": 68_000},
]


@pytest.fixture(scope="session")
def writers() -> dict[str, Directories]:
    """What writes a run directory, and a comparison directory, at a path."""
    return {
        "run": write_run,
        "comparison": lambda directory, protocols=PROTOCOLS, **settings: write_comparison(
            directory, protocols, **settings
        ),
    }


@pytest.fixture
def run_directory(tmp_path: Path) -> Directories:
    return lambda **settings: write_run(tmp_path / "run", **settings)


@pytest.fixture
def comparison_directory(tmp_path: Path) -> Directories:
    return lambda protocols=PROTOCOLS, **settings: write_comparison(
        tmp_path / "comparison", protocols, **settings
    )


@pytest.fixture
def hostile() -> str:
    return HOSTILE
