"""Linkage: whose report is it, given some ratings that are known of a person; and who has a set to itself.

An attacker that knows k ratings of a person looks for the report they fit best (Narayanan and Shmatikov
[narayanan2008], whose score is here the likelihood under the mechanism). Where sets are seen as they are, the
share of users whom k items single out is their unicity (de Montjoye et al. [demontjoye2013]).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from pydantic import BeforeValidator, Field

from dprec.accounting import PrivacyAccountant, PrivacyUnit
from dprec.arrays import Ints, Uint8s, blocks, places_of, rows_of
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import allowed_by_chance
from dprec.attacks.seen import Answers, Seen
from dprec.components import as_tuple, option
from dprec.randomness import generator
from dprec.ratings import Ratings

_EQUAL = 1e-9
"""Log likelihoods that differ by less are equal but for rounding."""

_PAIRS_AT_ONCE = 1 << 22

_LARGEST = 700.0
"""Loss beyond which nothing is excluded that floating point can tell."""

Numbers = Annotated[
    tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...], Field(min_length=1), BeforeValidator(as_tuple)
]


def allowed_to_link(users: int, epsilon: float, delta: float = 0.0) -> float:
    """Return how likely the report of one of some users is to be found, at most.

    What is known of the person makes its report a draw from p, and anybody else's is one from q, such that
    (epsilon, delta) holds between p and q. Each of n users is as likely to be the person, and users are
    independent, so the best guess is the report with the largest ratio r = p / q, and it is right with
    probability E[max r] / n, the mean over n reports from q.

    With delta = 0, r is between a = exp(-epsilon) and b = 1 / a, with mean 1 under q. If F is its
    distribution, the integral of 1 - F from a to b is 1 - a, and E[max r] is a plus the integral of 1 - F^n.
    This is concave in F, and so largest if F is the same all the way (Jensen): r is b with probability s =
    1 / (1 + b), and else a, as the randomised response of one bit has it. The same holds, one F after the
    other (Chebyshev's inequality for integrals), if users have different q. With delta, a report also tells
    with that probability that it is the person's, or that it is not (Kairouz, Oh and Viswanath
    [kairouz2015]). Together, with s = (1 - delta) / (1 + b),

        delta + (b (1 - (1 - s)^n) + a ((1 - s)^n - delta^n)) / n
    """
    if epsilon > _LARGEST:
        return 1.0
    ratio = math.exp(epsilon)
    none_up = math.exp(users * math.log1p(-(1 - delta) / (1 + ratio)))
    at_least_one = -math.expm1(users * math.log1p(-(1 - delta) / (1 + ratio)))
    return delta + (ratio * at_least_one + (none_up - delta**users) / ratio) / users


@dataclass(frozen=True, eq=False)
class Known:
    """Ratings that are known of some people, as many of each."""

    people: Ints
    """Shape (people,)."""
    items: Ints
    levels: Uint8s
    """Shape (people, ratings)."""

    @classmethod
    def drawn(cls, ratings: Ratings, number: int, most: int, seed: int) -> Self:
        """Draw so many ratings of at most so many people who have them; of one seed, more contain fewer."""
        random = generator(seed, "known ratings")
        order = np.lexsort((random.random(ratings.count), ratings.users))
        able = random.permutation(np.flatnonzero(ratings.counts >= number))[:most]
        chosen = np.zeros(ratings.n_users, dtype=np.bool_)
        chosen[able] = True
        kept = order[chosen[ratings.users] & (places_of(ratings.counts) < number)]
        shape = able.size, number
        return cls(
            np.flatnonzero(chosen),
            ratings.items[kept].astype(np.int64).reshape(shape),
            ratings.levels[kept].reshape(shape),
        )

    def at(self, level: int | None, n_items: int) -> sp.csr_array:
        """Return what is known at a level, or at any, as ones; shape (people, items)."""
        rows, places = np.nonzero(np.ones_like(self.levels) if level is None else self.levels == level)
        shape = self.people.size, n_items
        return sp.csr_array((np.ones(rows.size), (rows, self.items[rows, places])), shape=shape)


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
        found = [f"linkage_top1_at_{number}" for number in self.known]
        return "linkage_top1", *found, *(f"unique_at_{number}" for number in self.unique)

    def perform(self, game: Game) -> Attacked:
        """Look for everybody; people with too few ratings are left out."""
        seen = Seen.of(game.transcript, game.truth)
        looked_for = {
            number: Known.drawn(game.truth, number, self.people, game.seed)
            for number in {*self.known, *self.unique}
        }
        if seen is None:
            return self._blind(game, looked_for)
        parts = [looked_for[number] for number in self.known]
        one_of_all = 1 / game.truth.n_users
        figures = {
            f"linkage_top1_at_{known.items.shape[1]}": Figure(share, one_of_all, _bound(game, seen, known))
            for known, share in zip(parts, _found(seen, parts), strict=True)
            if share is not None
        }
        figures |= {
            f"unique_at_{number}": Figure(_unique(seen.parts[0], looked_for[number], game.truth.n_items), 0.0)
            for number in self.unique
            if not seen.hides_items and looked_for[number].people.size
        }
        return Attacked(self._with_headline(figures))

    def _blind(self, game: Game, looked_for: Mapping[int, Known]) -> Attacked:
        """Guess, where no message that can be linked with anybody is about single ratings."""
        if game.transcript.vectors is not None:
            note = "Linkage is not tried with messages that are not about single ratings."
            return Attacked({}, (note,))
        chance = 1 / game.truth.n_users
        guessed = {
            f"linkage_top1_at_{number}": Figure(chance, chance, _bound(game, None, looked_for[number]))
            for number in self.known
            if looked_for[number].people.size
        }
        return Attacked(self._with_headline(guessed))

    def _with_headline(self, figures: dict[str, Figure]) -> dict[str, Figure]:
        middle = sorted(self.known)[len(self.known) // 2]
        return {"linkage_top1": figures.get(f"linkage_top1_at_{middle}", Figure(None)), **figures}


def _found(seen: Seen, known: list[Known]) -> list[float | None]:
    """Return how often the person's report fits best what is known; equal ones share.

    A report fits as well as its cells of the known ratings are likelier at their levels than expected.
    """
    n_items, levels = seen.background.shares.shape
    whole = [sp.vstack([each.at(level, n_items) for each in known]).tocsr() for level in range(1, levels + 1)]
    people = np.concatenate([each.people for each in known])
    best, ties, own = np.full(people.size, -np.inf), np.zeros(people.size), np.full(people.size, -np.inf)
    for weighed in seen.weighed():
        fits = sum(
            (part @ np.ascontiguousarray(weighed.log_likelihoods[level].T))
            for level, part in enumerate(whole, start=1)
        )
        here = (people >= weighed.users.start) & (people < weighed.users.stop)
        own[here] = fits[here, people[here] - weighed.users.start]
        most = fits.max(axis=1)
        ties = np.where(most > best + _EQUAL, 0.0, ties)
        best = np.maximum(best, most)
        ties += (fits >= best[:, None] - _EQUAL).sum(axis=1)
    hits = np.where(own >= best - _EQUAL, 1 / np.maximum(ties, 1), 0.0)
    sizes = [each.people.size for each in known]
    parts = np.split(hits, np.cumsum(sizes)[:-1])
    return [float(part.mean()) if part.size else None for part in parts]


def _unique(shown: Answers, known: Known, n_items: int) -> float:
    """Return the share of people whose known items are all in their own set, as it is shown, and no other."""
    n_users, number = shown.silent.size, known.items.shape[1]
    users = rows_of(np.diff(shown.indptr))
    by_item = sp.coo_array((np.ones(users.size), (shown.items, users)), shape=(n_items, n_users)).tocsr()
    by_item.data[:] = 1.0
    wanted, single = known.at(None, n_items), 0
    for people in blocks(np.full(known.people.size, n_users), _PAIRS_AT_ONCE):
        common = (wanted[people] @ by_item).tocoo()
        rows, users = (each[common.data == number] for each in common.coords)
        holders = np.bincount(rows, minlength=known.people[people].size)
        single += int(np.count_nonzero((users == known.people[people][rows]) & (holders[rows] == 1)))
    return single / known.people.size


def _bound(game: Game, seen: Seen | None, known: Known) -> float | None:
    """Return what losses allow: of the known cells, given all others, and of all that a user sends.

    Nothing is proved of sets that are seen as they are.
    """
    if not (game.hides_item_sets and (seen is None or seen.hides_items)):
        return None
    users, (people, number) = game.truth.n_users, known.items.shape
    allowed = [allowed_to_link(users, number * _largest(game.accountant, 0.0, "rating"))]
    for delta in (0.0, game.delta):
        allowed.append(allowed_to_link(users, _largest(game.accountant, delta, "user"), delta))
    return allowed_by_chance(min(allowed), min(allowed) * (1 - min(allowed)) / people)


def _largest(accountant: PrivacyAccountant, delta: float, per: PrivacyUnit) -> float:
    return float(np.nanmax(accountant.get_epsilon(delta, per), initial=0.0))
