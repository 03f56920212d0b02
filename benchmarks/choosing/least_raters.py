"""Chooses from how many raters on items have places, and prints what the table tells of who rated what.

The guesses of guess_item_sets.py, as areas under the ROC curve for a person's other train ratings of
MovieLens 100K (u1), are means over the items with so many raters and over these raters. The RMSE is that of
`sets-only` on validation ratings, which are parts of the train ratings. Fails if that is worse with the least
raters of dprec by more than 0.002 than without.
"""

from collections.abc import Iterator

import numpy as np
from guess_item_sets import guesses, table_of_sets
from validation import asked, decide, measured, stands, tenth_of_u1

from dprec.datasets import MovieLens100K
from dprec.observations import LEAST_RATERS, EmbeddingRelease

RATERS = (1, 2, 3, 5, 10, 20)
"""Raters of the items from which is guessed, and least raters of an item with a place."""

EPSILONS, SEEDS, TOLERANCE = (1.0, 4.0, 16.0), (1, 2, 3), 0.002


def judged(path: str) -> Iterator[bool]:
    train, _ = MovieLens100K(path=path).load_fold("u1")
    errors: dict[tuple[str, float], float] = {}
    print("least_raters 1, guessed from items by their raters (popularity alone):")
    for raters in RATERS:
        found = guesses(table_of_sets(train, EmbeddingRelease(least_raters=1)), train, raters)
        print(f"  {raters}: {found.with_table:.3f} ({found.popularity:.3f}), {found.guessed} guesses")
    tried = [("least_raters", each) for each in RATERS] + [("epsilon", each) for each in EPSILONS]
    for name, value in tried:
        release = EmbeddingRelease(**{"least_raters": 1, name: value})  # type: ignore[arg-type]
        found = guesses(table_of_sets(train, release), train)
        settings = {f"protocol.item_embeddings.{name}": value}
        rmse = [measured("sets-only", settings, tenth_of_u1(path, seed), seed) for seed in SEEDS]
        errors[name, value] = float(np.mean(rmse))
        print(f"{name} {value:g}: {found.with_table:.3f}, RMSE {errors[name, value]:.4f}", flush=True)
    behind = errors["least_raters", LEAST_RATERS] - errors["least_raters", 1]
    yield stands(f"least_raters {LEAST_RATERS} against none", behind, TOLERANCE)


if __name__ == "__main__":
    decide(judged(asked(__doc__).path))
