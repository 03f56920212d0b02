"""Which items a user rated, where reports hide it; and what lists tell that leave out what a user rated.

The adversary is the server. A report about a cell is as likely as its channel makes it, given each level or
no rating. The ratio of the two likelihoods ranks the cells: by itself, with levels mixed as they are among
all ratings, as if all cells were alike before; or with what is public of the item, its popularity and how
others rate it, and with how much the user's other reports say that it rates.

The ranking by the report alone has a bound, where everybody reports all cells through one channel: reports on
a cell that is rated and on one that is not are compared by the same score, and each follows from its own cell
alone. So "pairs" of `dprec.attacks.bounds` holds of cells, with R the curve of a cell's loss, and the area
is a U-statistic of as many decisions as there are rated cells, or others if these are fewer. As to true
positives at a share x of false ones: the threshold that passes a share y > x of the others in the mean, so
large that it passes no more than x with half the failure, is below the one that is taken, and passes R(y) of
the rated in the mean. Of the ranking beside popularity there is no bound: who rated what may be known without
any report.

From lists that were delivered, an item that most users are shown and one is not was probably rated by that
one: lists leave out what their users know.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import scipy

from dprec.arrays import AnyInts, Bools, Floats, Ints, blocks, rows_of
from dprec.attacks.background import Background
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import FAILURE, Roc, above_by_chance, mean_above, on_bounds
from dprec.attacks.seen import Seen
from dprec.components import option
from dprec.ratings import Ratings

_FALSE_POSITIVES = 0.001

_SHIFTS = np.linspace(-3.0, 3.0, 25)
"""Of the log odds of a user's ratings against those of the average user."""

_STEPS = 50
_CELLS_AT_ONCE = 1 << 17

_LARGEST, _FINEST = 60.0, 1e-4
"""Log odds are told apart up to this and by so much."""

_RANGE = -_LARGEST, 0.0
"""Of log likelihoods."""


@dataclass(frozen=True, eq=False)
class Popularity:
    """How likely a cell is to be rated, by what is public: by item, and by how active users are."""

    log_odds: Floats
    """Of each item for a user who has not rated it, and for one who has, whose own rating is left out; shape
    (2, items)."""
    log_weights: Floats
    """Log probability of each shift; shape (shifts,)."""

    @classmethod
    def of(cls, ratings: Ratings) -> Self:
        """Count raters, and fit how their numbers of ratings differ by expectation maximisation."""
        raters = np.bincount(ratings.items, minlength=ratings.n_items)
        others = np.stack([raters, np.maximum(raters - 1, 0)]) + 0.5
        log_odds = scipy.special.logit(others / (ratings.n_users + 1))
        most = np.array([np.logaddexp(0, log_odds[0] + shift).sum() for shift in _SHIFTS])
        counts, users = np.unique(ratings.counts, return_counts=True)
        fits, log_weights = np.outer(counts, _SHIFTS) - most, np.full(_SHIFTS.size, -math.log(_SHIFTS.size))
        for _ in range(_STEPS):
            weights = users @ scipy.special.softmax(fits + log_weights, axis=1) / users.sum()
            log_weights = np.log(np.maximum(weights, 1e-300))
        return cls(log_odds, log_weights)

    def given_others(self, log_odds: Floats, ratios: Floats) -> Floats:
        """Return the log odds of cells given all that is said of their user but of the cell itself.

        ``log_odds``, ``ratios``, shape (users, items): before anything is seen, and the log likelihood ratio
        of what is said of each cell.
        """
        further = np.expm1(ratios)
        chances = [scipy.special.expit(log_odds + shift) for shift in _SHIFTS]
        fits = np.stack([np.log1p(chance * further).sum(axis=1) for chance in chances])
        fits += self.log_weights[:, None]
        fits -= fits.max(axis=0)
        rated, whole = np.zeros_like(log_odds), np.zeros_like(log_odds)
        for chance, fit in zip(chances, np.exp(fits), strict=True):
            weight = fit[:, None] / (1 + chance * further)
            rated += weight * chance
            whole += weight
        return scipy.special.logit(np.clip(rated / whole, 1e-15, 1 - 1e-15))


