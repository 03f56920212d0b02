"""What the scripts that choose constants share: validation ratings, and runs that are judged on them.

Validation ratings are parts of train ratings. What predicts ratings was never chosen on u1.test, but on
u1.base, which has all that u2 to u5 test on. Every run is the real protocol, in one process.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from dprec.arrays import Bools
from dprec.crossdomain import CrossDomainRatings
from dprec.datasets import Dataset, MovieLens100K, MovieLensGenres, MsWeb, selected
from dprec.randomness import generator
from dprec.ratings import Ratings
from dprec.splits import ColdStart, LeaveOneOut, UserHoldout
from simulation import load
from simulation.execution import run_prepared

Parts = tuple[Ratings, Ratings]
"""What is learned from, and what judges."""

TESTED_SEEDS = (1, 2, 3)
"""Seeds of compare-seeds, each of which tests on other users new to the target domain."""


def movies(folder: str, positive: str = ">= 4") -> Dataset:
    return MovieLens100K(path=folder, items=True, positive=positive, min_items=5)


def visits(folder: str) -> Dataset:
    return MsWeb(path=str(Path(folder).with_name("msweb")), min_items=3)


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
    known = ratings.select(~np.isin(np.arange(ratings.count), np.concatenate(rows)))
    assert isinstance(known, CrossDomainRatings)
    tested = ColdStart(test_fraction=0.1).test_rows(known, seed)
    judging = np.isin(np.arange(known.count), tested)
    return known.select(~judging), known.select(judging)


def fifth_of(dataset: Dataset, test_fraction: float, seed: int) -> tuple[Ratings, Bools, Bools]:
    """Return ratings but the test items of a seed; which are a fifth of each user's, and no test items."""
    ratings, split = selected(dataset).load(), UserHoldout(test_fraction=test_fraction)
    rows = np.arange(ratings.count)
    kept = ~np.isin(rows, split.test_rows(ratings, seed))
    tested = np.concatenate([split.test_rows(ratings, each) for each in TESTED_SEEDS])
    train, fresh = ratings.select(kept), ~np.isin(rows[kept], tested)
    judging = np.isin(np.arange(train.count), UserHoldout().test_rows(train, 100 + seed))
    return train, judging, fresh


def before_last(folder: str, seed: int) -> Parts:
    """Return all ratings of MovieLens 100K as positive but each user's last two, and the last but one."""
    data = selected(MovieLens100K(path=folder, positive=">= 1"))
    train, learned = (LeaveOneOut(count=count).split(data, seed)[0] for count in (1, 2))
    cells, known = (each.users * each.n_items + each.items for each in (train, learned))
    return learned, train.select(~np.isin(cells, known))


def measured(
    preset: str, settings: Mapping[str, Any], parts: Parts, seed: int, metric: str = "rmse"
) -> float:
    """Return the accuracy of a preset with some settings by dotted key; ``metric`` is the summary's."""
    values = {"seed": seed, "simulation.backend": "local", **settings}
    config = load(preset, [f"{key}={value}" for key, value in values.items()])
    binary = parts if config.binarization is None else config.binarization.apply(*parts)
    return float(getattr(run_prepared(config, *binary, None).summary.accuracy, metric))


def chance(differences: NDArray[np.float64]) -> float:
    """Return how large a mean of differences may be by chance: a paired t test at 97.5 %."""
    error = differences.std(ddof=1) / np.sqrt(differences.size)
    return float(student.ppf(0.975, differences.size - 1) * error)


def best_of(
    title: str,
    options: Mapping[str, Sequence[Any]],
    judged: Callable[[dict[str, Any]], Sequence[float]],
    current: Mapping[str, Any],
    *,
    largest: bool = False,
    least: float = 0.0,
) -> bool:
    """Print the figures of every combination of ``options``; return whether the current one stands.

    It stands unless the best one is better by more than ``least``, and by more than `chance`. ``judged``
    returns at least two figures, in the same order for every combination; of the best they are the
    ``largest``, or the least.
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
    behind = (lead - ours) * (1 if largest else -1)
    about = f"{title}: best {best}; current {dict(current)}"
    return stands(about, behind.mean(), max(chance(behind), least))


def stands(about: str, behind: float, allowed: float) -> bool:
    """Print how far a constant is behind the best, and return whether it may be."""
    good = bool(behind <= allowed)
    verdict = "stands" if good else "does not stand"
    print(f"{about}: {behind:.4f} behind, {allowed:.4f} allowed, {verdict}", flush=True)
    return good


def asked(description: str | None, names: Sequence[str] = (), **others: Any) -> argparse.Namespace:
    """Return the command line: the folder of MovieLens 100K, names of choices, and numbers by default."""
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=as_written)
    parser.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    for option, default in others.items():
        first, several = (default[0], "+") if isinstance(default, tuple) else (default, None)
        parser.add_argument(f"--{option}", default=default, type=type(first), nargs=several)
    if names:
        parser.add_argument("names", nargs="*", default=list(names), help=f"of {', '.join(names)}")
    return parser.parse_args()


def decide(judged: Iterable[bool]) -> None:
    """Judge all constants in one thread; exit with 1 if one does not stand."""
    with threadpool_limits(limits=1):
        sys.exit(int(not all([*judged])))
