"""How X-Map runs, in at most two rounds: ratings up, then candidates down and AlterEgos up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dprec.accounting import PrivacyAccountant
from dprec.arrays import Floats
from dprec.crossdomain import AlterEgos, CrossDomainRatings, ItemBasedRecommender, RowCodec, ValueCode
from dprec.protocols.x_map import (
    ItemComparison,
    XMapProtocol,
    note_on_items,
    note_on_profiles,
    predictor,
    two_domains,
)
from dprec.reports import Wanted
from simulation.courses.base import NOT_DELIVERED, notes_on_failures
from simulation.courses.collection import CollectionCourse
from simulation.courses.domains import AlterEgo, LearnedDomains
from simulation.courses.task import Grid, Outcome, Task
from simulation.courses.transcripts import transcript_of_reports

if TYPE_CHECKING:
    from strategies.report_collection import Collected, ReplacementResult


@dataclass(frozen=True)
class XMapCourse(CollectionCourse[XMapProtocol]):
    """The reports, and what devices make of candidates; nobody is sent a prediction."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the ratings, exchange candidates for AlterEgos, and predict from these."""
        protocol, domains = self.protocol, two_domains(task.train)
        collected = self.collect(grid, task, Wanted(symbols=task.attacked))
        observed = collected.observations
        items = protocol.received_items(observed)
        comparison = protocol.compared(items, domains, task.progress)
        egos, exchanged = self._alter_egos(grid, task, domains, collected, items.means, comparison)
        recommender = protocol.recommender(observed, egos, domains, task.server_seed)
        if protocol.recommendation.epsilon is not None:
            task.progress("measuring sensitivities", 0, 1)
            _ = recommender.sensitivities
        facts = self.charged(task, collected, domains.counts)
        if exchanged is not None:
            facts["rounds"] += (exchanged.record,)
            facts["notes"] += notes_on_failures([exchanged.record], "AlterEgos")
        whole_catalogue = protocol.replacement.whole_catalogue
        facts["notes"] += note_on_items(observed, domains, comparison, whole_catalogue=whole_catalogue)
        facts["notes"] += (NOT_DELIVERED, *note_on_profiles(recommender))
        claimed = self._claimed(domains, collected, exchanged)
        facts["accountant"] = replace(facts["accountant"], claimed=claimed)
        if comparison is not None:
            example = AlterEgo.example(domains, egos, recommender, protocol.replacement.deviations)
            facts |= _learned(domains, comparison, recommender, example)
        return Outcome(
            predict=predictor(recommender, items.means, domains),
            transcript=transcript_of_reports(task, observed, trusted=not protocol.mechanism.private),
            **facts,
        )

    def _alter_egos(
        self,
        grid: Grid,
        task: Task,
        domains: CrossDomainRatings,
        collected: Collected,
        means: Floats,
        comparison: ItemComparison | None,
    ) -> tuple[AlterEgos, ReplacementResult | None]:
        """Return the AlterEgos: none, or made by the server, or made by the devices in a second round."""
        if comparison is None:
            return AlterEgos.none(domains.n_users), None
        observed, candidates = collected.observations, comparison.candidates
        if self.protocol.mechanism.private:
            seed = task.server_seed
            return self.protocol.replaced_on_server(candidates, means, observed, domains, seed), None
        from strategies.report_collection import ReplacementExchange

        options, sizes = self.protocol.replacement, (domains.n_items, domains.n_targets)
        asking = ReplacementExchange(
            candidates=candidates,
            means=means,
            rows=RowCodec(*sizes, with_steps=options.private, with_means=options.deviations),
            ratings=ValueCode.of(domains.scale, deviations=False),
            values=ValueCode.of(domains.scale, deviations=options.deviations),
            target=(domains.target_start, domains.target_stop),
            group=task.group,
        )
        exchanged = asking.exchange(grid, task.roster, observed, collected.traffic)
        return exchanged.egos, exchanged

    def _claimed(
        self, domains: CrossDomainRatings, collected: Collected, exchanged: ReplacementResult | None
    ) -> PrivacyAccountant | None:
        """Charge replacements and predictions with what is claimed of them; None where nothing is."""
        per_prediction = self.protocol.recommendation.epsilon
        if per_prediction is None or self.protocol.unprotected_results:
            return None
        accountant = PrivacyAccountant(rated=np.ones(domains.n_users, dtype=np.bool_))
        last = collected.record.round
        if exchanged is not None and self.protocol.replacement.epsilon is not None:
            per_draw, replaced = self.protocol.replacement.epsilon, exchanged.replaced.astype(np.float64)
            last = exchanged.record.round
            accountant.step(last, exchanged.sent, per_draw, per_draw * replaced)
        # Predictions are made after the last round.
        per_user = per_prediction * domains.n_targets
        accountant.step(last, collected.accepted, per_prediction, per_user)
        return accountant


def _learned(
    domains: CrossDomainRatings,
    comparison: ItemComparison,
    recommender: ItemBasedRecommender,
    example: AlterEgo | None,
) -> dict[str, Any]:
    """Return what the server learned about the items, as fields of an outcome."""
    diagnostics: dict[str, Any] = {
        "straddlers": int(domains.straddlers().sum()),
        "x_sim_values": comparison.x_sim_values,
        "items_with_x_sim": int(comparison.valued.size),
    }
    if recommender.options.epsilon is not None:
        diagnostics["median_sensitivity"] = float(np.median(recommender.sensitivities))
    return {"domains": LearnedDomains.of(domains, comparison.graph, example), "diagnostics": diagnostics}
