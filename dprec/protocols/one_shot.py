"""One-shot protocols: every user sends one report; the server predicts from all of them, or devices do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic.json_schema import SkipJsonSchema

from dprec.accounting import AnyBudget, Assumptions, Guarantee
from dprec.arrays import AnyInts, Bools, Floats, Ints
from dprec.catalogue import Catalogue
from dprec.completion import Completed, Guard, ItemAverage
from dprec.components import as_values, is_ours, option
from dprec.errors import SettingError, within
from dprec.mechanisms import Mechanism
from dprec.observations import AS_THEY_ARE, EmbeddingRelease, Observations
from dprec.ordinal import level_shares
from dprec.personalization import BroadcastDevices, OrdinalProcess, TableOptions, broadcast_of, for_everybody
from dprec.predictions import Predict, PredictRows
from dprec.progress import Progress
from dprec.protocols import sharing
from dprec.protocols.base import Facts
from dprec.protocols.collection import CollectionProtocol
from dprec.protocols.components import AnyCompletion
from dprec.protocols.sharing import DELIVERY, TopN
from dprec.protocols.shuffler import Shuffler
from dprec.ratings import Ratings, RatingScale
from dprec.reports import MixedFamily, ReportFamily, SampledRatingsFamily
from dprec.schedules.answers import Answers, AnyAnswers
from dprec.wire import ItemTable

_VALUES_UNSENT = "Which items a user rated is not hidden; nothing of the values of the ratings is sent."


def note_on_reading(*, on_device: bool, sends_values: bool) -> str:
    """Say that the predictions rest on the set of rated items, and where nothing of this holds."""
    who = "Devices predict" if on_device else "The server predicts"
    sources = ["what is reported"] * sends_values + ["which items were rated"]
    sources += ["their own ratings"] * on_device
    *others, last = sources
    sources_in_words = f"{', '.join(others)} and {last}" if others else last
    set_alone = "The set alone, without a report of any value, gives what the baseline sets-only reaches. "
    return (
        f"{who} from {sources_in_words}. {set_alone if sends_values else ''}"
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
    effects = (
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
        f"An item whose noisy count is below {least}, or within the noise, has no place. {groups}{effects}",
    )


_GROUPS = ("which items are rated about as often",)
_EFFECTS = ("items' effects", "their certainty", "user coefficients")
"""What a table of items tells of item sets without noise."""


def _assumed(
    released: EmbeddingRelease, privacy: AnyBudget | None, *, has_biases: bool, groups_items: bool
) -> Assumptions:
    """Return what of item sets has noise in the table of items, what has none, and whose budgets are seen."""
    assumptions = Assumptions(budgets_seen=privacy is not None and privacy.own)
    if released.epsilon is None:
        return assumptions
    return replace(
        assumptions,
        embeddings_epsilon=released.epsilon,
        embeddings_any_two=released.epsilon_between_profiles,
        uncovered=", ".join([*_GROUPS * groups_items, *_EFFECTS * has_biases]),
    )


def bias_of_item_means(process: OrdinalProcess, table: ItemTable, train: Ratings) -> float:
    """Return how much higher the train ratings' items are predicted for newcomers than they are rated."""
    nobody, items = train.select(np.zeros(train.count, dtype=np.bool_)), np.arange(train.n_items)
    predictions = BroadcastDevices(process, table, nobody).predict(np.zeros_like(items), items)
    clipped = np.clip(predictions, train.scale.low, train.scale.high)
    return float(clipped[train.items].mean() - train.values.mean())


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
    names = [*catalogue.number_names]
    if catalogue.category_names:
        names.append(f"{len(catalogue.category_names)} categories")
    return (f"Predictions also rest on public data about the items: {', '.join(names)}.",)


