"""The X-Map protocol, in at most two rounds: ratings up, then candidates down and AlterEgos up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant, PrivacyBudget
from dprec.completion import ItemAverage
from dprec.components import option
from dprec.crossdomain import AlterEgos, CrossDomainRatings, RecommendationOptions, ReplacementOptions
from dprec.errors import InputError, SettingError, within
from dprec.exchange import ReplacementSetup, XMapSetup
from dprec.randomness import seed_for
from dprec.ratings import Ratings
from dprec.reports import ReportFamily
from simulation.protocols.accounting import (
    cell_reports,
    check_private,
    mechanism_budget,
    notes_on_failures,
)
from simulation.protocols.base import Protocol
from simulation.protocols.components import AnyMechanism
from simulation.protocols.delivery import NOT_DELIVERED
from simulation.protocols.one_shot import OneShotProtocol
from simulation.protocols.outcome import Outcome
from simulation.protocols.sent import Example, Sent, sent_ratings
from simulation.protocols.task import Task
from simulation.protocols.x_map.diagnostics import diagnostics_of, note_on_items, note_on_profiles
from simulation.protocols.x_map.guarantee import guarantee_of, unprotected_results
from simulation.protocols.x_map.item_comparison import (
    GraphOptions,
    ItemComparison,
    compare_items,
    received_items,
)
from simulation.protocols.x_map.replacing import replaced_on_server, replacement_round
from simulation.protocols.x_map.target_domain import predictor, target_recommender

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from strategies.replacement import Exchanged
    from strategies.report_collection import Collected


@dataclass(frozen=True, kw_only=True)
class XMapProtocol(Protocol):
    """Devices replace what they rated in one domain with items of another; the server recommends there."""

    kind: Literal["x-map"] = "x-map"
    papers: ClassVar[tuple[str, ...]] = ("guerraoui2017",)
    privacy: PrivacyBudget | None = option("What the mechanism promises; left out if nothing.", None)
    mechanism: AnyMechanism = option("What the device applies to the ratings that it uploads.")
    graph: GraphOptions = option("How items are compared across the domains.", GraphOptions())
    replacement: ReplacementOptions = option("How AlterEgos are made.", ReplacementOptions())
    recommendation: RecommendationOptions = option("How ratings are predicted.", RecommendationOptions())

    @property
    def private(self) -> bool:
        """Whether any of the steps takes a budget."""
        return self.mechanism.private or self.replacement.private or self.recommendation.epsilon is not None

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget: for the mechanism, or for each replacement and prediction."""
        if self.mechanism.private:
            return replace(self, privacy=mechanism_budget(self.mechanism, self.privacy, budget))
        replacement, recommendation = self.replacement, self.recommendation
        if self.replacement.private:
            with within("replacement"):
                replacement = replace(replacement, epsilon=budget.epsilon)
        if recommendation.epsilon is not None:
            with within("recommendation"):
                recommendation = replace(recommendation, epsilon=budget.epsilon)
        return replace(self, replacement=replacement, recommendation=recommendation)

    @property
    def mechanism_name(self) -> str:
        """What protects the users: the mechanism on the uploads, or private replacement."""
        if self.mechanism.private:
            return self.mechanism.kind
        return "private-replacement" if self.replacement.private else self.mechanism.kind

    @property
    def completion_name(self) -> str:
        """Kind of the recommender."""
        return "item-knn" if self.replacement.selection == "none" else "alter-ego-knn"

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
        check_private(self.mechanism)
        return OneShotProtocol(privacy=self.privacy, mechanism=self.mechanism, completion=ItemAverage())

    @property
    def largest_output_epsilon(self) -> float:
        """The larger budget of a replacement and of a prediction; 0 if neither has one."""
        return max(self.replacement.epsilon or 0.0, self.recommendation.epsilon or 0.0)

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
        collected = ReportCollection(family, task.group).collect(grid, task.roster)
        observed = collected.observations
        items = received_items(observed, similarity, self.recommendation.prior_ratings)
        comparison = None
        if self.replacement.selection != "none":
            comparison = compare_items(items, train, self.graph, self.replacement, task.progress)
        egos, exchanged = self._alter_egos(grid, task, train, collected, items.means, comparison)
        deviations = self.replacement.deviations
        recommender = target_recommender(
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
        whole_catalogue = self.replacement.whole_catalogue
        notes = note_on_items(observed, train, comparison, whole_catalogue=whole_catalogue)
        return Outcome(
            predict=predictor(recommender, items.means, train),
            traffic=collected.traffic,
            accountant=replace(
                family.accountant(train.counts, collected.sent),
                claimed=self._claimed(train, collected, exchanged),
            ),
            guarantee=self.guarantee((train.n_users, train.n_items)),
            rounds=rounds,
            channel=family.device_channel(train.counts),
            notes=(*_failures(collected, exchanged), *notes, NOT_DELIVERED, *note_on_profiles(recommender)),
            diagnostics=diagnostics_of(train, comparison, egos, recommender, deviations=deviations),
        )

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise what the mechanism or the trusted server's selection and noise give."""
        return guarantee_of(self.mechanism, self.replacement, self.recommendation)

    def sent(self, example: Example) -> Sent:
        """Return the report of the ratings; AlterEgos follow it in a second round."""
        family = cell_reports(self.mechanism, self.privacy, example.scale, example.items)
        return sent_ratings(family, example)

    def _family(self, train: Ratings) -> ReportFamily:
        return cell_reports(self.mechanism, self.privacy, train.scale, train.n_items)

    def _alter_egos(
        self,
        grid: Grid,
        task: Task,
        train: CrossDomainRatings,
        collected: Collected,
        means: NDArray[np.float64],
        comparison: ItemComparison | None,
    ) -> tuple[AlterEgos, Exchanged | None]:
        """Return the AlterEgos: none, or made by the server, or made by the devices in a second round."""
        if comparison is None:
            return AlterEgos.none(train.n_users), None
        observed, candidates = collected.observations, comparison.candidates
        if self.mechanism.private:
            seed = task.server_seed
            return replaced_on_server(self.replacement, candidates, means, observed, train, seed), None
        asking = replacement_round(self.replacement, candidates, means, train, task.group)
        exchanged = asking.exchange(grid, task.roster, observed, collected.traffic)
        return exchanged.egos, exchanged

    def _claimed(
        self, train: CrossDomainRatings, collected: Collected, exchanged: Exchanged | None
    ) -> PrivacyAccountant | None:
        """Charge replacements and predictions with what is claimed of them; None where nothing is."""
        per_prediction = self.recommendation.epsilon
        if per_prediction is None or unprotected_results(self.replacement, self.recommendation):
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
