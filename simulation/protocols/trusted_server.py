"""Protocols in which devices send true signs, and a trusted server adds noise to what it learns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Floats, Ints
from dprec.completion import CalibratedNoise, Observations, OneBit
from dprec.components import option
from dprec.errors import within
from dprec.exchange import OneShotSetup
from dprec.mechanisms.unprotected import Raw
from dprec.randomness import seed_for
from dprec.ratings import Ratings
from dprec.reports import ReportFamily
from simulation.protocols.accounting import (
    budget_at,
    check_unit,
    notes_on_failures,
)
from simulation.protocols.audited import Auditor, Finding
from simulation.protocols.base import Protocol
from simulation.protocols.components import AnyPerturbation
from simulation.protocols.delivery import DELIVERY, TopN
from simulation.protocols.outcome import Outcome
from simulation.protocols.sent import Example, Sent, sent_ratings
from simulation.protocols.task import Grid, Task

if TYPE_CHECKING:
    from strategies.report_collection import Collected

_MECHANISM = Raw()


@dataclass(frozen=True, kw_only=True)
class TrustedServerProtocol(Protocol):
    """Devices send true signs; a trusted server adds noise while or after it completes the matrix."""

    kind: Literal["trusted-server"] = "trusted-server"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)
    private: ClassVar[bool] = True
    privacy: PrivacyBudget = option("What is claimed against everybody who sees the completed matrix.")
    perturbation: AnyPerturbation = option("Where the server adds its noise.")
    completion: OneBit = option("How the server completes the matrix.", OneBit())
    delivery: TopN | None = option(DELIVERY, TopN())

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; `check` refuses a budget per user."""
        return replace(self, privacy=budget_at(self.privacy, budget, budget.unit))

    @property
    def mechanism_name(self) -> str:
        """Where the noise is added."""
        return f"{self.perturbation.kind}-perturbation"

    @property
    def completion_name(self) -> str:
        """Kind of the completion."""
        return self.completion.kind

    @property
    def shared_fit(self) -> OneBit | None:
        """The completion of true signs, if noise is only added to what it estimates."""
        return self.completion if self.perturbation.fits_without_noise else None

    def check(self, train: Ratings) -> None:
        """Refuse a budget, calibration, completion and ratings that do not fit together."""
        shape = (train.n_users, train.n_items)
        with within("completion"):
            self.completion.check_scale(train.scale)
            self.completion.check(shape)
        check_unit(self.privacy, "rating", "the noise is calibrated to one sign")
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
        record = collected.record
        if self.delivery is not None:
            seen = received.users, received.items
            spent = self.delivery.deliver(
                grid, task, completed, seen, collected.traffic, self.completion_name
            )
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
        )

    def sent(self, example: Example) -> Sent:
        """Return the report of true signs."""
        return sent_ratings(_MECHANISM.family(None, example.scale, example.items), example)

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
