"""The baseline of one number per user: every device sends its mean, and the mean of these is predicted."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from dprec.accounting import Guarantee, MatchedBudget
from dprec.completion import Averages, one_mean_per_user
from dprec.components import option
from dprec.errors import SettingError
from dprec.exchange import OneShotSetup
from dprec.mechanisms.unprotected import Raw
from dprec.ratings import Ratings
from dprec.reports import DeviceChannel, ReportFamily
from simulation.protocols.accounting import (
    EXACT_CHANNEL,
    budget_at,
    cell_reports,
    check_private,
    check_unit,
    notes_on_failures,
)
from simulation.protocols.base import Protocol
from simulation.protocols.components import AnyMechanism
from simulation.protocols.delivery import NOT_DELIVERED
from simulation.protocols.outcome import Outcome
from simulation.protocols.sent import Example, Sent, sent_ratings
from simulation.protocols.task import Grid, Task

_NO_MECHANISM = Raw()


@dataclass(frozen=True, kw_only=True)
class GlobalMeanProtocol(Protocol):
    """Every device sends the mean of its ratings; everybody is predicted the mean of these means.

    Every user counts once, however many ratings it has, since numbers of ratings are not sent. The mean is
    sent as one rating of a catalogue of one item.
    """

    kind: Literal["global-mean"] = "global-mean"
    mechanism: AnyMechanism = option("What the device applies to its mean.", _NO_MECHANISM)

    @property
    def private(self) -> bool:
        """Whether the mechanism takes a budget."""
        return self.mechanism.private

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget: a mean stands for the whole profile, so both units are one."""
        return replace(self, privacy=budget_at(self.privacy, budget, "user"))

    @property
    def mechanism_name(self) -> str:
        """Kind of the mechanism."""
        return self.mechanism.kind

    @property
    def completion_name(self) -> str:
        """What predicts: one number for everybody."""
        return self.kind

    @property
    def baseline(self) -> str | None:
        """The mean of true means."""
        return None if self.private else "global-mean"

    def check(self, train: Ratings) -> None:
        """Refuse a budget in another unit, or that the mechanism cannot keep on the scale of means."""
        if self.privacy is not None:
            check_unit(self.privacy, "user", "one number is sent for all of a user's ratings")
        if self.private and self.privacy is None:
            raise SettingError("privacy", "none", f"a budget per user, for {self.mechanism.kind}")
        self._family(one_mean_per_user(train)).check()

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return what devices report: their means."""
        return one_mean_per_user(train)

    def audited(self) -> Self:
        """Return the protocol as it is; see `Protocol.audited`."""
        check_private(self.mechanism)
        return self

    def setup(self) -> OneShotSetup:
        """Return the mechanism and the budget."""
        return OneShotSetup(mechanism=self.mechanism, privacy=self.privacy)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the means and predict their mean."""
        from strategies.report_collection import ReportCollection

        means = one_mean_per_user(task.train)
        family = self._family(means)
        collected = ReportCollection(family, task.group).collect(grid, task.roster)
        channel = family.device_channel(means.counts)
        mean = collected.observations.mean
        if channel is not None:
            mean = _without_bias(mean, channel)
        everybody = Averages(np.full(task.train.n_users, mean), by_item=False)
        return Outcome(
            predict=everybody.predict,
            predict_rows=everybody.predict_rows,
            traffic=collected.traffic,
            accountant=family.accountant(means.counts, collected.sent),
            guarantee=self.guarantee((task.train.n_users, task.train.n_items)),
            rounds=(collected.record,),
            channel=channel,
            notes=(*notes_on_failures([collected.record]), NOT_DELIVERED),
            diagnostics={"mean": mean},
        )

    def sent(self, example: Example) -> Sent:
        """Return the one mean, as one rating of a catalogue of one item."""
        mean = replace(example, items=1, ratings=1)
        family = cell_reports(self.mechanism, self.privacy, example.scale, mean.items)
        return replace(sent_ratings(family, mean), per="user")

    def _family(self, means: Ratings) -> ReportFamily:
        return cell_reports(self.mechanism, self.privacy, means.scale, means.n_items)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the loss of the channel for a whole profile, if there is a budget."""
        seen = "Whether a user has any rating at all is not hidden."
        if not self.mechanism.sends_values:
            why = "nothing that is sent depends on any rating."
            return Guarantee("proved", "local", True, why, notes=(seen,))
        if self.privacy is None:
            return Guarantee("none", "central", True, "the server receives every user's true mean.")
        notes = ["One number is sent for a whole profile, so the loss per rating is at most that per user."]
        if not self.mechanism.report_family.hides_items:
            notes.append(seen)
        return Guarantee("proved", "local", True, f"{EXACT_CHANNEL}.", notes=tuple(notes))


def _without_bias(received: float, channel: DeviceChannel) -> float:
    """Return the mean, within the scale, whose expectation after the channel, by its best line, came in."""
    slope, start = np.polyfit(channel.ratings, channel.expected, 1)
    low, high = channel.ratings[[0, -1]]
    return float(np.clip((received - start) / slope, low, high))
