"""Chooses settings that presets have and papers leave open, on validation ratings of MovieLens 100K.

    python benchmarks/choosing/settings.py [--path ../shared/data/ml-100k] [NAME ...]

NAME is a choice of `CHOICES`. Every combination of the values that are tried is judged by runs of presets, on
several draws of validation ratings; by default a tenth of the train ratings of u1. No test rating is read.
Fails if another combination is better than that of dprec by more than chance explains.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from validation import (
    TESTED_SEEDS,
    Parts,
    arguments,
    best_of,
    measured,
    new_to_the_target,
    random_tenth,
    tenth_of_u1,
)

from dprec.datasets import MovieLens100K, Synthetic, selected
from dprec.protocols.secret_sets import split_at
from dprec.ratings import Ratings
from dprec.splits import Holdout, UserHoldout
from dprec.sums import CentralAggregation
from simulation import load
from simulation.comparison.planning import load_comparison
from simulation.configuration.strict_yaml import at

Runs = Sequence[tuple[str, Mapping[str, Any]]]
"""Presets with what is set besides what is tried."""

EPSILON, RANK = "protocol.privacy.epsilon", "protocol.completion.rank"
COMPLETION, STEP, MODEL = "protocol.completion.", "protocol.step.", "protocol.model."
FACTORIZATION, RECOMMENDATION = "protocol.factorization.", "protocol.recommendation."
RANKS = (1.0, 2.0, 4.0, 8.0, 16.0)
BIASES = {"protocol.completion.biases": "true", "protocol.completion.bounded": "false"}
SHRUNK = {"protocol.replacement.transfer": "deviation", "protocol.recommendation.positive_only": "true"}
DELTA = 1e-6


def tenth_of_generated(seed: int) -> Parts:
    """Divide the train ratings of 20,000 generated users."""
    train, _ = Holdout().split(Synthetic(users=20_000, items=1682, ratings=1_000_000, rank=3), 1)
    return random_tenth(train, seed)


def tenth_of_many(seed: int) -> Parts:
    """Divide the train ratings of the population of pg-mf's preset."""
    train, _ = Holdout().split(Synthetic(users=200_000, items=100, ratings=4_000_000), 1)
    return random_tenth(train, seed)


def some_users(folder: str, seed: int) -> Parts:
    """Divide the ratings of every fourth user, as a matrix of their own."""
    learned, judging = (
        Ratings.from_triples(
            part.users[kept],
            part.items[kept],
            part.values[kept],
            part.scale,
            user_ids=np.arange(0, part.n_users, 4),
            item_ids=np.arange(part.n_items),
        )
        for part in tenth_of_u1(folder, seed)
        for kept in [part.users % 4 == 0]
    )
    return learned, judging


def fifth_of_items(folder: str, seed: int) -> Parts:
    """Divide each user's items, without the test items of a seed, and judge on no test item of any."""
    ratings, split = selected(MovieLens100K(path=folder, positive=">= 4", min_items=5)).load(), UserHoldout()
    kept, fresh = np.ones((2, ratings.count), dtype=np.bool_)
    kept[split.test_rows(ratings, seed)] = False
    fresh[np.concatenate([split.test_rows(ratings, each) for each in TESTED_SEEDS])] = False
    train = ratings.select(kept)
    judging = np.zeros(train.count, dtype=np.bool_)
    judging[split.test_rows(train, 100 + seed)] = True
    return train.select(~judging), train.select(judging & fresh[kept])


@dataclass(frozen=True)
class Choice:
    """What is tried, and by what it is judged.

    Parameters
    ----------
    tried : mapping
        Values by dotted key.
    runs : sequence
    parts : callable
        From the folder and a seed to ratings to learn from and to judge on.
    seeds : sequence of int
        Of the draws of the parts and of the runs.
    metric : str
    present : mapping, optional
        The values that dprec has; those of the first preset by default.
    """

    tried: Mapping[str, Sequence[Any]]
    runs: Runs
    parts: Callable[[str, int], Parts] = tenth_of_u1
    seeds: Sequence[int] = (1, 2)
    metric: str = "rmse"
    present: Mapping[str, Any] | None = None

    def stands(self, name: str, folder: str) -> bool:
        """Print every figure; return whether the present values stand."""
        draws = {seed: self.parts(folder, seed) for seed in self.seeds}
        values = load(self.runs[0][0]).model_dump(mode="json")
        present = self.present or {key: at(values, *key.split(".")) for key in self.tried}
        judged = partial(self._judged, draws)
        return best_of(name, self.tried, judged, present, largest=self.metric != "rmse")

    def _judged(self, draws: Mapping[int, Parts], settings: Mapping[str, Any]) -> list[float]:
        return [
            measured(preset, {**fixed, **settings}, parts, seed, self.metric)
            for preset, fixed in self.runs
            for seed, parts in draws.items()
        ]


def at_epsilons(preset: str, *epsilons: float) -> Runs:
    """Return runs of a preset at several budgets."""
    return [(preset, {EPSILON: epsilon}) for epsilon in epsilons]


