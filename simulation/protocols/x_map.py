"""The X-Map protocol, in at most two rounds: ratings up, then candidates down and AlterEgos up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant, PrivacyBudget
from dprec.arrays import AnyInts, Floats, Ints, rows_of
from dprec.completion import ItemAverage, Observations
from dprec.components import Options, option
from dprec.crossdomain import (
    AlterEgos,
    Candidates,
    CrossDomainRatings,
    ItemBasedRecommender,
    LayeredGraph,
    RatedItems,
    RecommendationOptions,
    ReplacementDraws,
    ReplacementOptions,
    RowCodec,
    SimilarityKind,
    ValueCode,
    alter_egos,
    layered_graph,
    x_sim,
)
from dprec.errors import InputError, SettingError, within
from dprec.exchange import ReplacementSetup, XMapSetup
from dprec.mechanisms import Mechanism
from dprec.predictions import Predict
from dprec.progress import Progress
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Promise, Protocol, Public, Sent, sent_ratings
from dprec.protocols.components import AnyMechanism
from dprec.protocols.findings import Auditor, CrossDomainOutputs, Finding
from dprec.protocols.one_shot import OneShotProtocol
from dprec.randomness import seed_for, words
from dprec.ratings import Ratings
from dprec.reports import ReportFamily, Wanted
from simulation.protocols import base
from simulation.protocols.course import NOT_DELIVERED, notes_on_failures
from simulation.protocols.domains import AlterEgo, LearnedDomains
from simulation.protocols.task import Grid, Outcome, Task
from simulation.protocols.transcripts import told

if TYPE_CHECKING:
    from strategies.report_collection import Collected, Exchanged


_STAGE = "comparing items"


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Options):
    """How items are compared across the domains."""

    similarity: SimilarityKind = option("How alike two items are.", "adjusted-cosine")
    neighbors: int = option("Edges that an item keeps to each adjacent layer.", 10, ge=1)
    significance: int = option("Common raters that make a similarity count in full.", 50, ge=1)


@dataclass(frozen=True, kw_only=True)
class XMapProtocol(base.Protocol):
    """Devices replace what they rated in one domain with items of another; the server recommends there."""

    kind: Literal["x-map"] = "x-map"
    papers: ClassVar[tuple[str, ...]] = ("guerraoui2017",)
    privacy: PrivacyBudget | None = option("What the mechanism promises; left out if nothing.", None)
    mechanism: AnyMechanism = option("What the device applies to the ratings that it uploads.")
    graph: GraphOptions = option("How items are compared across the domains.", GraphOptions())
    replacement: ReplacementOptions = option("How AlterEgos are made.", ReplacementOptions())
    recommendation: RecommendationOptions = option("How ratings are predicted.", RecommendationOptions())

    @property
    def facts(self) -> Facts:
        """The mechanism of uploads or private replacement, and how items are compared if nothing is noisy."""
        own, replaced = self.mechanism.private, self.replacement.private
        return self.facts_of(
            private=own or replaced or self.recommendation.epsilon is not None,
            protects="private-replacement" if replaced and not own else self.mechanism.kind,
            learns="item-knn" if self.replacement.selection == "none" else "alter-ego-knn",
            fit=None if own else self.graph,
        )

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget: for the mechanism, or for each replacement and prediction."""
        if self.mechanism.private:
            return replace(self, privacy=sharing.mechanism_budget(self.mechanism, self.privacy, budget))
        replacement, recommendation = self.replacement, self.recommendation
        if self.replacement.private:
            with within("replacement"):
                replacement = replace(replacement, epsilon=budget.epsilon)
        if recommendation.epsilon is not None:
            with within("recommendation"):
                recommendation = replace(recommendation, epsilon=budget.epsilon)
        return replace(self, replacement=replacement, recommendation=recommendation)

    def check(self, train: Ratings) -> None:
        """Refuse ratings, a mechanism and budgets that do not fit together."""
        domains = _two_domains(train)
        if not domains.straddlers().any():
            raise InputError(
                "dataset",
                f"no user has training ratings in both {domains.source} and {domains.target}",
                "domains with users in common",
            )
        family = self._family(train)
        family.check()
        with within("replacement"):
            self.replacement.sensitivity(self.graph.similarity)
        received = family.channel(train.n_items).values
        if self.graph.similarity == "cosine" and np.nanmin(received) < 0:
            raise SettingError(
                "graph.similarity",
                f"'cosine', with ratings that arrive as low as {np.nanmin(received):g}",
                "'adjusted-cosine', or ratings of at least 0: only then is cosine between 0 and 1",
            )
        if self.mechanism.private and self.replacement.private:
            raise SettingError(
                "replacement.selection",
                f"'private', with mechanism {self.mechanism.kind}",
                "best, random or none: what follows a private upload costs no more privacy",
            )
        if self.mechanism.private and self.recommendation.epsilon is not None:
            raise SettingError(
                "recommendation.epsilon",
                f"{self.recommendation.epsilon:g}, with mechanism {self.mechanism.kind}",
                "no budget: what follows a private upload costs no more privacy",
            )

    def audited(self) -> Protocol:
        """Return the protocol if it draws what it lets out, else the uploads; see `Protocol.audited`."""
        if self.replacement.private or self.recommendation.epsilon is not None:
            return self
        sharing.check_private(self.mechanism)
        return OneShotProtocol(privacy=self.privacy, mechanism=self.mechanism, completion=ItemAverage())

    def audit(self, auditor: Auditor) -> Iterator[Finding]:
        """Compare replacements and predictions, each with its own budget."""
        options = self.replacement, self.recommendation, self.graph.similarity
        return auditor.of_outputs(CrossDomainOutputs(self.setup(), *options))

    def promise(self) -> Promise:
        """Return the promise of the uploads, or the larger one of a replacement and a prediction."""
        if self.mechanism.private:
            return super().promise()
        largest = max(self.replacement.epsilon or 0.0, self.recommendation.epsilon or 0.0)
        return Promise(largest, "rating", hides_rated_items=False)

    def setup(self) -> XMapSetup:
        """Return the mechanism, its budget, and how the device draws replacements."""
        return XMapSetup(
            mechanism=self.mechanism,
            privacy=self.privacy,
            replacement=ReplacementSetup(
                epsilon=self.replacement.epsilon,
                sensitivity=self.replacement.sensitivity(self.graph.similarity),
                whole_catalogue=self.replacement.whole_catalogue,
                transfer=self.replacement.transfer,
            ),
        )

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the ratings, exchange candidates for AlterEgos, and predict from these."""
        from strategies.report_collection import ReportCollection

        train, similarity = _two_domains(task.train), self.graph.similarity
        family = self._family(train)
        asking = ReportCollection(family, task.group, Wanted(symbols=task.attacked))
        observed = (collected := asking.collect(grid, task.roster)).observations
        items, comparison = _received_items(observed, similarity, self.recommendation.prior_ratings), None
        if self.replacement.selection != "none":
            comparison = _compare_items(items, train, self.graph, self.replacement, task.progress)
        egos, exchanged = self._alter_egos(grid, task, train, collected, items.means, comparison)
        deviations = self.replacement.deviations
        recommender = _target_recommender(
            observed,
            egos,
            train,
            self.recommendation,
            similarity=similarity,
            deviations=deviations,
            seed=seed_for(task.server_seed, observed.users, observed.items, observed.values),
        )
        if self.recommendation.epsilon is not None:
            task.progress("measuring sensitivities", 0, 1)
            _ = recommender.sensitivities
        rounds = (collected.record, exchanged.record) if exchanged else (collected.record,)
        notes = _note_on_items(observed, train, comparison, whole_catalogue=self.replacement.whole_catalogue)
        example = AlterEgo.example(train, egos, recommender, deviations)
        return Outcome(
            predict=_predictor(recommender, items.means, train),
            traffic=collected.traffic,
            accountant=replace(
                family.accountant(train.counts, collected.sent),
                claimed=self._claimed(train, collected, exchanged),
            ),
            guarantee=self.guarantee((train.n_users, train.n_items)),
            rounds=rounds,
            channel=family.device_channel(train.counts),
            notes=(
                *_failures(collected, exchanged),
                *notes,
                NOT_DELIVERED,
                *_note_on_profiles(recommender),
            ),
            **({} if comparison is None else _learned(train, comparison, recommender, example)),
            transcript=told(task, observed, trusted=not self.mechanism.private),
        )

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise what the mechanism or the trusted server's selection and noise give.

        Without a private mechanism the server is trusted, and replacement and recommendation are claimed to
        protect against those who see their results. If only one of the two is private, the other reveals
        ratings, and nothing is claimed.
        """
        if self.mechanism.private:
            return _guarantee_of_uploads(self.mechanism)
        replacement, recommendation = self.replacement, self.recommendation
        notes = ["Trusted server: it receives the true ratings of both domains."]
        if replacement.private:
            notes.append(_note_on_replacement(replacement))
        if recommendation.epsilon is not None:
            notes.append(_note_on_recommendation(recommendation, recommendation.epsilon))
        if unprotected := _unprotected_results(replacement, recommendation):
            reason = f"{' and '.join(unprotected)} reveal other users' ratings."
            return Guarantee("none", "central", False, reason, tuple(notes))
        return Guarantee("claimed", "central", False, _missing(replacement, recommendation), (*notes, _SUMS))

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the report of the ratings; AlterEgos follow it in a second round."""
        family = sharing.cell_reports(self.mechanism, self.privacy, public.scale, public.n_items)
        return sent_ratings(family, ratings)

    def _family(self, train: Ratings) -> ReportFamily:
        return sharing.cell_reports(self.mechanism, self.privacy, train.scale, train.n_items)

    def _alter_egos(
        self,
        grid: Grid,
        task: Task,
        train: CrossDomainRatings,
        collected: Collected,
        means: Floats,
        comparison: _ItemComparison | None,
    ) -> tuple[AlterEgos, Exchanged | None]:
        """Return the AlterEgos: none, or made by the server, or made by the devices in a second round."""
        if comparison is None:
            return AlterEgos.none(train.n_users), None
        observed, candidates = collected.observations, comparison.candidates
        if self.mechanism.private:
            seed = task.server_seed
            return _replaced_on_server(self.replacement, candidates, means, observed, train, seed), None
        from strategies.report_collection import ReplacementExchange

        options, sizes = self.replacement, (train.n_items, train.n_targets)
        asking = ReplacementExchange(
            candidates=candidates,
            means=means,
            rows=RowCodec(*sizes, with_steps=options.private, with_means=options.deviations),
            ratings=ValueCode.of(train.scale, deviations=False),
            values=ValueCode.of(train.scale, deviations=options.deviations),
            target=(train.target_start, train.target_stop),
            group=task.group,
        )
        exchanged = asking.exchange(grid, task.roster, observed, collected.traffic)
        return exchanged.egos, exchanged

    def _claimed(
        self, train: CrossDomainRatings, collected: Collected, exchanged: Exchanged | None
    ) -> PrivacyAccountant | None:
        """Charge replacements and predictions with what is claimed of them; None where nothing is."""
        per_prediction = self.recommendation.epsilon
        if per_prediction is None or _unprotected_results(self.replacement, self.recommendation):
            return None
        accountant = PrivacyAccountant(rated=np.ones(train.n_users, dtype=np.bool_))
        last = collected.record.round
        if exchanged is not None and self.replacement.epsilon is not None:
            per_draw, replaced = self.replacement.epsilon, exchanged.replaced.astype(np.float64)
            last = exchanged.record.round
            accountant.step(last, exchanged.sent, per_draw, per_draw * replaced)
        # Predictions are made after the last round.
        per_user = per_prediction * train.n_targets
        accountant.step(last, collected.accepted, per_prediction, per_user)
        return accountant


def _two_domains(train: Ratings) -> CrossDomainRatings:
    if not isinstance(train, CrossDomainRatings):
        raise InputError(
            "dataset",
            "ratings of one domain",
            "two: douban with source and target, movielens-genres, csv-domains or synthetic-domains",
        )
    return train


def _failures(collected: Collected, exchanged: Exchanged | None) -> tuple[str, ...]:
    notes = notes_on_failures([collected.record])
    return notes if exchanged is None else notes + notes_on_failures([exchanged.record], "AlterEgos")


def _replaced_on_server(
    options: ReplacementOptions,
    candidates: Candidates,
    means: Floats,
    observed: Observations,
    train: CrossDomainRatings,
    seed: int,
) -> AlterEgos:
    """Make the AlterEgos from the uploaded ratings; what devices would do otherwise."""
    draws = ReplacementDraws.prepare(candidates, 0.0, 1.0, train.n_targets, whole_catalogue=False)
    values = observed.values - means[observed.items] if options.deviations else observed.values
    noise = words(seed, "replacement", 0, observed.items.size)
    return alter_egos(observed.users, observed.items, values, train.n_users, draws, noise, train.target_start)


@dataclass(frozen=True, eq=False)
class _ItemComparison:
    """How the items of the two domains compare."""

    graph: LayeredGraph
    candidates: Candidates
    x_sim_values: int
    valued: Ints


def _received_items(observed: Observations, similarity: SimilarityKind, prior_ratings: float) -> RatedItems:
    """Return the items of both domains as the received ratings show them."""
    cells = observed.users, observed.items
    matrix = sp.coo_array((observed.values, cells), shape=observed.shape).tocsr()
    return RatedItems.of(matrix, similarity, prior_ratings)


@lru_cache(maxsize=1)
def _x_sim(
    items: RatedItems, target_start: int, target_stop: int, options: GraphOptions
) -> tuple[LayeredGraph, sp.csr_array]:
    """Return the graph and X-Sim; kept, as they are the same in all runs on ratings as they are."""
    places = np.arange(items.n_items)
    in_target = (places >= target_start) & (places < target_stop)
    graph = layered_graph(items, in_target, options.neighbors, options.significance)
    return graph, x_sim(graph)


def _compare_items(
    items: RatedItems,
    train: CrossDomainRatings,
    graph_options: GraphOptions,
    replacement: ReplacementOptions,
    progress: Progress,
) -> _ItemComparison:
    """Compare the items of the two domains and find the candidates of every source item."""
    progress(_STAGE, 0, 1)
    graph, values = _x_sim(items, train.target_start, train.target_stop, graph_options)
    similar = sp.csr_array(
        (values.data, values.indices - train.target_start, values.indptr),
        shape=(train.n_items, train.n_targets),
    )
    candidates = Candidates.of(similar)
    valued = candidates.items
    if replacement.whole_catalogue:
        candidates = candidates.covering(np.flatnonzero(~train.in_target))
    if not replacement.private:
        candidates = candidates.best(similar, 1 if replacement.selection == "best" else replacement.among)
    if graph_options.similarity == "cosine":
        candidates = replace(candidates, steps=np.maximum(candidates.steps, 0))
    progress(_STAGE, 1, 1)
    return _ItemComparison(graph, candidates, int(similar.nnz), valued)


def _target_recommender(
    observed: Observations,
    egos: AlterEgos,
    train: CrossDomainRatings,
    options: RecommendationOptions,
    *,
    similarity: SimilarityKind,
    deviations: bool,
    seed: int,
) -> ItemBasedRecommender:
    """Return the recommender for target items."""
    start, stop = train.target_start, train.target_stop
    own = (observed.items >= start) & (observed.items < stop)
    users, targets, values = observed.users[own], observed.items[own] - start, observed.values[own]
    shape = (train.n_users, train.n_targets)
    received = sp.coo_array((values, (users, targets)), shape=shape).tocsr()
    items = RatedItems.of(received, similarity, options.prior_ratings)
    made_for = rows_of(np.diff(egos.indptr))
    made = egos.values if deviations else egos.values - items.means[egos.targets]
    profiles = sp.coo_array(
        (
            np.concatenate([values - items.means[targets], made]),
            (np.concatenate([users, made_for]), np.concatenate([targets, egos.targets])),
        ),
        shape=shape,
    ).tocsr()
    return ItemBasedRecommender(options, similarity, items, profiles, seed)


def _predictor(recommender: ItemBasedRecommender, means: Floats, train: CrossDomainRatings) -> Predict:
    def predict(users: AnyInts, items: AnyInts) -> Floats:
        predictions: Floats = means[items].copy()
        wanted = np.flatnonzero((items >= train.target_start) & (items < train.target_stop))
        predictions[wanted] = recommender.predict(users[wanted], items[wanted] - train.target_start)
        return predictions

    return predict


_SUMS = (
    "The epsilon per rating that is claimed covers one replacement, if there is any, and one prediction; the "
    "claim per user adds up the replacements of the user's whole AlterEgo and a prediction for every item of "
    "the target domain. Both cover what one recipient sees: recipients who pool what they see add theirs up."
)


def _unprotected_results(
    replacement: ReplacementOptions, recommendation: RecommendationOptions
) -> tuple[str, ...]:
    """Name what others see of a trusted server's work without any noise."""
    replaced = ("AlterEgos",) if replacement.selection not in ("private", "none") else ()
    return replaced if recommendation.epsilon is not None else (*replaced, "predictions")


