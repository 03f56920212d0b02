"""Judges the rules of the references of lists: those of `ease` in dprec/lists/ease.py, of `ials` in ials.py.

    python benchmarks/choosing/list_references.py [--path ../shared/data/ml-100k] [NAME ...]

NAME is `EASE`, the ridge by the size of a set; `UNOBSERVED` or `RIDGE`, the weight of unknown cells and the
ridge of iALS by sizes; or `rank`. Each is multiplied by a few factors, on validation items of two dense and
two sparse data sets (see list_settings.py). Figures are NDCG@10 of two draws of each. Fails if their mean is
more than .005 below the best one, and more than chance explains. EASE has weights between 6,000 items at
most. Takes about ten minutes of processor time.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from unittest import mock

from list_settings import Draw, Scorer, ndcg, validation_draws
from scipy import sparse
from validation import arguments, best_of

from dprec.arrays import Floats
from dprec.lists import ials
from dprec.lists.ease import PopularWeights, ridge_of

LEAST = 0.005
"""A difference in NDCG@10 that is too small to matter: on each data set another rule is better."""
DRAWS = 2
MOST_ITEMS = 6_000
TRIED = {
    "EASE": (0.3, 0.6, 1.0, 1.7, 3.0),
    "UNOBSERVED": (0.5, 1.0, 2.0),
    "RIDGE": (0.7, 1.0, 1.4),
    "rank": (0.5, 1.0),
}


def scorer(draw: Draw, name: str, factor: float) -> Scorer:
    """Return what scores all items, with one number times a factor."""
    if name == "EASE":
        return PopularWeights.of(draw.sets, factor * ridge_of(draw.sets), MOST_ITEMS).scores
    times = dict.fromkeys(("UNOBSERVED", "RIDGE", "rank"), 1.0) | {name: factor}
    changed = {each: times[each] * getattr(ials, each) for each in ("UNOBSERVED", "RIDGE")}
    with mock.patch.multiple(ials, **changed):
        rank = round(times["rank"] * ials.ImplicitOptions.rank)
        options = ials.ImplicitOptions.of(draw.sets, rank=rank, seed=draw.seed)
    factors = ials.ials(draw.sets, options)
    gramian = factors.T @ factors

    def scores(own: sparse.csr_array) -> Floats:
        return ials.fold_in(own, factors, options, gramian) @ factors.T

    return scores


def main() -> int:
    """Print every figure; return 1 if a rule does not stand."""
    folder, names = arguments(__doc__, list(TRIED))
    drawn = validation_draws(folder)
    every: Sequence[Draw] = [
        draw for title, load in drawn.items() if "content" not in title for draw in load()[:DRAWS]
    ]

    def judged(tried: Mapping[str, float]) -> list[float]:
        ((name, factor),) = tried.items()
        return [ndcg(draw, scorer(draw, name, factor)) for draw in every]

    stand = [
        best_of("references,", {name: TRIED[name]}, judged, {name: 1.0}, largest=True, least=LEAST)
        for name in names
    ]
    return int(not all(stand))


if __name__ == "__main__":
    sys.exit(main())
