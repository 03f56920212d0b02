"""One-shot protocols: every user sends one report, and the server completes the matrix from them all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from dprec.completion.averages import ItemAverage
from dprec.completion.base import Completed
from dprec.completion.calibrated.completion import Calibrated, CalibratedModel
from dprec.completion.one_bit.completion import HiddenMatrix, OneBit
from dprec.errors import SettingError, within
from dprec.mechanisms import BitsAndCounts
from dprec.messages import PRIOR, REPORT
from dprec.options import option
from dprec.ordinal import level_shares
from dprec.personalization.broadcast import broadcast_of
from dprec.personalization.derived_broadcast import TableOptions
from dprec.personalization.ordinal_process import Devices, OrdinalProcess
from dprec.privacy.calibrated_counts import CalibratedCounts
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.device_channel import device_channel
from dprec.privacy.guarantee import Guarantee
from dprec.privacy.matched_budget import MatchedBudget
from dprec.privacy.residual_calibration import calibrated_for
from dprec.ratings import Ratings
from dprec.recommendation import PredictRows
from dprec.setups import OneShotSetup
from dprec.wire.item_table import ItemTable
from simulation.protocols.accounting import (
    EXACT_CHANNEL,
    check_private,
    measured_deployment,
    mechanism_budget,
    notes_on_failures,
)
from simulation.protocols.base import Protocol
from simulation.protocols.components import AnyCompletion, AnyMechanism
from simulation.protocols.counting import after_reports
from simulation.protocols.outcome import Outcome
from simulation.protocols.reported_cells import RatedCells, note_on_made_up_cells
from simulation.protocols.seen_set import ALL_VALUES, SET_IS_SEEN, note_on_reading, notes_on_catalogue
from simulation.protocols.sent import Example, Sent, sent_ratings
from simulation.protocols.task import Task
from simulation.protocols.zheng_distance import distance_per_cell

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from strategies.report_collection import Collected

ONE_PART_EACH = (
    "Chance alone decides whether a rating is in one bit or in one noisy count; it loses at most epsilon in "
    "either. The counts are sent when the server has grouped the items. Against a whole profile, a count "
    "costs at most the sum over its ratings."
)


@dataclass(frozen=True, kw_only=True)
class OneShotProtocol(Protocol):
    """Every user sends one perturbed report; the server completes the matrix from all of them."""

    kind: Literal["one-shot"] = "one-shot"
    mechanism: AnyMechanism = option("What the device applies to each rating.")
    completion: AnyCompletion = option("How the server completes the matrix.")
    personalization: Literal["none", "on-device"] = option(
        "Who predicts: the server, or each device, from its clean ratings and what the server broadcasts.",
        "none",
    )
    process: OrdinalProcess = option("What devices that predict assume about tastes.", OrdinalProcess())
    table: TableOptions = option(
        "What devices that predict are sent if the completion is not calibrated.", TableOptions()
    )
    max_symbols: int = option(
        "Most symbols, users times items, for a mechanism that reports every item.",
        2_000_000_000,
        ge=1,
    )

    @property
    def private(self) -> bool:
        """Whether the mechanism takes a budget."""
        return self.mechanism.private

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; if the item set is hidden, per rating means per cell."""
        return replace(self, privacy=mechanism_budget(self.mechanism, self.privacy, budget))

    @property
    def mechanism_name(self) -> str:
        """Kind of the mechanism."""
        return self.mechanism.kind

    @property
    def completion_name(self) -> str:
        """Kind of the completion."""
        return self.completion.kind

    @property
    def shared_fit(self) -> OneBit | None:
        """The completion of true signs."""
        return self.completion if isinstance(self.completion, OneBit) and not self.private else None

    def check(self, train: Ratings) -> None:
        """Refuse a mechanism, budget, completion and catalogue that do not fit together."""
        with within("completion"):
            self.completion.check_scale(train.scale)
        calibrated = self._calibrated(train)
        calibrated.codec()
        CalibratedCounts.of(calibrated)
        symbols = train.n_users * train.n_items
        if self.mechanism.hides_rated_items and symbols > self.max_symbols:
            raise SettingError(
                "max_symbols",
                f"{self.mechanism.kind} sends every item: {train.n_users} users x {train.n_items} items = "
                f"{symbols} symbols",
                f"at most {self.max_symbols}",
            )
        with within("completion"):
            self.completion.check((train.n_users, train.n_items))
            self._check_calibrated()
        with within("table"):
            level_shares(self.table.histogram, train.scale.levels)

    def _check_calibrated(self) -> None:
        """Refuse what a calibrated completion cannot learn from the reports of the mechanism."""
        if not isinstance(self.completion, Calibrated):
            return
        hides, name = self.mechanism.hides_rated_items, self.mechanism.kind
        by_itself = self.mechanism.sends_values and not self.mechanism.compares_ratings
        if self.completion.learn_histogram and (hides or not by_itself):
            accepted = "false, or a mechanism whose reports are all of ratings"
            raise SettingError("learn_histogram", f"true, with mechanism {name}", accepted)
        for key in ("slopes", "factors"):
            if (hides or self.mechanism.compares_ratings) and getattr(self.completion, key):
                found = f"{getattr(self.completion, key)}, with mechanism {name}"
                accepted = "0, or a mechanism that shows which items were rated and reports on each alone"
                raise SettingError(key, found, accepted)

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return the ratings, or all cells if reports hide which of them are rated."""
        return users * items if self.mechanism.hides_rated_items else ratings

    def audited(self) -> Self:
        """Return the protocol without a costly completion; see `Protocol.audited`."""
        check_private(self.mechanism)
        return replace(self, completion=ItemAverage())

    def setup(self) -> OneShotSetup:
        """Return the mechanism and the budget."""
        predicts = self.personalization == "on-device"
        return OneShotSetup(mechanism=self.mechanism, privacy=self.privacy, predicts=predicts)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the reports and complete the matrix."""
        from strategies.report_collection import ReportCollection

        calibrated = self._calibrated(task.train)
        collection = ReportCollection(
            calibrated,
            task.group,
            likelihood=self.completion.needs_likelihood,
            symbols=self.completion.needs_symbols or CalibratedCounts.of(calibrated) is not None,
            catalogue=task.catalogue,
        )
        collected = collection.collect(grid, task.roster)
        payload = collected.mean_payload
        after = after_reports(grid, task, calibrated, collected)
        observed = after.observations
        with within("completion"):
            completed = self.completion.fit(observed, task.server_seed, task.progress)
        record, predict = collected.record, completed.predict
        rows: PredictRows | None = completed.predict_rows
        if self.personalization == "on-device":
            devices, spent = self._personalized(grid, task, completed, collected)
            record, predict, rows = record.with_traffic(spent), devices.predict, None
        notes = completed.notes + notes_on_failures([record]) + after.notes
        if isinstance(completed, CalibratedModel):
            notes += notes_on_catalogue(completed.catalogue)
        distance: dict[str, float | None] = {}
        if self.mechanism.hides_rated_items:
            rated = RatedCells.of(task.train, observed)
            notes += (note_on_made_up_cells(task.train, observed, rated),)
            distance = distance_per_cell(calibrated, task.train, collected.accepted, observed, rated)
        return Outcome(
            predict=predict,
            predict_rows=rows,
            traffic=collected.traffic,
            privacy=after.privacy,
            releases=after.releases,
            guarantee=self.guarantee((task.train.n_users, task.train.n_items)),
            rounds=(record, *after.rounds),
            channel=device_channel(calibrated, task.train.counts),
            notes=notes,
            diagnostics=completed.diagnostics,
            distance=distance,
            hidden=completed.hidden if isinstance(completed, HiddenMatrix) else None,
            deployed_factor=measured_deployment(REPORT, payload, task.group),
        )

    @property
    def _table_options(self) -> TableOptions:
        """The options of the table; rated items that are hidden place nothing."""
        return replace(self.table, dimensions=0) if self.mechanism.hides_rated_items else self.table

    def _personalized(
        self, grid: Grid, task: Task, completed: Completed, collected: Collected
    ) -> tuple[Devices, dict[str, int]]:
        """Broadcast what the completion knows of the items; return the devices, and the bytes charged."""
        from strategies.personalization import broadcast_table

        seed, train = task.server_seed, task.train
        broadcast = broadcast_of(completed, collected.observations, self._table_options, seed)
        encoded, priors = broadcast.table.encode(), broadcast.priors
        spent = broadcast_table(grid, task.roster, task.group, encoded, priors, collected.traffic)
        table = ItemTable.decode(encoded, n_levels=train.scale.levels, n_items=train.n_items)
        received = priors.astype(PRIOR).astype(np.float64)
        return Devices(self.process, table, received, train), spent

    def sent(self, example: Example) -> Sent:
        """Return the one report."""
        calibrated = calibrated_for(self.mechanism, self.privacy, example.scale, example.items)
        return sent_ratings(calibrated, example)

    def _calibrated(self, train: Ratings) -> CalibratedMechanism:
        return calibrated_for(self.mechanism, self.privacy, train.scale, train.n_items)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the loss of the channel, if there is a budget."""
        on_device, sends = self.personalization == "on-device", self.mechanism.sends_values
        seen = [SET_IS_SEEN]
        if on_device or isinstance(self.completion, Calibrated):
            seen.append(note_on_reading(on_device=on_device, sends_values=sends))
        if not sends:
            why = "devices send which items were rated, and nothing that depends on how."
            return Guarantee("proved", "nobody", False, why, notes=tuple(seen))
        if self.privacy is None:
            return Guarantee("none", "server", False, "the server receives the true ratings.")
        if self.mechanism.hides_rated_items:
            note = "Which items a user rated is hidden: epsilon holds for every cell, rated or not."
            return Guarantee("proved", "nobody", True, f"{EXACT_CHANNEL}.", notes=(note,))
        if self.mechanism.compares_ratings:
            seen[0] = ALL_VALUES
        if isinstance(self.mechanism, BitsAndCounts):
            seen.append(ONE_PART_EACH)
        return Guarantee("proved", "nobody", False, f"{EXACT_CHANNEL}.", notes=tuple(seen))
