"""Mechanisms whose answers are about whole profiles, at a budget for all answers of a user together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.mechanisms.profile_code import ProfileCode, fewest_divided
from dprec.mechanisms.symbol_reports import ProfileReports
from dprec.mechanisms.user_level_bit import UserLevelBit, profile_elements
from dprec.privacy.calibration import CalibratedMechanism, PrivacyBudget
from dprec.randomness import DRAWS
from dprec.wire.fixed_fields import FixedFields


@dataclass(frozen=True, eq=False)
class CalibratedProfiles(CalibratedMechanism):
    """`UserLevelBit` at a budget per user; see `CalibratedMechanism`.

    Where that class speaks of the cells that a user reports, these are its answers, as many for everybody.
    """

    compares_ratings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_per_user("an answer is about the whole profile")

    @property
    def answers(self) -> int:
        """Answers of every user."""
        assert self.budget is not None
        return self._own.asked(self.budget.epsilon)

    @property
    def _own(self) -> UserLevelBit:
        assert isinstance(self.mechanism, UserLevelBit)
        return self.mechanism

    @cached_property
    def code(self) -> ProfileCode:
        """How an answer is given."""
        assert self.budget is not None
        return self._own.code(self.n_items, self._share(self.budget, self.answers))

    def _at(self, epsilon: float) -> Channel:
        return self._own.code(self.n_items, epsilon).channel(self.scale)

    def cells(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many answers users give, whatever they have rated, shape (users,)."""
        return np.full_like(counts, self.answers)

    def channel(self, cells: int) -> Channel:
        """Return the channel of an answer between two profiles with nothing in common."""
        return super().channel(self.answers)

    def _guess(self, budget: PrivacyBudget, cells: int) -> None:
        """Return None: there is one number of answers, and no share near it is known."""

    @property
    def fewest_items(self) -> int:
        """Items of the smallest catalogue about which is answered in the same way, by blocks or without."""
        if self.code.size == 1:
            return 1
        assert self.budget is not None
        return fewest_divided(self._share(self.budget, self.answers), self._own.profile)

    @property
    def numbers(self) -> FixedFields:
        """The encoder and decoder of a user's answers."""
        return FixedFields(self.answers, self.code.numbers - 1)

    def elements(
        self, counts: NDArray[np.int64], items: NDArray[np.integer], levels: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the elements of every profile, as many as can be marked; see `profile_elements`."""
        return profile_elements(counts, items, levels, self.scale, self.code.marked)

    def profile_reports(self, counted: NDArray[np.int64], answers: int) -> ProfileReports:
        """Return what the server makes of its answers, counted by element."""
        code = self.code
        pairs = counted.reshape(self.n_items, 2)
        # Where elements share blocks by chance, the block of one that nobody has is as likely as any other.
        usual = 1 / code.blocks
        least = usual if code.size > 1 else code.fewest_draws / DRAWS
        return ProfileReports(pairs[:, 1], pairs[:, 0], answers, (least, usual), code.draws / DRAWS)

    def losses(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the exact losses, per rating and per user: the same, for users without ratings too."""
        per_user = super().losses(counts)[1]
        return per_user, per_user
