"""User-defined components that return something else: one line that names them, and exit code 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulation.console.command_line import main

MODULE = """
from dataclasses import dataclass

import numpy as np

from dprec.completion import Completed, Completion, ItemAverage
from dprec.mechanisms import Channel, Mechanism, RandomizedResponse

class Wrong(Completed):
    def predict(self, users, items):
        {predict}

class OwnCompletion(Completion):
    def fit(self, observations, seed, progress=None):
        {fit}

class OwnMechanism(Mechanism):
    def channel(self, scale, epsilon):
        good = RandomizedResponse().channel(scale, epsilon)
        {channel}

class Lying(Channel):
    pass
"""

GOOD = {"predict": "return np.ones(users.size)", "fit": "return Wrong()", "channel": "return good"}

ACCEPTED = {
    "predict": "one finite number for each cell",
    "fit": "a completed matrix, of a class derived from dprec.completion.Completed",
}


@pytest.fixture
def line(
    tmp_path: Path,
    tiny: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Callable[..., str]:
    """Return a function that runs own components, and returns the one line on standard error."""
    module = f"own_defects_{abs(hash(request.node.name))}"
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(**bodies: str) -> str:
        (tmp_path / f"{module}.py").write_text(MODULE.format(**{**GOOD, **bodies}))
        tiny["simulation"] = {"backend": "local"}
        tiny["protocol"]["completion"] = {"kind": f"{module}:OwnCompletion"}
        tiny["protocol"]["mechanism"] = {"kind": f"{module}:OwnMechanism"}
        (tmp_path / "own.yaml").write_text(json.dumps(tiny))
        with pytest.raises(SystemExit) as ended:
            main(["run", str(tmp_path / "own.yaml"), "-o", str(tmp_path / "out"), "--no-page"])
        lines = [each for each in capsys.readouterr().err.splitlines() if each.startswith("dprec: ")]
        assert (ended.value.code or 0) == (2 if lines else 0), lines
        return " ".join(lines).replace(module, "own")

    return run


def test_what_is_right_runs(line: Callable[..., str]) -> None:
    assert line() == ""


@pytest.mark.parametrize(
    ("predict", "found"),
    [
        ("return np.full(users.size, np.nan)", "predictions that are NaN or infinite"),
        ("return np.ones(users.size + 1)", "predictions of shape"),
        ("return None", "no predictions"),
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_predictions_of_a_user_defined_matrix(line: Callable[..., str], predict: str, found: str) -> None:
    shown = line(predict=predict)
    assert "own:Wrong: " in shown
    assert found in shown
    assert f"accepted: {ACCEPTED['predict']}" in shown


@pytest.mark.parametrize(
    ("fit", "found"),
    [
        ("return None", "its fit returned NoneType"),
        ("return np.ones(observations.shape)", "its fit returned ndarray"),
        ("return [][0]", "IndexError: list index out of range"),
    ],
)
def test_what_a_user_defined_completion_returns(line: Callable[..., str], fit: str, found: str) -> None:
    accepted = f"own:OwnCompletion: {found}; accepted: {ACCEPTED['fit']}"
    assert line(fit=fit).endswith(accepted)


def test_our_own_matrix_with_predictions_that_are_none(line: Callable[..., str]) -> None:
    damaged = (
        "done = ItemAverage().fit(observations, seed)\n"
        "        for name, value in vars(done).items():\n"
        "            if isinstance(value, np.ndarray): value[...] = np.nan\n"
        "        return done"
    )
    shown = line(fit=damaged)
    assert "completion own:OwnCompletion: " in shown
    assert "predictions that are NaN or infinite" in shown


@pytest.mark.parametrize(
    ("channel", "found"),
    [
        ("return None", "its channel is a value of type NoneType; accepted: a Channel"),
        ("return Lying(good.weights, good.inputs, good.values)", "its channel is a value of type Lying"),
        (
            "return Channel(good.weights[:2], good.inputs[:2], good.values)",
            "its channel has the inputs [1.0, 2.0]",
        ),
        ("return Channel(good.weights // 2, good.inputs, good.values)", "rows that are no distributions"),
        ("return {}['x']", "KeyError: 'x'"),
    ],
)
def test_what_is_no_channel(line: Callable[..., str], channel: str, found: str) -> None:
    shown = line(channel=channel)
    assert "own:OwnMechanism: " in shown
    assert found in shown
