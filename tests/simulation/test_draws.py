"""No random word serves two ends: in no run of a preset is one drawn twice, and no two runs share one.

All data and questions count as alike here: who draws, for what, in which round and in which run has to tell
words apart by itself.
"""

import copy
from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest

from dprec.randomness import RunKeys
from simulation import run
from simulation.configuration.models import parse_config
from tests.drawn import Drawn, recording
from tests.simulation.conftest import presets

REPEATED = {
    # The same symbols, computed again to know which ratings are left for counts.
    "counts-and-bits": ["dprec/reports/cells.py CellFamily.drawn"],
    # The noise of an entry that is predicted again.
    "one-bit-output": ["dprec/randomness/counters.py NoiseGrid.noise"],
    # Every collection learns from the same start. What devices repeat is bound to data, which count as alike.
    "weekly-fresh": ["dprec/completion/calibrated/completion.py Calibrated._start"],
    "weekly-increments": [
        "dprec/completion/calibrated/completion.py Calibrated._start",
        "dprec/randomness/keys.py MemoisedDraws.per_cell.<locals>.<genexpr>",
    ],
    "weekly-two-layers": [
        "dprec/completion/calibrated/completion.py Calibrated._start",
        "dprec/randomness/keys.py MemoisedDraws.per_cell.<locals>.<genexpr>",
    ],
}
"""Where a preset computes something again, for the same end."""

VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("blp-mf", {}),
    ("blp-mf", {"seed": 2}),
    ("blp-mf", {"protocol.privacy.epsilon": 0.5}),
    ("blp-mog-mf", {}),
    ("counts-and-bits", {}),
    ("dp-als", {}),
    ("dp-als", {"protocol.privacy.epsilon": 2.0}),
    ("dp-item-effects", {}),
    ("one-bit-gradient", {}),
    ("one-bit-objective", {}),
    ("one-bit-output", {}),
    ("pg-mf", {}),
    ("pg-mf", {"protocol.rounds": 3}),
    ("secagg-als", {}),
    ("secagg-item-effects", {}),
    ("user-level-bit", {}),
    ("user-level-on-device", {}),
    ("x-map", {}),
    ("x-map-shrunk", {}),
    ("zheng-rr", {}),
)


def drawn_by(values: dict[str, Any]) -> Drawn:
    """Run a configuration and return what it draws but for data, split, faults and what is public."""
    seed, keys = values["seed"], RunKeys.derive(values["seed"]).installed
    of_all_runs = {seed, values["dataset"].get("seed", 0), keys.public_seed, keys.network_seed}
    with recording(ignored=of_all_runs.__contains__, bound_to_data=False) as drawn:
        run(parse_config(copy.deepcopy(values)))
    return drawn


def variant(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    values = copy.deepcopy(presets()[name])
    for key, value in changes.items():
        *path, last = key.split(".")
        part = values
        for step in path:
            part = part[step]
        part[last] = value
    return values


def test_no_word_is_drawn_twice_in_a_run(preset: dict[str, Any]) -> None:
    drawn = drawn_by(preset)
    expected = REPEATED.get(preset["name"], [])
    assert sorted(site.rsplit(":", 1)[0] for site in drawn.repeated()) == expected, drawn.repeated()
    assert drawn.shared_keys() == []


@pytest.mark.thorough
def test_no_word_is_drawn_in_two_runs() -> None:
    runs = [drawn_by(variant(name, changes)).words for name, changes in VARIANTS]
    times: Counter[Hashable] = Counter(word for words in runs for word in words)
    assert all(runs)
    assert [word for word, count in times.items() if count > 1][:5] == []


@pytest.mark.parametrize("again", [True, False])
def test_a_word_that_is_drawn_twice_is_noticed(again: bool) -> None:
    from dprec.randomness import counters as randomness

    with recording() as drawn:
        for start in (0, 3 if again else 4):
            randomness.words(1, "noise", start, 4)
    assert (len(drawn.repeated()) > 0) is again