@dataclass(frozen=True, kw_only=True)
class Membership(Attack):
    """Which items a user rated, from reports that hide it, and from lists."""

    kind: Literal["membership"] = "membership"
    named: ClassVar[tuple[str, ...]] = (
        "membership_auc",
        "membership_tpr",
        "membership_posterior_auc",
        "membership_posterior_tpr",
        "omission_precision",
    )
    """Areas and true positives, of what is said alone and beside popularity, and omissions."""
    cells: int = option(
        "Users and items of whom it is asked, at most: those of the first users.", 10**7, ge=1
    )

    def perform(self, game: Game) -> Attacked:
        """Rank cells, and look for what lists lack; see `Attack`."""
        truth = game.truth
        figures = {"omission_precision": omission(game.transcript.lists, truth)}
        users = min(truth.n_users, max(1, self.cells // truth.n_items))
        asked = int(truth.indptr[users])
        if not 0 < asked < users * truth.n_items:
            return Attacked(figures, ("Nothing is rated, or everything.",))
        seen = Seen.of(game.transcript, truth)
        # Of three rankings, how many cells are not rated and are, by classes of their scores.
        counts = np.zeros((3, 2, 2 * round(_LARGEST / _FINEST) + 1))
        for rated, odds in _weighed(seen, truth, users):
            places = np.rint((np.clip(odds, -_LARGEST, _LARGEST) + _LARGEST) / _FINEST).astype(np.int64)
            for ranking, own in zip(counts, places, strict=True):
                for row, side in enumerate((~rated, rated)):
                    ranking[row] += np.bincount(own[side], minlength=counts.shape[2])
        curves = []
        for others, members in counts:
            occur = np.flatnonzero(others + members)
            curves.append(Roc.of_scores(occur.astype(np.float64), members[occur], others[occur]))
        start, reached, alone = curves
        allowed: dict[str, tuple[float, float]] = {}
        everybody = seen is not None and not any(part.silent.any() for part in seen.parts)
        if seen is not None and seen.hides_items and everybody:
            # The loss of a cell, where everybody reports all cells through one channel with a loss.
            losses = game.accountant.get_epsilon(0.0, "rating")
            if (losses == losses[:1]).all() and math.isfinite(losses[0]):
                allowed = allowed_by_reports(float(losses[0]), asked, users * truth.n_items - asked)
        for end, of in _ENDS.items():
            name, bound = f"membership_{end}", allowed.get(f"membership_{end}", (0.0, None))[1]
            figures[name] = Figure(of(alone), of(Roc.allowed(0.0)), bound)
            figures[f"membership_posterior_{end}"] = Figure(of(reached), of(start))
        notes = () if users == truth.n_users else (f"Asked of the first {users} users.",)
        return Attacked(figures, (*notes, *on_bounds(allowed)))


_ENDS: dict[str, Callable[[Roc], float]] = {
    "auc": lambda roc: roc.auc,
    "tpr": lambda roc: float(roc.at(_FALSE_POSITIVES)),
}


def allowed_by_reports(epsilon: float, rated: int, others: int) -> dict[str, tuple[float, float]]:
    """Return what is allowed of reports alone, in the mean and with chance; see the module.

    ``rated``, ``others``: how many cells are, and are not.
    """
    curve, half = Roc.allowed(epsilon), FAILURE / 2
    passed = float(curve.at(mean_above(_FALSE_POSITIVES, others, half)))
    areas = curve.auc, above_by_chance(curve.auc, min(rated, others))
    positives = float(curve.at(_FALSE_POSITIVES)), above_by_chance(passed, rated, half)
    return {"membership_auc": areas, "membership_tpr": positives}


def _weighed(seen: Seen | None, truth: Ratings, n_users: int) -> Iterator[tuple[Bools, Floats]]:
    """Yield which cells of some users are rated, and three log odds that they are, shape (3, cells).

    By what is public of the item; given all that is said of the user as well; and the log likelihood ratio of
    what is said of the cell, whatever its item and user. What is public leaves the user's own ratings out.
    """
    popularity = Popularity.of(truth)
    background = Background.of(truth) if truth.scale.levels > 1 else None
    for users in blocks(np.full(n_users, truth.n_items), _CELLS_AT_ONCE):
        own = slice(int(truth.indptr[users.start]), int(truth.indptr[users.stop]))
        cells = rows_of(truth.counts[users]), truth.items[own].astype(np.int64)
        before = np.tile(popularity.log_odds[0], (users.stop - users.start, 1))
        before[cells] = popularity.log_odds[1, cells[1]]
        rated = np.zeros(before.shape, dtype=np.bool_)
        rated[cells] = True
        odds = np.stack([before, before, np.zeros_like(before)])
        if seen is not None:
            logs = seen.log_likelihoods(users)
            of_items, alone = logs[[1, 1]]
            if background is not None:
                # As the levels of their items are mixed, but for their own, and as those of all ratings are.
                mixed = logs[1:] + np.log(background.of_items).T[:, None, :]
                others = np.log(background.of_ratings(cells[1], truth.levels[own]))
                mixed[:, cells[0], cells[1]] = logs[1:, cells[0], cells[1]] + others.T
                with np.errstate(divide="ignore"):
                    overall = logs[1:] + np.log(truth.histogram())[:, None, None]
                of_items, alone = (np.logaddexp.reduce(each, axis=0) for each in (mixed, overall))
            ratio, odds[2] = (
                np.clip(each, *_RANGE) - np.clip(logs[0], *_RANGE) for each in (of_items, alone)
            )
            odds[1] = popularity.given_others(before, ratio) + ratio
        yield rated.ravel(), odds.reshape(3, -1)


def omission(lists: Ints | None, truth: Ratings) -> Figure:
    """Return the share of the items listed most, where a user's list lacks them, that the user rated.

    The baseline is that of all users, whatever their lists have.
    """
    if lists is None or not (lists >= 0).any():
        return Figure(None)
    listed = np.bincount(lists[lists >= 0], minlength=truth.n_items)
    most = np.argsort(-listed, kind="stable")[: min(10, np.count_nonzero(listed))]
    # Beyond the last item, whatever is negative: the end of a list.
    place = np.full(truth.n_items + 1, -1)
    place[most] = np.arange(most.size)
    users = rows_of(np.full(len(lists), lists.shape[1]))
    shown = _cells(users, place[lists.ravel()], (truth.n_users, most.size))
    rated = _cells(truth.users, place[truth.items], (truth.n_users, most.size))
    told = (lists.max(axis=1) >= 0)[:, None] & ~shown
    return Figure(float(rated[told].mean()), float(rated.mean())) if told.any() else Figure(None)


def _cells(users: AnyInts, columns: Ints, shape: tuple[int, int]) -> Bools:
    """Return which cells are named, but for negative columns."""
    cells: Bools = np.zeros(shape, dtype=np.bool_)
    cells[users[columns >= 0], columns[columns >= 0]] = True
    return cells
