"""Judges the rules of the references of lists: those of `ease` in dprec/lists/ease.py, of `ials` in ials.py.

NAME is `EASE`, the ridge by the size of a set; `UNOBSERVED` or `RIDGE`, the weight of unknown cells and the
ridge of iALS by sizes; or `rank`. Each is multiplied by a few factors, on validation items of two dense and
two sparse data sets (see list_settings.py). Figures are NDCG@10 of two draws of each. Fails if their mean is
more than .005 below the best one, and more than chance explains. EASE has weights between 6,000 items at
most. Takes about ten minutes of processor time.
"""

import argparse
from collections.abc import Iterator, Mapping
from unittest import mock

from list_settings import Draw, Scorer, ndcg, validation_draws
from validation import asked, best_of, decide

from dprec.lists import ials
from dprec.lists.ease import PopularWeights, ridge_of

LEAST = 0.005
"""A difference in NDCG@10 that is too small to matter: on each data set another rule is better."""
DRAWS, MOST_ITEMS = 2, 6_000
TRIED = {
    "EASE": (0.3, 0.6, 1.0, 1.7, 3.0),
    "UNOBSERVED": (0.5, 1.0, 2.0),
    "RIDGE": (0.7, 1.0, 1.4),
    "rank": (0.5, 1.0),
}


def scorer(draw: Draw, name: str, factor: float) -> Scorer:
    if name == "EASE":
        return PopularWeights.of(draw.sets, factor * ridge_of(draw.sets), MOST_ITEMS).scores
    times = dict.fromkeys(("UNOBSERVED", "RIDGE", "rank"), 1.0) | {name: factor}
    changed = {each: times[each] * getattr(ials, each) for each in ("UNOBSERVED", "RIDGE")}
    with mock.patch.multiple(ials, **changed):
        rank = round(times["rank"] * ials.ImplicitOptions.rank)
        options = ials.ImplicitOptions.of(draw.sets, rank=rank, seed=draw.seed)
    factors = ials.ials(draw.sets, options)
    gramian = factors.T @ factors
    return lambda own: ials.fold_in(own, factors, options, gramian) @ factors.T


def judged(given: argparse.Namespace) -> Iterator[bool]:
    drawn = validation_draws(given.path)
    every = [draw for title, load in drawn.items() if "content" not in title for draw in load()[:DRAWS]]

    def figures(tried: Mapping[str, float]) -> list[float]:
        ((name, factor),) = tried.items()
        return [ndcg(draw, scorer(draw, name, factor)) for draw in every]

    for name in given.names:
        yield best_of("references,", {name: TRIED[name]}, figures, {name: 1.0}, largest=True, least=LEAST)


if __name__ == "__main__":
    decide(judged(asked(__doc__, list(TRIED))))
