"""Lists from sets with as many sampled others, whose published promise does not hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Bools
from dprec.components import option
from dprec.exchange import SampledNegativesSetup
from dprec.mechanisms import Mechanism, SampledNegatives
from dprec.protocols import sharing
from dprec.protocols.base import Facts
from simulation.protocols.lists import EaseProtocol
from simulation.protocols.task import Sizes, Task


@dataclass(frozen=True, kw_only=True)
class SampledNegativesProtocol(EaseProtocol):
    """Devices send their items and as many others by randomised answers, and the server ranks by EASE.

    The reports are those of Müllner et al. [muellner2024]; of their three models, none is here.
    """

    kind: Literal["sampled-negatives"] = "sampled-negatives"  # type: ignore[assignment]
    papers: ClassVar[tuple[str, ...]] = ("muellner2024", "steck2019")
    folds_in: ClassVar[bool] = False
    mechanism: ClassVar[Mechanism] = SampledNegatives()
    privacy: PrivacyBudget = option("What is claimed of one item.")

    @property
    def facts(self) -> Facts:
        """EASE of what the mechanism sends."""
        return self.facts_of(learns="ease")

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; per rating means per cell, and `check` refuses one per user."""
        return replace(self, privacy=sharing.mechanism_budget(self.mechanism, self.privacy, budget))

    def check(self, train: Sizes) -> None:
        """Refuse a budget that an answer cannot keep to."""
        self._family(train.n_items, train).check()

    def audited(self) -> Self:
        """Return the protocol as it is; see `Protocol.audited`."""
        return self

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return all cells: devices draw for each."""
        return users * items

    def setup(self) -> SampledNegativesSetup:
        """Return the budget."""
        return SampledNegativesSetup(privacy=self.privacy)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Claim epsilon of one item, and say what is missing."""
        return Guarantee("claimed", "local", True, self.mechanism.report_family.on_items)

    def accountant(self, task: Task, sent: Bools) -> PrivacyAccountant:
        """Return the account, in which nothing bounds what was lost, with what is claimed of all items."""
        proved, claimed = (PrivacyAccountant(rated=np.ones_like(sent)) for _ in range(2))
        proved.step(1, sent, np.inf, np.inf)
        claimed.step(1, sent, self.privacy.epsilon, self.privacy.epsilon * task.n_items)
        return replace(proved, claimed=claimed)
