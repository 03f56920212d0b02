"""Chooses how popular items are searched for in few numbers: stages, and from which size of buckets on three.

Draws people with Zipf's law over 41,000 and 1,000,000 items, and searches at three levels of noise per user
(tau, of one release that has all that a search may spend). Prints, of the 100, 300, 1,000 and 3,000 items
that are found, their popularity over that of the true ones. Fails if the number of stages that the rule takes
is worse than another by more than `LEAST`, in the mean over these and over the noise.
"""

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from validation import asked, decide, stands

from dprec.arrays import AnyInts, Floats
from dprec.lists.popular import PopularityPlan, PopularitySearch, stages_of

LEAST = 0.02
"""A difference in popularity found that is too small to matter."""
TOP, TAUS = (100, 300, 1_000, 3_000), (1e-3, 2.5e-4, 5e-5)
POPULATIONS = (
    # Users, items, Zipf's exponent, shift and end, mean items of a user, and the numbers that are tried.
    (30_000, 41_000, (0.65, 10, 25_000), 27, (41_000, 20_000, 10_000, 4_000)),
    (50_000, 1_000_000, (0.9, 30, 10**9), 20, (90_000, 45_000)),
)


def people(users: int, items: int, law: tuple[float, int, int], mean: int) -> tuple[AnyInts, AnyInts]:
    """Return the users and items of pairs, ascending, each once."""
    random, ranks, (exponent, shift, end) = np.random.default_rng(1), np.arange(items), law
    weights = np.cumsum((ranks + shift) ** -exponent * np.exp(-ranks / end))
    sizes = np.maximum(2, np.exp(random.normal(np.log(mean) - 0.32, 0.8, users))).astype(np.int64)
    drawn = np.searchsorted(weights, random.random(sizes.sum()) * weights[-1])
    cells = np.repeat(np.arange(users), sizes) * items + random.permutation(items)[drawn]
    return np.divmod(np.unique(cells), items)


def found(users: AnyInts, items: AnyInts, plan: PopularityPlan, deviation: float) -> Floats:
    """Return the popularity that a search finds."""
    random, search, sums = np.random.default_rng(2), PopularitySearch.begun(plan), {}
    for number, stage in enumerate(plan.stages):
        rows, present = search.rows(items, number)
        cells = np.unique(users[present].astype(np.int64) * stage.rows + rows[present])
        own = sparse.csr_array((np.ones(cells.size), np.divmod(cells, stage.rows)))
        own.resize((int(users[-1]) + 1, stage.rows))
        noise = deviation / np.sqrt(stage.share)
        total = (1 / np.sqrt(np.maximum(own.sum(axis=1), 1))) @ own
        sums[number] = total + noise * random.standard_normal(stage.rows), noise
        search = search.narrowed(number, sums[number][0])
    return search.popularity(sums)


def judged() -> Iterator[bool]:
    for n_users, n_items, law, mean, tried in POPULATIONS:
        users, items = people(n_users, n_items, law, mean)
        counts = np.bincount(items, minlength=n_items)
        best = np.sort(counts)[::-1]
        for numbers in tried:
            means = {}
            for stages in (1,) if numbers >= n_items else (2, 3):
                plan, figures = PopularityPlan.of(n_items, numbers, stages), []
                for tau in TAUS:
                    order = np.argsort(-found(users, items, plan, tau * n_users))
                    figures.append([counts[order[:top]].sum() / best[:top].sum() for top in TOP])
                    print(n_items, numbers, stages, tau, *(f"{each:.3f}" for each in figures[-1]), flush=True)
                means[stages] = float(np.mean(figures))
            behind = max(means.values()) - means[stages_of(n_items, numbers)]
            yield stands(f"{n_items} {numbers} means {means}", behind, LEAST)


if __name__ == "__main__":
    asked(__doc__)
    decide(judged())
