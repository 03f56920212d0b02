"""How one-shot protocols run: reports, what follows them, and a table or lists back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dprec.arrays import Ints, Uint8s, offsets
from dprec.attacks import Broadcast, Transcript
from dprec.exchange import REPORT
from dprec.observations import Observations
from dprec.protocols.one_shot import (
    Learned,
    OneShotProtocol,
    bias_of_item_means,
    note_on_refusals,
    notes_on_catalogue,
)
from dprec.protocols.sharing import refusing
from dprec.protocols.shuffler import Shuffler, notes_on_ratings
from dprec.reports import ReportFamily, Wanted
from dprec.wire import ItemSets, TrafficLedger, onion_bytes, record_bytes
from simulation.courses.base import NOT_DELIVERED, notes_on_failures
from simulation.courses.collection import CollectionCourse
from simulation.courses.delivering import deliver, lists_for
from simulation.courses.task import Grid, Outcome, ServerOutcome, ServerTask, Task
from simulation.courses.transcripts import transcript_of
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from strategies.report_collection import Collected


@dataclass(frozen=True, eq=False)
class ServedReports:
    """What the server holds at the end."""

    collected: Collected
    """The reports."""
    observed: Observations
    """What they say, and what was answered after them."""
    asked: Ints | None
    """What was asked of each user after the reports, or what its report says beside the ratings
    (`dprec.reports.Reader.told`); None if nothing; shape (users, ...).
    """
    learned: Learned
    rounds: tuple[RoundRecord, ...]
    """That of the reports, with the bytes of what devices were sent, and that of what followed."""
    notes: tuple[str, ...]
    """On what followed."""


@dataclass(frozen=True)
class OneShotCourse(CollectionCourse[OneShotProtocol]):
    """How they run."""

    def collected(
        self, grid: Grid, task: ServerTask, *, symbols: bool = False, required: bool = True
    ) -> Collected:
        """Ask everybody for a report; ``symbols`` where others than the completion read them."""
        completion, privacy = self.protocol.completion, self.protocol.privacy
        personalised = privacy is not None and privacy.own
        wanted = Wanted(
            completion.needs_likelihood, symbols or completion.needs_symbols or personalised or task.attacked
        )
        return self.collect(grid, task, wanted, catalogue=task.catalogue, required=required)

    def serve(self, grid: Grid, task: ServerTask) -> ServedReports:
        """Collect the reports, complete the matrix, and send devices that predict what it says."""
        from strategies.report_collection import FollowUpCollection

        protocol, family = self.protocol, self.family(task)
        collected = self.collected(grid, task)
        observed, asked, record = collected.observations, collected.told, collected.record
        further: tuple[RoundRecord, ...] = ()
        notes: tuple[str, ...] = ()
        if family.follow_up is not None:
            followed = FollowUpCollection(family.follow_up, task.group).collect(grid, task.roster, collected)
            observed, asked, further = followed.observations, followed.asked, (followed.record,)
            notes = notes_on_failures(further, family.follow_up.answers_called)
        received = observed
        if protocol.shuffler is not None:
            record = record.with_traffic(_recharged(protocol.shuffler, family, collected, task.group))
            received = protocol.shuffler.received(observed)
        linked, numbers = (
            collected.observations,
            protocol.known_numbers(collected.told, collected.accepted),
        )
        learned = protocol.learn(received, linked, task.server_seed, task.progress, numbers)
        record = record.with_traffic(self.tell(grid, task, learned, linked, collected.traffic))
        return ServedReports(collected, observed, asked, learned, (record, *further), notes)

    def tell(
        self, grid: Grid, task: ServerTask, learned: Learned, linked: Observations, traffic: TrafficLedger
    ) -> dict[str, int]:
        """Send everybody a table, or a list; return the bytes charged, as `RoundAccount.spent` does."""
        from strategies.delivery import broadcast_table

        protocol = self.protocol
        if learned.sent_table is not None:
            return broadcast_table(grid, task.roster, task.group, learned.encoded, traffic)
        if protocol.delivery is None or protocol.shuffler is not None:
            return {}
        seen_cells, name = protocol.seen(linked), protocol.facts.learns
        return deliver(
            protocol.delivery, grid, task, learned.completed, seen_cells, traffic, name, learned.guarded
        )

    def served(self, task: ServerTask, state: ServedReports) -> ServerOutcome:
        """Return what the server knows; a rating that no accepted report shows is not counted."""
        return ServerOutcome(**self._facts(task, state, state.observed.counts))

    def _facts(
        self, task: ServerTask, state: ServedReports, counts: Ints, numbers: Uint8s | None = None
    ) -> dict[str, Any]:
        """Return the entries of a `ServerOutcome`, without its distance.

        ``numbers``: of users' own budgets, where more is known of them than reports say.
        """
        told = state.asked if numbers is None else numbers.astype(np.int64)
        facts = self.charged(task, state.collected, counts, record=state.rounds[0], told=told)
        completed = state.learned.completed
        self.protocol.embedding_release.charge(facts["accountant"], 1, state.collected.sent)
        notes = completed.notes + facts["notes"] + state.notes + state.learned.notes
        notes += notes_on_catalogue(completed.public_data)
        return facts | {
            "rounds": state.rounds,
            "notes": notes,
            "diagnostics": completed.diagnostics,
            "mixture": completed.mixture,
        }

    def simulated(self, task: Task, state: ServedReports) -> Outcome:
        """Add what devices predict, what they lost, and how far their reports are from the ratings."""
        protocol, family, learned = self.protocol, self.family(task), state.learned
        train, collected = task.train, state.collected
        facts = self._facts(task, state, train.counts, task.chosen)
        predict, rows = learned.predicting(train)
        notes, facts["distance"] = family.against_truth(train, state.observed, collected.accepted)
        facts["notes"] += notes
        if (refuses := refusing(protocol.privacy, task.chosen)) is not None:
            facts["notes"] += note_on_refusals(refuses)
            if learned.sent_table is not None:
                bias = bias_of_item_means(protocol.process, learned.sent_table, train)
                facts["diagnostics"] |= {"bias_of_item_means": bias}
        if protocol.shuffler is not None:
            unshuffled = facts["accountant"].get_epsilon()
            hidden = protocol.shuffler.shuffled(
                family, collected.observations, collected.accepted, unshuffled
            )
            facts["accountant"] = facts["accountant"].shuffled(hidden)
            facts["notes"] += notes_on_ratings(facts["accountant"], family, protocol.delta)
            if learned.sent_table is None:
                facts["notes"] += (NOT_DELIVERED,)
        return Outcome(
            predict=predict,
            predict_rows=rows,
            hidden=learned.completed.hidden_entries,
            scores=learned.scoring(train),
            transcript=self._transcript(task, state) if task.attacked else None,
            **facts,
        )

    def _transcript(self, task: Task, state: ServedReports) -> Transcript:
        """Return what was said; what a shuffler hands on can be linked with nobody."""
        protocol, learned, lists = self.protocol, state.learned, None
        linked = protocol.shuffler is None
        if linked and learned.sent_table is None and protocol.delivery is not None:
            seen_cells, name = protocol.seen(state.collected.observations), protocol.facts.learns
            delivered = lists_for(
                protocol.delivery, task, learned.completed, seen_cells, name, learned.guarded
            )
            lists = delivered.best(np.arange(task.n_users))
        return transcript_of(
            task,
            trusted=protocol.guarantee((task.n_users, task.n_items)).trusts_server,
            reports=(state.observed,) if linked else (),
            broadcast=None if learned.sent_table is None else Broadcast.of_table(learned.sent_table),
            newcomer=learned.newcomer(task.train),
            lists=lists,
        )


def _recharged(shuffler: Shuffler, family: ReportFamily, collected: Collected, group: str) -> dict[str, int]:
    """Charge users for the messages that shufflers pass on, instead of those with a whole report.

    A report that was not accepted stays charged as it came. Messages of whole reports are filled up to the
    longest of them. Returns the bytes by which the round changes.
    """
    from strategies.rounds import report_sizes, traffic_totals

    traffic, observed = collected.traffic, collected.observations
    before = traffic_totals(traffic)
    users = np.flatnonzero(collected.accepted)
    if shuffler.unlinks:
        payload_size = record_bytes(observed.shape[1], family.channel(observed.shape[1]).symbols)
        times = observed.counts[users]
        size = onion_bytes(payload_size, shuffler.hops)
        payloads = times * payload_size
    else:
        times = np.ones_like(users)
        payloads = traffic.uplink_payload[users]
        size = onion_bytes(int(payloads.max()), shuffler.hops)
    sizes = report_sizes(REPORT, group, users, np.full_like(users, size))
    traffic.recharge_uplink(users, REPORT, times, payloads, times * sizes)
    if shuffler.says_sets:
        sets = ItemSets.plan(offsets(observed.counts[users]), observed.items, observed.shape[1])
        payloads = -(-sets.bits // 8)
        sizes = report_sizes(REPORT, group, users, payloads)
        traffic.charge_uplink(users, payloads, sizes, kind="item set")
    after = traffic_totals(traffic)
    return {name: after[name] - before[name] for name in after}
