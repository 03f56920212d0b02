"""Chooses the norm of shuffled messages and their null fakes, and judges fakes: see dprec/sums/shuffled.py.

    python benchmarks/choose_shuffled.py [--path ../shared/data/ml-100k] [NAME ...]

NAME is `norm`, `null_fakes` or `fakes`. Judged are lists of `pairs-in-blanket` at epsilon 1 (delta 1e-6) for
each user, on the validation items of benchmarks/list_settings.py, for populations of copies of the users of
MSWeb, whose sets are small, and of MovieLens 100K with its content. Counts are normal numbers with the mean
and variance of what devices send: a message of each number of a contribution by chance, and fakes. Figures
are the mean of both data sets' NDCG@10, of four draws. Prints what is best, and fails if a norm, or a number
of null fakes, is better than the rule by more than .002 and by more than chance explains. Four fakes are a
choice between lists and bytes, which are printed too. Three minutes of processor time.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from list_settings import LEAST, Draw, ndcg, validation_draws
from validation import arguments, best_of

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats
from dprec.lists.contributions import SetContributions, SetLayout
from dprec.ratings import POSITIVE
from dprec.sums import UNIT, Releases, ShuffledAggregation
from simulation.protocols.list_sums import PairsInBlanketProtocol

USERS = (6_000, 20_000, 100_000, 1_000_000)
FACTORS = {
    "norm": (0.4, 0.7, 1.0, 1.5, 2.5),
    "null_fakes": (0.25, 1.0, 4.0),
    "fakes": (0.4, 1.0, 2.5),
}
BUDGET = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-6)


def sampled(
    draw: Draw,
    layout: SetLayout,
    aggregation: ShuffledAggregation,
    copies: float,
    random: np.random.Generator,
) -> Floats:
    """Return an estimate of a sum from messages, without fakes, shape (numbers,)."""
    sets = SetContributions(draw.sets.indptr.astype(np.int64), draw.sets.indices.astype(np.int32))
    vectors = sets.vectors(layout)
    numbers, distance = vectors.numbers[:, 0] * UNIT, aggregation._step
    owners = np.repeat(np.arange(sets.n_users), np.diff(vectors.indptr))
    sums = np.bincount(owners, numbers, sets.n_users)
    likely = np.minimum(numbers / np.maximum(distance, sums / aggregation.messages)[owners], 1.0)
    mean = np.bincount(vectors.rows, likely, layout.n_rows)
    variance = np.bincount(vectors.rows, likely * (1 - likely), layout.n_rows)
    counts = copies * mean + np.sqrt(copies * variance) * random.standard_normal(layout.n_rows)
    estimate: Floats = distance * counts
    return estimate


def judged(draw: Draw, users: int, factors: Mapping[str, float]) -> tuple[float, float]:
    """Return the NDCG@10, and the bytes that a device sends, with some numbers times factors."""
    n_users, n_items = draw.sets.shape
    rule = ShuffledAggregation().among(users)
    settings: dict[str, Any] = {
        name: type(getattr(rule, name))(factor * getattr(rule, name)) for name, factor in factors.items()
    }
    protocol = PairsInBlanketProtocol(privacy=BUDGET, aggregation=replace(rule, **settings))
    known = protocol.knowing_items(content=draw.catalogue is not None).among(users, n_items)
    aggregation, method, multipliers = known.aggregation, known.method, known.multipliers
    assert isinstance(aggregation, ShuffledAggregation)
    learner = method.learner(Releases(users, n_items, POSITIVE), draw.catalogue, draw.seed)
    random, sent = np.random.default_rng(draw.seed), 0.0
    for round_index, multiplier in enumerate(multipliers, start=1):
        device = method.device(learner.model_bytes(), n_items, POSITIVE)
        layout = device.layout(round_index)
        taking_part = device.items if device.items.size == layout.n_items else np.arange(n_items)
        part = replace(draw, sets=draw.sets[:, taking_part])
        # Of the fakes alone.
        noise = multiplier * (users * aggregation._share(multiplier) / aggregation._fakes(multiplier)) ** 0.5
        total = sampled(part, layout, aggregation, users / n_users, random)
        noisy = total + noise * random.standard_normal(total.size)
        deviation = aggregation.deviation(layout, multiplier, users)
        learner.learn(round_index, noisy[:, None], layout, deviation, users)
        sent += aggregation.report_bits(layout, 1, multiplier) / 8
    model = method.device(learner.learned_bytes(), n_items, POSITIVE).model
    assert model is not None
    return ndcg(draw, model.scores(draw.sets)), sent


def figures(every: list[list[Draw]], users: int, factors: Mapping[str, float]) -> list[float]:
    """Return the NDCG@10 of every draw, the mean of the data sets; prints these and bytes."""
    found = np.array([[judged(draw, users, factors) for draw in own] for own in every])
    lists, sent = found.mean(axis=1).T
    words = " and ".join(f"{own:.4f} with {size:,.0f} bytes" for own, size in zip(lists, sent, strict=True))
    print(f"MSWeb and MovieLens {words}")
    return [float(figure) for figure in found[:, :, 0].mean(axis=0)]


def main() -> int:
    """Print every figure; return 1 if the rule of the norm does not stand."""
    folder, names = arguments(__doc__, list(FACTORS))
    agree, drawn = True, validation_draws(folder)
    every = [drawn[title]()[:4] for title in ("MSWeb", "MovieLens with content")]
    for users, name in product(USERS, names):
        judge, tried = partial(figures, every, users), {name: FACTORS[name]}
        stands = best_of(f"{users:,} users,", tried, judge, {name: 1.0}, largest=True, least=LEAST)
        agree &= stands or name == "fakes"
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
