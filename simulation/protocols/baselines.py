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
from dprec.completion import Averages, CalibratedNoise, Observations, OneBit, one_mean_per_user
from dprec.components import is_ours, option
from dprec.errors import SettingError, within
from dprec.exchange import OneShotSetup
from dprec.mechanisms.randomized_response import Raw
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Public, Sent, sent_ratings
from dprec.protocols.baselines import GlobalMeanProtocol
from dprec.protocols.components import AnyPerturbation
from dprec.protocols.findings import Auditor, Finding
from dprec.protocols.sharing import DELIVERY, TopN
from dprec.randomness import seed_for
from dprec.ratings import Ratings
from dprec.reports import ReportFamily
from simulation.protocols.base import Protocol
from simulation.protocols.course import NOT_DELIVERED, Course, notes_on_failures
from simulation.protocols.delivering import attacked_lists, deliver
from simulation.protocols.task import Grid, Outcome, Task
from simulation.protocols.transcripts import told, transcript_of

if TYPE_CHECKING:
    from strategies.report_collection import Collected


_MECHANISM = Raw()
"""Of devices that send what they hold."""


class GlobalMeanCourse(Course[GlobalMeanProtocol]):
    """Devices send their means once; everybody is predicted what is learned from them."""

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return what devices report: their means."""
        return one_mean_per_user(train)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the means and predict their mean."""
        from strategies.report_collection import ReportCollection

        means, guarantee = (
            one_mean_per_user(task.train),
            self.protocol.guarantee((task.n_users, task.n_items)),
        )
        family = self.protocol.family(means.scale, means.n_items)
        collected = ReportCollection(family, task.group).collect(grid, task.roster)
        observed, channel = collected.observations, family.device_channel(means.counts)
        mean = self.protocol.learn(observed.mean, channel)
        everybody = Averages(np.full(task.judged.n_users, mean), by_item=False)
        transcript = None
        if task.attacked:
            # Of users, none of which is of an item.
            cells = observed.users, np.zeros(observed.users.size, dtype=np.int64)
            vectors = sp.coo_array((observed.values, cells), shape=(task.n_users, 1)).tocsr()
            transcript = transcript_of(task, trusted=guarantee.trusts_server, vectors=vectors)
        return Outcome(
            predict=everybody.predict,
            predict_rows=everybody.predict_rows,
            traffic=collected.traffic,
            accountant=family.accountant(means.counts, collected.sent),
            guarantee=guarantee,
            rounds=(collected.record,),
            channel=channel,
            notes=(*notes_on_failures([collected.record]), NOT_DELIVERED),
            diagnostics={"mean": mean},
            transcript=transcript,
        )


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
