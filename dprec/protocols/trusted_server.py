"""A server that is trusted with true signs, and adds noise while or after it completes the matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Bools, Floats, Ints
from dprec.completion import CalibratedNoise, HiddenMatrix, Observations, OneBit
from dprec.components import is_ours, option
from dprec.errors import SettingError, within
from dprec.mechanisms import Raw
from dprec.progress import Progress, silent
from dprec.protocols import sharing
from dprec.protocols.base import Facts
from dprec.protocols.collection import CollectionProtocol
from dprec.protocols.components import AnyPerturbation, FixedMechanism
from dprec.protocols.findings import AuditTests, Finding
from dprec.protocols.sharing import DELIVERY, TopN
from dprec.ratings import RatingScale
from dprec.reports import ReportFamily

_TRUE = Raw()
"""Of devices that send what they hold."""


@dataclass(frozen=True, kw_only=True)
class TrustedServerProtocol(sharing.Completes, CollectionProtocol):
    """Devices send true signs; a trusted server adds noise while or after it completes the matrix."""

    kind: Literal["trusted-server"] = "trusted-server"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)
    mechanism: FixedMechanism = _TRUE
    privacy: PrivacyBudget = option("What is claimed against everybody who sees the completed matrix.")
    perturbation: AnyPerturbation = option("Where the server adds its noise.")
    completion: OneBit = option("How the server completes the matrix.", OneBit(), reader="server")
    delivery: TopN | None = option(DELIVERY, TopN(), reader="result")

    @property
    def facts(self) -> Facts:
        """Where the noise is added, and the completion of true signs if it is not added while fitting."""
        fit = self.completion if self.perturbation.fits_without_noise else None
        return self.facts_of(private=True, protects=f"{self.perturbation.kind}-perturbation", fit=fit)

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily:
        """Return what devices report, at no budget."""
        return self.mechanism.family(None, scale, n_items)

    def noise(self, shape: tuple[int, int]) -> CalibratedNoise:
        """Return the noise of the server, among so many users and items."""
        return self.perturbation.noise(self.completion, shape, self.privacy.epsilon)

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; `check` refuses a budget per user."""
        return replace(self, privacy=sharing.budget_at(self.privacy, budget, budget.unit))

    def check(self, train: Any) -> None:
        """Refuse a budget, calibration, completion and ratings that do not fit together."""
        shape = (train.n_users, train.n_items)
        with within("completion"):
            if not is_ours(type(self.completion)):
                found = f"{self.completion.kind!r}, on whose steps the noise would rest"
                raise SettingError("kind", found, "'one-bit'")
            self.completion.check_scale(train.scale)
            self.completion.check(shape)
        sharing.check_unit(self.privacy, "rating", "the noise is calibrated to one sign")
        self.noise(shape)
        super().check(train)

    def audited(self) -> Self:
        """Return the protocol as it is; see `Protocol.audited`."""
        return self

    def audit(self, auditor: AuditTests) -> Iterator[Finding]:
        """Compare what the server releases: devices protect nothing."""

        def complete(observed: Observations, seed: int) -> Floats:
            return self.learn(observed, seed).hidden(observed.users, observed.items)

        return auditor.of_releases(complete)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Say what is claimed against all but the server, and how much of it is proved."""
        noise = self.noise(shape)
        epsilon, proved = self.privacy.epsilon, noise.proved
        where = f"{self.perturbation.kind} perturbation, {self.perturbation.calibration} calibration"
        holds = proved <= epsilon
        bound = f"{proved:.6g}" if math.isfinite(proved) else "nothing"
        shortfall = "" if holds else f"; {bound} is proved"
        return Guarantee(
            status="proved" if holds else "claimed",
            trust="central",
            hides_rated_items=False,
            reason=f"epsilon = {epsilon:g} per rating, against all but the server ({where}): "
            f"{noise.reason}{shortfall}.",
            notes=("The server is trusted: it receives the true signs.",),
        )

    def accountant(
        self, family: ReportFamily, counts: Ints, sent: Bools, loss_inputs: Ints | None = None
    ) -> PrivacyAccountant:
        """Return the account of what is proved, with what the paper claims if it is less.

        What is claimed of a rating is charged for each of a profile; what is proved, for each or for all.
        """
        noise, epsilon = self.noise((counts.size, family.n_items)), self.privacy.epsilon

        def charged(per_rating: float, times: Ints) -> PrivacyAccountant:
            accountant = PrivacyAccountant(rated=counts > 0)
            per_user = np.where(accountant.rated, per_rating * np.maximum(times, 1), 0.0)
            accountant.step(1, sent, per_rating, per_user)
            return accountant

        proved = charged(noise.proved, np.ones_like(counts) if noise.whole_profile else counts)
        return replace(proved, claimed=None if noise.proved <= epsilon else charged(epsilon, counts))

    def learn(self, observed: Observations, seed: int, progress: Progress = silent) -> HiddenMatrix:
        """Complete the matrix with noise."""
        return self.perturbation.complete(self.completion, observed, self.privacy.epsilon, seed, progress)
