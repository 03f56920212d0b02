"""Where nothing is compiled, completions predict the same bits, whose values their own tests hold."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from dprec.arrays import Floats, rows_of
from dprec.completion import COMPLETIONS, Calibrated, Completion, ItemBiases, Observations
from dprec.mechanisms import HiddenThreshold, ThresholdBit
from dprec.observations import NoisyCounts
from tests import make
from tests.dprec.completion.calibrated.hidden_worlds import planted_levels, reported
from tests.interpreted import interpreted

USERS, ITEMS = 70, 9
"""More users than are solved side by side."""


def counts_over(seen: Observations) -> NoisyCounts:
    """Return a count of high ratings for each user, over all that it rated."""
    rated = np.flatnonzero(seen.counts)
    sizes = seen.counts[rated]
    cells = np.arange(seen.items.size)
    return NoisyCounts(
        cells, rows_of(sizes), rated, sizes // 2, sizes, np.full(rated.size, 0.5), least_level=4
    )


STARS_SEEN = make.observed(make.random_ratings(USERS, ITEMS))
MANY_SEEN = make.observed(make.random_ratings(9 * ITEMS, ITEMS))
"""So many users for each item that one pass solves both sides."""

BITS_SEEN = make.reported(make.random_ratings(USERS, ITEMS), ThresholdBit(), 2.0)
COUNTS_SEEN = replace(BITS_SEEN, evidence=replace(BITS_SEEN.symbols, counts=counts_over(BITS_SEEN)))
ROWS_SEEN = reported(planted_levels(USERS, ITEMS)[0], HiddenThreshold(), 3.0)
FEW = {"rank": 2, "iterations": 3}


@contextmanager
def nothing_compiled() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("descent", "effects", "hidden_cells", "least_squares"):
            patch.setitem(sys.modules, f"dprec.kernels.{name}", interpreted(f"dprec.kernels.{name}"))
        yield


def predictions(completion: Completion, seen: Observations) -> Floats:
    return completion.fit(seen, seed=3).predict_rows(np.arange(seen.shape[0]), ITEMS)


@pytest.mark.parametrize(
    ("completion", "seen"),
    [
        *((COMPLETIONS[kind](**FEW), STARS_SEEN) for kind in ("mf", "mog-mf", "mog-mf-variational")),
        (COMPLETIONS["mf"](**FEW), MANY_SEEN),
        (COMPLETIONS["sgd-mf"](rank=2, epochs=3), STARS_SEEN),
        (Calibrated(factors=2, dimensions=2, features=1, sweeps=3), BITS_SEEN),
        (Calibrated(factors=2, dimensions=2, features=1, sweeps=3), COUNTS_SEEN),
        (Calibrated(dimensions=2, sweeps=3), ROWS_SEEN),
        (ItemBiases(), BITS_SEEN),
    ],
    ids=[
        *("mf", "mog-mf", "mog-mf-variational", "one pass", "sgd-mf"),
        *("calibrated", "counts", "hidden sets", "item-biases"),
    ],
)
def test_predictions_have_the_same_bits_where_nothing_is_compiled(
    completion: Completion, seen: Observations
) -> None:
    compiled = predictions(completion, seen)
    with nothing_compiled():
        assert predictions(completion, seen).tobytes() == compiled.tobytes()
    assert np.ptp(compiled) > 0
