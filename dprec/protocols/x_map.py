"""X-Map: devices replace what they rated in one domain with items of another; the server recommends there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy

from dprec.accounting import Guarantee, MatchedBudget, PrivacyBudget
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
    SimilarityKind,
    alter_egos,
    layered_graph,
    x_sim,
)
from dprec.errors import InputError, SettingError, within
from dprec.mechanisms import Mechanism
from dprec.predictions import Predict
from dprec.progress import Progress
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Promise, Protocol
from dprec.protocols.collection import CollectionProtocol
from dprec.protocols.components import AnyMechanism
from dprec.protocols.findings import AuditTests, Finding
from dprec.protocols.one_shot import OneShotProtocol
from dprec.randomness import seed_for, words
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportFamily

_STAGE = "comparing items"


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Options):
    """How items are compared across the domains."""

    similarity: SimilarityKind = option("How alike two items are.", "adjusted-cosine")
    neighbors: int = option("Edges that an item keeps to each adjacent layer.", 10, ge=1)
    significance: int = option("Common raters that make a similarity count in full.", 50, ge=1)


@dataclass(frozen=True, eq=False)
class ItemComparison:
    """How the items of the two domains compare."""

    graph: LayeredGraph
    candidates: Candidates
    x_sim_values: int
    valued: Ints


@dataclass(frozen=True, kw_only=True)
class XMapProtocol(CollectionProtocol):
    """Devices replace what they rated in one domain with items of another; the server recommends there."""

    kind: Literal["x-map"] = "x-map"
    papers: ClassVar[tuple[str, ...]] = ("guerraoui2017",)
    undeployable: ClassVar[str] = "whose server needs ratings or trust"
    privacy: PrivacyBudget | None = option("What the mechanism promises; left out if nothing.", None)
    mechanism: AnyMechanism = option("What the device applies to the ratings that it uploads.")
    graph: GraphOptions = option("How items are compared across the domains.", GraphOptions())
    replacement: ReplacementOptions = option("How AlterEgos are made.", ReplacementOptions())
    recommendation: RecommendationOptions = option(
        "How ratings are predicted.", RecommendationOptions(), reader="server"
    )

    @property
    def facts(self) -> Facts:
        """The mechanism of uploads or private replacement, and how items are compared if nothing is noisy."""
        private_uploads, replaced = self.mechanism.private, self.replacement.private
        return self.facts_of(
            private=private_uploads or replaced or self.recommendation.epsilon is not None,
            protects="private-replacement" if replaced and not private_uploads else self.mechanism.kind,
            learns="item-knn" if self.replacement.selection == "none" else "alter-ego-knn",
            fit=None if private_uploads else self.graph,
        )

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily:
        """Return what devices upload, cell by cell; raises SettingError for a mechanism that does not."""
        return sharing.cell_reports(self.mechanism, self.privacy, scale, n_items)

    @property
    def sensitivity(self) -> float:
        """Largest change of an X-Sim value that one user can cause; devices take it from here alone."""
        return self.replacement.sensitivity(self.graph.similarity)

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget: for the mechanism, or for each replacement and prediction."""
        if self.mechanism.private:
            return super().at_budget(budget)
        replacement, recommendation = self.replacement, self.recommendation
        if self.replacement.private:
            with within("replacement"):
                replacement = replace(replacement, epsilon=budget.epsilon)
        if recommendation.epsilon is not None:
            with within("recommendation"):
                recommendation = replace(recommendation, epsilon=budget.epsilon)
        return replace(self, replacement=replacement, recommendation=recommendation)

    def check(self, train: Any) -> None:
        """Refuse ratings, a mechanism and budgets that do not fit together."""
        domains = two_domains(train)
        if not domains.straddlers().any():
            raise InputError(
                "dataset",
                f"no user has training ratings in both {domains.source} and {domains.target}",
                "domains with users in common",
            )
        family = self.family(train.scale, train.n_items)
        family.check()
        with within("replacement"):
            _ = self.sensitivity
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
                "null: what follows a private upload costs no more privacy",
            )

    def audited(self) -> Protocol:
        """Return the protocol if it draws what it lets out, else the uploads; see `Protocol.audited`."""
        if self.replacement.private or self.recommendation.epsilon is not None:
            return self
        sharing.check_private(self.mechanism)
        return OneShotProtocol(privacy=self.privacy, mechanism=self.mechanism, completion=ItemAverage())

    def audit(self, auditor: AuditTests) -> Iterator[Finding]:
        """Compare replacements and predictions, each with its own budget."""
        return auditor.of_outputs(self)

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return None: how far reports move what AlterEgos say of others is not known."""
        return None

    def promise(self) -> Promise:
        """Return the promise of the uploads, or the larger one of a replacement and a prediction."""
        if self.mechanism.private:
            return super().promise()
        largest = max(self.replacement.epsilon or 0.0, self.recommendation.epsilon or 0.0)
        return Promise(largest, "rating", hides_rated_items=False)

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
        if unprotected := self.unprotected_results:
            reason = f"{' and '.join(unprotected)} reveal other users' ratings."
            return Guarantee("none", "central", False, reason, tuple(notes))
        return Guarantee("claimed", "central", False, _missing(replacement, recommendation), (*notes, _SUMS))

    @property
    def unprotected_results(self) -> tuple[str, ...]:
        """What others see of a trusted server's work without any noise."""
        replaced = ("AlterEgos",) if self.replacement.selection not in ("private", "none") else ()
        return replaced if self.recommendation.epsilon is not None else (*replaced, "predictions")

    def received_items(self, observed: Observations) -> RatedItems:
        """Return the items of both domains as the received ratings show them."""
        cells = observed.users, observed.items
        matrix = scipy.sparse.coo_array((observed.values, cells), shape=observed.shape).tocsr()
        return RatedItems.of(matrix, self.graph.similarity, self.recommendation.prior_ratings)

    def compared(
        self, items: RatedItems, domains: CrossDomainRatings, progress: Progress
    ) -> ItemComparison | None:
        """Compare the items of the two domains and find the candidates of every source item.

        None where there are no AlterEgos.
        """
        options = self.replacement
        if options.selection == "none":
            return None
        progress(_STAGE, 0, 1)
        graph, values = _x_sim(items, domains.target_start, domains.target_stop, self.graph)
        similarities = scipy.sparse.csr_array(
            (values.data, values.indices - domains.target_start, values.indptr),
            shape=(domains.n_items, domains.n_targets),
        )
        candidates = Candidates.of(similarities)
        valued = candidates.items
        if options.whole_catalogue:
            candidates = candidates.covering(np.flatnonzero(~domains.in_target))
        if not options.private:
            candidates = candidates.best(similarities, 1 if options.selection == "best" else options.among)
        if self.graph.similarity == "cosine":
            candidates = replace(candidates, steps=np.maximum(candidates.steps, 0))
        progress(_STAGE, 1, 1)
        return ItemComparison(graph, candidates, int(similarities.nnz), valued)

    def replaced_on_server(
        self,
        candidates: Candidates,
        means: Floats,
        observed: Observations,
        domains: CrossDomainRatings,
        seed: int,
    ) -> AlterEgos:
        """Make the AlterEgos from the uploaded ratings; what devices would do otherwise."""
        draws = ReplacementDraws.prepare(candidates, 0.0, 1.0, domains.n_targets, whole_catalogue=False)
        deviations = self.replacement.deviations
        values = observed.values - means[observed.items] if deviations else observed.values
        noise = words(seed, "replacement", 0, observed.items.size)
        users, start = domains.n_users, domains.target_start
        return alter_egos(observed.users, observed.items, values, users, draws, noise, start)

    def recommender(
        self, observed: Observations, egos: AlterEgos, domains: CrossDomainRatings, server_seed: int
    ) -> ItemBasedRecommender:
        """Return the recommender for target items."""
        start, stop = domains.target_start, domains.target_stop
        in_target = (observed.items >= start) & (observed.items < stop)
        users, values = observed.users[in_target], observed.values[in_target]
        targets = observed.items[in_target] - start
        shape, similarity = (domains.n_users, domains.n_targets), self.graph.similarity
        received = scipy.sparse.coo_array((values, (users, targets)), shape=shape).tocsr()
        items = RatedItems.of(received, similarity, self.recommendation.prior_ratings)
        ego_users = rows_of(np.diff(egos.indptr))
        ego_values = egos.values if self.replacement.deviations else egos.values - items.means[egos.targets]
        profiles = scipy.sparse.coo_array(
            (
                np.concatenate([values - items.means[targets], ego_values]),
                (np.concatenate([users, ego_users]), np.concatenate([targets, egos.targets])),
            ),
            shape=shape,
        ).tocsr()
        seed = seed_for(server_seed, observed.users, observed.items, observed.values)
        return ItemBasedRecommender(self.recommendation, similarity, items, profiles, seed)


