"""X-Map: recommendation across domains, from replacements drawn on the devices (Guerraoui et al.)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.completion import Observations
from dprec.crossdomain.alter_ego import AlterEgos, ReplacementOptions, alter_egos
from dprec.crossdomain.alter_ego_codec import RowCodec, ValueCode
from dprec.crossdomain.domains import CrossDomainRatings
from dprec.crossdomain.layers import LAYER_NAMES, LayeredGraph, layered_graph
from dprec.crossdomain.recommender import ItemBasedRecommender, RecommendationOptions
from dprec.crossdomain.replacement import Candidates, ReplacementDraws
from dprec.crossdomain.similarity import RatedItems, SimilarityKind
from dprec.crossdomain.xsim import x_sim
from dprec.errors import InputError, SettingError, within
from dprec.messages import REPLACE
from dprec.options import Options, option
from dprec.privacy.calibration import CalibratedMechanism, PrivacyBudget
from dprec.privacy.device_channel import device_channel
from dprec.privacy.ledger import Guarantee, PrivacyLedger
from dprec.privacy.units import ComparableUnit
from dprec.ragged import rows_of
from dprec.randomness import words
from dprec.ratings import Ratings
from dprec.setups import ReplacementSetup, XMapSetup
from simulation.protocols.accounting import (
    mean_payload,
    measured_deployment,
    mechanism_budget,
    mechanism_ledger,
    notes_on_failures,
)
from simulation.protocols.base import Outcome, Predict, Protocol, Task
from simulation.protocols.components import AnyMechanism
from strategies.one_shot import Collected, collect_reports
from strategies.x_map import Exchanged, ReplacementRound

_EXAMPLE_ITEMS = 8


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Options):
    """How items are compared across the domains."""

    similarity: SimilarityKind = option("How alike two items are.", "adjusted-cosine")
    neighbors: int = option("Edges that an item keeps into each adjacent layer.", 10, ge=1)
    significance: int = option("Common raters from which on a similarity counts in full.", 50, ge=1)


@dataclass(frozen=True, kw_only=True)
class XMapProtocol(Protocol):
    """Devices replace what they rated in one domain by items of another; the server recommends there."""

    kind: Literal["x-map"] = "x-map"
    privacy: PrivacyBudget | None = option("What the mechanism promises; left out with none.", None)
    mechanism: AnyMechanism = option("What the device applies to the ratings that it uploads.")
    graph: GraphOptions = option("How items are compared across the domains.", GraphOptions())
    replacement: ReplacementOptions = option("How AlterEgos are made.", ReplacementOptions())
    recommendation: RecommendationOptions = option("How ratings are predicted.", RecommendationOptions())

    @property
    def private(self) -> bool:
        """Whether any of the steps takes a budget."""
        return self.mechanism.private or self._private_output or self.recommendation.epsilon is not None

    @property
    def _private_output(self) -> bool:
        return self.replacement.selection == "private"

    def at_budget(self, epsilon: float, unit: ComparableUnit) -> Self:
        """Return the protocol at a budget: of the mechanism, or of a replacement and of a prediction."""
        if self.mechanism.private:
            return replace(self, privacy=mechanism_budget(self.mechanism, epsilon, unit))
        made, given = self.replacement, self.recommendation
        if self._private_output:
            with within("replacement"):
                made = replace(made, epsilon=epsilon)
        if given.epsilon is not None:
            with within("recommendation"):
                given = replace(given, epsilon=epsilon)
        return replace(self, replacement=made, recommendation=given)

    @property
    def mechanism_name(self) -> str:
        """What protects the users: the mechanism on the uploads, or private replacement."""
        if self.mechanism.private:
            return self.mechanism.kind
        return "private-replacement" if self._private_output else self.mechanism.kind

    @property
    def completion_name(self) -> str:
        """What predicts."""
        return "item-knn" if self.replacement.selection == "none" else "alter-ego-knn"

    def check(self, train: Ratings) -> None:
        """Refuse what ratings, mechanism and budgets cannot do together."""
        domains = _domains(train)
        if not domains.straddlers().any():
            raise InputError(
                "dataset",
                f"no user has training ratings both in {domains.source} and in {domains.target}",
                "domains with users in common",
            )
        self._calibrated(train).codec()
        with within("replacement"):
            self.replacement.sensitivity(self.graph.similarity)
        received = self._calibrated(train).reference_channel.values
        if self.graph.similarity == "cosine" and np.nanmin(received) < 0:
            raise SettingError(
                "graph.similarity",
                f"'cosine', with ratings that arrive as low as {np.nanmin(received):g}",
                "'adjusted-cosine', or ratings of 0 and more: the range of cosine is 0 to 1 only there",
            )
        if self.mechanism.private and self._private_output:
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

    def setup(self) -> XMapSetup:
        """Return the mechanism, its budget, and how the device draws replacements."""
        return XMapSetup(
            mechanism=self.mechanism,
            privacy=self.privacy,
            replacement=ReplacementSetup(
                epsilon=self.replacement.epsilon,
                sensitivity=self.replacement.sensitivity(self.graph.similarity),
                whole_catalogue=self._whole_catalogue,
                transfer=self.replacement.transfer,
            ),
        )

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the ratings, exchange candidates for AlterEgos, and predict from these."""
        train = _domains(task.train)
        calibrated = self._calibrated(train)
        started = time.perf_counter()
        collected = collect_reports(grid, task.roster, calibrated, task.group)
        learned = self._learn(collected.observations, train, task)
        exchanged = None
        if learned.candidates is None:
            egos = _no_alter_egos(train.n_users)
        elif self.mechanism.private:
            egos = self._on_server(collected.observations, learned, learned.candidates, train, task.seed)
        else:
            round_ = self._round(learned, learned.candidates, train, task.group)
            exchanged = round_.exchange(grid, task.roster, collected.observations, collected.traffic)
            egos = exchanged.egos
        recommender = self._recommender(collected.observations, egos, train, task.seed)
        if self.recommendation.epsilon is not None:
            task.progress("measuring sensitivities", 0, 1)
            _ = recommender.sensitivities
        replies = int(collected.sent.sum()) + (int(exchanged.sent.sum()) if exchanged else 0)
        payload = mean_payload(collected.traffic, replies)
        clients = collected.record.seconds + (exchanged.record.seconds if exchanged else 0.0)
        return Outcome(
            predict=_predictor(recommender, learned.items.means, train),
            traffic=collected.traffic,
            privacy=self._charge(calibrated, train, collected, exchanged),
            guarantee=self._guarantee(),
            rounds=[collected.record, exchanged.record] if exchanged else [collected.record],
            clients_seconds=clients,
            server_seconds=time.perf_counter() - started - clients,
            channel=device_channel(calibrated, train.counts),
            notes=self._notes(train, learned, collected, exchanged, recommender),
            diagnostics=self._diagnostics(train, learned, egos, recommender),
            deployed_factor=measured_deployment(REPLACE, payload, task.group),
        )

    @property
    def _whole_catalogue(self) -> bool:
        return self._private_output and self.replacement.candidates == "catalogue"

    @property
    def _deviations(self) -> bool:
        return self.replacement.transfer == "deviation"

    def _calibrated(self, train: Ratings) -> CalibratedMechanism:
        return CalibratedMechanism(self.mechanism, self.privacy, train.scale, train.n_items)

    def _learn(self, observed: Observations, train: CrossDomainRatings, task: Task) -> _Learned:
        """Compare the items of the two domains and find the candidates of every source item."""
        task.progress("comparing items", 0, 2)
        items = RatedItems.of(_matrix(observed), self.graph.similarity, self.recommendation.prior_ratings)
        if self.replacement.selection == "none":
            return _Learned(items)
        graph = layered_graph(items, train.in_target, self.graph.neighbors, self.graph.significance)
        task.progress("comparing items", 1, 2)
        similar = x_sim(graph)
        similar = sp.csr_array(
            (similar.data, similar.indices - train.target_start, similar.indptr),
            shape=(train.n_items, train.target_stop - train.target_start),
        )
        candidates = Candidates.of(similar)
        valued = candidates.items
        if self._whole_catalogue:
            candidates = candidates.covering(np.flatnonzero(~train.in_target))
        if self.replacement.selection != "private":
            candidates = candidates.best(
                similar, 1 if self.replacement.selection == "best" else self.replacement.among
            )
        if self.graph.similarity == "cosine":
            candidates = replace(candidates, steps=np.maximum(candidates.steps, 0))
        task.progress("comparing items", 2, 2)
        return _Learned(items, graph, candidates, int(similar.nnz), valued)

    def _round(
        self, learned: _Learned, candidates: Candidates, train: CrossDomainRatings, group: str
    ) -> ReplacementRound:
        return ReplacementRound(
            candidates=candidates,
            means=learned.items.means,
            rows=RowCodec(
                train.n_items,
                train.target_stop - train.target_start,
                with_steps=self._private_output,
                with_means=self._deviations,
            ),
            ratings=ValueCode.of(train.scale, deviations=False),
            values=ValueCode.of(train.scale, deviations=self._deviations),
            target=(train.target_start, train.target_stop),
            group=group,
        )

    def _on_server(
        self,
        observed: Observations,
        learned: _Learned,
        candidates: Candidates,
        train: CrossDomainRatings,
        seed: int,
    ) -> AlterEgos:
        """Make the AlterEgos from what was uploaded, which is private already."""
        draws = ReplacementDraws.prepare(
            candidates, 0.0, 1.0, train.target_stop - train.target_start, whole_catalogue=False
        )
        values = observed.values
        if self._deviations:
            values = values - learned.items.means[observed.items]
        noise = words(seed, "replacement", 0, observed.items.size)
        return alter_egos(
            observed.users, observed.items, values, train.n_users, draws, noise, train.target_start
        )

    def _recommender(
        self, observed: Observations, egos: AlterEgos, train: CrossDomainRatings, seed: int
    ) -> ItemBasedRecommender:
        start, stop = train.target_start, train.target_stop
        own = (observed.items >= start) & (observed.items < stop)
        users, targets, values = observed.users[own], observed.items[own] - start, observed.values[own]
        shape = (train.n_users, stop - start)
        items = RatedItems.of(
            sp.coo_array((values, (users, targets)), shape=shape).tocsr(),
            self.graph.similarity,
            self.recommendation.prior_ratings,
        )
        made_for = rows_of(np.diff(egos.indptr))
        made = egos.values if self._deviations else egos.values - items.means[egos.targets]
        profiles = sp.coo_array(
            (
                np.concatenate([values - items.means[targets], made]),
                (np.concatenate([users, made_for]), np.concatenate([targets, egos.targets])),
            ),
            shape=shape,
        ).tocsr()
        return ItemBasedRecommender(self.recommendation, self.graph.similarity, items, profiles, seed)

    def _charge(
        self,
        calibrated: CalibratedMechanism,
        train: CrossDomainRatings,
        collected: Collected,
        exchanged: Exchanged | None,
    ) -> PrivacyLedger:
        drawn, shown = self.replacement.epsilon, self.recommendation.epsilon
        if self.mechanism.private or exchanged is None or drawn is None or shown is None:
            return mechanism_ledger(calibrated, train.counts, collected.sent)
        ledger = PrivacyLedger(rated=np.ones(train.n_users, dtype=np.bool_))
        ledger.charge(
            exchanged.record.round, exchanged.sent, drawn, drawn * exchanged.replaced.astype(np.float64)
        )
        # Predictions are made after the last round.
        predictions = train.target_stop - train.target_start
        ledger.charge(exchanged.record.round, collected.accepted, shown, shown * predictions)
        return ledger

    def _guarantee(self) -> Guarantee:
        if self.mechanism.private:
            hides = self.mechanism.hides_rated_items
            which = (
                "Which items a user rated is hidden" if hides else "Which items a user rated is not hidden"
            )
            note = f"{which}; X-Sim, AlterEgos and predictions follow from the reports and cost nothing."
            return Guarantee(False, hides, (note,))
        notes = ["Trusted server: it receives the true ratings of both domains."]
        if not self.private:
            notes.append("No privacy: AlterEgos and predictions tell of other users' ratings.")
        if self._private_output:
            notes.append(_replacement_note(self.replacement))
        if self.recommendation.epsilon is not None:
            notes.append(_recommendation_note(self.recommendation))
        if self._private_output and self.recommendation.epsilon is not None:
            notes.append(
                "Epsilon per rating is what is claimed, for one replacement and one prediction; epsilon "
                "per user adds up the replacements of the user's whole AlterEgo and a prediction for "
                "every item of the target domain. Both are for what one recipient sees: recipients who "
                "compare add theirs up."
            )
        return Guarantee(True, False, tuple(notes))

    def _notes(
        self,
        train: CrossDomainRatings,
        learned: _Learned,
        collected: Collected,
        exchanged: Exchanged | None,
        recommender: ItemBasedRecommender,
    ) -> tuple[str, ...]:
        notes = [*notes_on_failures([collected.record])]
        if exchanged is not None:
            notes += notes_on_failures([exchanged.record], "AlterEgos")
        rated = np.unique(collected.observations.items)
        sources = rated[(rated < train.target_start) | (rated >= train.target_stop)]
        if learned.graph is not None:
            without = int((~np.isin(sources, learned.valued)).sum())
            drawn = "their replacement is drawn from all target items alike"
            kept_out = "they have no replacement and were kept out"
            if without:
                notes.append(
                    f"{without} of {sources.size} rated source items have no X-Sim value: "
                    f"{drawn if self._whole_catalogue else kept_out}."
                )
        else:
            notes.append(
                "The target domain alone: a user without ratings there is predicted the items' means."
            )
        sizes = np.diff(recommender.profiles.indptr)
        k = self.recommendation.neighbors
        few, none = int(((sizes > 0) & (sizes < k)).sum()), int((sizes == 0).sum())
        if few or none:
            notes.append(
                f"Of {train.n_users} profiles in the target domain {few} hold fewer than the {k} "
                f"neighbours of a prediction, so that all of them are taken; empty: {none}."
            )
        return tuple(notes)

    def _diagnostics(
        self,
        train: CrossDomainRatings,
        learned: _Learned,
        egos: AlterEgos,
        recommender: ItemBasedRecommender,
    ) -> dict[str, Any]:
        if learned.graph is None or learned.candidates is None:
            return {}
        graph = learned.graph
        told: dict[str, Any] = {
            "domains": {"source": train.source, "target": train.target},
            "straddlers": int(train.straddlers().sum()),
            "layers": {
                domain: {
                    name: graph.count(layer, target=domain == "target")
                    for layer, name in enumerate(LAYER_NAMES)
                }
                for domain in ("source", "target")
            },
            "edges": {
                "between the domains": graph.cross.count,
                "NB to BB": [edges.count for edges in graph.to_bridge],
                "NN to NB": [edges.count for edges in graph.from_far],
            },
            "x_sim_values": learned.values,
            "items_with_x_sim": int(learned.valued.size),
            "alter_ego": _example(train, egos, recommender, self._deviations),
        }
        if self.recommendation.epsilon is not None:
            told["median_sensitivity"] = float(np.median(recommender.sensitivities))
        return told