def figure2(link: str) -> Choice:
    """Return the choice of the bound in configs/experiments/one-bit-fig2.yaml, at epsilon 3 and 10."""
    fixed = {"protocol.completion.link": link}
    cells = load_comparison("one-bit-fig2").cells
    config = next(cell.config for cell in cells if cell.protocol == f"input-{link}")
    return Choice(
        {RANK: RANKS},
        [("one-bit-clear", fixed), *(("one-bit-input", {**fixed, EPSILON: epsilon}) for epsilon in (3, 10))],
        seeds=(1,),
        metric="sign_accuracy",
        present={RANK: at(config.model_dump(mode="json"), *RANK.split("."))},
    )


def secret_sets(users: int, splits: Sequence[Sequence[float]]) -> Choice:
    """Return the choice of what the sums of sums-on-device spend, for so many users at an epsilon of 1.

    What counts is tau, the noise per number and user, so these are the 943 users of u1.base at the budget
    that gives them its tau: as if every user were there several times. That is unfair to sums of tastes and
    profiles, which copies teach nothing new.
    """
    central, of_devices = (
        CentralAggregation(),
        1.134,
    )  # Noise of shares of which a tenth and 5 may be missing.
    tau = central.multiplier(1.0, DELTA) / users
    fixed = {
        "dataset": "{kind: movielens-100k, items: true}",
        "protocol.aggregation": "{kind: central}",
        EPSILON: central.epsilon(of_devices * 943 * tau, DELTA),
    }
    key = "protocol.sums.split"
    runs = [("sums-on-device", fixed)]
    return Choice(
        {key: [list(split) for split in splits]}, runs, seeds=(1, 2, 3), present={key: list(split_at(tau))}
    )


def private_als(preset: str, epsilon: float, tried: Mapping[str, Sequence[float]], **own: Any) -> Choice:
    """Return a choice of `FactorizationOptions`: 5 for 20,000 users is about as 1 for 100,000."""
    tried = {FACTORIZATION + key: values for key, values in tried.items()}
    return Choice(tried, at_epsilons(preset, epsilon), **own)


def x_map(preset: str, tried: Mapping[str, Sequence[float]], **own: Any) -> Choice:
    """Return a choice of how far a form of X-Map pulls predictions, on users new to the target domain."""
    tried = {RECOMMENDATION + key: values for key, values in tried.items()}
    runs = [(preset, SHRUNK if preset == "nx-map" else {})]
    return Choice(tried, runs, new_to_the_target, (11, 12, 13, 14, 15), **own)


