"""Protocols in which devices send true signs, and a trusted server adds noise to what it learns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from flwr.serverapp import Grid

from dprec.completion.one_bit.calibration import CalibratedNoise
from dprec.completion.one_bit.completion import OneBit
from dprec.errors import SettingError, within
from dprec.mechanisms.raw import Raw
from dprec.messages import REPORT
from dprec.options import option
from dprec.privacy.calibration import CalibratedMechanism, PrivacyBudget
from dprec.privacy.ledger import Guarantee, PrivacyLedger
from dprec.privacy.units import ComparableUnit
from dprec.ratings import Ratings
from dprec.setups import OneShotSetup
from simulation.protocols.accounting import check_unit, measured_deployment, notes_on_failures
from simulation.protocols.base import Protocol
from simulation.protocols.components import AnyPerturbation
from simulation.protocols.outcome import Outcome
from simulation.protocols.task import Task
from strategies.report_collection import Collected, ReportCollection

_MECHANISM = Raw()

_LARGEST_NOISE = 1e100
"""Above this scale, squares in the computation overflow."""


@dataclass(frozen=True, kw_only=True)
class TrustedServerProtocol(Protocol):
    """Devices send true signs; a trusted server adds noise while or after it completes the matrix."""

    kind: Literal["trusted-server"] = "trusted-server"
    privacy: PrivacyBudget = option("What is claimed against everybody who sees the completed matrix.")
    perturbation: AnyPerturbation = option("Where the server adds its noise.")
    completion: OneBit = option("How the server completes the matrix.", OneBit())

    @property
    def private(self) -> bool:
        """A budget is always needed."""
        return True

    def at_budget(self, epsilon: float, unit: ComparableUnit) -> Self:
        """Return the protocol at a budget; `check` refuses a budget per user."""
        return replace(self, privacy=PrivacyBudget(epsilon=epsilon, per=unit))

    @property
    def mechanism_name(self) -> str:
        """Where the noise is added."""
        return f"{self.perturbation.kind}-perturbation"

    @property
    def completion_name(self) -> str:
        """Kind of the completion."""
        return self.completion.kind

    def check(self, train: Ratings) -> None:
        """Refuse a budget, calibration, completion and ratings that do not fit together."""
        shape = (train.n_users, train.n_items)
        with within("completion"):
            self.completion.check_scale(train.scale)
            self.completion.check(shape)
        check_unit(self.privacy, "rating", "the noise is calibrated to one sign")
        scale = self._noise(shape).scale
        if not scale <= _LARGEST_NOISE:
            budget = f"{self.privacy.epsilon:g}, which needs noise of scale {scale:.3g}"
            accepted = f"an epsilon with a scale of at most {_LARGEST_NOISE:g}"
            raise SettingError("privacy.epsilon", budget, accepted)
        self._calibrated(train).codec()

    def setup(self) -> OneShotSetup:
        """Return the setup of devices that send true signs."""
        return OneShotSetup(mechanism=_MECHANISM, privacy=None)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the signs and complete the matrix with noise."""
        collected = ReportCollection(self._calibrated(task.train), task.group).collect(grid, task.roster)
        completed = self.perturbation.complete(
            self.completion,
            collected.observations,
            self.privacy.epsilon,
            task.seed,
            task.progress,
        )
        noise = self._noise(collected.observations.shape)
        return Outcome(
            predict=completed.predict,
            traffic=collected.traffic,
            privacy=_ledger(noise, task.train, collected),
            guarantee=self._guarantee(noise),
            rounds=(collected.record,),
            notes=completed.notes + notes_on_failures([collected.record]),
            diagnostics={**completed.diagnostics, "noise_scale": noise.scale},
            hidden=completed.hidden,
            deployed_factor=measured_deployment(REPORT, collected.mean_payload, task.group),
        )

    def _calibrated(self, train: Ratings) -> CalibratedMechanism:
        return CalibratedMechanism(_MECHANISM, None, train.scale, train.n_items)

    def _noise(self, shape: tuple[int, int]) -> CalibratedNoise:
        return self.perturbation.noise(self.completion, shape, self.privacy.epsilon)

    def _guarantee(self, noise: CalibratedNoise) -> Guarantee:
        """Return what is claimed against everybody but the server, and how much of it is proved."""
        claimed = self.privacy.epsilon
        where = f"{self.perturbation.kind} perturbation, {self.perturbation.calibration} calibration"
        if noise.per_rating <= claimed:
            holds = f"epsilon = {claimed:g} per rating holds"
        elif math.isfinite(noise.per_rating):
            holds = (
                f"epsilon = {claimed:g} per rating is claimed but not kept; {noise.per_rating:.6g} is proved"
            )
        else:
            holds = f"epsilon = {claimed:g} per rating is claimed, and no epsilon is proved"
        minimiser = ", for the exact minimiser" if noise.exact_minimiser else ""
        note = (
            f"The server is trusted: it receives the true signs. Against all others, {holds}{minimiser} "
            f"({where})."
        )
        return Guarantee(trusts_server=True, hides_rated_items=False, notes=(note,))


def _ledger(noise: CalibratedNoise, train: Ratings, collected: Collected) -> PrivacyLedger:
    """Charge all users whose report arrived what is proved, not what is claimed."""
    counts = train.counts
    ledger = PrivacyLedger(rated=counts > 0)
    times = np.ones_like(counts) if noise.whole_profile else np.maximum(counts, 1)
    ledger.charge(1, collected.sent, noise.per_rating, np.where(ledger.rated, noise.per_rating * times, 0.0))
    return ledger
