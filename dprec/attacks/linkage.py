"""Linkage: whose report is it, given some ratings that are known of a person; and who has a set to itself.

An attacker that knows k ratings of a person looks for the report they fit best (Narayanan and Shmatikov
[narayanan2008], whose score is here the likelihood under the mechanism). Where sets are seen as they are, the
share of users whom k items single out is their unicity (de Montjoye et al. [demontjoye2013]).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import scipy
from pydantic import BeforeValidator, Field

from dprec.arrays import Ints, Uint8s, blocks, places_of, rows_of
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import FAILURE, Roc, above_by_chance, between_users, on_bounds
from dprec.attacks.seen import CellAnswers, ServerView
from dprec.components import as_tuple, option
from dprec.randomness import generator
from dprec.ratings import Ratings

_EQUAL = 1e-9
"""Log likelihoods that differ by less are equal but for rounding."""

_THRESHOLDS = 64
"""Of which the best is taken for a bound."""

Numbers = Annotated[
    tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...], Field(min_length=1), BeforeValidator(as_tuple)
]


def allowed_to_find(curve: Roc, users: int, people: int) -> tuple[float, float]:
    """Return the largest share of people who are found among users' reports: in the mean, and by chance.

    The attack gives all reports a score for each person, by what it knows of that person, and takes the
    highest; it knows nothing else of whose a report is. Reports are independent, and the scores of any two
    users' are told apart by ``curve`` at most. Profiles are any, and cells may correlate as they like: the
    known ratings may tell a whole profile, so that a loss per cell bounds nothing here.

    The mean is "one among n" of `dprec.attacks.bounds`. As all people are looked for among the same reports,
    hits are not independent. But of each person take the threshold that its own report passes with
    probability R(x), so that each of the n - 1 others passes it with x at least. Who is found passes it,
    which people do independently of each other, or nobody else does, which has probability (1 - x)^(n - 1) at
    most, so that the share of such people is above 2 / failure times this with half of the failure at most
    (Markov). The best x is taken.
    """
    best = 1.0
    for passed in np.geomspace(1 / users, 1.0, _THRESHOLDS):
        unrivalled = (1 - passed) ** (users - 1) * 2 / FAILURE
        if unrivalled < best:
            passing = above_by_chance(float(curve.at(passed)), people, FAILURE / 2)
            best = min(best, passing + unrivalled)
    return curve.found_among(users), best


@dataclass(frozen=True, eq=False)
class Known:
    """Ratings that are known of some people, as many of each."""

    people: Ints
    """Shape (people,)."""
    items: Ints
    levels: Uint8s
    """Shape (people, ratings)."""

    @classmethod
    def drawn(cls, ratings: Ratings, number: int, max_people: int, seed: int) -> Self:
        """Draw so many ratings of at most so many people who have them; of one seed, more contain fewer."""
        random = generator(seed, "known ratings")
        order = np.lexsort((random.random(ratings.count), ratings.users))
        able = random.permutation(np.flatnonzero(ratings.counts >= number))[:max_people]
        chosen = np.zeros(ratings.n_users, dtype=np.bool_)
        chosen[able] = True
        places = order[chosen[ratings.users] & (places_of(ratings.counts) < number)]
        shape = able.size, number
        return cls(
            np.flatnonzero(chosen),
            ratings.items[places].astype(np.int64).reshape(shape),
            ratings.levels[places].reshape(shape),
        )

    def at(self, level: int | None, n_items: int) -> scipy.sparse.csr_array:
        """Return what is known at a level, or at any, as ones; shape (people, items)."""
        rows, places = np.nonzero(np.ones_like(self.levels) if level is None else self.levels == level)
        shape = self.people.size, n_items
        return scipy.sparse.csr_array((np.ones(rows.size), (rows, self.items[rows, places])), shape=shape)


@dataclass(frozen=True, kw_only=True)
class Linkage(Attack):
    """Find a person's report from ratings that are known of it."""

    kind: Literal["linkage"] = "linkage"
    papers: ClassVar[tuple[str, ...]] = ("narayanan2008", "demontjoye2013")
    known: Numbers = option(
        "How many ratings are known of a person, drawn from its profile; linkage_top1 is at the middle one.",
        (10, 20, 50),
    )
    unique: Numbers = option("How many items are known where sets are seen as they are.", (6, 10))
    people: int = option("Most people who are looked for, drawn from those with enough ratings.", 5000, ge=1)

    def figures(self) -> tuple[str, ...]:
        """Return the shares of people who are found, and of those whose items no other user's set holds."""
        by_number = [f"linkage_top1_at_{number}" for number in self.known]
        return "linkage_top1", *by_number, *(f"unique_at_{number}" for number in self.unique)

    def perform(self, game: Game) -> Attacked:
        """Look for everybody; people with too few ratings are left out."""
        view, users = ServerView.of(game.transcript, game.truth), game.truth.n_users
        looked_for = {
            number: Known.drawn(game.truth, number, self.people, game.seed)
            for number in {*self.known, *self.unique}
        }
        parts = {f"linkage_top1_at_{number}": looked_for[number] for number in self.known}
        sizes = {name: part.people.size for name, part in parts.items() if part.people.size}
        curve = between_users(game) if view is None or view.hides_items else None
        if view is None and game.transcript.vectors is not None:
            note = "Linkage is not tried with messages that are not about single ratings."
            return Attacked({}, (note,))
        if view is None:
            # A guess is right with a probability that is known, so nothing is measured.
            guess = Figure(1 / users, 1 / users, None if curve is None else curve.found_among(users))
            return Attacked(self._with_headline(dict.fromkeys(sizes, guess)))
        shares = zip(parts, _shares_found(view, list(parts.values())), strict=True)
        allowed = {}
        if curve is not None:
            allowed = {name: allowed_to_find(curve, users, size) for name, size in sizes.items()}
        figures = {
            name: Figure(share, 1 / users, allowed[name][1] if name in allowed else None)
            for name, share in shares
            if share is not None
        }
        figures |= {
            f"unique_at_{number}": Figure(_unique(view.parts[0], looked_for[number], game.truth.n_items), 0.0)
            for number in self.unique
            if not view.hides_items and looked_for[number].people.size
        }
        return Attacked(self._with_headline(figures), on_bounds(allowed))

    def _with_headline(self, figures: dict[str, Figure]) -> dict[str, Figure]:
        middle = sorted(self.known)[len(self.known) // 2]
        return {"linkage_top1": figures.get(f"linkage_top1_at_{middle}", Figure(None)), **figures}


def _shares_found(view: ServerView, groups: list[Known]) -> list[float | None]:
    """Return how often the person's report fits best what is known; equal ones share.

    A report fits as well as its cells of the known ratings are likelier at their levels than expected.
    """
    n_items, levels = view.background.shares.shape
    by_level = [
        scipy.sparse.vstack([group.at(level, n_items) for group in groups]).tocsr()
        for level in range(1, levels + 1)
    ]
    people = np.concatenate([group.people for group in groups])
    best, ties, own_fits = np.full(people.size, -np.inf), np.zeros(people.size), np.full(people.size, -np.inf)
    for weighed in view.weighed():
        fits = sum(
            (matrix @ np.ascontiguousarray(weighed.log_likelihoods[level].T))
            for level, matrix in enumerate(by_level, start=1)
        )
        in_block = (people >= weighed.users.start) & (people < weighed.users.stop)
        own_fits[in_block] = fits[in_block, people[in_block] - weighed.users.start]
        block_best = fits.max(axis=1)
        ties = np.where(block_best > best + _EQUAL, 0.0, ties)
        best = np.maximum(best, block_best)
        ties += (fits >= best[:, None] - _EQUAL).sum(axis=1)
    hits = np.where(own_fits >= best - _EQUAL, 1 / np.maximum(ties, 1), 0.0)
    sizes = [group.people.size for group in groups]
    parts = np.split(hits, np.cumsum(sizes)[:-1])
    return [float(part.mean()) if part.size else None for part in parts]


def _unique(sets: CellAnswers, known: Known, n_items: int) -> float:
    """Return the share of people whose known items are all in their own set, as it is shown, and no other."""
    n_users, number = sets.silent.size, known.items.shape[1]
    users = rows_of(np.diff(sets.indptr))
    by_item = scipy.sparse.coo_array(
        (np.ones(users.size), (sets.items, users)), shape=(n_items, n_users)
    ).tocsr()
    by_item.data[:] = 1.0
    known_sets, n_unique = known.at(None, n_items), 0
    for people in blocks(np.full(known.people.size, n_users), 1 << 22):
        common = (known_sets[people] @ by_item).tocoo()
        rows, users = (indices[common.data == number] for indices in common.coords)
        holders = np.bincount(rows, minlength=known.people[people].size)
        n_unique += int(np.count_nonzero((users == known.people[people][rows]) & (holders[rows] == 1)))
    return n_unique / known.people.size
