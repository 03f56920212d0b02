"""Holds best against fair baselines and against itself: every promise, on populations that are drawn.

Prints the accuracy of best under every promise and epsilon, beside the baseline that reads the same public
data: for ratings, devices that send nothing, or item sets alone where these are revealed (what people choose
is taken to say what they like, which does not hold of ratings that are drawn); for lists, noisy popularity
under the same promise. Fails where best is worse than that, or than itself at a smaller epsilon, by more than
.003 RMSE or 2 % of NDCG and two standard errors. The constants of dprec/protocols/best_ratings.py were chosen
by it, and on validation ratings of MovieLens 100K where something is public about the items.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from validation import asked, decide

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
    "100000x1000x1000000",
)
RMSE, NDCG = 0.003, 0.02
"""How much worse best may be: in ratings, and as a share."""


@dataclass(frozen=True)
class Population:
    """Ratings, or sets, that are drawn, and what is tested."""

    predicted: Predicted
    seeds: int
    users: int
    items: int
    ratings: int

    def accuracy(self, protocol: Mapping[str, Any], epsilon: float | None) -> Floats:
        """Return how good a protocol is at a budget, more being better; shape (seeds,)."""
        sets = {"positive": ">= 4"} if self.predicted == "lists" else {}
        size = {"users": self.users, "items": self.items, "ratings": self.ratings}
        values = {"name": "held", "protocol": dict(protocol), "simulation": {"backend": "local"}}
        values["split"] = {"kind": "user-holdout" if sets else "holdout", "test_fraction": 0.2}
        reached = []
        for seed in range(self.seeds):
            dataset = {"kind": "synthetic", **size, "seed": seed, **sets}
            config = load({**values, "seed": seed, "dataset": dataset})
            if epsilon is not None:
                budget = MatchedBudget(epsilon, "rating")
                config = config.model_copy(update={"protocol": config.protocol.at_budget(budget)})
            accuracy = run_prepared(config, *load_ratings(config), None).summary.accuracy
            figure = accuracy.ndcg_at_10 if sets else accuracy.rmse
            assert figure is not None
            reached.append(figure if sets else -figure)
        return np.array(reached)

    def baselines(self, promise: Mapping[str, Any], epsilon: float) -> dict[str, Floats]:
        """Return what a promise has to beat, by what it is called."""
        if self.predicted == "lists":
            trust, per = promise["trust"], promise["privacy"]["per"]
            if per == "cell":
                return {}
            privacy = {"epsilon": epsilon, "per": "user", "composition": "sum" if trust == "local" else "pld"}
            values = {"kind": "popularity", "privacy": privacy, "aggregation": {"kind": trust}}
            return {"popularity": self.accuracy(values, None)}
        name = "sets-only" if promise["item_set"] == "revealed" else "nothing-sent"
        return {name: self.accuracy(read_yaml(presets()[name])["protocol"], None)}


def worse(own: Floats, other: Floats, predicted: Predicted) -> bool:
    """Return whether one is worse than the other by more than it may, beyond two standard errors."""
    lost = other - own
    most = RMSE if predicted == "ratings" else NDCG * float(other.mean())
    error = float(lost.std(ddof=1)) / np.sqrt(lost.size) if lost.size > 1 else 0.0
    return bool(lost.mean() > most + 2 * error)


def judged(given: argparse.Namespace) -> Iterator[bool]:
    predicted: Predicted = "lists" if given.predicts == "lists" else "ratings"
    for size in given.sizes:
        population = Population(predicted, given.seeds, *map(int, size.split("x")))
        for name, promise in promises(predicted, "rating").items():
            if not {name, "all"} & {*given.promises}:
                continue
            before: dict[str, Floats] = {}
            values = {**promise, "privacy": {"epsilon": 1.0, **promise["privacy"]}}
            for epsilon in sorted(given.epsilons):
                own = population.accuracy(values, epsilon)
                held = {**population.baselines(promise, epsilon), **before}
                failures = [each for each, other in held.items() if worse(own, other, predicted)]
                against = ", ".join(f"{each} {abs(other.mean()):.4f}" for each, other in held.items())
                verdict = f"WORSE than {', '.join(failures)}" if failures else "stands"
                about = f"{size} {name} at {epsilon:g}: {abs(own.mean()):.4f}"
                print(f"{about} ({against}) {verdict}", flush=True)
                yield not failures
                if not before or own.mean() > next(iter(before.values())).mean():
                    before = {f"itself at {epsilon:g}": own}


if __name__ == "__main__":
    sweep: dict[str, Any] = {"seeds": 3, "epsilons": EPSILONS, "sizes": SIZES, "promises": ("all",)}
    decide(judged(asked(__doc__, predicts="ratings", **sweep)))
