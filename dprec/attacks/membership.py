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
from dprec.attacks.seen import ServerView
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
        other_raters = np.stack([raters, np.maximum(raters - 1, 0)]) + 0.5
        log_odds = scipy.special.logit(other_raters / (ratings.n_users + 1))
        normalisers = np.array([np.logaddexp(0, log_odds[0] + shift).sum() for shift in _SHIFTS])
        counts, users = np.unique(ratings.counts, return_counts=True)
        fits = np.outer(counts, _SHIFTS) - normalisers
        log_weights = np.full(_SHIFTS.size, -math.log(_SHIFTS.size))
        for _ in range(_STEPS):
            weights = users @ scipy.special.softmax(fits + log_weights, axis=1) / users.sum()
            log_weights = np.log(np.maximum(weights, 1e-300))
        return cls(log_odds, log_weights)

    def given_others(self, is_rated: Bools, ratios: Floats) -> Floats:
        """Return the log odds of cells given all that is said of their user but of the cell itself.

        ``is_rated``, ``ratios``, shape (users, items): which cells are rated, and the log likelihood ratio of
        what is said of each.
        """
        gains = np.expm1(ratios)
        chances = [np.where(is_rated, *scipy.special.expit(self.log_odds + shift)[::-1]) for shift in _SHIFTS]
        fits = np.stack([np.log1p(chance * gains).sum(axis=1) for chance in chances])
        fits += self.log_weights[:, None]
        fits -= fits.max(axis=0)
        rated, total = np.zeros_like(gains), np.zeros_like(gains)
        for chance, fit in zip(chances, np.exp(fits), strict=True):
            weight = fit[:, None] / (1 + chance * gains)
            rated += weight * chance
            total += weight
        return scipy.special.logit(np.clip(rated / total, 1e-15, 1 - 1e-15))


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
        n_rated = int(truth.indptr[users])
        if not 0 < n_rated < users * truth.n_items:
            return Attacked(figures, ("Nothing is rated, or everything.",))
        view = ServerView.of(game.transcript, truth)
        # Of three rankings, how many cells are not rated and are, by classes of their scores.
        counts = np.zeros((3, 2, 2 * round(_LARGEST / _FINEST) + 1))
        for rated, odds in _weighed(view, truth, users):
            places = np.rint((np.clip(odds, -_LARGEST, _LARGEST) + _LARGEST) / _FINEST).astype(np.int64)
            for ranking, classes in zip(counts, places, strict=True):
                # A million classes take longer to go through than the cells of a block.
                np.add.at(ranking.ravel(), classes + counts.shape[2] * rated, 1.0)
        curves = []
        for non_members, members in counts:
            occur = np.flatnonzero(non_members + members)
            curves.append(Roc.of_scores(occur.astype(np.float64), members[occur], non_members[occur]))
        prior, posterior, reports_alone = curves
        allowed: dict[str, tuple[float, float]] = {}
        everybody = view is not None and not any(part.silent.any() for part in view.parts)
        if view is not None and view.hides_items and everybody:
            # The loss of a cell, where everybody reports all cells through one channel with a loss.
            losses = game.accountant.get_epsilon(0.0, "rating")
            if (losses == losses[:1]).all() and math.isfinite(losses[0]):
                allowed = allowed_by_reports(float(losses[0]), n_rated, users * truth.n_items - n_rated)
        for end, figure_of in _ENDS.items():
            name, bound = f"membership_{end}", allowed.get(f"membership_{end}", (0.0, None))[1]
            figures[name] = Figure(figure_of(reports_alone), figure_of(Roc.allowed(0.0)), bound)
            figures[f"membership_posterior_{end}"] = Figure(figure_of(posterior), figure_of(prior))
        notes = [] if users == truth.n_users else [f"Asked of the first {users} users."]
        if view is not None and not view.hides_items:
            notes.append("The item set is sent in clear.")
        return Attacked(figures, (*notes, *on_bounds(allowed)))


_ENDS: dict[str, Callable[[Roc], float]] = {
    "auc": lambda roc: roc.auc,
    "tpr": lambda roc: float(roc.at(_FALSE_POSITIVES)),
}


