"""Whether noise is used again: across users, items, rounds, runs and budgets.

Everybody has the same profile, so reports may agree by chance alone. Pairs of reports that could share
noise are compared with pairs that cannot: if an event distinguishes the two kinds, noise is shared. No
report belongs to two pairs of a kind, so that pairs count as independent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dprec.arrays import Ints
from dprec.auditing import Sent, class_edges, detection, learning, measured
from simulation.auditing.listening import Overheard, numbered
from simulation.protocols.base import Finding

RUNS = 4
"""Runs with seeds of their own, an even number."""

_DISTANCES = (1, 2, 3, 5, 8)
"""Distances between users whose reports are compared."""

_CLASSES = 6

Column = Ints
Pairs = tuple[Column, Column]


@dataclass(frozen=True)
class Suspicion:
    """Where noise could be used again."""

    test: str
    """In words."""
    comparisons: tuple[tuple[Pairs, Pairs], ...]
    """Pairs of reports that could share noise, each with pairs that cannot."""

    def finding(self, failure: float) -> Finding:
        """Return how reliably the two kinds of pairs could be distinguished, but with chance ``failure``."""
        sides = [sent for close, apart in self.comparisons for sent in _views(close, apart)]
        result = measured(sides, failure)
        by_chance = min(float(np.mean(one == other)) for _, (one, other) in self.comparisons)
        power = detection(1.0, by_chance, result.trials, 0.0, failure / 2)
        return Finding(self.test, "user", 0.0, result.at_least, None, exact=False, power=power)


def _views(close: Pairs, apart: Pairs) -> Iterator[tuple[Sent, Sent]]:
    """Yield both kinds of pairs: as they are, as agreement, and in a few classes each.

    Few pairs suffice to show how classes go together. Both kinds have the same classes.
    """
    yield Sent.of_rounds(close), Sent.of_rounds(apart)
    agree, chance = ((one == other).astype(np.int64) for one, other in (close, apart))
    yield Sent.of_rounds([agree]), Sent.of_rounds([chance])
    edges = [class_edges(learning(side), _CLASSES) for side in apart]
    classes = [
        [np.searchsorted(*each) for each in zip(edges, pairs, strict=True)] for pairs in (close, apart)
    ]
    yield Sent.of_rounds(classes[0]), Sent.of_rounds(classes[1])


def suspicions(
    runs: Sequence[Overheard],
    variants: Mapping[str, Overheard],
    *,
    alike: bool,
    drawn: bool = False,
    linked: bool = False,
) -> Iterator[Suspicion]:
    """Yield where noise could be used again.

    ``runs``: runs with different seeds, of people who all have the same profile; `RUNS` of them.
    ``variants``: the first run with something else changed than the seed, by what is suspected of it.
    ``alike``: whether a first report has the same distribution in all runs. ``drawn``: whether devices draw
    which items they answer about, so that only answers about both can be compared. ``linked``: whether what
    is sent in a round depends on the round before for other reasons than noise.
    """
    heard = [*runs, *variants.values()]
    # By run, then by round: the symbols of the first item, or numbers that stand for whole reports.
    columns = [each.symbols_of(0) for each in heard] if runs[0].symbols else _numbered(heard)
    own = columns[:RUNS]
    yield Suspicion("noise of two users", tuple(_of_users(own, by, alike=alike) for by in _DISTANCES))
    if len(own[0]) > 1 and not linked:
        yield Suspicion("noise of two rounds", tuple(_of_rounds(own, at) for at in range(len(own[0]) - 1)))
    if runs[0].symbols and runs[0].symbols[0].shape[1] > 1:
        pairs = _of_items(runs, drawn=drawn)
        if pairs[0][0].size:
            yield Suspicion("noise of two items", (pairs,))
    yield Suspicion("noise of two runs", tuple(_of_runs(own, at) for at in range(len(own[0]))))
    for test, other in zip(variants, columns[RUNS:], strict=True):
        rounds = zip(own[0], other, strict=True)
        yield Suspicion(test, tuple(of_one_origin(one, varied) for one, varied in rounds))


def of_one_origin(one: Column, other: Column) -> tuple[Pairs, Pairs]:
    """Compare pairs that belong to one user, or one item, with pairs of one and the next."""
    return (one, other), (one, np.roll(other, -1))


def of_neighbors(column: Column) -> tuple[Pairs, Pairs]:
    """Compare what lies side by side with what does not."""
    even = column.size // 2 * 2
    return of_one_origin(column[:even:2], column[1:even:2])


def _of_users(runs: Sequence[Sequence[Column]], distance: int, *, alike: bool) -> tuple[Pairs, Pairs]:
    """Compare users of one run at a distance with users who are far apart, in the first round.

    These are of two runs, so that noise that all users of a run share can show, if runs are alike.
    """
    firsts = [columns[0] for columns in runs]
    places = np.arange(firsts[0].size - distance)
    places = places[places % (2 * distance) < distance]
    one = np.concatenate([column[places] for column in firsts])
    other = [column[places + distance] for column in firsts]
    far = [*other[1:], other[0]] if alike else [np.roll(column, column.size // 2) for column in other]
    return (one, np.concatenate(other)), (one, np.concatenate(far))


def _of_rounds(runs: Sequence[Sequence[Column]], at: int) -> tuple[Pairs, Pairs]:
    one, other = (np.concatenate([columns[place] for columns in runs]) for place in (at, at + 1))
    return of_one_origin(one, other)


def _of_items(runs: Sequence[Overheard], *, drawn: bool) -> tuple[Pairs, Pairs]:
    one, other = (np.concatenate([each.symbols_of(item)[0] for each in runs]) for item in (0, 1))
    compared = (one > 0) & (other > 0) if drawn else np.ones(one.size, dtype=np.bool_)
    return of_one_origin(one[compared], other[compared])


def _of_runs(runs: Sequence[Sequence[Column]], at: int) -> tuple[Pairs, Pairs]:
    one, other = (np.concatenate([columns[at] for columns in runs[start::2]]) for start in (0, 1))
    return of_one_origin(one, other)


def _numbered(heard: Sequence[Overheard]) -> list[list[Column]]:
    """Return one number per report of every run and round, equal for equal bytes."""
    numbers: dict[bytes, int] = {}
    return [[numbered(reports, numbers) for reports in each.reports] for each in heard]
