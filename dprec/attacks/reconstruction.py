"""Which level a rating has, and on which side of the scale's middle it is, from the reports about it.

The adversary is the server. It knows how all other users rate the item, the worst case of public statistics,
multiplies the shares of the levels by the likelihoods of what it received, and names what is likeliest. It
may also read what the user's other reports say of how the user rates. There is no bound: a loss per rating
says nothing of what is known of a rating without the report on it, and that may be everything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import ClassVar, Literal

import numpy as np
import scipy

from dprec.arrays import Bools, Floats, Ints, find
from dprec.attacks.background import Background, parts_by_user
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.seen import answers_of
from dprec.components import option
from dprec.observations import Evidence, Observations, ResidualReports, SymbolReports
from dprec.ratings import Ratings

_IMPOSSIBLE = -700.0
"""Log likelihood of what cannot be."""

_NEAREST = 0.3
"""Standard deviation of values whose noise is not known, in distances of two levels."""


@dataclass(frozen=True, eq=False)
class LevelEvidence:
    """What some reports say of ratings."""

    ratings: Ints
    """Places of the ratings that they are about, ascending; shape (reports,)."""
    kinds: Ints
    """What each report says, as a row of the table; shape (reports,)."""
    table: Floats
    """Log likelihood given each level; shape (kinds, levels)."""

    def likelihoods(self, part: slice) -> Floats:
        """Return the likelihood of what is said of consecutive ratings, the largest being 1, by level."""
        first, last = np.searchsorted(self.ratings, [part.start, part.stop])
        places, kinds = self.ratings[first:last] - part.start, self.kinds[first:last]
        logs = np.stack(
            [np.bincount(places, level[kinds], part.stop - part.start) for level in self.table.T], axis=1
        )
        return np.exp(logs - logs.max(axis=1, keepdims=True))


def places_among(observed: Observations, truth: Ratings) -> tuple[Ints, Bools]:
    """Return the place of each observed cell among the ratings, and whether it is one."""
    return find(truth.cells, observed.users.astype(np.int64) * truth.n_items + observed.items)


@singledispatch
def _read(evidence: Evidence | None, observed: Observations, truth: Ratings) -> Iterator[LevelEvidence]:
    """Yield what values say, without symbols: that the level is near, unless all values are the same."""
    scale = truth.scale
    rating_places, present = places_among(observed, truth)
    if not observed.items.size or (evidence is not None and not evidence.has_values):
        return
    values, kinds = np.unique(observed.values, return_inverse=True)
    if values.size < 2:
        return
    noise_variance = observed.noise_variance or 0.0
    variance = noise_variance + (_NEAREST * float(np.diff(scale.values).min())) ** 2
    table = -((values[:, None] - scale.values) ** 2) / (2 * variance)
    yield LevelEvidence(rating_places[present], kinds[present], np.maximum(table, _IMPOSSIBLE))


@_read.register
def _of_symbols(reports: SymbolReports, observed: Observations, truth: Ratings) -> Iterator[LevelEvidence]:
    """Yield what symbols say, and that there is none of a rating in a report on all items."""
    answers = answers_of(reports, observed)
    assert answers is not None
    rating_places, present = places_among(observed, truth)
    table = np.maximum(answers.log_likelihoods[1:].T, _IMPOSSIBLE)
    yield LevelEvidence(rating_places[present], answers.codes[present], table)
    unlisted = ~answers.silent[truth.users]
    unlisted[rating_places[present]] = False
    if answers.hides_items:
        places = np.flatnonzero(unlisted)
        yield LevelEvidence(places, np.zeros_like(places), table)


@_read.register
def _of_sides(reports: ResidualReports, observed: Observations, truth: Ratings) -> Iterator[LevelEvidence]:
    """Yield what answers say on the side of the user's mean, which is guessed from the rated items."""
    values, users = truth.scale.values, observed.users
    counts, of_items = np.bincount(users, minlength=truth.n_users), Background.of(truth).of_items @ values
    means = np.bincount(users, of_items[observed.items], truth.n_users) / np.maximum(counts, 1)
    spread = float(np.std(truth.user_means() - means)) + 1e-9
    rating_places, present = places_among(observed, truth)
    ratings = reports.cells[present[reports.cells]]
    above = scipy.special.ndtr((values - means[users[ratings], None]) / spread)
    with_rating = present[reports.cells]
    lies = reports.lies[with_rating][:, None]
    yes = lies + (1 - 2 * lies) * above
    with np.errstate(divide="ignore"):
        table = np.log(np.where(reports.above[with_rating][:, None], yes, 1 - yes))
    yield LevelEvidence(rating_places[ratings], np.arange(ratings.size), np.maximum(table, _IMPOSSIBLE))


