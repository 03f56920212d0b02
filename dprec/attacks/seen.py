"""What reports about single ratings say: how likely they are at each level, and without a rating.

An attacker that has reports of users whom it can tell apart, and the matrices behind them, weighs every cell
by its likelihoods, and what it expects of a cell beforehand by what is public of the item and by how much
the user seems to have rated. It is supposed to know of every item how many users rated it, and how: the
worst case, since this is what private protocols estimate.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce, singledispatch
from typing import Self

import numpy as np
import scipy

from dprec.arrays import AnyInts, Bools, Floats, Ints, blocks, offsets, rows_of
from dprec.attacks.transcript import Transcript
from dprec.observations import Evidence, Observations, RatedSets, RowReports, SetReports, SymbolReports
from dprec.ratings import Ratings

_CELLS_AT_ONCE = 1 << 20

_SHIFTS = np.linspace(-4.0, 4.0, 17)
"""Of the log odds of a user's ratings against those of the average user."""

_SPREAD = 1.25
"""Standard deviation of these among users, as expected before anything is seen."""


@dataclass(frozen=True, eq=False)
class CellAnswers:
    """What reports show of users and items, in codes, and how likely each code is."""

    indptr: Ints
    items: AnyInts
    codes: Ints
    """By user; codes from 1; shape (shown cells,). A cell that is not shown has code 0; one that is shown
    several times has answers that are independent given the rating."""
    log_likelihoods: Floats
    """Log probabilities of the codes, "not rated" first; shape (1 + levels, codes)."""
    silent: Bools
    """Users of whom nothing arrived; shape (users,)."""

    @classmethod
    def of_sets(cls, sets: RatedSets, levels: int) -> Self:
        """Return sets that are seen as they are, and no ratings."""
        counts = np.bincount(sets.users, minlength=sets.n_users)
        table = np.column_stack([np.arange(levels + 1) == 0, np.arange(levels + 1) > 0])
        return cls(
            offsets(counts), sets.items, np.ones(sets.items.size, dtype=np.int64), _logs(table), counts == 0
        )

    @classmethod
    def of_ratings(cls, ratings: Ratings) -> Self:
        """Return ratings that are seen as they are."""
        codes = ratings.levels.astype(np.int64)
        return cls(
            ratings.indptr, ratings.items, codes, _logs(np.eye(ratings.scale.levels + 1)), ratings.counts < 0
        )

    def covering(self, ratings: int) -> Self:
        """Return the answers, if only a part of so many ratings is shown: others may be rated as well."""
        certain = np.isneginf(self.log_likelihoods[1:, 0])
        if not certain.any():
            return self
        users = rows_of(np.diff(self.indptr))
        distinct = np.unique(users * (1 + self.items.max(initial=0)) + self.items).size
        heard = ratings * (1 - self.silent.mean())
        log_likelihoods = self.log_likelihoods.copy()
        log_likelihoods[1:, 0][certain] = _logs(np.array(max(0.0, 1 - distinct / max(heard, 1))))
        return replace(self, log_likelihoods=log_likelihoods)

    @property
    def hides_items(self) -> bool:
        """Whether no code excludes that an item is rated, or that it is not."""
        return bool(np.isfinite(self.log_likelihoods).all())

    def of_users(self, users: slice, n_items: int) -> Floats:
        """Return the log likelihoods of the cells of some users, shape (1 + levels, users, items)."""
        indptr = self.indptr[users.start : users.stop + 1]
        block = slice(indptr[0], indptr[-1])
        cells, codes = rows_of(np.diff(indptr)) * n_items + self.items[block], self.codes[block]
        shape = indptr.size - 1, n_items
        answered = np.zeros(shape, dtype=np.bool_)
        answered.ravel()[cells] = True
        logs = np.empty((len(self.log_likelihoods), *shape))
        for level, of_codes in enumerate(self.log_likelihoods):
            sums = np.bincount(cells, of_codes[codes], minlength=answered.size).reshape(shape)
            logs[level] = np.where(answered, sums, of_codes[0])
        logs[:, self.silent[users]] = 0.0
        return logs


def _logs(probabilities: Floats | Bools) -> Floats:
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(probabilities)
    return logs


@singledispatch
def answers_of(evidence: Evidence | None, observed: Observations) -> CellAnswers | None:
    """Return what one kind of evidence says of each cell; by default, which items are shown, if any are."""
    sets = observed.item_sets
    return CellAnswers.of_sets(sets, observed.scale.levels) if sets.items.size else None


@answers_of.register
def _(evidence: SymbolReports, observed: Observations) -> CellAnswers | None:
    first = 1 + offsets(np.array([channel.shape[1] for channel in evidence.channels]))
    codes = first[evidence.channel_of] + evidence.symbols
    levels = observed.scale.levels
    table = np.column_stack([np.zeros(levels), *evidence.channels, np.ones(levels)])
    if evidence.counts is not None:
        # What a count says of single cells is left out.
        codes[evidence.counts.cells] = first[-1]
    not_rated = np.arange(table.shape[1]) == 0
    log_likelihoods = _logs(np.vstack([not_rated, table]))
    return CellAnswers(observed.indptr, observed.items, codes, log_likelihoods, observed.counts == 0)


@answers_of.register
def _(evidence: RowReports, observed: Observations) -> CellAnswers | None:
    probabilities = np.vstack([evidence.unrated, *evidence.channels])
    unsent = probabilities[:, evidence.unsent].sum(axis=1)
    table = _logs(np.column_stack([unsent, probabilities]))
    return CellAnswers(observed.indptr, observed.items, 1 + evidence.symbols, table, ~evidence.reported)


