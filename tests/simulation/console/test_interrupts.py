"""What ends a command from outside: SIGTERM ends it as Ctrl-C does, and it says how to go on."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulation import run
from tests.paths import ROOT
from tests.waiting import PATIENCE_SECONDS, wait_until

ROUNDS = 150

START = "from dprec.__main__ import main; main()"


@pytest.fixture
def rounds(tmp_path: Path, tiny: dict[str, Any]) -> Path:
    """Return the configuration of a run with many rounds."""
    path = tmp_path / "rounds.yaml"
    protocol = {
        "kind": "iterative",
        "privacy": {"epsilon": 1.6, "per": "user"},
        "gradient": {"kind": "one-bit"},
        "rounds": ROUNDS,
        "rank": 2,
        "step": {"size": 0.2},
    }
    path.write_text(yaml.safe_dump({**tiny, "protocol": protocol}))
    return path


def ended_by_sigterm(config: Path, output: Path, backend: str) -> tuple[int, list[str]]:
    """Run a configuration, end it after its first round, and return the exit code and the lines of errors."""
    options = ["--set", f"simulation.backend={backend}", "--no-page", "-o", str(output)]
    command = subprocess.Popen(
        [sys.executable, "-c", START, "run", str(config), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    wait_until((output / "checkpoint.npz").exists, command)
    command.send_signal(signal.SIGTERM)
    _, errors = command.communicate(timeout=PATIENCE_SECONDS)
    return command.returncode, errors.splitlines()


@pytest.mark.parametrize("backend", ["local", "ray"])
def test_a_run_that_sigterm_ends_says_how_to_go_on_and_goes_on_to_the_same_bits(
    rounds: Path, tmp_path: Path, backend: str
) -> None:
    out = tmp_path / "out"
    code, errors = ended_by_sigterm(rounds, out, backend)
    held = f"dprec: {out} holds the rounds that are finished; the same command with --resume -o {out} goes on"
    assert (code, errors[-2:]) == (130, [held, "dprec: interrupted"])
    assert all(line.startswith("dprec: ") for line in errors)
    run(rounds, out, overrides=["simulation.backend=local"], resume=True, page=False)
    run(rounds, tmp_path / "whole", overrides=["simulation.backend=local"], page=False)
    assert (out / "predictions.csv.gz").read_bytes() == (
        tmp_path / "whole" / "predictions.csv.gz"
    ).read_bytes()
