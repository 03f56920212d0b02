"""Checks the constants of the calibrated completion and of on-device prediction on validation ratings.

As in u1's test, some users lose nearly half of their ratings, which are to be predicted: half of the users
without a test rating lose 45 %, drawn twice. No test rating is read. Every constant takes its other values
while the rest stay as they are, in one-bit-on-device with years and genres. Fails if, in the mean over the
budgets, a constant is worse than another value by more than 0.002, for the server or the devices, or if
factors join at a budget where this costs more, or do not where it would buy more.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from validation import asked, decide, stands

from dprec.accounting import PrivacyBudget
from dprec.catalogue import Catalogue
from dprec.completion import Calibrated, CalibratedModel, SymbolTables
from dprec.completion.calibrated import completion as completion_module
from dprec.completion.calibrated import embedding
from dprec.datasets import DelimitedTable, MovieLens100K
from dprec.metrics import root_mean_squared_error
from dprec.observations import Observations
from dprec.personalization import BroadcastDevices, OrdinalProcess
from dprec.personalization.broadcast import calibrated_broadcast
from dprec.randomness import generator, words
from dprec.ratings import Ratings
from dprec.reports import CellFamily
from dprec.splits import Holdout
from dprec.wire import ItemTable
from dprec.wire import downlink as item_table
from simulation import load

PROTOCOL: Any = load("one-bit-on-device").protocol
COMPLETION: Calibrated = PROTOCOL.completion
PROCESS: OrdinalProcess = PROTOCOL.process

EPSILONS, EPSILONS_AROUND_FACTORS = (0.1, 1.0, 3.0), (0.1, 0.3, 0.5, 0.7, 1.0)
SPLITS, TOLERANCE = (0, 1), 0.002

OTHER_VALUES: tuple[tuple[Any, dict[str, tuple[float, ...]]], ...] = (
    (PROCESS, {"level": (0.1, 0.4), "agreement": (0.05, 0.2), "taste": (0.05, 0.2)}),
    (PROCESS, {"nearness": (0.06, 0.24), "reach": (0.15, 0.6)}),
    (PROCESS, {"number": (0.01, 0.04), "category": (0.015, 0.06)}),
    (item_table, {"MEANS_STEP": (0.01, 0.3), "DEVIATIONS_STEP": (0.01, 0.8)}),
    (item_table, {"EMBEDDINGS_STEP": (0.01, 0.3, 1.0)}),
    (item_table, {"FACTORS_STEP": (0.001, 0.1), "NUMBERS_STEP": (0.01, 1.5)}),
    (COMPLETION, {"dimensions": (6, 24), "features": (5, 12), "factors": (3, 8), "slopes": (5,)}),
    (COMPLETION, {"variance": (0.25, 1.0)}),
    (embedding, {"_DAMPING": (0.15, 0.5)}),
    (completion_module, {"_TRAIT_SPREAD": (0.05, 1.0)}),
)
"""Whose constants, their names, and what each is compared with."""


def validation_split(train: Ratings, test: Ratings, seed: int = 0) -> tuple[Ratings, Ratings]:
    """Return the ratings to learn from and those to predict; of the test ratings, only the users are used."""
    random = generator(seed, "on-device validation")
    tested = np.isin(np.arange(train.n_users), test.users)
    losing = ~tested & (random.random(train.n_users) < 0.5)
    held_back = losing[train.users] & (random.random(train.count) < 0.45)
    return train.select(~held_back), train.select(held_back)


def observed(learned: Ratings, draw: int, budget: PrivacyBudget, catalogue: Catalogue | None) -> Observations:
    """Return what the server sees: one bit per rating."""
    calibrated = CellFamily(PROTOCOL.mechanism, budget, learned.scale, learned.n_items)
    noise = words(draw, "reports", 0, learned.count)
    symbols = calibrated.perturb(learned.counts, learned.levels, noise)
    values, shape = calibrated.read(learned.counts, symbols), (learned.n_users, learned.n_items)
    evidence = calibrated.evidence_of(learned.counts, symbols, learned.counts >= 0)
    cells = learned.users.astype(np.int32), learned.items, values
    seen = Observations.of(*cells, shape, learned.scale, evidence=evidence)
    return replace(seen, catalogue=catalogue)


@dataclass(frozen=True, eq=False)
class Trial:
    """One draw of the reports on one validation split at one budget."""

    learned: Ratings
    validation: Ratings
    seen: Observations

    @cached_property
    def present(self) -> CalibratedModel:
        """What the server learns with all constants as they are."""
        return COMPLETION.fit(self.seen, seed=1)

    @property
    def information(self) -> float:
        """Fisher information of the reports per entry of a factor."""
        reports = self.seen.symbols
        assert reports is not None
        tables = SymbolTables.of(reports.channels, self.present.cuts)
        _, information = tables.at(np.zeros(self.learned.count), reports.symbols, reports.channel_of)
        entities = np.unique(self.learned.users).size + np.unique(self.learned.items).size
        return float(information.sum()) / (COMPLETION.factors * entities)

    def figures(self, model: CalibratedModel, process: OrdinalProcess = PROCESS) -> tuple[float, float, int]:
        """Return the RMSE of the server and of the devices, and the bytes of the table."""
        learned, cells = self.learned, (self.validation.users, self.validation.items)
        sent = calibrated_broadcast(model, learned).encode()
        table = ItemTable.decode(sent, n_levels=learned.scale.levels, n_items=learned.n_items)
        both = model.predict(*cells), BroadcastDevices(process, table, learned).predict(*cells)
        server, device = (root_mean_squared_error(each, self.validation.values) for each in both)
        return server, device, len(sent)

    def with_constant(self, owner: Any, name: str, value: float) -> tuple[float, float, int]:
        """Return the figures with one constant changed."""
        changed: Any = {name: value}
        if owner is PROCESS:
            return self.figures(self.present, replace(PROCESS, **changed))
        if owner is COMPLETION:
            return self.figures(replace(COMPLETION, **changed).fit(self.seen, seed=1))
        with patch.object(owner, name, value):
            return self.figures(self.present if owner is item_table else COMPLETION.fit(self.seen, seed=1))


def trials(path: str, draws: int, epsilon: float) -> list[Trial]:
    """Return every draw on every split at a budget."""
    dataset: Any = DelimitedTable(path=path) if Path(path).is_file() else MovieLens100K(path=path, items=True)
    budget, made = PrivacyBudget(epsilon=epsilon), []
    split = partial(Holdout(test_fraction=0.2).split, dataset)
    if isinstance(dataset, MovieLens100K):
        split = partial(validation_split, *dataset.load_fold("u1"))
    for seed in SPLITS:
        parts = split(seed)
        catalogue = dataset.catalogue(parts[0].item_ids)
        made += [Trial(*parts, observed(parts[0], draw, budget, catalogue)) for draw in range(draws)]
    return made


def measured(budgets: Sequence[Sequence[Trial]], owner: Any, name: str, value: float) -> NDArray[np.float64]:
    """Print and return mean figures, shape (budgets, 3): RMSE of server and devices, and bytes."""
    of_trials = [[each.with_constant(owner, name, value) for each in same] for same in budgets]
    figures: NDArray[np.float64] = np.mean(of_trials, axis=1)
    server, device = (" ".join(f"{figure:.4f}" for figure in figures[:, column]) for column in (0, 1))
    print(f"{name} {value:g}: server {server}, device {device}, {figures[:, 2].mean():.0f} bytes", flush=True)
    return figures


def judged(given: argparse.Namespace) -> Iterator[bool]:
    print("RMSE at epsilon", *(f"{epsilon:g}" for epsilon in EPSILONS))
    budgets = [trials(given.path, given.draws, epsilon) for epsilon in EPSILONS]
    for owner, name, others in [(owner, *each) for owner, values in OTHER_VALUES for each in values.items()]:
        present = getattr(owner, name)
        own = measured(budgets, owner, name, present)[:, :2].mean(axis=0)
        for value in others:
            behind = (own - measured(budgets, owner, name, value)[:, :2].mean(axis=0)).max()
            yield stands(f"{name} {present:g} against {value:g}", behind, TOLERANCE)
    name, least = "_LEAST_INFORMATION", completion_module._LEAST_INFORMATION
    for epsilon in EPSILONS_AROUND_FACTORS:
        same = trials(given.path, given.draws, epsilon)
        information = np.mean([each.information for each in same])
        print(f"epsilon {epsilon:g}, information {information:.3f} per entry, factors on and off:")
        on, off = (measured([same], completion_module, name, value)[0] for value in (0.0, np.inf))
        chosen, other = (on, off) if information >= least else (off, on)
        yield stands(f"{name} {least:g} at epsilon {epsilon:g}", (chosen - other)[:2].max(), TOLERANCE)


if __name__ == "__main__":
    decide(judged(asked(__doc__, draws=2)))
