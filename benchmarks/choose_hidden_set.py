"""Shows what each part of best-hidden-set buys: RMSE on validation ratings of MovieLens 100K.

    python benchmarks/choose_hidden_set.py [--path ../shared/data/ml-100k] [--draws 2]

The validation split is that of choose_on_device.py; no test rating is read. Rows are what is left out or put
in the place of the preset's own, columns the epsilon per cell, of which the least says nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from choose_on_device import validation_split
from threadpoolctl import threadpool_limits

from dprec.accounting import PrivacyBudget
from dprec.catalogue import Catalogue
from dprec.completion import Calibrated
from dprec.datasets import MovieLens100K
from dprec.mechanisms import HiddenThreshold, Mechanism, ZhengRandomizedResponse
from dprec.metrics import root_mean_squared_error
from dprec.observations import Observations
from dprec.personalization import Devices
from dprec.personalization.broadcast import calibrated_broadcast
from dprec.randomness import words
from dprec.ratings import Ratings
from dprec.reports import HiddenRowFamily
from simulation import load

PROTOCOL: Any = load("best-hidden-set").protocol
EPSILONS = (1e-6, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0)


def reported(learned: Ratings, mechanism: Mechanism, epsilon: float, draw: int) -> Observations:
    """Send every cell of the catalogue through a mechanism, and return what the server sees."""
    shape = learned.n_users, learned.n_items
    budget = PrivacyBudget(epsilon=epsilon, per="cell")
    calibrated = HiddenRowFamily(mechanism, budget, learned.scale, learned.n_items)
    levels = np.zeros(shape, dtype=np.uint8)
    levels[learned.users, learned.items] = learned.levels
    noise = words(draw, "reports", 0, levels.size)
    symbols = calibrated.perturb(np.full(shape[0], shape[1]), levels.ravel(), noise)
    shown = np.flatnonzero(~np.isnan(calibrated.reference_channel.values[symbols]))
    users, items = np.divmod(shown, shape[1])
    counts = np.bincount(users, minlength=shape[0])
    return Observations.of(
        users.astype(np.int32),
        items.astype(np.int32),
        calibrated.read(counts, symbols[shown]),
        shape,
        learned.scale,
        evidence=calibrated.evidence_of(counts, symbols[shown], counts >= 0),
    )


def variants(catalogue: Catalogue) -> Iterator[tuple[str, Mechanism, Calibrated, Catalogue | None]]:
    """Yield the preset, and what differs from it in one thing."""
    mechanism, completion = PROTOCOL.mechanism, PROTOCOL.completion
    yield "as it is", mechanism, completion, None
    yield "with years and genres", mechanism, completion, catalogue
    yield "no places", mechanism, replace(completion, dimensions=0), None
    yield "effects not by place", mechanism, replace(completion, features=0), None
    yield "high from 3 stars", HiddenThreshold(threshold=3), completion, None
    yield "all levels (zheng-rr)", ZhengRandomizedResponse(), completion, None


def main() -> None:
    """Print the mean RMSE of every variant at every epsilon."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--draws", type=int, default=2, help="draws of the noise")
    chosen = arguments.parse_args()
    data = MovieLens100K(path=chosen.path, items=True)
    learned, validation = validation_split(*data.load_fold("u1"))
    catalogue = data.catalogue(learned.item_ids)
    assert catalogue is not None
    print(f"{'epsilon per cell':22s}", *(f"{epsilon:7g}" for epsilon in EPSILONS))
    with threadpool_limits(limits=1):
        for name, mechanism, completion, public in variants(catalogue):
            means = []
            for epsilon in EPSILONS:
                errors = []
                for draw in range(chosen.draws):
                    seen = replace(reported(learned, mechanism, epsilon, draw), catalogue=public)
                    table = calibrated_broadcast(completion.fit(seen, seed=1), learned)
                    devices = Devices(PROTOCOL.process, table, learned)
                    predictions = devices.predict(validation.users, validation.items)
                    errors.append(root_mean_squared_error(predictions, validation.values))
                means.append(np.mean(errors))
            print(f"{name:22s}", *(f"{mean:7.4f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
