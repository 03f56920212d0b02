"""Ends runs by signals at random points, resumes them each time, and compares them with uninterrupted ones.

    python -m tests.killed [KILLS]

One run learns from gradients, one from sums; SIGKILL, SIGTERM and SIGINT take turns. Predictions, traffic and
accuracy must have the same bits. Prints the rounds after which a run was ended.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simulation import run
from simulation.configuration.strict_yaml import dump_yaml
from simulation.storage.run_directory import CHECKPOINT

_COMMAND = [sys.executable, "-m", "dprec"]


_SIGNALS = signal.SIGKILL, signal.SIGTERM, signal.SIGINT


def of_gradients(rounds: int) -> dict[str, Any]:
    """Return a protocol of gradients that uses everything that must survive."""
    return {
        "kind": "iterative",
        "privacy": {"epsilon": 900.0, "per": "user"},
        "gradient": {"kind": "one-bit"},
        "rounds": rounds,
        "rank": 2,
        "step": {"size": 0.05, "decay": 0.0, "momentum": 0.5},
        "sampling": {"fraction": 0.6},
        "downlink": {"dtype": "float16", "delta": True},
        "early_stopping": {"patience": rounds},
    }


def of_sums(rounds: int) -> dict[str, Any]:
    """Return a protocol of sums, of which the first round counts."""
    return {
        "kind": "dp-ials",
        "privacy": {"epsilon": 8.0, "per": "user", "composition": "pld", "delta": 1e-6},
        "factorization": {"rank": 2, "rounds": rounds - 1},
    }


def configuration(protocol: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a run on few ratings, on whose way reports are lost."""
    implicit = {"positive": ">= 4"} if protocol["kind"] == "dp-ials" else {}
    return {
        "name": "killed",
        "seed": 5,
        "dataset": {"kind": "synthetic", "users": 60, "items": 40, "ratings": 900, **implicit},
        "split": {"kind": "user-holdout", "test_fraction": 0.2},
        "protocol": protocol,
        "simulation": {
            "backend": "local",
            "users_per_node": 7,
            "faults": {"dropout": 0.1, "straggle": 0.05, "corrupt": 0.05},
        },
    }


def results(folder: Path) -> dict[str, Any]:
    """Return the results, which must not depend on how often the run was interrupted."""
    summary = json.loads((folder / "summary.json").read_text())
    return {
        "predictions.csv.gz": (folder / "predictions.csv.gz").read_bytes(),
        "traffic.csv": (folder / "traffic.csv").read_bytes(),
        **{key: summary[key] for key in ("accuracy", "privacy", "traffic")},
    }


def kill_repeatedly(
    folder: Path, values: dict[str, Any], rounds: int, kills: int, seed: int
) -> Iterator[int]:
    """End a run of so many rounds and resume it until it has been ended often enough, then let it finish.

    Yields
    ------
    int
        Rounds that the run had finished when it was ended. Each process finishes a random share of
        the rounds and is sent a signal a random moment later.
    """
    draws = random.Random(seed)
    source, output = folder / "config.yaml", folder / "killed"
    source.write_text(dump_yaml(values))
    command = [*_COMMAND, "run", str(source), "-o", str(output), "--resume", "--no-page", "--quiet"]
    before = 0
    for kill in range(kills):
        remaining = (rounds - before) // (kills - kill + 1)
        process = subprocess.Popen(command)
        _wait_until(process, output, before + draws.randint(0, remaining))
        time.sleep(draws.uniform(0.0, 0.03))
        if process.poll() is not None:
            raise RuntimeError(f"the run ended by itself, with {process.returncode}, before kill {kill + 1}")
        process.send_signal(_SIGNALS[kill % len(_SIGNALS)])
        process.wait()
        before = _rounds_done(output)
        yield before
    subprocess.run(command, check=True)


def _wait_until(process: subprocess.Popen[bytes], output: Path, rounds: int) -> None:
    while process.poll() is None and _rounds_done(output) < rounds:
        time.sleep(0.002)


def _rounds_done(output: Path) -> int:
    if not (output / CHECKPOINT).exists():
        return 0
    with np.load(output / CHECKPOINT) as archive:
        return len(json.loads(archive["values"].tobytes())["records"])


if __name__ == "__main__":
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rounds, differ = 40 * kills, False
    for protocol in (of_gradients(rounds), of_sums(rounds)):
        with tempfile.TemporaryDirectory() as place:
            run(configuration(protocol), Path(place) / "alone", page=False)
            ended = list(kill_repeatedly(Path(place), configuration(protocol), rounds, kills, seed=1))
            print(f"{protocol['kind']}: ended after rounds {', '.join(map(str, ended))} of {rounds}")
            same = results(Path(place) / "killed") == results(Path(place) / "alone")
            print("same bits as the uninterrupted run" if same else "NOT the bits of the uninterrupted run")
            differ |= not same
    sys.exit(differ)
