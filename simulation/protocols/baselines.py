"""Protocols that others are held against: nothing sent, one mean, a server that is trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Floats, Ints
from dprec.attacks import Transcript
from dprec.binarization import is_binary
from dprec.catalogue import Catalogue
from dprec.completion import (
    Averages,
    CalibratedNoise,
    ItemAverage,
    Observations,
    OneBit,
    one_mean_per_user,
    own_averages,
)
from dprec.components import is_ours, option
from dprec.errors import SettingError, within
from dprec.exchange import SilentSetup
from dprec.mechanisms.randomized_response import Raw
from dprec.ordinal import Histogram
from dprec.personalization import Devices, OrdinalProcess
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Public, Sent, sent_ratings
from dprec.protocols.components import AnyMechanism, AnyPerturbation
from dprec.protocols.findings import Auditor, Finding
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.sharing import DELIVERY, TopN
from dprec.randomness import seed_for
from dprec.ratings import Ratings
from dprec.reports import DeviceChannel, ReportFamily
from dprec.secret_sets import SecretSetOptions, SecretSets
from dprec.sums import Releases
from dprec.wire import TrafficLedger
from simulation.protocols.base import Protocol
from simulation.protocols.course import NOT_DELIVERED, notes_on_failures
from simulation.protocols.delivering import attacked_lists, deliver
from simulation.protocols.task import Grid, Outcome, Task
from simulation.protocols.transcripts import told, transcript_of

if TYPE_CHECKING:
    from strategies.report_collection import Collected


@dataclass(frozen=True, kw_only=True)
class NothingSentProtocol(Protocol):
    """Every device predicts for its user the mean of the user's own ratings; nothing is sent.

    One that knows what is public about the items predicts by how alike these are.
    """

    kind: Literal["nothing-sent"] = "nothing-sent"
    folds_in: ClassVar[bool] = True
    prior: float | None = option(
        "Publicly known rating that each mean is pulled towards; by default the middle of the scale.",
        None,
    )
    prior_ratings: float = option(
        "Number of own ratings that the prior weighs as much as; the default is the best of eleven values on "
        "tenths of the train ratings of MovieLens 100K (u1), RMSE 1.0386 "
        "(benchmarks/choosing/nothing_sent_prior.py).",
        2.0,
        ge=0,
    )
    histogram: Histogram | None = option(
        "Public shares of the levels, from the lowest, where something is public about the items.", "netflix"
    )
    process: OrdinalProcess = option(
        "What a device assumes of its user there; number and category are the best on the same tenths, with "
        "years and genres.",
        OrdinalProcess(number=0.1, category=0.1),
    )

    @property
    def facts(self) -> Facts:
        """Devices that predict alone, from their own averages."""
        return self.facts_of(private=False, learns="own-average", baseline="nothing-sent")

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol as it is: nothing is sent at any budget."""
        return self

    def check(self, train: Ratings) -> None:
        """Refuse a budget, and a prior outside the rating scale."""
        if self.privacy is not None:
            budget = f"epsilon {self.privacy.epsilon:g}"
            raise SettingError("privacy", budget, "none: nothing is sent, so nothing is spent")
        low, high = train.scale.low, train.scale.high
        if self.prior is not None and not low <= self.prior <= high:
            raise SettingError("prior", f"{self.prior:g}", f"a rating from {low:g} to {high:g}")

    def influence_of_one(self, train: Ratings) -> float:
        """Return 0: nothing is sent."""
        return 0.0

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise that nothing is learned about anybody."""
        why = "nothing is sent; every device predicts for its user from the user's own ratings alone."
        return Guarantee("proved", "local", True, why)

    def sent(self, public: Public, ratings: int) -> None:
        """Return None: nothing is sent."""

    def setup(self) -> SilentSetup:
        """Return the setup with which devices refuse every request."""
        return SilentSetup()

    def averages(self, train: Ratings) -> Averages:
        """Return what every device predicts from its user's own ratings."""
        middle = (train.scale.low + train.scale.high) / 2
        return own_averages(train, middle if self.prior is None else self.prior, self.prior_ratings)

    def predictions_of(self, held: Ratings, catalogue: Catalogue | None) -> dict[str, Any]:
        """Return the fields of an `Outcome` for every device, given what is public about the items."""
        if catalogue is not None and not is_binary(held.scale):
            note = "Devices weigh what is public about the items (dataset.items)."
            return {"predict": self._weighing(held, catalogue).predict, "notes": (note,)}
        own = self.averages(held)
        return {"predict": own.predict, "predict_rows": own.predict_rows, "diagnostics": own.diagnostics}

    def _weighing(self, train: Ratings, catalogue: Catalogue) -> Devices:
        method = SecretSets(options=SecretSetOptions(histogram=self.histogram, process=self.process))
        releases = Releases(train.n_users, train.n_items, train.scale)
        untaught = method.learner(releases, catalogue, 0).learned_bytes()
        return method.device(untaught, train.n_items, train.scale).devices(train)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Predict on every device; the grid is not used, and there is no round."""
        train = task.train
        everybody = train.counts >= 0
        accountant = PrivacyAccountant(rated=train.counts > 0)
        accountant.step(0, everybody, 0.0, 0.0)
        return Outcome(
            traffic=TrafficLedger(train.n_users),
            accountant=accountant,
            guarantee=self.guarantee((train.n_users, train.n_items)),
            rounds=(),
            transcript=transcript_of(task) if task.attacked else None,
            **self.predictions_of(task.judged, task.catalogue),
        )


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

    def setup(self) -> OneShotProtocol:
        """Return the mechanism and the budget."""
        return OneShotProtocol(mechanism=self.mechanism, privacy=self.privacy, completion=ItemAverage())

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

    def setup(self) -> OneShotProtocol:
        """Return the setup of devices that send true signs."""
        return OneShotProtocol(mechanism=_MECHANISM, completion=ItemAverage())

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