def allowed_by_reports(epsilon: float, rated: int, not_rated: int) -> dict[str, tuple[float, float]]:
    """Return what is allowed of reports alone, in the mean and with chance; see the module.

    ``rated``, ``not_rated``: how many cells are, and are not.
    """
    curve, half = Roc.allowed(epsilon), FAILURE / 2
    passed = float(curve.at(mean_above(_FALSE_POSITIVES, not_rated, half)))
    areas = curve.auc, above_by_chance(curve.auc, min(rated, not_rated))
    positives = float(curve.at(_FALSE_POSITIVES)), above_by_chance(passed, rated, half)
    return {"membership_auc": areas, "membership_tpr": positives}


def _weighed(view: ServerView | None, truth: Ratings, n_users: int) -> Iterator[tuple[Bools, Floats]]:
    """Yield which cells of some users are rated, and three log odds that they are, shape (3, cells).

    By what is public of the item; given all that is said of the user as well; and the log likelihood ratio of
    what is said of the cell, whatever its item and user. What is public leaves the user's own ratings out.
    """
    popularity = Popularity.of(truth)
    background = Background.of(truth) if truth.scale.levels > 1 else None
    for users in blocks(np.full(n_users, truth.n_items), _CELLS_AT_ONCE):
        places = slice(int(truth.indptr[users.start]), int(truth.indptr[users.stop]))
        cells = rows_of(truth.counts[users]), truth.items[places].astype(np.int64)
        prior = np.tile(popularity.log_odds[0], (users.stop - users.start, 1))
        prior[cells] = popularity.log_odds[1, cells[1]]
        rated = np.zeros(prior.shape, dtype=np.bool_)
        rated[cells] = True
        odds = np.stack([prior, prior, np.zeros_like(prior)])
        if view is not None:
            logs = view.log_likelihoods(users)
            of_items, of_all = logs[[1, 1]]
            if background is not None:
                # As the levels of their items are mixed, but for their own, and as those of all ratings are.
                mixed = logs[1:] + np.log(background.of_items).T[:, None, :]
                log_shares = np.log(background.of_ratings(cells[1], truth.levels[places]))
                mixed[:, cells[0], cells[1]] = logs[1:, cells[0], cells[1]] + log_shares.T
                with np.errstate(divide="ignore"):
                    overall = logs[1:] + np.log(truth.histogram())[:, None, None]
                of_items, of_all = (np.logaddexp.reduce(mixture, axis=0) for mixture in (mixed, overall))
            ratio, odds[2] = (
                np.clip(log_rated, *_RANGE) - np.clip(logs[0], *_RANGE) for log_rated in (of_items, of_all)
            )
            odds[1] = popularity.given_others(rated, ratio) + ratio
        yield rated.ravel(), odds.reshape(3, -1)


def omission(lists: Ints | None, truth: Ratings) -> Figure:
    """Return the share of the items listed most, where a user's list lacks them, that the user rated.

    The baseline is that of all users, whatever their lists have.
    """
    if lists is None or not (lists >= 0).any():
        return Figure(None)
    listed = np.bincount(lists[lists >= 0], minlength=truth.n_items)
    top_items = np.argsort(-listed, kind="stable")[: min(10, np.count_nonzero(listed))]
    # Beyond the last item, whatever is negative: the end of a list.
    place = np.full(truth.n_items + 1, -1)
    place[top_items] = np.arange(top_items.size)
    users = rows_of(np.full(len(lists), lists.shape[1]))
    listed_cells = _cells(users, place[lists.ravel()], (truth.n_users, top_items.size))
    rated = _cells(truth.users, place[truth.items], (truth.n_users, top_items.size))
    omitted = (lists.max(axis=1) >= 0)[:, None] & ~listed_cells
    return Figure(float(rated[omitted].mean()), float(rated.mean())) if omitted.any() else Figure(None)


def _cells(users: AnyInts, columns: Ints, shape: tuple[int, int]) -> Bools:
    """Return which cells are named, but for negative columns."""
    cells: Bools = np.zeros(shape, dtype=np.bool_)
    cells[users[columns >= 0], columns[columns >= 0]] = True
    return cells