MOG, ISGD = (at_epsilons(preset, 0.1, 1.0, 3.0) for preset in ("blp-mog-mf", "isgd"))
SHUFFLED = at_epsilons("shuffled-on-device", 0.5, 1.0, 2.0)
GRADIENT = at_epsilons("one-bit-gradient", 1, 3)
SIGNS: Any = {"metric": "sign_accuracy"}
CHOICES: dict[str, Callable[[], Choice]] = {
    # What Neera et al. leave open.
    "mog-mf-rank": lambda: Choice({RANK: (1, 2, 3, 5)}, MOG),
    "sgd-mf-rank": lambda: Choice({RANK: (1, 2)}, ISGD),
    "sgd-mf-step": lambda: Choice({COMPLETION + "step": (0.001, 0.003, 0.01)}, ISGD),
    "sgd-mf-epochs": lambda: Choice({COMPLETION + "epochs": (40, 80, 160, 320)}, ISGD),
    # How far completion by the nuclear norm keeps from ratings that are sent as they are.
    "rating-noise": lambda: Choice(
        {COMPLETION + "rating_noise": (0.1, 0.15, 0.2, 0.25)},
        [
            (
                "zheng-laplace",
                {
                    COMPLETION + "center": "mean",
                    "protocol.mechanism": "{kind: none}",
                    "protocol.privacy": "null",
                },
            )
        ],
        some_users,
        (1, 2, 3),
    ),
    # What Li et al. leave open; alpha and rank act through their product alone.
    "one-bit-step": lambda: Choice(
        {"protocol.step": RANKS},
        [*GRADIENT, *((name, {**fixed, **BIASES}) for name, fixed in GRADIENT)],
        **SIGNS,
    ),
    "one-bit-ridge": lambda: Choice(
        {COMPLETION + "ridge": (0.5, 1.0, 2.0, 4.0, 8.0)},
        [("one-bit-clear", BIASES), ("one-bit-input", {EPSILON: 1, **BIASES})],
        **SIGNS,
    ),
    "one-bit-rank": lambda: Choice(
        {RANK: RANKS}, [("one-bit-input", {EPSILON: 1}), ("one-bit-clear", {})], **SIGNS
    ),
    "fig2-logistic": lambda: figure2("logistic"),
    "fig2-gaussian": lambda: figure2("gaussian"),
    # Steps of rounds: pg-mf has those of its anchored form.
    "pg-mf": lambda: Choice(
        {STEP + "size": (0.1, 0.2, 0.4), STEP + "regularization": (0.0, 0.01, 0.1)},
        [("pg-mf", {STEP + "start": "level", STEP + "pull": "start"})],
        lambda folder, seed: tenth_of_many(seed),
    ),
    "federated-mf": lambda: Choice({STEP + "size": (0.025, 0.05, 0.1)}, [("federated-mf", {})]),
    # What makes up for a mean over devices of which few have an item, and the step of Adam.
    **{
        name: partial(Choice, {MODEL + "item_rate": rates}, [(name, {})])
        for name, rates in {"fedavg-mf": (15.0, 30.0, 50.0), "fedrep": (25.0, 50.0, 80.0)}.items()
    },
    "fedncf": lambda: Choice(
        {MODEL + "item_rate": (150.0, 300.0, 600.0)},
        [("fedncf", {})],
        fifth_of_items,
        metric="ndcg_at_10",
    ),
    "lightgcn-free": lambda: Choice(
        {MODEL + "step_size": (0.005, 0.01, 0.02)},
        [("lightgcn-free", {})],
        fifth_of_items,
        metric="ndcg_at_10",
    ),
    # How much ratings of an item differ between users, and the dimensions of items' places.
    "item-biases-variance": lambda: Choice(
        {COMPLETION + "user_variance": (0.1, 0.25, 0.4)}, SHUFFLED, seeds=(1, 2, 3)
    ),
    "item-biases-dimensions": lambda: Choice(
        {COMPLETION + "dimensions": (12, 20, 30)}, SHUFFLED, seeds=(1, 2, 3)
    ),
    "als-biases": lambda: private_als(
        "dp-item-effects", 5.0, {"bias_rounds": (1, 2, 3), "residual_clip": (0.25, 0.3, 0.375)}
    ),
    "als-factors": lambda: private_als(
        "dp-als",
        5.0,
        {"factor_rounds": (5, 8, 12), "bias_share": (0.2, 0.4)},
        parts=lambda folder, seed: tenth_of_generated(seed),
    ),
    "als-popular": lambda: private_als(
        "dp-als", 20.0, {"popular_from": (2.0, 6.0, 12.0), "matrix_share": (0.2, 0.3)}
    ),
    "nx-map-shrunk": lambda: x_map(
        "nx-map", {"shrinkage": (0.0, 0.25, 0.5, 1.0, 2.0)}, present={RECOMMENDATION + "shrinkage": 0.5}
    ),
    "x-map-shrunk": lambda: x_map(
        "x-map-shrunk", {"shrinkage": (0.5, 1.0, 4.0), "noise_shrinkage": (0.25, 0.5, 1.0)}
    ),
    "x-map-local": lambda: x_map(
        "x-map-local", {"shrinkage": (30.0, 100.0, 300.0), "prior_ratings": (50.0, 100.0, 200.0)}
    ),
    "secret-sets-943": lambda: secret_sets(
        943,
        (
            (0.4, 0.15, 0.3, 0.15, 0.0, 0.0, 0.0, 0.0),
            (0.2, 0.15, 0.5, 0.15, 0.0, 0.0, 0.0, 0.0),
            (0.35, 0.1, 0.3, 0.15, 0.1, 0.0, 0.0, 0.0),
            (0.4, 0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 0.0),
        ),
    ),
    "secret-sets-6040": lambda: secret_sets(
        6040,
        (
            (0.4, 0.15, 0.3, 0.15, 0.0, 0.0, 0.0, 0.0),
            (0.2, 0.1, 0.6, 0.1, 0.0, 0.0, 0.0, 0.0),
            (0.2, 0.1, 0.35, 0.05, 0.3, 0.0, 0.0, 0.0),
            (0.2, 0.1, 0.2, 0.05, 0.45, 0.0, 0.0, 0.0),
            (0.05, 0.1, 0.3, 0.05, 0.3, 0.2, 0.0, 0.0),
        ),
    ),
    "secret-sets-20000": lambda: secret_sets(
        20_000,
        (
            (0.2, 0.1, 0.35, 0.05, 0.3, 0.0, 0.0, 0.0),
            (0.1, 0.1, 0.25, 0.05, 0.3, 0.2, 0.0, 0.0),
            (0.05, 0.05, 0.2, 0.05, 0.1, 0.1, 0.15, 0.3),
        ),
    ),
    "secret-sets-100000": lambda: secret_sets(
        100_000,
        (
            (0.05, 0.1, 0.3, 0.05, 0.5, 0.0, 0.0, 0.0),
            (0.05, 0.1, 0.3, 0.05, 0.3, 0.2, 0.0, 0.0),
            (0.05, 0.05, 0.2, 0.05, 0.1, 0.1, 0.15, 0.3),
            (0.05, 0.05, 0.15, 0.05, 0.1, 0.1, 0.15, 0.35),
        ),
    ),
}


def main() -> int:
    """Print every figure; return 1 if a choice does not stand."""
    folder, names = arguments(__doc__, list(CHOICES))
    stand = [CHOICES[name]().stands(name, folder) for name in names]
    return int(not all(stand))


if __name__ == "__main__":
    sys.exit(main())
