"""Shows how on-device prediction depends on its constants: RMSE on validation ratings of MovieLens 100K.

    python benchmarks/choose_on_device.py [--path ../shared/data/ml-100k] [--draws 3]

As in u1's test, some users lose nearly half of their ratings, which are to be predicted: half of the users
without a test rating lose 45 %. No test rating is read. Every constant is halved and doubled while the others
keep their defaults, with one bit per rating at epsilon 1, and years and genres.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dprec.catalogue import Catalogue
from dprec.completion.base import Observations
from dprec.completion.calibrated.completion import Calibrated, CalibratedModel
from dprec.datasets.movielens import MovieLens100K
from dprec.mechanisms import Mechanism
from dprec.metrics import root_mean_squared_error
from dprec.personalization.broadcast import calibrated_broadcast
from dprec.personalization.ordinal_process import Devices, OrdinalProcess
from dprec.privacy.calibration import CalibratedMechanism, PrivacyBudget
from dprec.randomness import generator, words
from dprec.ratings import Ratings
from dprec.wire.item_table import ItemTable
from simulation import load

PROTOCOL: Any = load("one-bit-on-device").protocol
COMPLETION: Calibrated = PROTOCOL.completion
PROCESS: OrdinalProcess = PROTOCOL.process


def validation_split(train: Ratings, test: Ratings, seed: int = 0) -> tuple[Ratings, Ratings]:
    """Return the ratings to learn from and those to predict; of the test ratings, only the users are used."""
    random = generator(seed, "on-device validation")
    tested = np.isin(np.arange(train.n_users), test.users)
    losing = ~tested & (random.random(train.n_users) < 0.5)
    held_back = losing[train.users] & (random.random(train.count) < 0.45)
    return train.select(~held_back), train.select(held_back)


def fitted(
    completion: Calibrated,
    learned: Ratings,
    draw: int,
    mechanism: Mechanism = PROTOCOL.mechanism,
    budget: PrivacyBudget = PROTOCOL.privacy,
    catalogue: Catalogue | None = None,
) -> CalibratedModel:
    """Return what the server learns, by default from one bit per rating."""
    calibrated = CalibratedMechanism(mechanism, budget, learned.scale, learned.n_items)
    noise = words(draw, "reports", 0, learned.count)
    symbols = calibrated.perturb(learned.counts, learned.levels, noise)
    return completion.fit(
        Observations(
            learned.users.astype(np.int32),
            learned.items,
            calibrated.read(learned.counts, symbols),
            (learned.n_users, learned.n_items),
            learned.scale,
            symbols=calibrated.symbol_reports(learned.counts, symbols),
            catalogue=catalogue,
        ),
        seed=1,
    )


def error(model: CalibratedModel, process: OrdinalProcess, learned: Ratings, validation: Ratings) -> float:
    """Return the RMSE of the devices' predictions."""
    broadcast = calibrated_broadcast(model)
    table = ItemTable.decode(broadcast.table.encode(), n_levels=learned.scale.levels, n_items=learned.n_items)
    devices = Devices(process, table, broadcast.priors, learned)
    return root_mean_squared_error(devices.predict(validation.users, validation.items), validation.values)


def settings() -> Iterator[tuple[str, Calibrated, OrdinalProcess]]:
    """Yield the preset, and each constant halved and doubled."""
    yield "as it is", COMPLETION, PROCESS
    for factor in (0.5, 2.0):
        for name in ("level", "taste", "nearness", "reach", "number", "category"):
            changed: Any = {name: factor * getattr(PROCESS, name)}
            yield f"{name} x {factor:g}", COMPLETION, replace(PROCESS, **changed)
        for name in ("dimensions", "features", "factors", "variance"):
            default = getattr(COMPLETION, name)
            changed = {name: type(default)(factor * default)}
            yield f"{name} x {factor:g}", replace(COMPLETION, **changed), PROCESS


def main() -> None:
    """Print the mean RMSE of every setting."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--draws", type=int, default=3, help="draws of the noise")
    chosen = arguments.parse_args()
    dataset = MovieLens100K(path=chosen.path, items=True)
    learned, validation = validation_split(*dataset.load_fold("u1"))
    catalogue = dataset.catalogue(learned.item_ids)
    models: dict[tuple[Calibrated, int], CalibratedModel] = {}
    with threadpool_limits(limits=1):
        for name, completion, process in settings():
            errors = []
            for draw in range(chosen.draws):
                if (completion, draw) not in models:
                    models[completion, draw] = fitted(completion, learned, draw, catalogue=catalogue)
                errors.append(error(models[completion, draw], process, learned, validation))
            print(f"{name:16s} RMSE {np.mean(errors):.4f}", flush=True)


if __name__ == "__main__":
    main()
