"""Holds best against fair baselines and against itself: every promise, on populations that are drawn.

Prints the accuracy of best under every promise and epsilon, beside the baseline that reads the same public
data: for ratings, devices that send nothing, or item sets alone where these are revealed (which say what
people like, but not where ratings are drawn); for lists, noisy popularity under the same promise. Fails where
best is worse than that, or than itself at a smaller epsilon, by more than .003 RMSE or 2 % of NDCG, also with
--most_seeds, and by more than chance then explains. It chose constants of dprec/protocols/best_ratings.py,
and validation ratings of MovieLens 100K where something is public about the items.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from validation import asked, chance, decide

from dprec.accounting import MatchedBudget
from dprec.arrays import Floats
from dprec.protocols.base import Predicted
from dprec.protocols.best import promises
from simulation import load
from simulation.configuration.strict_yaml import presets, read_yaml
from simulation.execution import load_ratings, run_prepared

EPSILONS = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SIZES = (
    *("200x50x4000", "200x50x1000", "200x1000x20000", "1000x500x50000", "943x1682x10000", "3000x300x15000"),
    *("3000x10000x60000", "5000x50x100000", "20000x200x600000", "20000x3000x200000", "2000x50000x60000"),
    *("100000x1000x1000000", "100000x50x300000"),
)
ALONE = {"name": "held", "simulation": {"backend": "local"}}
Figures = Callable[[int], Floats]
"""The accuracies of so many seeds, more being better."""
RMSE, NDCG = 0.003, 0.02
"""How much worse best may be: in ratings, and as a share."""


@dataclass(frozen=True)
class Population:
    """Ratings, or sets, that are drawn, and what is tested."""

    predicted: Predicted
    users: int
    items: int
    ratings: int

    def accuracy(self, protocol: Mapping[str, Any], epsilon: float | None, seed: int) -> float:
        """Return how good a protocol is at a budget, more being better."""
        sets = {"positive": ">= 4"} if self.predicted == "lists" else {}
        size = {"users": self.users, "items": self.items, "ratings": self.ratings}
        dataset = {"kind": "synthetic", **size, "seed": seed, **sets}
        split = {"kind": "user-holdout" if sets else "holdout", "test_fraction": 0.2}
        config = load({**ALONE, "seed": seed, "protocol": {**protocol}, "split": split, "dataset": dataset})
        if epsilon is not None:
            protocol_at = config.protocol.at_budget(MatchedBudget(epsilon, "rating"))
            config = config.model_copy(update={"protocol": protocol_at})
        accuracy = run_prepared(config, *load_ratings(config), None).summary.accuracy
        figure = accuracy.ndcg_at_10 if sets else accuracy.rmse
        assert figure is not None
        return figure if sets else -figure

    def figures(self, protocol: Mapping[str, Any], epsilon: float | None) -> Figures:
        """Return what gives the accuracies of so many seeds."""
        accuracy = cache(partial(self.accuracy, protocol, epsilon))
        return lambda seeds: np.array([accuracy(seed) for seed in range(seeds)])

    def baselines(self, promise: Mapping[str, Any], epsilon: float) -> dict[str, Figures]:
        """Return what a promise has to beat, by what it is called."""
        if self.predicted == "lists":
            trust, per = promise["trust"], promise["privacy"]["per"]
            privacy = {"epsilon": epsilon, "per": "user", "composition": "sum" if trust == "local" else "pld"}
            values = {"kind": "popularity", "privacy": privacy, "aggregation": {"kind": trust}}
            return {"popularity": self.figures(values, None)} if per == "user" else {}
        name = "sets-only" if promise["item_set"] == "revealed" else "nothing-sent"
        return {name: self.figures(read_yaml(presets()[name])["protocol"], None)}


def worse(own: Figures, other: Figures, predicted: Predicted, seeds: int, most_seeds: int) -> bool:
    """Return whether one is worse than the other by more than it may, and not by chance."""
    while True:
        lost = other(seeds) - own(seeds)
        most = RMSE if predicted == "ratings" else NDCG * float(other(seeds).mean())
        if seeds >= most_seeds or lost.mean() <= most:
            return bool(lost.mean() > most + chance(lost))
        seeds = min(2 * seeds, most_seeds)


def judged(given: argparse.Namespace) -> Iterator[bool]:
    predicted: Predicted = "lists" if given.predicts == "lists" else "ratings"
    for size in given.sizes:
        population = Population(predicted, *map(int, size.split("x")))
        for name, promise in promises(predicted, "rating").items():
            if not {name, "all"} & {*given.promises}:
                continue
            before: dict[str, Figures] = {}
            values = {**promise, "privacy": {"epsilon": 1.0, **promise["privacy"]}}
            for epsilon in sorted(given.epsilons):
                own = population.figures(values, epsilon)
                held = {**population.baselines(promise, epsilon), **before}
                limits = predicted, given.seeds, given.most_seeds
                failures = [each for each, other in held.items() if worse(own, other, *limits)]
                verdict = f"WORSE than {', '.join(failures)}" if failures else "stands"
                own_mean, *others = (each(given.seeds).mean() for each in (own, *held.values()))
                against = ", ".join(
                    f"{each} {abs(mean):.4f}" for each, mean in zip(held, others, strict=True)
                )
                print(f"{size} {name} at {epsilon:g}: {abs(own_mean):.4f} ({against}) {verdict}", flush=True)
                yield not failures
                if not before or own_mean > others[-1]:
                    before = {f"itself at {epsilon:g}": own}


if __name__ == "__main__":
    sweep: dict[str, Any] = {"epsilons": EPSILONS, "sizes": SIZES, "promises": ("all",)}
    decide(judged(asked(__doc__, predicts="ratings", seeds=4, most_seeds=32, **sweep)))