@answers_of.register
def _(evidence: SetReports, observed: Observations) -> CellAnswers | None:
    rows = evidence.of_rows(observed, evidence.reported)
    return answers_of(rows.evidence, rows)


@dataclass(frozen=True, eq=False)
class ItemShares:
    """What is supposed to be public of the items."""

    popularity: Floats
    """Share of the users who rated each item, above 0; shape (items,)."""
    shares: Floats
    """Of the levels among its ratings; shape (items, levels)."""

    @classmethod
    def of(cls, ratings: Ratings) -> Self:
        """Count ratings; a half is added to each count of raters, and one rating to each item's levels."""
        levels, cells = ratings.scale.levels, (ratings.n_items, ratings.scale.levels)
        places = ratings.items.astype(np.int64) * levels + ratings.levels - 1
        counts = np.bincount(places, minlength=cells[0] * levels).reshape(cells)
        raters = counts.sum(axis=1)
        overall = counts.sum(axis=0) + 1.0
        shares = (counts + overall / overall.sum()) / (raters + 1)[:, None]
        return cls((raters + 0.5) / (ratings.n_users + 1), shares)


@dataclass(frozen=True, eq=False)
class Weighed:
    """The cells of some users, as an attacker weighs them."""

    users: slice
    logs: Floats
    """Log likelihoods of what is seen, for "not rated" and each level; shape (1 + levels, users, items)."""
    log_max: Floats
    expected: Floats
    """Log likelihood of the likelier of rated or not, and how likely it is what is seen, beside that, before
    it is; shape (users, items)."""
    rated: Floats
    """Probability that each is rated; shape (users, items)."""

    @property
    def log_likelihoods(self) -> Floats:
        """Those of what is seen against what was to be expected of the cell; shape as `logs`."""
        return self.logs - self.log_max - np.log(self.expected)


@dataclass(frozen=True, eq=False)
class ServerView:
    """What is known of every user and item, from all that was seen."""

    parts: tuple[CellAnswers, ...]
    """Independent given the ratings; at least one."""
    background: ItemShares

    @classmethod
    def of(cls, transcript: Transcript, truth: Ratings) -> Self | None:
        """Read a transcript; None if nothing of users who can be told apart is about their ratings.

        ``truth`` gives the background, and the ratings of those who trust the server with them.
        """
        if transcript.trusted:
            parts = [CellAnswers.of_ratings(truth)]
        else:
            reports = transcript.reports
            symbols = [observed.symbols for observed in reports if observed.symbols is not None]
            single = [sent for sent in symbols if sent.of_single_ratings]
            if len(single) >= max(2, len(reports)) and all(sent.counts is None for sent in single):
                # Several rounds about single ratings are read together, each of them on some of these.
                reports = (transcript.read_together(Observations.joined(reports)),)
            answers = [_of_users(observed, transcript.n_users) for observed in reports]
            parts = [part.covering(truth.count) for part in answers if part is not None]
        return cls(tuple(parts), ItemShares.of(truth)) if parts else None

    @property
    def hides_items(self) -> bool:
        """Whether it stays open which items a user rated."""
        return all(answers.hides_items for answers in self.parts)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.parts[0].silent.size

    def weighed(self) -> Iterator[Weighed]:
        """Yield the cells of all users, in blocks of users.

        What is seen is held against what the items, and how active each user seems, let expect. The odds of a
        cell are those of the item times the user's, whose logarithm is normal among users; it is estimated by
        its mean given what is seen of the user.
        """
        levels, n_items = self.background.shares.shape[1], self.background.popularity.size
        odds = scipy.special.logit(self.background.popularity)
        shares = _logs(self.background.shares.T)[:, None, :]
        for users in blocks(np.full(self.n_users, n_items * (1 + levels)), _CELLS_AT_ONCE):
            logs = self.log_likelihoods(users)
            log_rated = np.logaddexp.reduce(logs[1:] + shares, axis=0)
            log_max = np.maximum(log_rated, logs[0])
            # Rounds that contradict each other, some with an item and some without it, say nothing of it.
            contradicted = np.isneginf(log_max)
            for log_values in (logs, log_rated, log_max):
                log_values[..., contradicted] = 0.0
            if_not, if_rated = np.exp(logs[0] - log_max), np.exp(log_rated - log_max)
            gains = if_rated - if_not
            fits = [
                np.log(if_not + scipy.special.expit(odds + shift) * gains).sum(axis=1) for shift in _SHIFTS
            ]
            fitted = np.stack(fits) - (_SHIFTS[:, None] / _SPREAD) ** 2 / 2
            weights = np.exp(fitted - fitted.max(axis=0))
            shifts = _SHIFTS @ weights / weights.sum(axis=0)
            prior = scipy.special.expit(odds + shifts[:, None])
            expected = if_not + prior * gains
            yield Weighed(users, logs, log_max, expected, prior * if_rated / expected)

    def log_likelihoods(self, users: slice) -> Floats:
        """Return those of what is seen of the cells of some users, shape (1 + levels, users, items)."""
        n_items = self.background.popularity.size
        return reduce(np.add, (part.of_users(users, n_items) for part in self.parts))


def _of_users(observed: Observations, n_users: int) -> CellAnswers | None:
    if observed.shape[0] == n_users:
        return answers_of(observed.evidence, observed)
    if observed.item_sets.n_users == n_users:
        return CellAnswers.of_sets(observed.item_sets, observed.scale.levels)
    return None