def _guarantee_of_uploads(mechanism: Mechanism) -> Guarantee:
    hides = mechanism.report_family.hides_items
    which = "Which items a user rated is hidden" if hides else "Which items a user rated is not hidden"
    told = "" if hides else ", and show other users something of which items were rated"
    note = (
        f"{which}; X-Sim, AlterEgos and predictions follow from the reports: they tell no more of the values "
        f"than these do{told}."
    )
    return Guarantee("proved", "local", hides, f"{sharing.EXACT_CHANNEL}.", (note,))


def _missing(replacement: ReplacementOptions, recommendation: RecommendationOptions) -> str:
    """Return what a proof of the claimed epsilon would need."""
    missing = ["the items' means enter predictions without noise"]
    if replacement.private and not replacement.whole_catalogue:
        missing.append("which replacements can be drawn depends on the ratings")
    if recommendation.neighbors > 1:
        used = recommendation.neighbors
        adds = "PNCF (private neighbourhood-based collaborative filtering) adds the noise of one similarity"
        missing.append(f"{adds}, and a prediction uses {used}")
    if recommendation.sensitivity == "local":
        missing.append("the sensitivity is that of these ratings, not of any")
    missing.append("recipients who pool what they see are not accounted for")
    return f"{'; '.join(missing)}."


