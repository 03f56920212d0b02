"""Under every promise, best is no worse than what knows as much, nor than itself at a smaller budget."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from dprec.accounting import MatchedBudget
from dprec.protocols.best import promises
from simulation import load
from simulation.configuration.strict_yaml import presets, read_yaml
from simulation.execution import load_ratings, run_prepared
from simulation.storage.summary import Accuracy

SEEDS, EPSILONS = (0, 1, 2, 3), (0.05, 0.3, 1.0, 2.0, 5.0, 16.0)
SEEDS_OF_LISTS = (0, 1, 2, 3, 4)
PROMISES = promises("ratings", "rating")
OF_LISTS = promises("lists", "rating")

MOST = 0.003
"""By which it may be worse, RMSE."""

MOST_OF_LISTS = 0.02
"""By which lists may be worse, of NDCG."""

Size = tuple[int, int, int]


@cache
def errors(size: Size, name: str, epsilon: float | None) -> tuple[float, ...]:
    """Return the RMSE of a promise, or of a preset, for each seed of data and noise."""
    own = PROMISES.get(name) or read_yaml(presets()[name])["protocol"]
    found = (accuracy(size, own, epsilon, seed, "holdout").rmse for seed in SEEDS)
    return tuple(rmse or np.nan for rmse in found)


@cache
def lists(size: Size, name: str, epsilon: float, *, popular: bool = False) -> tuple[float, ...]:
    """Return the NDCG of a promise, or of noisy popularity that keeps it, for each seed of data and noise."""
    own = OF_LISTS[name]
    if popular:
        composition = "sum" if own["trust"] == "local" else "pld"
        privacy = {"per": "user", "composition": composition}
        own = {"kind": "popularity", "privacy": privacy, "aggregation": {"kind": own["trust"]}}
    every = [accuracy(size, own, epsilon, seed, "user-holdout", positive=">= 4") for seed in SEEDS_OF_LISTS]
    return tuple(each.ndcg_at_10 or 0.0 for each in every)


def accuracy(
    size: Size, own: dict[str, Any], epsilon: float | None, seed: int, split: str, **further: str
) -> Accuracy:
    """Return how accurate a protocol is on a population that is drawn."""
    users, items, ratings = size
    data = {"kind": "synthetic", "users": users, "items": items, "ratings": ratings, "seed": seed}
    privacy = {"privacy": {"epsilon": 1.0, **own["privacy"]}} if "privacy" in own else {}
    values: dict[str, Any] = {
        **{"name": "held", "seed": seed, "dataset": data | further, "protocol": {**own, **privacy}},
        **{"split": {"kind": split}, "simulation": {"backend": "local"}},
    }
    config = load(values)
    if epsilon is not None:
        protocol = config.protocol.at_budget(MatchedBudget(epsilon, "rating"))
        config = config.model_copy(update={"protocol": protocol})
    with threadpool_limits(limits=1):
        return run_prepared(config, *load_ratings(config), None).summary.accuracy


@pytest.mark.thorough
@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    users=st.sampled_from([200, 500, 1200]),
    items=st.sampled_from([50, 200, 800]),
    each=st.sampled_from([5, 15, 40]),
    name=st.sampled_from(sorted(PROMISES)),
    epsilons=st.lists(st.sampled_from(EPSILONS), min_size=2, max_size=2, unique=True).map(sorted),
)
def test_best_is_no_worse_than_what_knows_as_much_nor_than_at_a_smaller_budget(
    users: int, items: int, each: int, name: str, epsilons: list[float]
) -> None:
    # All that is drawn follows from seeds, so that no run differs from another: there is no false alarm.
    size = users, items, users * min(each, items // 2)
    small, large = (np.array(errors(size, name, epsilon)) for epsilon in epsilons)
    # What knows as much: item sets, where they are revealed.
    baseline = "sets-only" if PROMISES[name]["item_set"] == "revealed" else "nothing-sent"
    alone = np.array(errors(size, baseline, None))
    for own, other in ((small, alone), (large, alone), (large, small)):
        lost = own - other
        assert lost.mean() <= MOST + 2 * lost.std(ddof=1) / np.sqrt(lost.size)


@pytest.mark.thorough
@settings(max_examples=4, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(
    size=st.sampled_from([(600, 100, 30_000), (1000, 400, 10_000)]),
    name=st.sampled_from(sorted(OF_LISTS)),
    epsilons=st.lists(st.sampled_from(EPSILONS), min_size=2, max_size=2, unique=True).map(sorted),
)
# Tastes are weak here, and a table of a third of the items is noisy.
@example(size=(600, 100, 30_000), name="best-central-per-user", epsilons=[1.0, 2.0])
def test_lists_of_best_are_no_worse_than_noisy_popularity_nor_than_at_a_smaller_budget(
    size: Size, name: str, epsilons: list[float]
) -> None:
    # No run differs from another here either. Where popularity is picked, noise alone makes a difference.
    small, large = (np.array(lists(size, name, epsilon)) for epsilon in epsilons)
    held = [(large, small)]
    if OF_LISTS[name]["privacy"]["per"] == "user":
        popular = [np.array(lists(size, name, epsilon, popular=True)) for epsilon in epsilons]
        held += zip((small, large), popular, strict=True)
    for own, other in held:
        lost = other - own
        assert lost.mean() <= MOST_OF_LISTS * other.mean() + 3 * lost.std(ddof=1) / np.sqrt(lost.size)
