"""One-shot protocols: every user sends one report; the server predicts from all of them, or devices do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import AnyBudget, Guarantee, MatchedBudget
from dprec.arrays import AnyInts, Bools, Floats, Ints, Uint8s
from dprec.attacks import Broadcast, Transcript
from dprec.catalogue import Catalogue
from dprec.completion import Completed, Guard, ItemAverage
from dprec.components import is_ours, option
from dprec.errors import SettingError, within
from dprec.exchange import OneShotSetup, OwnBudgetsSetup
from dprec.observations import AS_THEY_ARE, EmbeddingRelease, Observations
from dprec.ordinal import level_shares
from dprec.personalization import Devices, OrdinalProcess, TableOptions, broadcast_of, for_everybody
from dprec.predictions import Predict, PredictRows
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Public, Sent, sent_ratings
from dprec.protocols.components import AnyCompletion, AnyMechanism
from dprec.protocols.sharing import DELIVERY, TopN
from dprec.ratings import Ratings
from dprec.reports import MixedFamily, ReportFamily, SampledRatingsFamily, Wanted
from dprec.wire import ItemTable, TrafficLedger
from simulation.protocols.base import Protocol
from simulation.protocols.course import NOT_DELIVERED, notes_on_failures
from simulation.protocols.delivering import deliver, lists_for
from simulation.protocols.shuffler import Shuffler, notes_on_ratings
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Sizes, Task
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from strategies.report_collection import Collected


_VALUES_UNSENT = "Which items a user rated is not hidden; nothing of the values of the ratings is sent."


def note_on_reading(*, on_device: bool, sends_values: bool) -> str:
    """Say that the predictions rest on the set of rated items, and where nothing of this holds."""
    who = "Devices predict" if on_device else "The server predicts"
    sources = ["what is reported"] * sends_values + ["which items were rated"]
    sources += ["their own ratings"] * on_device
    *others, last = sources
    read = f"{', '.join(others)} and {last}" if others else last
    alone = "The set alone, without a report of any value, gives what the baseline sets-only reaches. "
    return (
        f"{who} from {read}. {alone if sends_values else ''}"
        "Where the set of rated items is hidden, none of that gain holds."
    )


def notes_on_table(
    embedding_release: EmbeddingRelease, *, has_biases: bool, groups_items: bool
) -> tuple[str, ...]:
    """Say what the table of items tells all users of everybody's item sets."""
    least = embedding_release.least_raters
    groups = "Which items are rated about as often is told everybody without noise. " * groups_items
    if embedding_release.epsilon is None:
        from_least = f" if it has at least {least} raters" * (least > 1)
        return (
            "All users are sent a table that is computed from everybody's item sets, without noise: how "
            f"often an item is rated, and its place among items that the same people rate{from_least}. "
            f"{groups}From it others can guess what else a rater of a rare item rated. No epsilon "
            "covers that unless item_embeddings.epsilon is set.",
        )
    rest = (
        "The items' effects, how certain these are, and what a user's items say of its level and tastes have "
        "none of that noise, and it does not cover them: they follow from the reports, and show about how "
        "often an item is rated."
        if has_biases
        else "Nothing else in the table depends on who rated what."
    )
    return (
        "All users are sent a table with noise on how often items are rated, and by the same people: "
        f"epsilon = {embedding_release.epsilon:g} with delta = {embedding_release.delta:g} holds against all "
        "of them together, for an item set or none "
        f"({embedding_release.epsilon_between_profiles:.4g} between any two), "
        "and is part of epsilon_per_user. The server, which sees the item sets as they are, adds the noise. "
        f"An item whose noisy count is below {least}, or within the noise, has no place. {groups}{rest}",
    )


def bias_of_item_means(process: OrdinalProcess, table: ItemTable, train: Ratings) -> float:
    """Return how much higher the train ratings' items are predicted for newcomers than they are rated."""
    nobody, items = train.select(np.zeros(train.count, dtype=np.bool_)), np.arange(train.n_items)
    scale, shown = train.scale, Devices(process, table, nobody).predict(np.zeros_like(items), items)
    return float(np.clip(shown, scale.low, scale.high)[train.items].mean() - train.values.mean())


