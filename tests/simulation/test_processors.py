"""What a processor changes: nothing in messages and losses of single draws, last digits in predictions."""

import json
import os
import platform
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

OLDER = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "NUMBA_CPU_NAME": "generic",
    "OPENBLAS_CORETYPE": "Nehalem",
}
"""What has NumPy, compiled loops and linear algebra compute as on a processor of 2008."""

COMPOSED = "epsilon_composed"
"""A bound that is found on a grid of losses, by Fourier transforms."""

PROGRAM = """
import json, sys
from simulation import run

for preset, *overrides in json.loads(sys.argv[1]):
    result = run(preset, overrides=["simulation.backend=local", *overrides])
    traffic = {name: list(map(str, column)) for name, column in result.traffic.items()}
    predicted = (result.predictions or {}).get("prediction", ())
    print(json.dumps([traffic, list(map(float, predicted))]))
"""

COMPOSING = "protocol.privacy={epsilon: 1, per: user, composition: pld, delta: 1e-6}"

RUNS = {
    ("blp-mf",): 1e-8,
    ("one-bit-on-device",): 1e-8,
    ("pairs-in-blanket",): 1e-8,
    ("pg-mf",): 1e-8,
    ("pg-mf", COMPOSING, "protocol.rounds=5"): 1e-8,
    ("secagg-item-effects",): 1e-2,
    ("user-level-bit",): 1e-8,
}
"""How far predictions may move, by preset and overrides.

In secure aggregation, a number on the border between two steps of the grid is rounded to either, and the
rounds that follow start from there.
"""


def results(environment: dict[str, str]) -> list[Any]:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(list(RUNS))]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86 processors")
def test_an_older_processor_gives_the_same_messages_and_nearly_the_same_predictions() -> None:
    pairs = zip(results({}), results(OLDER), strict=True)
    for (run, most), ((traffic, predictions), (old_traffic, old_predictions)) in zip(
        RUNS.items(), pairs, strict=True
    ):
        assert {name: old_traffic[name] for name in traffic if name != COMPOSED} == {
            name: values for name, values in traffic.items() if name != COMPOSED
        }, run
        composed, old_composed = (
            np.array(columns[COMPOSED], dtype=float) for columns in (traffic, old_traffic)
        )
        np.testing.assert_allclose(old_composed, composed, rtol=1e-8, err_msg=str(run))
        np.testing.assert_allclose(old_predictions, predictions, rtol=0, atol=most, err_msg=str(run))