def two_domains(train: Ratings) -> CrossDomainRatings:
    """Return ratings of two domains; raises InputError for others."""
    if not isinstance(train, CrossDomainRatings):
        raise InputError(
            "dataset",
            "ratings of one domain",
            "two: douban with source and target, movielens-genres, csv-domains or synthetic-domains",
        )
    return train


@lru_cache(maxsize=1)
def _x_sim(
    items: RatedItems, target_start: int, target_stop: int, options: GraphOptions
) -> tuple[LayeredGraph, scipy.sparse.csr_array]:
    """Return the graph and X-Sim; kept, as they are the same in all runs on ratings as they are."""
    places = np.arange(items.n_items)
    in_target = (places >= target_start) & (places < target_stop)
    graph = layered_graph(items, in_target, options.neighbors, options.significance)
    return graph, x_sim(graph)


def predictor(recommender: ItemBasedRecommender, means: Floats, domains: CrossDomainRatings) -> Predict:
    """Return what predicts: the recommender of target items, and means of the others."""

    def predict(users: AnyInts, items: AnyInts) -> Floats:
        predictions: Floats = means[items].copy()
        in_target = np.flatnonzero((items >= domains.target_start) & (items < domains.target_stop))
        predictions[in_target] = recommender.predict(
            users[in_target], items[in_target] - domains.target_start
        )
        return predictions

    return predict


