"""Accuracy: holds the predictions of a run against its test ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec import metrics
from dprec.arrays import rows_of
from dprec.binarization import is_binary
from dprec.catalogue import Catalogue, UsersTable
from dprec.crossdomain import CrossDomainRatings
from dprec.errors import InputError, SettingError, within
from dprec.groups import MEANS, SUMS, Grouping, error_sums, group_figures
from dprec.predictions import Candidates, Predict, PredictRows, Sampled, Unrated, best_items, recommended
from dprec.progress import Progress, silent
from dprec.protocols.baselines import NothingSentProtocol
from dprec.ratings import ColdRatings, Ratings, held_by_tested
from simulation.configuration.models import (
    ACTIVITY,
    EPSILON,
    LONGEST_CUTOFF,
    EvaluationOptions,
    RankingOptions,
)
from simulation.courses.task import Outcome


def unmeasured(predict: Predict, hidden: Predict | None = None) -> dict[str, float | None]:
    """Measure nothing; a `Metric` of a task."""
    return {}


@dataclass(frozen=True, eq=False)
class Judged:
    """What came of a run, and how good its predictions are."""

    outcome: Outcome
    predictions: NDArray[np.float64]
    ranks: NDArray[np.float64] | None
    """Of the test ratings; see `Evaluator.judged`; shape (test ratings,)."""
    measured: dict[str, Any]
    """The accuracy under the names that the run directory uses."""
    nothing_sent: float | None
    """The main metric of devices that predict alone; none of lists."""

    def noted(self, notes: tuple[str, ...]) -> Judged:
        """Return the same with further notes on the guarantee."""
        guarantee = self.outcome.guarantee
        guarantee = replace(guarantee, notes=(*guarantee.notes, *notes))
        return replace(self, outcome=replace(self.outcome, guarantee=guarantee))


def check_evaluation(
    options: EvaluationOptions, train: Ratings, test: Ratings, users: UsersTable | None
) -> None:
    """Refuse what cannot be evaluated, before anything runs.

    That is a relevance threshold outside the rating scale (signs are not ranked and need none), what reads
    ratings where there are none, groups that cannot be made, and user-defined metrics that fail on the test
    ratings in another order. Raises SettingError naming the key or the function at fault.
    """
    scale, bound = train.scale, options.relevant_from
    if scale.implicit:
        for key, given in (("relevant_from", bound), ("errors", options.errors), ("scores", options.scores)):
            if given:
                raise SettingError(key, "a metric of ratings", f"nothing, for {scale.describe()}")
        if options.top_k > LONGEST_CUTOFF:
            raise SettingError(
                "top_k", f"{options.top_k:,}", f"at most {LONGEST_CUTOFF:,}, where lists are judged"
            )
    elif bound is not None and not is_binary(scale) and not scale.low <= bound <= scale.high:
        accepted = f"a rating from {scale.low:g} to {scale.high:g}"
        raise SettingError("relevant_from", f"{bound:g}", accepted)
    if options.groups and is_binary(scale):
        raise SettingError("groups", "signs", "nothing, or data with ratings or item sets")
    evaluator = Evaluator(train, test, options, None, users=users)
    evaluator.groupings()
    if options.own:
        evaluator.own(test.values[::-1])


_LISTED = 10
"""Length of the lists whose popularity and coverage is told by group."""


@dataclass(frozen=True, eq=False)
class GroupedUsers:
    """What a run does to each user with test ratings, and to groups of them."""

    columns: Mapping[str, NDArray[np.float64]]
    """`dprec.groups.SUMS` and `dprec.groups.MEANS`, shape (users,) each."""
    groupings: Mapping[str, Grouping]
    figures: dict[str, list[dict[str, Any]]]
    """The figures of every group, by what divides them; the keys of summary.json."""


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Evaluates predictions on the test ratings; protocols call it as the `Metric` of their task."""

    train: Ratings
    test: Ratings
    options: EvaluationOptions
    truth: NDArray[np.float64] | None
    """The hidden matrix that the ratings were drawn from, if the data set knows it; shape (users, items)."""
    catalogue: Catalogue | None = None
    """Public data about the items."""

    users: UsersTable | None = None
    """Public data about the users; None without any, or for cold users."""

    @property
    def held(self) -> Ratings:
        """What those hold whose predictions are evaluated."""
        return held_by_tested(self.train, self.test)

    def predictions(self, predict: Predict) -> NDArray[np.float64]:
        """Return the predictions of the test ratings, clipped to the scale, shape (test ratings,).

        Scores of implicit data have no scale.
        """
        predictions, scale = predict(self.test.users, self.test.items), self.train.scale
        return predictions if scale.implicit else np.clip(predictions, scale.low, scale.high)

    def accuracy(
        self,
        predictions: NDArray[np.float64],
        predict: Predict,
        hidden: Predict | None = None,
        scores: Predict | None = None,
    ) -> dict[str, float | None]:
        """Return the accuracy of predictions under the names that the run directory uses.

        ``predictions``, shape (test ratings,): for signs, the accuracy is the share predicted correctly; a
        prediction of 0 counts as +1.
        ``predict``: what made them, and predicts other items if these are ranked too.
        ``hidden``: from arrays of users and items to the learned entries of the hidden matrix.
        ``scores``: what lists are ranked by, if not by predictions.
        """
        held, test, options, truth = self.held, self.test, self.options, self.truth
        if is_binary(test.scale):
            known = None if hidden is None or truth is None else relative_error(hidden, truth)
            return {"sign_accuracy": metrics.sign_accuracy(predictions, test.values), "relative_error": known}
        if options.candidates == "test":
            ranked = predictions if scores is None else scores(test.users, test.items)
            ranking = metrics.ranking_accuracy(ranked, test, held, options.top_k, options.relevant_from)
        else:
            tested = np.flatnonzero(test.counts)
            lists = recommended(scores or predict, held, tested, options.top_k, self._targets)
            ranking = metrics.recommendation_accuracy(lists, tested, test, held, options.relevant_from)
        return {
            "rmse": metrics.root_mean_squared_error(predictions, test.values),
            "mae": metrics.mean_absolute_error(predictions, test.values),
            "precision_at_k": ranking.precision,
            "recall_at_k": ranking.recall,
            "f_score_at_k": ranking.f_score,
            "k": options.top_k,
            "whole_lists": float((self._candidates() <= options.top_k).mean()),
        }

    def __call__(self, predict: Predict, hidden: Predict | None = None) -> dict[str, float | None]:
        """Return the accuracy of a predictor; see `judged`."""
        return self.judged(predict, hidden=hidden)[2]

    def judged(
        self,
        predict: Predict,
        predict_rows: PredictRows | None = None,
        hidden: Predict | None = None,
        progress: Progress = silent,
        scores: Predict | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, dict[str, float | None]]:
        """Return predictions of the test ratings, their ranks if lists are judged, and their accuracy.

        Lists of implicit data are judged over the whole catalogue; see `dprec.metrics.accuracy_of_lists`.
        ``hidden``, ``scores``: see `accuracy`.
        """
        predictions = self.predictions(predict)
        if not self.test.scale.implicit:
            return predictions, None, self.accuracy(predictions, predict, hidden, scores)
        lists = self.lists(predict, predict_rows, progress)
        users = np.flatnonzero(self.test.counts)
        figures = metrics.accuracy_of_lists(lists, users, self.test, self.train)
        return predictions, lists.ranks(users, self.test), {"rmse": None, "mae": None, **figures}

    def lists(
        self, predict: Predict, predict_rows: PredictRows | None = None, progress: Progress = silent
    ) -> metrics.RankedHits:
        """Return the lists of everybody with a test item, of all items that are not among the train items."""
        users = np.flatnonzero(self.test.counts)
        lists = best_items(
            predict,
            Unrated(self.held, self._targets),
            users,
            metrics.LONGEST_LIST,
            self.train.n_items,
            predict_rows=predict_rows,
            progress=progress,
        )
        return metrics.RankedHits.of(lists, users, self.test)

    def nothing_sent(self) -> float | None:
        """Return the main metric of devices that predict alone, as the preset nothing-sent; none of lists."""
        if self.test.scale.implicit:
            return None
        metric = metrics.sign_accuracy if is_binary(self.test.scale) else metrics.root_mean_squared_error
        # They are kept where groups are compared with them, too.
        return metric(self.alone if self.options.groups else self._alone(), self.test.values)

    @cached_property
    def alone(self) -> NDArray[np.float64]:
        """See `_alone`."""
        return self._alone()

    def _alone(self) -> NDArray[np.float64]:
        """Predictions of devices that neither send nor receive anything, shape (test ratings,)."""
        return self.predictions(NothingSentProtocol().alone(self.held, self.catalogue).predict)

    def groupings(self, epsilons: NDArray[np.float64] | None = None) -> dict[str, Grouping]:
        """Return the groups that are asked for, of all users.

        ``epsilons``, shape (users,): what the reports of each user lose per rating; unknown before a run.
        Raises SettingError under "groups".
        """
        unknown, held = np.full(self.test.n_users, np.nan), self.held
        # Losses that are sums differ in their last bits; who has ratings and sent nothing has lost nothing.
        losses = unknown if epsilons is None else np.round(epsilons, 9)
        losses = np.where(np.isnan(losses) & (held.counts > 0), 0.0, losses)
        made = {ACTIVITY: held.counts + self.test.counts, EPSILON: losses}
        groupings = {"all": Grouping.of_all(held.n_users)} if self.options.groups else {}
        for name in self.options.groups:
            with within("groups"), within(name):
                table = self.users or UsersTable({}, held.n_users)
                values = made[name].astype(np.float64) if name in made else table.column(name)
                groupings[name] = Grouping.of(values)
        return groupings

    def users_of_groups(
        self,
        outcome: Outcome,
        predictions: NDArray[np.float64],
        charged: Callable[[], Mapping[str, NDArray[Any]]],
    ) -> GroupedUsers | None:
        """Return what happens to each user with test ratings; None where no groups are asked for.

        ``predictions``: of the test ratings.
        ``charged``: returns columns by user of the train ratings: message bytes and losses.
        """
        if not self.options.groups:
            return None
        test, users = self.test, np.flatnonzero(self.test.counts)
        cold = isinstance(test, ColdRatings)
        of_train = {name: np.full(test.n_users, np.nan) if cold else own for name, own in charged().items()}
        lists = self.lists(*outcome.ranking)
        popularity = np.bincount(self.train.items, minlength=self.train.n_items) / self.train.n_users
        of_lists, own = metrics.popularities(lists.lists[:, :_LISTED], users, self.held, popularity)
        columns = {name: np.full(users.size, np.nan) for name in (*SUMS, *MEANS)}
        if test.scale.implicit:
            columns["test_ratings"] = test.counts[users].astype(np.float64)
            judged = {name: of(lists) for name, of in metrics.METRICS_OF_LISTS.items() if name in MEANS}
        else:
            judged = error_sums(test.users, test.values, predictions, self.alone)
        losses = {name: own[users].astype(np.float64) for name, own in of_train.items()}
        popular = {"list_popularity": of_lists, "own_popularity": own}
        columns |= {**judged, **popular, **losses}
        groupings = self.groupings(of_train["epsilon_per_rating"])
        groupings = {name: each.of_users(users) for name, each in groupings.items()}
        figures: dict[str, list[dict[str, Any]]] = {name: [] for name in groupings}
        for name, each in groupings.items():
            for group, members in each.masks():
                listed = lists.lists[members, :_LISTED]
                covered = np.unique(listed[listed >= 0]).size / self.train.n_items
                figures[name].append({"group": group, **group_figures(columns, members), "coverage": covered})
        return GroupedUsers(columns, groupings, figures)

    def own(self, predictions: NDArray[np.float64]) -> dict[str, dict[str, float]]:
        """Return the user-defined metrics by their keys in summary.json; none if there are none.

        Raises SettingError naming the function at fault.
        """
        kinds = {"errors": self.options.errors, "scores": self.options.scores}
        measured: dict[str, dict[str, float]] = {}
        for key, references in kinds.items():
            for reference in references:
                try:
                    value = metrics.metric(reference, self.test, predictions)
                except InputError as error:
                    raise SettingError(key, f"{error.where}: {error.found}", error.accepted) from None
                measured.setdefault(key, {})[metrics.name_of(reference)] = value
        return measured

    def ranking(
        self, predict: Predict, predict_rows: PredictRows | None, progress: Progress = silent
    ) -> dict[str, Any]:
        """Return the figures of lists from the catalogue by their keys in summary.json; none if not asked.

        Every user with a relevant test rating counts, whatever the cutoff.

        ``predict``, ``predict_rows``: predictions are ranked as they are, not clipped to the scale: clipping
        would only make ties.
        """
        options, length, held = self.options.ranking, self.options.top_k, self.held
        if self.train.scale.implicit and length != EvaluationOptions.top_k:
            # Lists of another length than the main ones are ranked as well.
            asked = () if options is None else options.cutoffs
            options = replace(options or RankingOptions(), cutoffs=tuple(dict.fromkeys((*asked, length))))
        if options is None:
            return {}
        binary = is_binary(held.scale)
        relevant = metrics.relevant_ratings(self.test, held, 0.0 if binary else self.options.relevant_from)
        users = np.flatnonzero(relevant.counts)
        unrated = Unrated(held, self._targets)
        candidates: Candidates = unrated
        if options.negatives is not None:
            candidates = Sampled(unrated, self.test, relevant, options.negatives, options.seed)
            predict_rows = None
        length, n_items = max(options.cutoffs), held.n_items
        lists = best_items(
            predict, candidates, users, length, n_items, predict_rows=predict_rows, progress=progress
        )
        n_candidates = n_items if unrated.allowed is None else np.count_nonzero(unrated.allowed)
        figures = metrics.ranking_figures(
            metrics.RankedHits.of(lists, users, relevant), options.cutoffs, int(n_candidates)
        )
        measured: dict[str, Any] = {"users": users.size, **{f"{name}_at": at for name, at in figures.items()}}
        if options.negatives is None:
            return {"ranking": measured}
        return {"sampled_ranking": {**measured, "negatives": options.negatives, "seed": options.seed}}

    def _candidates(self) -> NDArray[np.int64]:
        """Return how many items are ranked for each of the tested users."""
        held, tested = self.held, self.test.counts > 0
        if self.options.candidates == "test":
            return self.test.counts[tested]
        allowed = np.ones(held.n_items, dtype=np.bool_) if self._targets is None else self._targets
        rated = np.bincount(rows_of(held.counts), allowed[held.items], held.n_users)
        left: NDArray[np.int64] = np.count_nonzero(allowed) - rated[tested].astype(np.int64)
        return left

    @property
    def _targets(self) -> NDArray[np.bool_] | None:
        """The items that may be recommended, where not all may be; shape (items,)."""
        return self.train.in_target if isinstance(self.train, CrossDomainRatings) else None


def relative_error(hidden: Predict, truth: NDArray[np.float64]) -> float:
    """Return ||M^ - M||_F^2 / ||M||_F^2 over all cells, observed or not (Li et al. [li2021], section 5.1)."""
    users, items = np.divmod(np.arange(truth.size), truth.shape[1])
    errors = hidden(users, items) - truth.ravel()
    return float((errors**2).sum() / (truth**2).sum())