@dataclass(frozen=True, eq=False)
class _Learned:
    """What the server learned of the items; nothing across the domains without AlterEgos."""

    items: RatedItems
    graph: LayeredGraph | None = None
    candidates: Candidates | None = None
    values: int = 0
    valued: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def _domains(train: Ratings) -> CrossDomainRatings:
    if not isinstance(train, CrossDomainRatings):
        raise InputError(
            "dataset",
            "ratings of one domain",
            "two: douban with a source and a target, movielens-genres, csv-domains, synthetic-domains",
        )
    return train


def _matrix(observed: Observations) -> sp.csr_array:
    cells = observed.users, observed.items
    return sp.coo_array((observed.values, cells), shape=observed.shape).tocsr()


def _no_alter_egos(n_users: int) -> AlterEgos:
    return AlterEgos(np.zeros(n_users + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def _predictor(
    recommender: ItemBasedRecommender, means: NDArray[np.float64], train: CrossDomainRatings
) -> Predict:
    """Return predictions for every item; those of source items are their means."""

    def predict(users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        predictions: NDArray[np.float64] = means[items].copy()
        wanted = np.flatnonzero((items >= train.target_start) & (items < train.target_stop))
        predictions[wanted] = recommender.predict(users[wanted], items[wanted] - train.target_start)
        return predictions

    return predict


def _replacement_note(options: ReplacementOptions) -> str:
    over = (
        "all target items"
        if options.candidates == "catalogue"
        else "the target items with an X-Sim value: which these are, and which items have none and are not "
        "replaced, must be the same for both data sets"
    )
    means = (
        " The mean ratings of the source items are sent to it and enter the AlterEgo without noise."
        if options.transfer == "deviation"
        else ""
    )
    return (
        f"Private replacement: each draw is {options.epsilon:g}-private for two data sets that differ in one "
        f"user, over {over}. It protects whoever's ratings X-Sim was computed from against those who see "
        f"the AlterEgo; the device itself is sent the X-Sim values of its items without noise.{means}"
    )


def _recommendation_note(options: RecommendationOptions) -> str:
    assert options.epsilon is not None
    half = options.epsilon / 2
    measure = (
        "Theorem 2's similarity-based sensitivity is read off these ratings: it is local, and noise of "
        "that size is not differential privacy"
        if options.sensitivity == "local"
        else "the sensitivity is the width of the similarity's range"
    )
    return (
        f"Recommendation: PNSA spends {half:g} and PNCF {half:g} on one prediction, for two target domains "
        f"that differ in one user; {measure}. PNCF's noise is that of one similarity, a prediction uses "
        f"{options.neighbors}, and the items' means enter it without noise."
    )


def _example(
    train: CrossDomainRatings, egos: AlterEgos, recommender: ItemBasedRecommender, deviations: bool
) -> dict[str, Any] | None:
    """Return one user's source ratings and AlterEgo: the middle one by size among the cold users."""
    in_target = train.in_target
    own = np.bincount(train.users, weights=in_target[train.items], minlength=train.n_users)
    sizes = np.diff(egos.indptr)
    eligible = np.flatnonzero((sizes > 0) & (own == 0))
    if not eligible.size:
        return None
    user = int(eligible[np.argsort(sizes[eligible], kind="stable")[eligible.size // 2]])
    rated = slice(train.indptr[user], train.indptr[user + 1])
    made = slice(egos.indptr[user], egos.indptr[user + 1])
    targets, values = egos.targets[made], egos.values[made]
    if deviations:
        values = np.clip(values + recommender.items.means[targets], train.scale.low, train.scale.high)
    identifiers = train.item_ids[targets + train.target_start]

    def told(names: NDArray[Any], numbers: NDArray[np.float64]) -> list[list[Any]]:
        pairs = zip(names.tolist(), np.round(numbers, 2).tolist(), strict=True)
        return [[str(name), number] for name, number in pairs][:_EXAMPLE_ITEMS]

    return {
        "user": str(train.user_ids[user]),
        "scale": [train.scale.low, train.scale.high],
        "source_ratings": int(rated.stop - rated.start),
        "items": int(sizes[user]),
        "before": told(train.item_ids[train.items[rated]], train.values[rated]),
        "after": told(identifiers, values),
    }