_SUMS = (
    "The epsilon per rating that is claimed covers one replacement, if there is any, and one prediction; the "
    "claim per user adds up the replacements of the user's whole AlterEgo and a prediction for every item of "
    "the target domain. Both cover what one recipient sees: recipients who pool what they see add theirs up."
)


def _guarantee_of_uploads(mechanism: Mechanism) -> Guarantee:
    hides = mechanism.report_family.hides_items
    which = "Which items a user rated is hidden" if hides else "Which items a user rated is not hidden"
    disclosure = "" if hides else ", and show other users something of which items were rated"
    note = (
        f"{which}; X-Sim, AlterEgos and predictions follow from the reports: they tell no more of the values "
        f"than these do{disclosure}."
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


def note_on_items(
    observed: Observations,
    domains: CrossDomainRatings,
    comparison: ItemComparison | None,
    *,
    whole_catalogue: bool,
) -> tuple[str, ...]:
    """Note how many source items have no X-Sim value, or that no items were compared."""
    if comparison is None:
        return ("Target domain alone: users without ratings there get the items' means as predictions.",)
    rated = np.unique(observed.items)
    sources = rated[(rated < domains.target_start) | (rated >= domains.target_stop)]
    n_without = int((~np.isin(sources, comparison.valued)).sum())
    if not n_without:
        return ()
    consequence = (
        "their replacement is drawn uniformly from all target items"
        if whole_catalogue
        else "they have no replacement and were left out"
    )
    return (f"{n_without} of {sources.size} rated source items have no X-Sim value: {consequence}.",)


def note_on_profiles(recommender: ItemBasedRecommender) -> tuple[str, ...]:
    """Note how many profiles hold fewer items than a prediction uses."""
    sizes = np.diff(recommender.profiles.indptr)
    k = recommender.options.neighbors
    few, empty = int(((sizes > 0) & (sizes < k)).sum()), int((sizes == 0).sum())
    if not few and not empty:
        return ()
    return (
        f"Of {sizes.size} profiles in the target domain, {few} hold fewer items than the {k} neighbours of a "
        f"prediction, so all of their items are used; {empty} are empty.",
    )