@dataclass(frozen=True, eq=False)
class Learned:
    """What the server has learned, and what devices hold of it."""

    completed: Completed
    process: OrdinalProcess
    """What devices that predict assume."""
    sent_table: ItemTable | None = None
    """What they are sent, as they decode it; None if the server predicts."""
    encoded: bytes = b""
    """The table as it is sent."""
    notes: tuple[str, ...] = ()
    """What a limit of what they are sent costs."""
    guarded: Completed | None = None
    """What a server that predicts ranks lists by, if not by predictions."""

    def predicting(self, ratings: Ratings) -> tuple[Predict, PredictRows | None]:
        """Return what predicts: the server, or devices that hold some ratings."""
        if self.sent_table is None:
            return self.completed.predict, self.completed.predict_rows
        return BroadcastDevices(self.process, self.sent_table, ratings).predict, None

    def scoring(self, ratings: Ratings) -> Predict | None:
        """Return what lists are ranked by, if not by predictions."""
        if self.sent_table is not None and self.sent_table.cautions is not None:
            return BroadcastDevices(self.process, self.sent_table, ratings).scores
        return None if self.guarded is None else self.guarded.predict

    def newcomer(self, train: Ratings) -> Callable[[AnyInts], Floats] | None:
        """Return what a device without ratings predicts of items; None where devices are sent no table."""
        if self.sent_table is None:
            return None
        nobody = train.select(np.zeros(train.count, dtype=np.bool_))
        predict = BroadcastDevices(self.process, self.sent_table, nobody).predict
        return lambda items: predict(np.zeros_like(items), items)