def note_on_refusals(refuses: Bools) -> tuple[str, ...]:
    """Say how many users sent nothing because they refuse, if any do."""
    refusals = int(refuses.sum())
    if not refusals:
        return ()
    return (f"{refusals} of {refuses.size} users refuse: to the server, their reports are missing.",)


def notes_on_catalogue(catalogue: Catalogue | None) -> tuple[str, ...]:
    """Say which public data about the items the predictions rest on, if on any."""
    if catalogue is None:
        return ()
    held = [*catalogue.number_names]
    if catalogue.category_names:
        held.append(f"{len(catalogue.category_names)} categories")
    return (f"Predictions also rest on public data about the items: {', '.join(held)}.",)


@dataclass(frozen=True, eq=False)
class Learned:
    """What the server has learned, and what devices hold of it."""

    completed: Completed
    sent_table: ItemTable | None
    """None if the server predicts."""
    spent: dict[str, int]
    """Bytes of what devices were sent; see `RoundAccount.spent`."""
    guarded: Completed | None = None
    """What a server that predicts ranks lists by, if not by predictions."""

    def predicting(self, process: OrdinalProcess, held: Ratings) -> tuple[Predict, PredictRows | None]:
        """Return what predicts: the server, or devices that hold some ratings."""
        if self.sent_table is None:
            return self.completed.predict, self.completed.predict_rows
        return Devices(process, self.sent_table, held).predict, None

    def scoring(self, process: OrdinalProcess, held: Ratings) -> Predict | None:
        """Return what lists are ranked by, if not by predictions."""
        if self.sent_table is not None and self.sent_table.cautions is not None:
            return Devices(process, self.sent_table, held).scores
        return None if self.guarded is None else self.guarded.predict

    def newcomer(self, process: OrdinalProcess, train: Ratings) -> Callable[[AnyInts], Floats] | None:
        """Return what a device without ratings predicts of items; None where devices are sent no table."""
        if self.sent_table is None:
            return None
        nobody = train.select(np.zeros(train.count, dtype=np.bool_))
        predict = Devices(process, self.sent_table, nobody).predict
        return lambda items: predict(np.zeros_like(items), items)


@dataclass(frozen=True, eq=False)
class AfterReports:
    """What a server knows of one-shot devices once there is nothing more to ask for."""

    observations: Observations
    asked: Ints | None = None
    """What was asked of each user after the reports, or what its report says beside the ratings
    (`dprec.reports.Reader.told`); None if nothing; shape (users, ...).
    """
    rounds: tuple[RoundRecord, ...] = ()
    """Those after the reports."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, grid: Grid, task: ServerTask, family: ReportFamily, collected: Collected) -> AfterReports:
        """Ask for what follows the reports of a family, if anything does."""
        from strategies.report_collection import FollowUpCollection

        follow_up = family.follow_up
        if follow_up is None:
            return cls(collected.observations, collected.told)
        further = FollowUpCollection(follow_up, task.group).collect(grid, task.roster, collected)
        notes = notes_on_failures([further.record], follow_up.answers_called)
        return cls(further.observations, further.asked, (further.record,), notes)


@dataclass(frozen=True, eq=False)
class ServedReports:
    """What the server of a one-shot protocol holds at the end."""

    family: ReportFamily
    """What the devices report."""
    collected: Collected
    """The reports."""
    after: AfterReports
    """What is known once there is nothing more to ask for."""
    learned: Learned
    record: RoundRecord
    """Of the round of the reports, with the bytes of what devices were sent."""
    embedding_release: EmbeddingRelease
    """What the table may say of everybody's item sets."""

    @property
    def seen_counts(self) -> Ints:
        """Cells that each user's report shows as rated, shape (users,)."""
        observed = self.after.observations
        return observed.counts

    def facts(self, counts: Ints, numbers: Uint8s | None = None) -> dict[str, Any]:
        """Return the entries of a `ServerOutcome`, without its guarantee and distance.

        ``numbers``: of users' own budgets, where more is known of them than reports say.
        """
        sent, embedding_release = self.collected.sent, self.embedding_release
        asked = self.after.asked if numbers is None else numbers.astype(np.int64)
        accountant = self.family.accountant(counts, sent, asked)
        if embedding_release.epsilon is not None:
            accountant.step(1, sent, 0.0, embedding_release.epsilon, embedding_release.released)
        completed = self.learned.completed
        notes = completed.notes + notes_on_failures([self.record]) + self.after.notes
        notes += notes_on_catalogue(completed.public_data)
        return {
            "traffic": self.collected.traffic,
            "accountant": accountant,
            "rounds": (self.record, *self.after.rounds),
            "channel": self.family.device_channel(counts),
            "notes": notes,
            "diagnostics": completed.diagnostics,
            "mixture": completed.mixture,
        }


