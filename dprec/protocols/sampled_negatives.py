"""Lists from sets with as many sampled others, whose published promise does not hold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Guarantee, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Bools, Ints
from dprec.components import option
from dprec.mechanisms import SampledNegatives
from dprec.protocols.base import Facts
from dprec.protocols.components import FixedMechanism
from dprec.protocols.references import EaseProtocol
from dprec.reports import ReportFamily

_SAMPLED = SampledNegatives()


@dataclass(frozen=True, kw_only=True)
class SampledNegativesProtocol(EaseProtocol):
    """Devices send their items and as many others by randomised answers, and the server ranks by EASE.

    The reports are those of Müllner et al. [muellner2024]; of their three models, none is here.
    """

    kind: Literal["sampled-negatives"] = "sampled-negatives"  # type: ignore[assignment]
    papers: ClassVar[tuple[str, ...]] = ("muellner2024", "steck2019")
    folds_in: ClassVar[bool] = False
    mechanism: FixedMechanism = _SAMPLED
    privacy: PrivacyBudget = option("What is claimed of one item.")

    @property
    def facts(self) -> Facts:
        """EASE of what the mechanism sends."""
        return self.facts_of(learns="ease")

    def audited(self) -> Self:
        """Return the protocol as it is; see `Protocol.audited`."""
        return self

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Claim epsilon of one item, and say what is missing."""
        return Guarantee("claimed", "local", True, self.mechanism.report_family.on_items)

    def accountant(
        self, family: ReportFamily, counts: Ints, sent: Bools, loss_inputs: Ints | None = None
    ) -> PrivacyAccountant:
        """Return the account, in which nothing bounds what was lost, with what is claimed of all items."""
        proved, claimed = (PrivacyAccountant(rated=np.ones_like(sent)) for _ in range(2))
        proved.step(1, sent, math.inf, math.inf)
        claimed.step(1, sent, self.privacy.epsilon, self.privacy.epsilon * family.n_items)
        return replace(proved, claimed=claimed)