@dataclass(frozen=True, kw_only=True)
class OneShotProtocol(sharing.Completes, CollectionProtocol):
    """Every user sends one perturbed report; the server or every device predicts from all of them."""

    kind: Literal["one-shot"] = "one-shot"
    undeployable: ClassVar[str] = ""
    privacy: AnyBudget | None = option(
        "What is promised; left out if nothing is. If epsilon is a mapping, users choose their own: it has "
        "the share of those who choose each, 0 being a refusal. If it is a text, it names the column of the "
        "users' table that has each user's.",
        None,
    )
    completion: AnyCompletion = option("How the server completes the matrix.", reader="server")
    personalization: Literal["none", "on-device"] = option(
        "Who predicts: the server, or each device, from its clean ratings and what the server broadcasts.",
        "none",
    )
    shuffler: Shuffler | None = option(
        "Whether reports come through shufflers, which users then trust not to tell whose they are.",
        None,
        reader="result",
    )
    process: OrdinalProcess = option("What devices that predict assume about preferences.", OrdinalProcess())
    table: TableOptions = option(
        "What devices that predict are sent if the completion is not calibrated.",
        TableOptions(),
        reader="server",
    )
    item_embeddings: EmbeddingRelease = option(
        "What devices that predict are sent of everybody's item sets.",
        EmbeddingRelease(),
        reader="server",
    )
    max_bytes_down: int | None = option(sharing.MAX_BYTES_DOWN, None, reader="server", ge=1)
    delivery: TopN | None = option(DELIVERY, TopN(), reader="result")
    guard: Guard | None = option(sharing.GUARD, None, reader="result")
    max_symbols: int = option(
        "Most symbols, users times items, for a mechanism that reports every item.",
        2_000_000_000,
        reader="server",
        ge=1,
    )

    answers: Annotated[AnyAnswers | None, SkipJsonSchema()] = option(
        "What devices remember of their answers between collections: a schedule says it, no configuration.",
        None,
    )

    def __post_init__(self) -> None:
        """Refuse answers that cannot be remembered."""
        super().__post_init__()
        if self.answers is not None:
            self.answers.check(self.mechanism, self.privacy)

    @property
    def facts(self) -> Facts:
        """What mechanism and completion say.

        As baselines, the item sets alone where devices predict, or averages of true ratings where the server
        does.
        """
        private, on_device = self.mechanism.private, self.on_device
        averages = (
            isinstance(self.completion, ItemAverage) and self.mechanism.kind == "none" and not on_device
        )
        sets_only = on_device and not self.mechanism.sends_values
        single_ratings = private and self.mechanism.report_family.of_single_ratings()
        return self.facts_of(
            private=private,
            draws_noise=private or self.item_embeddings.epsilon is not None,
            baseline="sets-only" if sets_only else "item-average" if averages else None,
            fit=None if private else self.completion.shared_fit,
            noise_on_ratings=self.mechanism if single_ratings else None,
            assumes=self.process if on_device else None,
        )

    @property
    def on_device(self) -> bool:
        """Whether devices predict, and not the server."""
        return self.personalization == "on-device"

    @property
    def applied(self) -> Mechanism:
        """What devices apply to each rating: the mechanism, or what permanent answers have in its place."""
        return self.mechanism if self.answers is None else self.answers.applied(self.mechanism)

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily:
        """Return what devices report; see `CollectionProtocol.family`."""
        if self.answers is None:
            return super().family(scale, n_items)
        return self.answers.family(self.mechanism, self.privacy, scale, n_items)

    @property
    def installed(self) -> Self:
        """What devices are given: not how the server completes, nor who has chosen which epsilon."""
        privacy = None if self.privacy is None else self.privacy.installed
        return replace(super().installed, completion=ItemAverage(), privacy=privacy)

    @property
    def remembers(self) -> Answers | None:
        """What a schedule has devices remember."""
        return self.answers

    def memory(self, scale: RatingScale, purpose: str) -> str | None:
        """Return what the words for a purpose are bound to that repeat in every run; None if none do."""
        if self.answers is None or not self.answers.remembers(purpose):
            return None
        settings = as_values({"mechanism": self.applied, "privacy": self.privacy})
        return json.dumps([settings, scale.values.tolist()], sort_keys=True)

    def check(self, train: Any) -> None:
        """Refuse a mechanism, budget, completion and catalogue that do not fit together."""
        with within("completion"):
            self.completion.check_scale(train.scale)
        self.family(train.scale, train.n_items).check()
        mechanism = self.applied
        reports = mechanism.report_family
        symbols = reports.seen_cells(train.n_users, train.n_items, ratings=0)
        if symbols > self.max_symbols:
            raise SettingError(
                "max_symbols",
                f"{mechanism.kind} sends every item: {train.n_users} users x {train.n_items} items = "
                f"{symbols} symbols",
                f"at most {self.max_symbols}",
            )
        with within("completion"):
            self.completion.check((train.n_users, train.n_items))
            self.completion.check_reports(reports.evidence, mechanism.kind, of_values=mechanism.sends_values)
        if self.guard is not None:
            self.completion.check_guard(reports.evidence, mechanism.kind)
        if self.shuffler is not None:
            self.shuffler.check(mechanism, self.privacy, self.completion, self.on_device)
        with within("table"):
            level_shares(self.table.histogram, train.scale.levels)
        if self.item_embeddings.epsilon is not None:
            with within("item_embeddings"):
                self._check_noisy_embeddings(self.item_embeddings.epsilon)

    def _check_noisy_embeddings(self, epsilon: float) -> None:
        """Refuse noise on item sets where none are read, or nobody but the server reads what they say."""
        if not self.on_device:
            found = f"{epsilon:g}, where the server predicts"
            accepted = "null, or --set protocol.personalization=on-device"
            raise SettingError("epsilon", found, accepted)
        if self.completion.knows_items and not is_ours(type(self.completion)):
            found = f"{epsilon:g}, with places of the items that {self.completion.kind} computes"
            raise SettingError(
                "epsilon", found, "null, or a completion of dprec, which computes them with noise"
            )
        unread = self.completion.knows_items and not self.completion.reads_item_sets
        if unread or self.mechanism.report_family.hides_items:
            found = f"{epsilon:g}, where the server does not know who rated which items"
            raise SettingError("epsilon", found, "null: the table says nothing of item sets")
        if self.item_embeddings.delta > self.delta:
            found, accepted = (
                f"{self.item_embeddings.delta:g}",
                f"at most {self.delta:g}, the delta of the run's losses",
            )
            raise SettingError("delta", found, accepted)

    def check_deployed(self) -> None:
        """Refuse a shuffler, which is accounted for and not run, and several epsilons in one agreement."""
        super().check_deployed()
        if self.privacy is not None and self.privacy.own:
            found, accepted = "several, in a deployment", "one number: all devices agree to the same protocol"
            raise SettingError("privacy.epsilon", found, accepted)
        if self.shuffler is not None:
            raise SettingError("shuffler", "one, in a deployment", "null: devices answer the server itself")

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
        readable = reports.of_single_ratings() and not reports.asks_further and self.shuffler is None
        return self if readable else None

    @property
    def adds_values(self) -> bool:
        """Whether the completion reads neither likelihoods nor symbols."""
        return not (self.completion.needs_likelihood or self.completion.needs_symbols)

    @property
    def embedding_release(self) -> EmbeddingRelease:
        """What may be told of item sets; where the server predicts, it tells nobody."""
        return self.item_embeddings if self.on_device else AS_THEY_ARE

    def learn(
        self,
        observed: Observations,
        linked: Observations,
        seed: int,
        progress: Progress,
        numbers: Ints | None = None,
    ) -> Learned:
        """Complete the matrix from what was observed.

        Parameters
        ----------
        linked : Observations
            The same before any shuffler, which says what users have rated.
        numbers : ndarray of int64, shape (users,), optional
            Of users' own budgets, as far as the server knows.
        """
        observed = replace(observed, embedding_release=self.embedding_release)
        with within("completion"):
            completed = self.completion.fit(observed, seed, progress)
        cautions = None
        if self.guard is not None:
            preferences = self.process.preferences if self.on_device else 0.0
            cautions = completed.cautions(observed, self.guard.most(observed.shape[0]), preferences)
        if not self.on_device:
            guarded = None if cautions is None else completed.lowered(cautions)
            return Learned(completed, self.process, guarded=guarded)
        linked = replace(linked, embedding_release=self.embedding_release)
        # Rated items that are hidden place nothing.
        options = replace(self.table, dimensions=0) if self.hides_rated_items else self.table
        table = broadcast_of(completed, linked, options, seed)
        if numbers is not None:
            table = for_everybody(table, linked, numbers, public=self.completion.knows_shares)
        table = replace(table, cautions=cautions)
        encoded = table.within(self.max_bytes_down).encode()
        notes = sharing.note_on_limit(self.max_bytes_down, table)
        sent_table = ItemTable.decode(encoded, n_levels=linked.scale.levels, n_items=linked.shape[1])
        return Learned(completed, self.process, sent_table, encoded, notes)

    def seen(self, linked: Observations) -> tuple[Ints, AnyInts] | None:
        """Return how many cells of each user are seen as rated, and their items; None if that is hidden."""
        if self.hides_rated_items:
            return None
        rated = linked.rated or linked
        return rated.counts, rated.items

    def known_numbers(self, numbers: Ints | None, accepted: Bools) -> Ints | None:
        """Return the number of every user's own budget: refusal, if there is one, of whoever sent nothing.

        ``numbers``: what reports begin with; ``accepted``: whose did; both of shape (users,).
        """
        if self.privacy is None or not self.privacy.own or numbers is None:
            return None
        return numbers if self.privacy.epsilons[0] else np.where(accepted, numbers, 0)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the loss of the channel, if there is a budget; a shuffler adds to it."""
        local = self._guarantee_of_reports()
        return local if self.shuffler is None else self.shuffler.guaranteed(local)

    def _guarantee_of_reports(self) -> Guarantee:
        """Promise the loss of the channel, if there is a budget."""
        on_device, sends = self.on_device, self.mechanism.sends_values
        reports, reads_sets = self.mechanism.report_family, self.completion.reads_item_sets
        if self.privacy is None and sends:
            return Guarantee("none", "central", False, "the server receives the true ratings.")
        if reports.hides_items:
            return Guarantee("proved", "local", True, f"{sharing.EXACT_CHANNEL}.", notes=(reports.on_items,))
        notes = [reports.on_items if sends else _VALUES_UNSENT]
        if on_device or reads_sets:
            notes.append(note_on_reading(on_device=on_device, sends_values=sends))
        groups, has_biases = reports.asks_further, sends or not reads_sets
        if on_device:
            notes += notes_on_table(self.item_embeddings, has_biases=has_biases, groups_items=groups)
        assumes = _assumed(self.item_embeddings, self.privacy, has_biases=has_biases, groups_items=groups)
        if not sends:
            why = "devices send which items were rated, and nothing that depends on how."
            return Guarantee("proved", "local", False, why, tuple(notes), assumes=assumes)
        assert self.privacy is not None
        notes += MixedFamily.further_notes if self.privacy.own else reports.further_notes
        notes += self.privacy.in_words
        if self.privacy.sampled_at is not None:
            claim = SampledRatingsFamily.claim
            return Guarantee("claimed", "local", False, claim, tuple(notes), assumes=assumes)
        return Guarantee("proved", "local", False, f"{sharing.EXACT_CHANNEL}.", tuple(notes), assumes=assumes)
