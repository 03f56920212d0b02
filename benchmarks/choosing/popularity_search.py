"""Chooses how popular items are searched for: in how many numbers, in how many stages.

Popularity is played as in list_settings.py, in more and fewer numbers than the rule takes: fails if NDCG@10
is better with others by more than .002, and by more than chance explains. Then people are drawn with Zipf's
law over 41,000 and 1,000,000 items, and searched at three levels of noise. Prints the popularity of the 100,
300, 1,000 and 3,000 items that are found, over that of the true ones, in the mean over these and over the
noise. Fails if it is worse by more than .02 in as many stages as the rule takes than in others.
"""

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np
from list_settings import Draw, popularity_at, profiles_of, reached, taught, validation_draws
from scipy import sparse
from validation import asked, best_of, decide, stands

from dprec.lists.popular import least_numbers, numbers_at, stages_of

LEAST, LEAST_NDCG = 0.02, 0.002
"""Differences in popularity found, and in NDCG@10, that are too small to matter."""
NOISES, PARTS = (5e-4, 2e-3, 4e-3, 1.2e-2, 2e-2), (0.06, 0.15, 0.4, 1.0)
TOP, TAUS = (100, 300, 1_000, 3_000), (1e-3, 2.5e-4, 5e-5)
POPULATIONS = (
    # Users, items, Zipf's exponent, shift and end, mean items of a user, and the numbers that are tried.
    (30_000, 41_000, (0.65, 10, 25_000), 27, (41_000, 20_000, 10_000, 4_000)),
    (50_000, 1_000_000, (0.9, 30, 10**9), 20, (90_000, 45_000)),
)


def people(users: int, items: int, law: tuple[float, int, int], mean: int) -> Draw:
    """Return the sets of people, which nothing judges."""
    random, ranks, (exponent, shift, end) = np.random.default_rng(1), np.arange(items), law
    weights = np.cumsum((ranks + shift) ** -exponent * np.exp(-ranks / end))
    sizes = np.maximum(2, np.exp(random.normal(np.log(mean) - 0.32, 0.8, users))).astype(np.int64)
    drawn = np.searchsorted(weights, random.random(sizes.sum()) * weights[-1])
    cells = np.unique(np.repeat(np.arange(users), sizes) * items + random.permutation(items)[drawn])
    sets = sparse.csr_array((np.ones(cells.size), np.divmod(cells, items)), (users, items))
    return Draw(sets, sets, None, 2)


def staged() -> Iterator[bool]:
    for users, n_items, law, mean, tried in POPULATIONS:
        draw = people(users, n_items, law, mean)
        best = np.sort(counts := draw.sets.sum(axis=0))[::-1]
        nobody = profiles_of(sparse.csr_array((1, n_items)))
        for numbers in tried:
            means = {}
            for stages in (1,) if numbers >= n_items else (2, 3):
                figures = []
                for tau in TAUS:
                    server = taught(popularity_at(tau, draw, numbers, stages), draw, tau)
                    order = np.argsort(-server.learned.predictions(nobody)[0])
                    figures.append([counts[order[:top]].sum() / best[:top].sum() for top in TOP])
                means[stages] = float(np.mean(figures))
            lost = max(means.values()) - means[stages_of(n_items, numbers)]
            yield stands(f"{n_items} {numbers} means {means}", lost, LEAST)


def numbered(folder: str) -> Iterator[bool]:
    for title, drawn in validation_draws(folder).items():
        n_items = drawn()[0].sets.shape[1]
        for tau in NOISES:
            rule, figures = numbers_at(tau, n_items), partial(played, drawn(), tau)
            tried = {rule, *(max(int(part * n_items), least_numbers(n_items, 3)) for part in PARTS)}
            options, ours = {"numbers": sorted(tried)}, {"numbers": rule}
            yield best_of(f"{title}, {tau:g}", options, figures, ours, largest=True, least=LEAST_NDCG)


def played(draws: list[Draw], tau: float, tried: dict[str, int]) -> list[float]:
    return [reached(popularity_at(tau, draw, tried["numbers"]), tau, draw) for draw in draws]


if __name__ == "__main__":
    decide(itertools.chain(numbered(asked(__doc__).path), staged()))
