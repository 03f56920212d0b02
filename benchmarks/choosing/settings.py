"""Chooses settings that presets have and papers leave open, on validation ratings of MovieLens 100K.

NAME is a choice of settings.yaml. Every combination of the values that are tried is judged by runs of
presets, on several draws of validation ratings; by default a tenth of the train ratings of u1. No test rating
is read. Fails if another combination is better than that of dprec by more than chance explains.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import validation
import yaml
from validation import Parts, asked, best_of, decide, fifth_of, measured

from dprec.datasets import Dataset, Synthetic
from dprec.protocols.secret_sets import split_at
from dprec.splits import Holdout
from dprec.sums import CentralAggregation
from simulation import load
from simulation.comparison.planning import load_comparison
from simulation.configuration.strict_yaml import at

CHOICES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
DELTA = 1e-6
GENERATED = Synthetic(users=20_000, items=1682, ratings=1_000_000, rank=3)
MANY = Synthetic(users=200_000, items=100, ratings=4_000_000)
"""The population of pg-mf's preset."""


def tenth_of_made(made: Synthetic, _: str, seed: int) -> Parts:
    return validation.random_tenth(Holdout().split(made, 1)[0], seed)


def some_users(folder: str, seed: int) -> Parts:
    """Divide the ratings of every fourth user, as a matrix of their own."""
    learned, judging = validation.tenth_of_u1(folder, seed)
    some = np.arange(0, learned.n_users, 4)
    return learned.of_users(some, np.arange(some.size)), judging.of_users(some, np.arange(some.size))


def fifth_of_sets(dataset: Callable[[str], Dataset], test_fraction: float, folder: str, seed: int) -> Parts:
    train, judging, fresh = fifth_of(dataset(folder), test_fraction, seed)
    return train.select(~judging), train.select(judging & fresh)


DIVIDED: dict[str, Callable[[str, int], Parts]] = {
    "tenth_of_u1": validation.tenth_of_u1,
    "tenth_of_generated": partial(tenth_of_made, GENERATED),
    "tenth_of_many": partial(tenth_of_made, MANY),
    "some_users": some_users,
    "new_to_the_target": validation.new_to_the_target,
    "fifth_of_items": partial(fifth_of_sets, validation.movies, 0.2),
    "fifth_of_visits": partial(fifth_of_sets, validation.visits, 0.3),
    "before_last": validation.before_last,
}


@dataclass(frozen=True)
class Choice:
    """What is tried, and by what it is judged; see settings.yaml."""

    runs: Sequence[Mapping[str, Mapping[str, Any]]]
    tried: Mapping[str, Sequence[Any]]
    epsilons: Sequence[float] = ()
    parts: Sequence[str] = ("tenth_of_u1",)
    """From the folder and a seed to ratings to learn from and to judge on; of `DIVIDED`."""
    seeds: Sequence[int] = (1, 2)
    """Of the draws of the parts and of the runs."""
    metric: str = "rmse"
    present: Mapping[str, Any] | Sequence[str] | None = None

    def stands(self, name: str, folder: str) -> bool:
        """Print every figure; return whether the present values stand."""
        draws = [(seed, DIVIDED[name](folder, seed)) for name in self.parts for seed in self.seeds]
        figures = partial(self._figures, draws, folder)
        return best_of(name, self.tried, figures, self._present(), largest=self.metric != "rmse")

    def _present(self) -> Mapping[str, Any]:
        if isinstance(self.present, Mapping):
            return self.present
        config = load(next(iter(self.runs[0])))
        if self.present:
            comparison, protocol = self.present
            cells = load_comparison(comparison).cells
            config = next(cell.config for cell in cells if cell.protocol == protocol)
        values = config.model_dump(mode="json")
        return {key: at(values, "protocol", *key.split(".")) for key in self.tried}

    def _figures(self, draws: Sequence[tuple[int, Parts]], path: str, own: Mapping[str, Any]) -> list[float]:
        budgets = [{"privacy.epsilon": epsilon} for epsilon in self.epsilons] or [{}]
        return [
            measured(preset, _keys({**budget, **fixed, **own}, path), parts, seed, self.metric)
            for run in self.runs
            for preset, fixed in run.items()
            for budget in budgets
            for seed, parts in draws
        ]


def _keys(given: Mapping[str, Any], folder: str) -> dict[str, Any]:
    located = {"dataset.path": folder} if "dataset" in given else {}
    return {key if key == "dataset" else f"protocol.{key}": value for key, value in given.items()} | located


def secret_sets(users: int, splits: Sequence[Sequence[float]]) -> Choice:
    """Return the choice of what the sums of sums-on-device spend, for so many users at an epsilon of 1.

    What counts is tau, the noise per number and user, so these are the 943 users of u1.base at the budget
    that gives them its tau: as if every user were there several times. That is unfair to sums of tastes and
    profiles, which copies teach nothing new.
    """
    central, of_devices = CentralAggregation(), 1.134  # Shares of which a tenth and 5 may be missing.
    tau = central.multiplier(1.0, DELTA) / users
    fixed = {
        "dataset": "{kind: movielens-100k, items: true}",
        "aggregation": "{kind: central}",
        "privacy.epsilon": central.epsilon(of_devices * 943 * tau, DELTA),
    }
    tried = {"sums.split": [[float(share) for share in split] for split in splits]}
    present = {"sums.split": list(split_at(tau))}
    return Choice([{"sums-on-device": fixed}], tried, seeds=(1, 2, 3), present=present)


def choice(name: str) -> Choice:
    return (secret_sets if "splits" in CHOICES[name] else Choice)(**CHOICES[name])


if __name__ == "__main__":
    given = asked(__doc__, list(CHOICES))
    decide(choice(name).stands(name, given.path) for name in given.names)