TRUSTED = "The server is given the ratings as they are."
_LEAST = 1e-300
_SLACK = 1e-9
"""Difference of log likelihoods that rounding may make."""


@dataclass(frozen=True, kw_only=True)
class Reconstruction(Attack):
    """Level and sign of every rating, from the reports about it."""

    kind: Literal["reconstruction"] = "reconstruction"
    named: ClassVar[tuple[str, ...]] = ("recovered_level", "recovered_sign")
    background: Literal["items", "users"] = option(
        "What is known beside the reports about a rating: how others rate the item, or also what its user's "
        "other reports say of how the user rates.",
        "users",
    )

    def perform(self, game: Game) -> Attacked:
        """Guess all ratings; see `Attack`."""
        trusted, of_users = game.transcript.trusted, self.background == "users"
        figures = guessed(game.truth, game.transcript.reports, trusted=trusted, of_users=of_users)
        notes: tuple[str, ...] = (TRUSTED,) if trusted else ()
        if figures[0].value is None:
            notes = ("There are no levels to recover.",)
        return Attacked(dict(zip(self.figures(), figures, strict=True)), notes)


def guessed(
    truth: Ratings, reports: Sequence[Observations], *, trusted: bool, of_users: bool
) -> tuple[Figure, Figure]:
    """Return the shares of ratings whose level, and whose sign, is guessed right.

    Parameters
    ----------
    trusted : bool
        Whether the server is given the ratings as they are.
    of_users : bool
        Whether it reads what a user's other reports say of how the user rates.
    """
    if truth.scale.levels < 2 or not truth.count:
        return Figure(None), Figure(None)
    all_evidence = [
        evidence
        for observed in reports
        if observed.shape == (truth.n_users, truth.n_items)
        for evidence in _read(observed.evidence, observed, truth)
    ]
    sides = truth.scale.values > (truth.scale.low + truth.scale.high) / 2
    # What adds up the shares of levels, of each by itself and of both sides.
    merging = np.eye(sides.size), np.stack([~sides, sides], axis=1).astype(np.float64)
    tally, background = np.zeros((2, 2)), Background.of(truth)
    for users, part in parts_by_user(truth):
        levels = truth.levels[part].astype(np.int64) - 1
        prior = background.of_ratings(truth.items[part], truth.levels[part])
        likelihoods = np.ones_like(prior)
        for evidence in all_evidence:
            likelihoods = np.maximum(likelihoods * evidence.likelihoods(part), _LEAST)
        level_shares = prior
        if all_evidence and of_users:
            level_shares = background.given_others(prior, likelihoods, truth.counts[users])
        for place, merged in enumerate(merging):
            right, posterior = merged.argmax(axis=1)[levels], (level_shares * likelihoods) @ merged
            guesses = (shares.argmax(axis=1) for shares in (prior @ merged, posterior))
            tally[:, place] += [np.count_nonzero(guess == right) for guess in guesses]
    baselines, accuracies = (tally / truth.count).tolist()
    level, sign = map(Figure, (1.0, 1.0) if trusted else accuracies, baselines)
    return level, sign


def recovered(observed: Observations, true: Ratings) -> float | None:
    """Return what whoever averages the reports of several collections recovers: a share of the ratings.

    It is that of the reported ratings whose true level is the likeliest, given all reports about it.

    Levels that reports do not tell apart count as one: of a bit it is the share whose side is recovered.
    None where no report depends on a rating.
    """
    reports = observed.symbols
    if reports is None or not observed.items.size:
        return None
    of_reports = np.log(np.maximum(np.hstack(reports.channels), _LEAST)).T[reports.columns]
    cells, begins = observed.users.astype(np.int64) * observed.shape[1] + observed.items, observed.repeats[0]
    log_likelihoods = np.add.reduceat(of_reports, begins, axis=0)
    places = np.minimum(np.searchsorted(true.cells, cells[begins]), max(true.count - 1, 0))
    rated = (true.cells[places] == cells[begins]) & (np.ptp(log_likelihoods, axis=1) > _SLACK)
    of_true = log_likelihoods[np.flatnonzero(rated), true.levels[places[rated]].astype(np.int64) - 1]
    return float((of_true >= log_likelihoods[rated].max(axis=1) - _SLACK).mean()) if rated.any() else None
