"""What the scripts that choose constants share: validation ratings, and runs that are judged on them.

Validation ratings are parts of the train ratings: no rating that a published comparison of dprec tests on is
read. Every run is the real protocol, in one process.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dprec.crossdomain import CrossDomainRatings
from dprec.datasets import MovieLens100K, MovieLensGenres
from dprec.randomness import generator
from dprec.ratings import Ratings
from dprec.splits import ColdStart
from simulation import load
from simulation.execution import run_prepared

Parts = tuple[Ratings, Ratings]
"""What is learned from, and what judges."""

TESTED_SEEDS = (1, 2, 3)
"""Seeds of compare-seeds, each of which tests on other users new to the target domain."""


def tenth_of_u1(folder: str, seed: int) -> Parts:
    """Return nine tenths of the train ratings of fold u1 of MovieLens 100K, and a random tenth."""
    return random_tenth(MovieLens100K(path=folder).load_fold("u1")[0], seed)


def random_tenth(train: Ratings, seed: int) -> Parts:
    """Return nine tenths of some ratings, and a random tenth."""
    judging = generator(seed, "validation").random(train.count) < 0.1
    return train.select(~judging), train.select(judging)


def new_to_the_target(folder: str, seed: int) -> Parts:
    """Return ratings of MovieLens 100K by genre, and the target ratings of a tenth of the users of both.

    Ratings on which compare-seeds tests are left out of both.
    """
    ratings = MovieLensGenres(path=folder).load()
    rows = [ColdStart().test_rows(ratings, tested) for tested in TESTED_SEEDS]
    kept = np.ones(ratings.count, dtype=np.bool_)
    kept[np.concatenate(rows)] = False
    known = ratings.select(kept)
    assert isinstance(known, CrossDomainRatings)
    judging = np.zeros(known.count, dtype=np.bool_)
    judging[ColdStart(test_fraction=0.1).test_rows(known, seed)] = True
    return known.select(~judging), known.select(judging)


def measured(
    preset: str, settings: Mapping[str, Any], parts: Parts, seed: int, metric: str = "rmse"
) -> float:
    """Return the accuracy of a preset with some settings.

    Parameters
    ----------
    preset : str
    settings : mapping
        By dotted key.
    parts : tuple of Ratings
    seed : int
        Of the run.
    measure : str
        A field of the summary's accuracy.
    """
    values = {"seed": seed, "simulation.backend": "local", **settings}
    config = load(preset, [f"{key}={value}" for key, value in values.items()])
    train, judging = parts
    if config.binarization is not None:
        train, judging = config.binarization.apply(train, judging)
    return float(getattr(run_prepared(config, train, judging, None).summary.accuracy, metric))


def best_of(
    title: str,
    options: Mapping[str, Sequence[Any]],
    judged: Callable[[dict[str, Any]], Sequence[float]],
    current: Mapping[str, Any],
    *,
    largest: bool = False,
    least: float = 0.0,
) -> bool:
    """Print the figures of every combination; return whether the current one stands.

    It stands unless the best one is better by more than ``least``, and by more than chance explains: a paired
    t test at 97.5 %.

    Parameters
    ----------
    title : str
    options : mapping
        The values that are tried, by setting; the current ones are among them.
    judged : callable
        From a combination to its figures, at least two, in the same order for every combination.
    current : mapping
        The values that dprec has.
    largest : bool
        Whether larger figures are better.
    least : float
        A difference that is too small to matter.
    """
    figures: list[tuple[dict[str, Any], NDArray[np.float64]]] = []
    for values in itertools.product(*options.values()):
        combination = dict(zip(options, values, strict=True))
        own = np.array(judged(combination))
        figures.append((combination, own))
        words = " ".join(f"{key.rpartition('.')[2]} {value}" for key, value in combination.items())
        print(f"{title} {words}:", *(f"{figure:.4f}" for figure in own), f"mean {own.mean():.4f}", flush=True)
    best, lead = max(figures, key=lambda each: each[1].mean() if largest else -each[1].mean())
    ours = next(own for combination, own in figures if combination == dict(current))
    differences = (lead - ours) * (1 if largest else -1)
    error = differences.std(ddof=1) / np.sqrt(differences.size)
    chance = student.ppf(0.975, differences.size - 1) * error
    stands = bool(differences.mean() <= max(chance, least))
    behind = f"{differences.mean():.4f} +- {error:.4f} behind"
    verdict = "stands" if stands else "does not stand"
    print(f"{title}: best {best}; current {dict(current)}, {behind}, {verdict}", flush=True)
    return stands


def arguments(description: str | None, names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the folder of MovieLens 100K and the names of the choices to make, from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    parser.add_argument("names", nargs="*", default=list(names), help=f"of {', '.join(names)}")
    given = parser.parse_args()
    return given.path, given.names