@dataclass(frozen=True, kw_only=True)
class OneShotProtocol(Protocol):
    """Every user sends one perturbed report; from all of them the server predicts, or every device."""

    kind: Literal["one-shot"] = "one-shot"
    undeployable: ClassVar[str] = ""
    privacy: AnyBudget | None = option(
        "What is promised; left out if nothing is. If epsilon is a mapping, users choose their own: it has "
        "the share of those who choose each, 0 being a refusal. If it is a text, it names the column of the "
        "users' table that has each user's.",
        None,
    )
    mechanism: AnyMechanism = option("What the device applies to each rating.")
    completion: AnyCompletion = option("How the server completes the matrix.")
    personalization: Literal["none", "on-device"] = option(
        "Who predicts: the server, or each device, from its clean ratings and what the server broadcasts.",
        "none",
    )
    shuffler: Shuffler | None = option(
        "Whether reports come through shufflers, which users then trust not to tell whose they are.", None
    )
    process: OrdinalProcess = option("What devices that predict assume about preferences.", OrdinalProcess())
    table: TableOptions = option(
        "What devices that predict are sent if the completion is not calibrated.", TableOptions()
    )
    item_embeddings: EmbeddingRelease = option(
        "What devices that predict are sent of everybody's item sets.", EmbeddingRelease()
    )
    delivery: TopN | None = option(DELIVERY, TopN())
    guard: Guard | None = option(sharing.GUARD, None)
    max_symbols: int = option(
        "Most symbols, users times items, for a mechanism that reports every item.",
        2_000_000_000,
        ge=1,
    )

    @property
    def facts(self) -> Facts:
        """What mechanism and completion say.

        As baselines, the item sets alone where devices predict, or averages of true ratings where the server
        does.
        """
        private, on_device = self.mechanism.private, self.personalization == "on-device"
        averages = (
            isinstance(self.completion, ItemAverage) and self.mechanism.kind == "none" and not on_device
        )
        sets = on_device and not self.mechanism.sends_values
        alone = private and self.mechanism.report_family.of_single_ratings()
        return self.facts_of(
            private=private,
            draws_noise=private or self.item_embeddings.epsilon is not None,
            baseline="sets-only" if sets else "item-average" if averages else None,
            fit=None if private else self.completion.shared_fit,
            noise_on_ratings=self.mechanism if alone else None,
            assumes=self.process if on_device else None,
        )

    @property
    def _own_budgets(self) -> bool:
        """Whether users choose their own epsilons."""
        return self.privacy is not None and self.privacy.own

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; if the item set is hidden, per rating means per cell."""
        return replace(self, privacy=sharing.mechanism_budget(self.mechanism, self.privacy, budget))

    def check(self, train: Sizes) -> None:
        """Refuse a mechanism, budget, completion and catalogue that do not fit together."""
        with within("completion"):
            self.completion.check_scale(train.scale)
        self._family(train).check()
        reports = self.mechanism.report_family
        symbols = reports.seen_cells(train.n_users, train.n_items, ratings=0)
        if symbols > self.max_symbols:
            raise SettingError(
                "max_symbols",
                f"{self.mechanism.kind} sends every item: {train.n_users} users x {train.n_items} items = "
                f"{symbols} symbols",
                f"at most {self.max_symbols}",
            )
        with within("completion"):
            self.completion.check((train.n_users, train.n_items))
            says = self.mechanism.sends_values
            self.completion.check_reports(reports.evidence, self.mechanism.kind, of_values=says)
        if self.guard is not None:
            self.completion.check_guard(reports.evidence, self.mechanism.kind)
        if self.shuffler is not None:
            on_device = self.personalization == "on-device"
            self.shuffler.check(self.mechanism, self.privacy, self.completion, on_device)
        with within("table"):
            level_shares(self.table.histogram, train.scale.levels)
        if self.item_embeddings.epsilon is not None:
            with within("item_embeddings"):
                self._check_noisy_embeddings(self.item_embeddings.epsilon)

    def _check_noisy_embeddings(self, epsilon: float) -> None:
        """Refuse noise on item sets where none are read, or nobody but the server reads what they say."""
        if self.personalization == "none":
            found, accepted = f"{epsilon:g}, where the server predicts", "none, or personalization: on-device"
            raise SettingError("epsilon", found, accepted)
        if self.completion.knows_items and not is_ours(type(self.completion)):
            found = f"{epsilon:g}, with places of the items that {self.completion.kind} computes"
            raise SettingError(
                "epsilon", found, "none, or a completion of dprec, which computes them with noise"
            )
        unread = self.completion.knows_items and not self.completion.reads_item_sets
        if unread or self.mechanism.report_family.hides_items:
            found = f"{epsilon:g}, where the server does not know who rated which items"
            raise SettingError("epsilon", found, "none: the table says nothing of item sets")
        if self.item_embeddings.delta > self.delta:
            found, accepted = (
                f"{self.item_embeddings.delta:g}",
                f"at most {self.delta:g}, the delta of the run's losses",
            )
            raise SettingError("delta", found, accepted)

    def check_deployed(self) -> None:
        """Refuse a shuffler, which is accounted for and not run, and several epsilons in one agreement."""
        if self._own_budgets:
            found, accepted = "several, in a deployment", "one number: all devices agree to the same protocol"
            raise SettingError("privacy.epsilon", found, accepted)
        if self.shuffler is not None:
            raise SettingError("shuffler", "one, in a deployment", "none: devices answer the server itself")

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return the ratings, or all cells if reports hide which of them are rated."""
        return self.mechanism.report_family.seen_cells(users, items, ratings)

    def audited(self) -> Self:
        """Return the protocol without a costly completion; see `Protocol.audited`."""
        sharing.check_private(self.mechanism)
        return replace(
            self, completion=ItemAverage(), delivery=None, shuffler=None, item_embeddings=EmbeddingRelease()
        )

    @property
    def of_single_ratings(self) -> Self | None:
        """The protocol, if each symbol of its reports is about one rating and linked to its user."""
        reports = self.mechanism.report_family
        alone = reports.of_single_ratings() and not reports.asks_further and self.shuffler is None
        return self if alone else None

    def at_share(self, setup: OneShotSetup) -> Self:
        """Return the protocol with what a schedule installs on devices."""
        return replace(self, mechanism=setup.mechanism, privacy=setup.privacy)

    def setup(self) -> OneShotSetup:
        """Return the mechanism and the budget."""
        predicts = self.personalization == "on-device"
        if self.privacy is not None and self.privacy.own:
            return OwnBudgetsSetup(mechanism=self.mechanism, privacy=self.privacy, predicts=predicts)
        return OneShotSetup(mechanism=self.mechanism, privacy=self.privacy, predicts=predicts)

    def serve(self, grid: Grid, task: ServerTask) -> ServedReports:
        """Collect the reports, complete the matrix, and send devices that predict what it says."""
        family = self._family(task)
        collected = self.collect(grid, task, family)
        record = collected.record
        after = AfterReports.of(grid, task, family, collected)
        observed = after.observations
        if self.shuffler is not None:
            spent = self.shuffler.charged(family, collected, task.group)
            record, observed = record.with_traffic(spent), self.shuffler.received(observed)
        learned = self.learned(
            grid, task, observed, collected.observations, collected.traffic, self._numbers(collected)
        )
        record = record.with_traffic(learned.spent)
        return ServedReports(family, collected, after, learned, record, self.embedding_release)

    def collect(
        self,
        grid: Grid,
        task: ServerTask,
        family: ReportFamily,
        *,
        symbols: bool = False,
        required: bool = True,
    ) -> Collected:
        """Ask everybody for a report; ``symbols`` where others than the completion read them.

        Raises RunError when none can be used, if one is ``required``.
        """
        from strategies.report_collection import ReportCollection

        symbols = symbols or self.completion.needs_symbols or self._own_budgets or task.attacked
        wanted = Wanted(self.completion.needs_likelihood, symbols)
        collection = ReportCollection(family, task.group, wanted, task.catalogue, required)
        return collection.collect(grid, task.roster)

    def learned(
        self,
        grid: Grid,
        task: ServerTask,
        observed: Observations,
        linked: Observations,
        traffic: TrafficLedger,
        numbers: Ints | None = None,
    ) -> Learned:
        """Complete the matrix from what was observed, and send everybody what follows, which is charged.

        ``linked``: the same before any shuffler, which says what users have rated. ``numbers``: of users' own
        budgets, as far as the server knows.
        """
        observed = replace(observed, embedding_release=self.embedding_release)
        with within("completion"):
            completed = self.completion.fit(observed, task.server_seed, task.progress)
        cautions = self._cautions(completed, observed, task.n_users)
        if self.personalization == "on-device":
            parts = self._broadcast(grid, task, completed, linked, traffic, numbers, cautions)
            return Learned(completed, *parts)
        guarded = None if cautions is None else completed.lowered(cautions)
        if self.delivery is None or self.shuffler is not None:
            return Learned(completed, None, {}, guarded)
        seen = self._seen(linked)
        spent = deliver(self.delivery, grid, task, completed, seen, traffic, self.facts.learns, guarded)
        return Learned(completed, None, spent, guarded)

    def _cautions(self, completed: Completed, observed: Observations, n_users: int) -> Floats | None:
        """Return by how much items are lowered in lists, if these are guarded."""
        if self.guard is None:
            return None
        preferences = self.process.preferences if self.personalization == "on-device" else 0.0
        return completed.cautions(observed, self.guard.most(n_users), preferences)

    def _seen(self, linked: Observations) -> tuple[AnyInts, AnyInts] | None:
        """Return the cells that are seen as rated; None if reports hide them."""
        rated = linked.item_sets
        return None if self.mechanism.report_family.hides_items else (rated.users, rated.items)

    def _numbers(self, collected: Collected) -> Ints | None:
        """Return the number of every user's own budget: refusal, if there is one, of whoever sent nothing."""
        if self.privacy is None or not self.privacy.own or collected.told is None:
            return None
        if self.privacy.epsilons[0]:
            return collected.told
        return np.where(collected.accepted, collected.told, 0)

    def served(self, task: ServerTask, held: ServedReports) -> ServerOutcome:
        """Return what the server knows; a rating that no accepted report shows is not counted."""
        guarantee = self.guarantee((task.n_users, task.n_items))
        return ServerOutcome(guarantee=guarantee, **held.facts(held.seen_counts))

    def simulated(self, task: Task, held: ServedReports) -> Outcome:
        """Add what devices predict, what they lost, and how far their reports are from the ratings."""
        train, learned, observed = task.train, held.learned, held.after.observations
        setup = self.setup().chosen_by(train, task.seed, task.liars)
        facts = held.facts(train.counts, setup.numbers(0, train.n_users))
        predict, rows = learned.predicting(self.process, train)
        notes, facts["distance"] = held.family.against_truth(train, observed, held.collected.accepted)
        facts["notes"] += notes + note_on_refusals(setup.refuses(0, train.n_users))
        if self._own_budgets and learned.sent_table is not None:
            facts["diagnostics"] |= {
                "bias_of_item_means": bias_of_item_means(self.process, learned.sent_table, train)
            }
        if self.shuffler is not None:
            alone = facts["accountant"].get_epsilon()
            hidden = self.shuffler.shuffled(held.family, held.collected, alone)
            facts["accountant"] = facts["accountant"].shuffled(hidden)
            facts["notes"] += notes_on_ratings(facts["accountant"], held.family, self.delta)
            if learned.sent_table is None:
                facts["notes"] += (NOT_DELIVERED,)
        return Outcome(
            predict=predict,
            predict_rows=rows,
            guarantee=self.guarantee((train.n_users, train.n_items)),
            hidden=learned.completed.hidden_entries,
            scores=learned.scoring(self.process, train),
            transcript=self._transcript(task, held) if task.attacked else None,
            **facts,
        )

    def _transcript(self, task: Task, held: ServedReports) -> Transcript:
        """Return what was said; what a shuffler hands on can be linked with nobody."""
        observed, learned, lists = held.after.observations, held.learned, None
        linked = self.shuffler is None
        if linked and learned.sent_table is None and self.delivery is not None:
            seen = self._seen(held.collected.observations)
            name = self.facts.learns
            delivered = lists_for(self.delivery, task, learned.completed, seen, name, learned.guarded)
            lists = delivered.best(np.arange(task.n_users))
        return Transcript(
            n_users=task.n_users,
            n_items=task.n_items,
            scale=task.scale,
            trusted=self.guarantee((task.n_users, task.n_items)).trusts_server,
            reports=(observed,) if linked else (),
            broadcast=None if learned.sent_table is None else Broadcast.of_table(learned.sent_table),
            newcomer=learned.newcomer(self.process, task.train),
            lists=lists,
        )

    @property
    def embedding_release(self) -> EmbeddingRelease:
        """What may be told of item sets; where the server predicts, it tells nobody."""
        return self.item_embeddings if self.personalization == "on-device" else AS_THEY_ARE

    @property
    def _table_options(self) -> TableOptions:
        """The options of the table; rated items that are hidden place nothing."""
        hidden = self.mechanism.report_family.hides_items
        return replace(self.table, dimensions=0) if hidden else self.table

    def _broadcast(
        self,
        grid: Grid,
        task: ServerTask,
        completed: Completed,
        linked: Observations,
        traffic: TrafficLedger,
        numbers: Ints | None,
        cautions: Floats | None,
    ) -> tuple[ItemTable, dict[str, int]]:
        """Send everybody what the completion knows of the items; return it, and the bytes charged."""
        from strategies.delivery import broadcast_table

        observed = replace(linked, embedding_release=self.embedding_release)
        table = broadcast_of(completed, observed, self._table_options, task.server_seed)
        if numbers is not None:
            table = for_everybody(table, observed, numbers, public=self.completion.knows_shares)
        encoded = replace(table, cautions=cautions).encode()
        spent = broadcast_table(grid, task.roster, task.group, encoded, traffic)
        return ItemTable.decode(encoded, n_levels=task.scale.levels, n_items=task.n_items), spent

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the one report."""
        return sent_ratings(self._family(public), ratings)

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of a report, by what the completion reads of it."""
        of_values = not (self.completion.needs_likelihood or self.completion.needs_symbols)
        return self._family(train).influence_of_one(train.counts, of_values=of_values)

    def _family(self, sizes: Sizes) -> ReportFamily:
        return self.mechanism.family(self.privacy, sizes.scale, sizes.n_items)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the loss of the channel, if there is a budget; a shuffler adds to it."""
        local = self._guarantee_of_reports()
        return local if self.shuffler is None else self.shuffler.guaranteed(local)

    def _guarantee_of_reports(self) -> Guarantee:
        """Promise the loss of the channel, if there is a budget."""
        on_device, sends = self.personalization == "on-device", self.mechanism.sends_values
        reports, reads_sets = self.mechanism.report_family, self.completion.reads_item_sets
        if self.privacy is None and sends:
            return Guarantee("none", "central", False, "the server receives the true ratings.")
        if reports.hides_items:
            return Guarantee("proved", "local", True, f"{sharing.EXACT_CHANNEL}.", notes=(reports.on_items,))
        seen = [reports.on_items if sends else _VALUES_UNSENT]
        if on_device or reads_sets:
            seen.append(note_on_reading(on_device=on_device, sends_values=sends))
        if on_device:
            groups, has_biases = reports.asks_further, sends or not reads_sets
            seen += notes_on_table(self.item_embeddings, has_biases=has_biases, groups_items=groups)
        if not sends:
            why = "devices send which items were rated, and nothing that depends on how."
            return Guarantee("proved", "local", False, why, notes=tuple(seen))
        seen += MixedFamily.further_notes if self._own_budgets else reports.further_notes
        seen += () if self.privacy is None else self.privacy.in_words
        if self.privacy is not None and self.privacy.sampled_at is not None:
            return Guarantee("claimed", "local", False, SampledRatingsFamily.claim, notes=tuple(seen))
        return Guarantee("proved", "local", False, f"{sharing.EXACT_CHANNEL}.", notes=tuple(seen))