def _note_on_replacement(options: ReplacementOptions) -> str:
    over = (
        "all target items"
        if options.candidates == "catalogue"
        else "the target items with an X-Sim value: which these are, and which items have none and are not "
        "replaced, must be the same for both data sets"
    )
    means = (
        " The mean ratings of the source items are sent to it and enter the AlterEgo without noise."
        if options.deviations
        else ""
    )
    return (
        f"Private replacement: each draw is {options.epsilon:g}-private for two data sets that differ in one "
        f"user, over {over}. It protects the users whose ratings X-Sim was computed from against those who "
        f"see the AlterEgo; the device itself is sent the X-Sim values of its items without noise.{means}"
    )


def _note_on_recommendation(options: RecommendationOptions, epsilon: float) -> str:
    half = epsilon / 2
    metric = (
        "Theorem 2's similarity-based sensitivity is computed from these ratings: it is local, and noise of "
        "that size does not give differential privacy"
        if options.sensitivity == "local"
        else "the sensitivity is the width of the similarity's range"
    )
    return (
        f"Recommendation: PNSA (private neighbour selection) spends {half:g} and PNCF {half:g} on one "
        f"prediction, for two target domains that differ in one user; {metric}. PNCF's noise is calibrated "
        f"to one similarity, but a prediction uses {options.neighbors}; the items' means enter it without "
        "noise."
    )


