"""A limit on what devices are sent to predict from."""

import numpy as np
import pytest

from simulation.result import RunResult
from tests.refusals import refused_at
from tests.simulation.conftest import POSITIVE_DATA, run_of_ratings, run_of_sets

LIMITS = {"randomized-sets": 200, "popularity-secagg": 200, "gram-central": 200, "one-bit-on-device": 600}
"""Bytes that are too few for what small data teach, but not for anything."""


def ran(name: str, most: int | None) -> RunResult:
    limit = f"max_bytes_down={'null' if most is None else most}"
    if name == "one-bit-on-device":
        return run_of_ratings(name, limit)
    data = {**POSITIVE_DATA, "items": 400, "copies": 20}
    return run_of_sets(name, dataset=data, overrides=[f"protocol.{limit}"])


def notes(of: RunResult) -> list[str]:
    """Return what is said of a limit."""
    return [note for note in of.summary["privacy"]["notes"] if "max_bytes_down" in note]


@pytest.mark.parametrize("name", LIMITS)
def test_what_devices_predict_from_fits_and_a_note_says_what_that_costs(name: str) -> None:
    limited = ran(name, LIMITS[name])
    [said] = notes(limited)
    fitted, of_all = (int(said.split()[place]) for place in (3, 11))
    assert fitted <= LIMITS[name] < of_all
    assert f"{fitted / of_all:.0%} of the bits" in said
    down = limited.summary["traffic"]["downlink"]["payload_max_per_user"]
    alone = name in ("randomized-sets", "one-bit-on-device")
    assert down == fitted if alone else down > fitted
    assert not notes(ran(name, None))
    assert not notes(ran(name, 2 * of_all))


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_in_which_nothing_fits_is_refused(name: str) -> None:
    with refused_at("protocol.max_bytes_down"):
        ran(name, 10)


def test_devices_predict_from_what_they_are_sent() -> None:
    whole, few = (ran("one-bit-on-device", most).predictions["prediction"] for most in (None, 600))
    assert np.unique(few).size < np.unique(whole).size
