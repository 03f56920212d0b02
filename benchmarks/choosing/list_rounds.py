"""Chooses what a paper leaves to a search: the settings of `fcf`, federated collaborative filtering.

    python benchmarks/choosing/list_rounds.py [--path ../shared/data/ml-100k] [KEY=VALUE,VALUE ...]

Runs the rounds without messages, with a trusted server's noise at epsilon 1 and 4 (delta 1e-6), on validation
items of MovieLens 100K and MSWeb: a fifth of each user's train items, where the test items of some seeds are
left out. Prints the NDCG@10 of every combination of the given settings of `CollaborativeFiltering`, of
`rounds` and of `clip`, and the mean over data and budgets, by which they are judged.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product

import numpy as np
from list_settings import Draw, Scorer, dense_draws, ndcg, profiles_of

from dprec.accounting import largest_mu
from dprec.federated import CollaborativeFiltering
from dprec.ratings import POSITIVE

EPSILONS = (1.0, 4.0)
DEFAULTS = {"rounds": 50.0, "clip": 0.1}
_USERS = 512
"""Users whose updates are held at once."""


def scores(draw: Draw, model: CollaborativeFiltering, rounds: int, clip: float, epsilon: float) -> Scorer:
    """Return what scores all items after the rounds."""
    sets, random = draw.sets, np.random.default_rng(draw.seed)
    n_users, n_items = sets.shape
    deviation = np.sqrt(rounds) / largest_mu(epsilon, 1e-6) * clip / n_users
    parameters, step = model.start(n_items, POSITIVE, random), model.steps()
    for index in range(1, rounds + 1):
        total = np.zeros_like(parameters[0])
        for start in range(0, n_users, _USERS):
            (updates,) = model.updates(parameters, profiles_of(sets[start : start + _USERS]))
            lengths = np.linalg.norm(updates, axis=(1, 2))
            total += np.tensordot(clip / np.maximum(lengths, clip), updates, axes=1)
        noisy = total / n_users + deviation * random.standard_normal(total.shape)
        parameters = step(parameters, (noisy,), index)
    (factors,) = parameters
    return lambda own: model.user_factors(factors, profiles_of(own)) @ factors.T


def main() -> None:
    """Print what each combination reaches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--path", default="../shared/data/ml-100k")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE,VALUE")
    given = parser.parse_args()
    loaded = dense_draws(given.path)
    data = [loaded[title]()[:1] for title in ("MovieLens", "MSWeb")]
    names = [word.split("=")[0] for word in given.settings]
    values = [[float(value) for value in word.split("=")[1].split(",")] for word in given.settings]
    for combination in product(*values):
        settings = {**DEFAULTS, **dict(zip(names, combination, strict=True))}
        rounds, clip = int(settings.pop("rounds")), settings.pop("clip")
        rank = int(settings.pop("rank", CollaborativeFiltering.rank))
        model = replace(CollaborativeFiltering(rank=rank), **settings)
        found = [
            np.mean([ndcg(draw, scores(draw, model, rounds, clip, epsilon)) for draw in own])
            for own in data
            for epsilon in EPSILONS
        ]
        print(*combination, *(f"{each:.3f}" for each in found), f"{np.mean(found):.4f}", flush=True)


if __name__ == "__main__":
    main()
