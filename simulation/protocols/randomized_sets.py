"""Lists from item sets that are randomised item by item, on the device: one report, and a table back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import ChannelDraws, Guarantee, MatchedBudget, PrivacyBudget
from dprec.arrays import Ints
from dprec.attacks import Transcript
from dprec.components import option
from dprec.exchange import RandomizedSetsSetup
from dprec.lists.gram import MOST_ITEMS
from dprec.lists.model import ListModel
from dprec.lists.randomized_sets import list_model
from dprec.mechanisms import Mechanism, RandomizedSet
from dprec.observations import SetReports
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Predicted, Public, Sent, sent_ratings
from dprec.protocols.predicting import predictions_on_devices
from dprec.ratings import POSITIVE, Ratings, RatingScale
from dprec.reports import ReportFamily
from simulation.protocols.base import Protocol
from simulation.protocols.course import notes_on_failures
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Sizes, Task
from simulation.protocols.transcripts import of_newcomers, transcript_of

if TYPE_CHECKING:
    from strategies.report_collection import Collected


_SIZES = (10, 100)
"""Of the sets whose loss is told as an example."""


@dataclass(frozen=True, eq=False)
class ServedSets:
    """What the server holds at the end."""

    collected: Collected
    spent: dict[str, int]
    """Bytes of what devices were sent."""
    model: ListModel
    """What they rank by, as they decode it."""


@dataclass(frozen=True, kw_only=True)
class RandomizedSetsProtocol(Protocol):
    """Devices send a randomised answer about every item, and rank by the items that go together."""

    kind: Literal["randomized-sets"] = "randomized-sets"
    predicted: ClassVar[Predicted] = "lists"
    undeployable: ClassVar[str] = ""
    folds_in: ClassVar[bool] = True
    papers: ClassVar[tuple[str, ...]] = ("gao2020",)
    mechanism: ClassVar[Mechanism] = RandomizedSet()
    privacy: PrivacyBudget = option("What is promised, of one item or of whole sets.")
    items: int | None = option(
        "Most popular items of the table; by default a public rule.", None, ge=0, le=MOST_ITEMS
    )
    content: bool = option("Whether public categories and numbers of the items are used.", True)

    @property
    def facts(self) -> Facts:
        """A table of items that go together."""
        return self.facts_of(learns="item-table")

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; per rating means per cell."""
        return replace(self, privacy=sharing.mechanism_budget(self.mechanism, self.privacy, budget))

    def check(self, train: Sizes) -> None:
        """Refuse a budget that an answer cannot keep to."""
        self._family(train.scale, train.n_items).check()

    def check_deployed(self) -> None:
        """Refuse nothing."""

    def audited(self) -> Self:
        """Return the protocol without a table; see `Protocol.audited`."""
        return replace(self, items=0)

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return all cells: which of them are had is hidden."""
        return users * items

    def setup(self) -> RandomizedSetsSetup:
        """Return the mechanism and the budget."""
        return RandomizedSetsSetup(mechanism=self.mechanism, privacy=self.privacy)

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the one report."""
        return sent_ratings(self._family(public.scale, public.n_items), ratings)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the loss of an answer, and say what whole sets cost."""
        family = self._family(POSITIVE, shape[1])
        notes = (family.on_items, self._note_on_sets(family))
        return Guarantee("proved", "local", True, f"{sharing.EXACT_CHANNEL}.", notes=notes)

    def _note_on_sets(self, family: ReportFamily) -> str:
        """Say what sets of a few sizes cost against an empty one, and any two sets of the catalogue."""
        channel, n_items = family.channel(family.n_items), family.n_items
        sizes = np.array([*(size for size in _SIZES if size < n_items), n_items])
        draws, everybody = ChannelDraws((channel,), 0, sizes), np.ones(sizes.size, dtype=np.bool_)
        composed = ChannelDraws.composed([(draws, everybody)], self.delta, "replace-one")
        losses = np.minimum(composed, sizes * channel.epsilon).tolist()
        some = (f"of {size} items {loss:.4g}, " for size, loss in zip(sizes, losses[:-1], strict=False))
        return (
            f"With delta = {self.delta:g}, whole sets cost, beside none (add or remove one): {''.join(some)}"
            f"and any two of them (replace one) {losses[-1]:.4g}, for all {n_items} cells, which is what the "
            "ledger charges."
        )

    def serve(self, grid: Grid, task: ServerTask) -> ServedSets:
        """Collect the randomised sets, learn from them, and send everybody what was learned."""
        from strategies.report_collection import ReportCollection
        from strategies.rounds import broadcast_parameters

        family = self._family(task.scale, task.n_items)
        collected = ReportCollection(family, task.group).collect(grid, task.roster)
        reports = collected.observations.evidence
        assert isinstance(reports, SetReports)
        learned = list_model(reports, task.catalogue if self.content else None, self.items).encode()
        spent = broadcast_parameters(grid, task.roster, task.group, learned, collected.traffic)
        return ServedSets(collected, spent, ListModel.decode(learned, task.n_items))

    def served(self, task: ServerTask, held: ServedSets) -> ServerOutcome:
        """Return what the server knows."""
        return ServerOutcome(**self._facts(task, held))

    def simulated(self, task: Task, held: ServedSets) -> Outcome:
        """Add how the devices rank, from their clean sets."""
        predicted = predictions_on_devices(task.judged, held.model.predictions)
        transcript = self._transcript(task, held) if task.attacked else None
        return Outcome(**predicted, transcript=transcript, **self._facts(task, held))

    def _transcript(self, task: Task, held: ServedSets) -> Transcript:
        """Return the answers, each read as a report on its cell."""
        observed = held.collected.observations
        reports = observed.evidence
        assert isinstance(reports, SetReports)
        nobody = task.judged.select(np.zeros(task.judged.count, dtype=np.bool_))
        predicted = predictions_on_devices(nobody, held.model.predictions)
        return transcript_of(
            task,
            reports=(reports.of_rows(observed, held.collected.accepted),),
            newcomer=of_newcomers(predicted["predict"]),
        )

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of an answer."""
        return self._family(train.scale, train.n_items).influence_of_one(train.counts, of_values=False)

    def _family(self, scale: RatingScale, n_items: int) -> ReportFamily:
        return self.mechanism.family(self.privacy, scale, n_items)

    def _facts(self, task: ServerTask, held: ServedSets) -> dict[str, Any]:
        family, collected = self._family(task.scale, task.n_items), held.collected
        # Answers are about all items, whatever a user has, so that no count of any user is needed.
        counts: Ints = np.zeros(task.n_users, dtype=np.int64)
        record = collected.record.with_traffic(held.spent)
        return {
            "traffic": collected.traffic,
            "accountant": family.accountant(counts, collected.sent),
            "guarantee": self.guarantee((task.n_users, task.n_items)),
            "rounds": (record,),
            "notes": notes_on_failures([record]),
            "diagnostics": {"table_items": int(held.model.table.items.size)},
        }
