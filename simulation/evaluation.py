"""Accuracy: holds the predictions of a run against its test ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec import metrics
from dprec.arrays import AnyInts, rows_of
from dprec.binarization import is_binary
from dprec.catalogue import Catalogue, UsersTable
from dprec.crossdomain import CrossDomainRatings
from dprec.datasets.negatives import Given, lines_among
from dprec.errors import InputError, SettingError, within
from dprec.groups import MEANS, SUMS, Grouping, error_sums, group_figures
from dprec.predictions import Lists, Predict, PredictRows, Sampled, Unrated, scored_lists
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


def unmeasured(
    predict: Predict, hidden: Predict | None = None, predict_rows: PredictRows | None = None
) -> dict[str, float | None]:
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
    lists: Lists | None = None
    """As long as the longest that anything asks for; None where nothing does."""
    relevant: NDArray[np.float64] | None = None
    """Whether each test rating makes its item relevant, NaN if no list is judged by it; None unless lists are
    asked for; shape (test ratings,).
    """

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
    ratings in another order. Raises SettingError naming the key or the function at fault, and InputError for
    a file of negatives.
    """
    scale, bound = train.scale, options.relevant_from
    if scale.implicit:
        for key, setting in (
            ("relevant_from", bound),
            ("errors", options.errors),
            ("scores", options.scores),
        ):
            if setting:
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
    if options.ranking is not None and isinstance(options.ranking.negatives, str):
        evaluator.sampled(options.ranking)
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
    known_alone: NDArray[np.float64] | None = None
    """`alone`, where it is known."""

    @property
    def profiles(self) -> Ratings:
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
        hidden: Predict | None = None,
        scores: Predict | None = None,
        lists: Lists | None = None,
    ) -> dict[str, float | None]:
        """Return the accuracy of predictions under the names that the run directory uses.

        ``predictions``, shape (test ratings,): for signs, the accuracy is the share predicted correctly; a
        prediction of 0 counts as +1.
        ``hidden``: from arrays of users and items to the learned entries of the hidden matrix.
        ``scores``: what test items are ranked by, if not by predictions.
        ``lists``: of all unrated items, if these are ranked instead.
        """
        profiles, test, options, truth = self.profiles, self.test, self.options, self.truth
        if is_binary(test.scale):
            error = None if hidden is None or truth is None else relative_error(hidden, truth)
            return {"sign_accuracy": metrics.sign_accuracy(predictions, test.values), "relative_error": error}
        if lists is None:
            ranked = predictions if scores is None else scores(test.users, test.items)
            ranking = metrics.ranking_accuracy(ranked, test, profiles, options.top_k, options.relevant_from)
        else:
            ranking = metrics.recommendation_accuracy(
                lists.items[:, : options.top_k], lists.users, test, profiles, options.relevant_from
            )
        return {
            "rmse": metrics.root_mean_squared_error(predictions, test.values),
            "mae": metrics.mean_absolute_error(predictions, test.values),
            "precision_at_k": ranking.precision,
            "recall_at_k": ranking.recall,
            "f_score_at_k": ranking.f_score,
            "k": options.top_k,
            "whole_lists": float((self._candidates() <= options.top_k).mean()),
        }

    def __call__(
        self, predict: Predict, hidden: Predict | None = None, predict_rows: PredictRows | None = None
    ) -> dict[str, float | None]:
        """Return the accuracy of a predictor; see `judged`."""
        if self.test.scale.implicit:
            return self._of_lists(self.lists(predict, predict_rows, length=self._main_length))[1]
        return self.judged(predict, predict_rows, hidden)[2]

    def judged(
        self,
        predict: Predict,
        predict_rows: PredictRows | None = None,
        hidden: Predict | None = None,
        progress: Progress = silent,
        scores: Predict | None = None,
        lists: Lists | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, dict[str, float | None]]:
        """Return predictions of the test ratings, their ranks if lists are judged, and their accuracy.

        Lists of implicit data are judged over the whole catalogue; see `dprec.metrics.accuracy_of_lists`.
        ``hidden``, ``scores``: see `accuracy`.
        ``lists``: by the same predictions, of the length that is judged at least, if there are any already.
        """
        predictions, length = self.predictions(predict), self._main_length
        if length and lists is None:
            ranked = (predict, predict_rows) if scores is None else (scores, None)
            lists = self.lists(*ranked, progress, length=length)
        if not self.test.scale.implicit:
            return predictions, None, self.accuracy(predictions, hidden, scores, lists if length else None)
        assert lists is not None
        return predictions, *self._of_lists(lists)

    def _of_lists(self, lists: Lists) -> tuple[NDArray[np.float64], dict[str, float | None]]:
        """Return the ranks of the test items in lists of implicit data, and the accuracy of these."""
        hits = self._hits(lists, self._main_length)
        figures = metrics.accuracy_of_lists(hits, lists.users, self.test, self.train)
        return hits.ranks(lists.users, self.test), {"rmse": None, "mae": None, **figures}

    def lists(
        self,
        predict: Predict,
        predict_rows: PredictRows | None = None,
        progress: Progress = silent,
        *,
        length: int,
    ) -> Lists:
        """Return the lists of everybody with a test rating, of all items that are not among the train items.

        Predictions are ranked as they are, not clipped to the scale: clipping would only make ties.
        """
        return scored_lists(
            predict,
            Unrated(self.profiles, self._targets),
            np.flatnonzero(self.test.counts),
            length,
            self.train.n_items,
            predict_rows=predict_rows,
            progress=progress,
        )

    def longest_lists(
        self, predict: Predict, predict_rows: PredictRows | None = None, progress: Progress = silent
    ) -> Lists | None:
        """Return lists that are as long as the longest that is judged or asked for; None where none is."""
        options, ranking = self.options, self._ranking_options
        lengths = [self._main_length, options.lists or 0, _LISTED if options.groups else 0]
        if ranking is not None:
            lengths += ranking.cutoffs
        return self.lists(predict, predict_rows, progress, length=max(lengths)) if any(lengths) else None

    @property
    def _main_length(self) -> int:
        """Length of the lists that the figures of every evaluation are of; 0 where no catalogue is ranked."""
        if self.test.scale.implicit:
            return metrics.LONGEST_LIST
        ranked = self.options.candidates == "unrated" and not is_binary(self.test.scale)
        return self.options.top_k if ranked else 0

    def _hits(self, lists: Lists, length: int) -> metrics.RankedHits:
        """Return where test items are in the first places of lists."""
        return metrics.RankedHits.of(lists.items[:, :length], lists.users, self.test)

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        """Which test ratings make an item relevant, shape (test ratings,)."""
        bound = 0.0 if is_binary(self.profiles.scale) else self.options.relevant_from
        return metrics.is_relevant(self.test, self.profiles, bound)

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
        if self.known_alone is not None:
            return self.known_alone
        return self.predictions(NothingSentProtocol().alone(self.profiles, self.catalogue).predict)

    def groupings(self, epsilons: NDArray[np.float64] | None = None) -> dict[str, Grouping]:
        """Return the groups that are asked for, of all users.

        ``epsilons``, shape (users,): what the reports of each user lose per rating; unknown before a run.
        Raises SettingError under "groups".
        """
        unknown, profiles = np.full(self.test.n_users, np.nan), self.profiles
        # Losses that are sums differ in their last bits; who has ratings and sent nothing has lost nothing.
        losses = unknown if epsilons is None else np.round(epsilons, 9)
        losses = np.where(np.isnan(losses) & (profiles.counts > 0), 0.0, losses)
        computed = {ACTIVITY: profiles.counts + self.test.counts, EPSILON: losses}
        groupings = {"all": Grouping.of_all(profiles.n_users)} if self.options.groups else {}
        for name in self.options.groups:
            with within("groups"), within(name):
                table = self.users or UsersTable({}, profiles.n_users)
                values = computed[name].astype(np.float64) if name in computed else table.column(name)
                groupings[name] = Grouping.of(values)
        return groupings

    def users_of_groups(
        self,
        predictions: NDArray[np.float64],
        lists: Lists | None,
        charged: Callable[[], Mapping[str, NDArray[Any]]],
    ) -> GroupedUsers | None:
        """Return what happens to each user with test ratings; None where no groups are asked for.

        ``predictions``: of the test ratings.
        ``lists``: those of `longest_lists`.
        ``charged``: returns columns by user of the train ratings: message bytes and losses.
        """
        if not self.options.groups:
            return None
        assert lists is not None
        test, users = self.test, np.flatnonzero(self.test.counts)
        cold = isinstance(test, ColdRatings)
        of_train = {
            name: np.full(test.n_users, np.nan) if cold else column for name, column in charged().items()
        }
        first = lists.items[:, :_LISTED]
        popularity = np.bincount(self.train.items, minlength=self.train.n_items) / self.train.n_users
        of_lists, of_profiles = metrics.popularities(first, users, self.profiles, popularity)
        columns = {name: np.full(users.size, np.nan) for name in (*SUMS, *MEANS)}
        if test.scale.implicit:
            columns["test_ratings"] = test.counts[users].astype(np.float64)
            hits = self._hits(lists, self._main_length)
            judged = {name: of(hits) for name, of in metrics.METRICS_OF_LISTS.items() if name in MEANS}
        else:
            judged = error_sums(test.users, test.values, predictions, self.alone)
        losses = {name: column[users].astype(np.float64) for name, column in of_train.items()}
        popular = {"list_popularity": of_lists, "own_popularity": of_profiles}
        columns |= {**judged, **popular, **losses}
        groupings = self.groupings(of_train["epsilon_per_rating"])
        groupings = {name: grouping.of_users(users) for name, grouping in groupings.items()}
        figures: dict[str, list[dict[str, Any]]] = {name: [] for name in groupings}
        for name, grouping in groupings.items():
            for group, members in grouping.masks():
                listed = first[members]
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

    def ranking(self, predict: Predict, lists: Lists | None, progress: Progress = silent) -> dict[str, Any]:
        """Return the figures of lists from the catalogue by their keys in summary.json; none if not asked.

        Every user with a relevant test rating counts, whatever the cutoff; where gains are graded, every user
        with a test rating.

        ``lists``: those of `longest_lists`.
        """
        options, test, n_items = self._ranking_options, self.test, self.train.n_items
        if options is None:
            return {}
        assert lists is not None
        relevant = test.select(self.relevant)
        users, length = np.flatnonzero(relevant.counts), max(options.cutoffs)

        def figures(items: AnyInts) -> dict[str, Any]:
            n_candidates = n_items if self._targets is None else np.count_nonzero(self._targets)
            hits = metrics.RankedHits.of(items, users, relevant)
            binary = metrics.ranking_figures(hits, options.cutoffs, int(n_candidates))
            return {"users": users.size, **{f"{name}_at": at for name, at in binary.items()}}

        full_ranking = figures(lists.items[relevant.counts[lists.users] > 0, :length])
        if not test.scale.implicit and not is_binary(test.scale):
            graded = metrics.graded_ndcg(lists.items, lists.users, test, options.cutoffs)
            full_ranking["graded_ndcg_at"] = graded
        if options.negatives is None:
            return {"ranking": full_ranking}
        candidates, sampling = self.sampled(options)
        items = scored_lists(predict, candidates, users, length, n_items, progress=progress).items
        return {"ranking": full_ranking, "sampled_ranking": {**figures(items), **sampling}}

    def lines_of_sample(self) -> Iterator[str] | None:
        """Return the lines of a file that gives the items of a sample again; None unless one is asked for."""
        options = self._ranking_options
        if options is None or options.negatives is None:
            return None
        return lines_among(self.sampled(options)[0], self.test.select(self.relevant))

    def sampled(self, options: RankingOptions) -> tuple[Sampled | Given, dict[str, Any]]:
        """Return the candidates of a sample, drawn or given in a file, and what is said of them.

        Raises InputError for what is wrong with the file.
        """
        relevant, negatives = self.test.select(self.relevant), options.negatives
        if isinstance(negatives, int):
            unrated = Unrated(self.profiles, self._targets)
            sample = Sampled(unrated, self.test, relevant, negatives, options.seed)
            return sample, {"negatives": negatives, "seed": options.seed}
        assert negatives is not None
        with within("ranking.negatives"):
            listed = Given.read(negatives, relevant, self.test, self.profiles)
        return listed, {"negatives": listed.most, "seed": None}

    @property
    def _ranking_options(self) -> RankingOptions | None:
        """How lists are judged beside the main figures, as those of implicit data of another length are."""
        options, length = self.options.ranking, self.options.top_k
        if not self.train.scale.implicit or length == EvaluationOptions.top_k:
            return options
        cutoffs = () if options is None else options.cutoffs
        return replace(options or RankingOptions(), cutoffs=tuple(dict.fromkeys((*cutoffs, length))))

    def _candidates(self) -> NDArray[np.int64]:
        """Return how many items are ranked for each of the tested users."""
        profiles, tested = self.profiles, self.test.counts > 0
        if self.options.candidates == "test":
            return self.test.counts[tested]
        allowed = np.ones(profiles.n_items, dtype=np.bool_) if self._targets is None else self._targets
        rated = np.bincount(rows_of(profiles.counts), allowed[profiles.items], profiles.n_users)
        n_candidates: NDArray[np.int64] = np.count_nonzero(allowed) - rated[tested].astype(np.int64)
        return n_candidates

    @property
    def _targets(self) -> NDArray[np.bool_] | None:
        """The items that may be recommended, where not all may be; shape (items,)."""
        return self.train.in_target if isinstance(self.train, CrossDomainRatings) else None


def relative_error(hidden: Predict, truth: NDArray[np.float64]) -> float:
    """Return ||M^ - M||_F^2 / ||M||_F^2 over all cells, observed or not (Li et al. [li2021], section 5.1)."""
    users, items = np.divmod(np.arange(truth.size), truth.shape[1])
    errors = hidden(users, items) - truth.ravel()
    return float((errors**2).sum() / (truth**2).sum())