def _note_on_items(
    observed: Observations,
    train: CrossDomainRatings,
    comparison: _ItemComparison | None,
    *,
    whole_catalogue: bool,
) -> tuple[str, ...]:
    """Note how many source items have no X-Sim value, or that no items were compared."""
    if comparison is None:
        return ("Target domain alone: users without ratings there get the items' means as predictions.",)
    rated = np.unique(observed.items)
    sources = rated[(rated < train.target_start) | (rated >= train.target_stop)]
    without = int((~np.isin(sources, comparison.valued)).sum())
    if not without:
        return ()
    consequence = (
        "their replacement is drawn uniformly from all target items"
        if whole_catalogue
        else "they have no replacement and were left out"
    )
    return (f"{without} of {sources.size} rated source items have no X-Sim value: {consequence}.",)


def _note_on_profiles(recommender: ItemBasedRecommender) -> tuple[str, ...]:
    sizes = np.diff(recommender.profiles.indptr)
    k = recommender.options.neighbors
    few, empty = int(((sizes > 0) & (sizes < k)).sum()), int((sizes == 0).sum())
    if not few and not empty:
        return ()
    return (
        f"Of {sizes.size} profiles in the target domain, {few} hold fewer items than the {k} neighbours of a "
        f"prediction, so all of their items are used; {empty} are empty.",
    )


def _learned(
    train: CrossDomainRatings,
    comparison: _ItemComparison,
    recommender: ItemBasedRecommender,
    example: AlterEgo | None,
) -> dict[str, Any]:
    """Return what the server learned about the items, as fields of an outcome."""
    diagnostics: dict[str, Any] = {
        "straddlers": int(train.straddlers().sum()),
        "x_sim_values": comparison.x_sim_values,
        "items_with_x_sim": int(comparison.valued.size),
    }
    if recommender.options.epsilon is not None:
        diagnostics["median_sensitivity"] = float(np.median(recommender.sensitivities))
    return {"domains": LearnedDomains.of(train, comparison.graph, example), "diagnostics": diagnostics}
