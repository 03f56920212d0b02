"""Protocols that others are held against: nothing sent, one mean, a server that is trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Floats, Ints
from dprec.attacks import Transcript
from dprec.completion import Averages, CalibratedNoise, Observations, OneBit, one_mean_per_user
from dprec.components import is_ours, option
from dprec.errors import SettingError, within
from dprec.exchange import OneShotSetup
from dprec.mechanisms.randomized_response import Raw
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Public, Sent, sent_ratings
from dprec.protocols.components import AnyMechanism, AnyPerturbation
from dprec.protocols.findings import Auditor, Finding
from dprec.protocols.sharing import DELIVERY, TopN
from dprec.randomness import seed_for
from dprec.ratings import Ratings
from dprec.reports import DeviceChannel, ReportFamily
from simulation.protocols.base import Protocol
from simulation.protocols.course import NOT_DELIVERED, notes_on_failures
from simulation.protocols.delivering import attacked_lists, deliver
from simulation.protocols.task import Grid, Outcome, Task
from simulation.protocols.transcripts import told, transcript_of

if TYPE_CHECKING:
    from strategies.report_collection import Collected


_MECHANISM = Raw()
"""Of devices that send what they hold."""


@dataclass(frozen=True, kw_only=True)
class GlobalMeanProtocol(Protocol):
    """Every device sends the mean of its ratings; everybody is predicted the mean of these means.

    Every user counts once, however many ratings it has, since numbers of ratings are not sent. The mean is
    sent as one rating of a catalogue of one item.
    """

    kind: Literal["global-mean"] = "global-mean"
    folds_in: ClassVar[bool] = True
    mechanism: AnyMechanism = option("What the device applies to its mean.", _MECHANISM)

    @property
    def facts(self) -> Facts:
        """One mean of all; a baseline in the clear."""
        private = self.mechanism.private
        return self.facts_of(private=private, baseline=None if private else "global-mean")

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget: a mean stands for the whole profile, so both units are one."""
        return replace(self, privacy=sharing.budget_at(self.privacy, budget, "user"))

    def check(self, train: Ratings) -> None:
        """Refuse a budget in another unit, or that the mechanism cannot keep on the scale of means."""
        if self.privacy is not None:
            sharing.check_unit(self.privacy, "user", "one number is sent for all of a user's ratings")
        if self.mechanism.private and self.privacy is None:
            raise SettingError("privacy", "none", f"a budget per user, for {self.mechanism.kind}")
        self._family(one_mean_per_user(train)).check()

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return what devices report: their means."""
        return one_mean_per_user(train)

    def audited(self) -> Self:
        """Return the protocol as it is; see `Protocol.audited`."""
        sharing.check_private(self.mechanism)
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
        everybody = Averages(np.full(task.judged.n_users, mean), by_item=False)
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
            transcript=self._transcript(task, collected.observations) if task.attacked else None,
        )

    def _transcript(self, task: Task, observed: Observations) -> Transcript:
        """Return the means of users, none of which is of an item."""
        cells = observed.users, np.zeros(observed.users.size, dtype=np.int64)
        vectors = sp.coo_array((observed.values, cells), shape=(task.n_users, 1)).tocsr()
        trusted = self.guarantee((task.n_users, task.n_items)).trusts_server
        return transcript_of(task, trusted=trusted, vectors=vectors)

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the one mean, as one rating of a catalogue of one item."""
        family = sharing.cell_reports(self.mechanism, self.privacy, public.scale, 1)
        return replace(sent_ratings(family, 1), per="user")

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of the mean that is sent, on the prediction of every item alike."""
        means = one_mean_per_user(train)
        return self._family(means).influence_of_one(means.counts, of_values=True)

    def _family(self, means: Ratings) -> ReportFamily:
        return sharing.cell_reports(self.mechanism, self.privacy, means.scale, means.n_items)

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
        return Guarantee("proved", "local", True, f"{sharing.EXACT_CHANNEL}.", notes=tuple(notes))


def _without_bias(received: float, channel: DeviceChannel) -> float:
    """Return the mean, within the scale, whose expectation after the channel, by its best line, came in."""
    slope, start = np.polyfit(channel.ratings, channel.expected, 1)
    low, high = channel.ratings[[0, -1]]
    return float(np.clip((received - start) / slope, low, high))


@dataclass(frozen=True, kw_only=True)
class TrustedServerProtocol(Protocol):
    """Devices send true signs; a trusted server adds noise while or after it completes the matrix."""

    kind: Literal["trusted-server"] = "trusted-server"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)
    privacy: PrivacyBudget = option("What is claimed against everybody who sees the completed matrix.")
    perturbation: AnyPerturbation = option("Where the server adds its noise.")
    completion: OneBit = option("How the server completes the matrix.", OneBit())
    delivery: TopN | None = option(DELIVERY, TopN())

    @property
    def facts(self) -> Facts:
        """Where the noise is added, and the completion of true signs if it is not added while fitting."""
        fit = self.completion if self.perturbation.fits_without_noise else None
        return self.facts_of(private=True, protects=f"{self.perturbation.kind}-perturbation", fit=fit)

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; `check` refuses a budget per user."""
        return replace(self, privacy=sharing.budget_at(self.privacy, budget, budget.unit))

    def check(self, train: Ratings) -> None:
        """Refuse a budget, calibration, completion and ratings that do not fit together."""
        shape = (train.n_users, train.n_items)
        with within("completion"):
            if not is_ours(type(self.completion)):
                found = f"{self.completion.kind!r}, on whose steps the noise would rest"
                raise SettingError("kind", found, "'one-bit'")
            self.completion.check_scale(train.scale)
            self.completion.check(shape)
        sharing.check_unit(self.privacy, "rating", "the noise is calibrated to one sign")
        self._noise(shape)
        self._family(train).check()

    def audited(self) -> Self:
        """Return the protocol as it is; see `Protocol.audited`."""
        return self

    def audit(self, auditor: Auditor) -> Iterator[Finding]:
        """Compare what the server releases: devices protect nothing."""

        def complete(observed: Observations, seed: int) -> Floats:
            epsilon = self.privacy.epsilon
            completed = self.perturbation.complete(self.completion, observed, epsilon, seed)
            return completed.hidden(observed.users, observed.items)

        return auditor.of_releases(complete)

    def setup(self) -> OneShotSetup:
        """Return the setup of devices that send true signs."""
        return OneShotSetup(mechanism=_MECHANISM, privacy=None)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the signs and complete the matrix with noise."""
        from strategies.report_collection import ReportCollection

        collected = ReportCollection(self._family(task.train), task.group).collect(grid, task.roster)
        received = collected.observations
        completed = self.perturbation.complete(
            self.completion,
            received,
            self.privacy.epsilon,
            seed_for(task.server_seed, received.users, received.items, received.values),
            task.progress,
        )
        record, seen = collected.record, (received.users, received.items)
        lists = attacked_lists(self.delivery, task, completed, seen, self.facts.learns)
        if self.delivery is not None:
            spent = deliver(self.delivery, grid, task, completed, seen, collected.traffic, self.facts.learns)
            record = record.with_traffic(spent)
        noise, counts = self._noise(received.shape), task.train.counts
        times = np.ones_like(counts) if noise.whole_profile else counts
        return Outcome(
            predict=completed.predict,
            predict_rows=completed.predict_rows,
            traffic=collected.traffic,
            accountant=replace(
                _accountant(noise.proved, times, counts, collected),
                claimed=self._claimed(noise, counts, collected),
            ),
            guarantee=self.guarantee(collected.observations.shape),
            rounds=(record,),
            notes=completed.notes + notes_on_failures([record]),
            diagnostics={**completed.diagnostics, "noise_scale": noise.scale},
            hidden=completed.hidden,
            transcript=told(task, received, trusted=True, lists=lists),
        )

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the report of true signs."""
        return sent_ratings(_MECHANISM.family(None, public.scale, public.n_items), ratings)

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of a sign, which is sent as it is."""
        return self._family(train).influence_of_one(train.counts, of_values=True)

    def _family(self, train: Ratings) -> ReportFamily:
        return _MECHANISM.family(None, train.scale, train.n_items)

    def _noise(self, shape: tuple[int, int]) -> CalibratedNoise:
        return self.perturbation.noise(self.completion, shape, self.privacy.epsilon)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Say what is claimed against all but the server, and how much of it is proved."""
        noise = self._noise(shape)
        asked, proved = self.privacy.epsilon, noise.proved
        where = f"{self.perturbation.kind} perturbation, {self.perturbation.calibration} calibration"
        kept = proved <= asked
        rest = "" if kept else f"; {proved:.6g} is proved" if math.isfinite(proved) else "; nothing is proved"
        return Guarantee(
            status="proved" if kept else "claimed",
            trust="central",
            hides_rated_items=False,
            reason=f"epsilon = {asked:g} per rating, against all but the server ({where}): "
            f"{noise.reason}{rest}.",
            notes=("The server is trusted: it receives the true signs.",),
        )

    def _claimed(
        self, noise: CalibratedNoise, counts: Ints, collected: Collected
    ) -> PrivacyAccountant | None:
        """Charge what the paper claims of a changed rating, once per rating of a profile."""
        asked = self.privacy.epsilon
        return None if noise.proved <= asked else _accountant(asked, counts, counts, collected)


def _accountant(per_rating: float, times: Ints, counts: Ints, collected: Collected) -> PrivacyAccountant:
    accountant = PrivacyAccountant(rated=counts > 0)
    per_user = np.where(accountant.rated, per_rating * np.maximum(times, 1), 0.0)
    accountant.step(1, collected.sent, per_rating, per_user)
    return accountant
