"""Answers about whole profiles at a budget for all answers of a user together; as many for everybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from dprec.accounting import PrivacyBudget, PrivacyUnit
from dprec.arrays import AnyInts, Bools, Floats, Ints, Uint8s, places_of, rows_of
from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.observations import Evidence, Observations, ProfileReports
from dprec.randomness import DRAWS
from dprec.ratings import RatingScale
from dprec.reports.base import REPORT_ROUND, DrawsFor, HasChannel, Profiles, Reader, ReportSize, Wanted
from dprec.reports.cells import IndependentDraws
from dprec.reports.profiles.code import ProfileCode, fewest_divided
from dprec.wire import FixedFields

_DIVISIONS = 8
"""Classes of the divisions into blocks that an audit tells apart."""


class AnswersAboutProfiles(HasChannel, Protocol):
    """A mechanism that answers about profiles."""

    @property
    def profile(self) -> int:
        """Ratings of a user that count at most."""

    def asked(self, epsilon: float) -> int:
        """Return how many answers a user with a budget gives."""

    def code(self, n_items: int, epsilon: float) -> ProfileCode:
        """Return how a device answers at the budget of one answer."""


@dataclass(frozen=True, eq=False)
class ProfileFamily(IndependentDraws):
    """Answers about a whole profile, as many for everybody, at a budget per user; see `ReportFamily`.

    Where the base class speaks of draws about a user, these are its answers.
    """

    mechanism: AnswersAboutProfiles
    hides_items: ClassVar[bool] = True
    by_cell: ClassVar[bool] = False
    loss_of_channel: ClassVar[bool] = False
    evidence: ClassVar[type[Evidence]] = ProfileReports
    units: ClassVar[tuple[PrivacyUnit, ...]] = ("user",)
    units_reason: ClassVar[str] = "an answer is about the whole profile"
    on_items: ClassVar[str] = (
        "Which items a user rated is hidden, and how many: epsilon holds between any two profiles, and "
        "everybody sends as many bytes."
    )

    def check(self) -> None:
        """Refuse a budget for which blocks would be too large."""
        _ = self.reference_channel, self.numbers

    @property
    def answers(self) -> int:
        """Answers of every user."""
        assert self.budget is not None, "answers without a budget"
        return self.mechanism.asked(self.budget.epsilon)

    @cached_property
    def code(self) -> ProfileCode:
        """How an answer is given."""
        assert self.budget is not None, "answers without a budget"
        return self.mechanism.code(self.n_items, self._share(self.budget, self.answers))

    def _at(self, epsilon: float) -> Channel:
        return self.mechanism.code(self.n_items, epsilon).channel(self.scale)

    def _guess(self, budget: PrivacyBudget, cells: int) -> None:
        """Return None: there is one number of answers, and no share near it is known."""

    def cells(self, counts: Ints) -> Ints:
        """Return how many answers users give, whatever they have rated, shape (users,)."""
        return np.full_like(counts, self.answers)

    def channel(self, cells: int) -> Channel:
        """Return the channel of an answer between two profiles with nothing in common."""
        return super().channel(self.answers)

    @property
    def numbers(self) -> FixedFields:
        """The encoder and decoder of a user's answers."""
        return FixedFields(self.answers, self.code.numbers - 1)

    def elements(self, counts: Ints, items: AnyInts, levels: Uint8s) -> tuple[Ints, Ints]:
        """Return the elements of every profile, as many as can be marked; see `profile_elements`."""
        return profile_elements(counts, items, levels, self.scale, self.code.marked)

    def encode(self, profiles: Profiles, draws: DrawsFor) -> list[bytes]:
        """Return every user's answers about its profile."""
        counts, elements = self.elements(profiles.counts, profiles.items, profiles.levels)
        choice, noise = draws("choice"), draws("report")
        rows = [
            self.code.answers(
                counts, elements, choice.per_user(answer, REPORT_ROUND), noise.per_user(answer, REPORT_ROUND)
            )
            for answer in range(self.answers)
        ]
        return self.numbers.encode(np.stack(rows, axis=1))

    def reader(self, n_users: int, wanted: Wanted) -> ProfileReader:
        """Return what reads the answers of so many users."""
        return ProfileReader(self, n_users)

    def profile_reports(self, counted: Ints, answers: int) -> ProfileReports:
        """Return what the server makes of its answers, counted by element."""
        code = self.code
        pairs = counted.reshape(self.n_items, 2)
        # Where elements share blocks by chance, the block of one that nobody has is as likely as any other.
        usual = 1 / code.blocks
        least = usual if code.size > 1 else code.fewest_draws / DRAWS
        return ProfileReports(pairs[:, 1], pairs[:, 0], answers, (least, usual), code.draws / DRAWS)

    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the exact losses, per rating and per user: the same, for users without ratings too."""
        per_user = super().losses(counts)[1]
        return per_user, per_user

    def size(self, ratings: int) -> ReportSize:
        """Return a report of a few answers of as many bits each."""
        fields = self.numbers
        return ReportSize(
            self.code.blocks, self.answers, fields.fields * fields.width, self.code.epsilon, "user"
        )

    @property
    def fewest_items(self) -> int:
        """Items of the smallest catalogue about which is answered in the same way, by blocks or without."""
        if self.code.size == 1:
            return 1
        assert self.budget is not None, "answers without a budget"
        return fewest_divided(self._share(self.budget, self.answers), self.mechanism.profile)

    def answers_about(self, entries: int) -> int:
        """Return all answers: each is about the whole profile."""
        return self.answers

    def audited_symbols(self, exchange: int, reports: list[bytes], items: Ints) -> Ints:
        """Return a symbol for each answer: which elements it names, and how it divides all into blocks."""
        code, answers = self.code, self.numbers.decode(reports)[1]
        if code.size == 1:
            return answers + 1
        multipliers, blocks = np.divmod(answers, code.blocks)
        named = np.zeros_like(answers)
        for element in [*(2 * items).tolist(), *(2 * items + 1).tolist()]:
            named = 2 * named + ((multipliers + 1) * element % code.modulus // code.size == blocks)
        # Which elements share a block is known of every division; a few classes of these tell dependence.
        symbols: Ints = 1 + named * _DIVISIONS + multipliers * _DIVISIONS // code.multipliers
        return symbols


class ProfileReader(Reader):
    """Answers about profiles as they arrive, counted by the elements that they name; see `Reader`."""

    def __init__(self, family: ProfileFamily, n_users: int) -> None:
        self._family, self._n_users, self._accepted = family, n_users, 0
        self._named = np.zeros(2 * family.n_items, dtype=np.int64)

    def take(self, users: Ints, reports: Sequence[bytes]) -> Bools:
        """Decode answers, and count what they name."""
        valid, answers = self._family.numbers.decode(reports)
        self._named += self._family.code.counted(answers[valid].ravel())
        self._accepted += int(valid.sum())
        return valid

    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        """Return no cells, and the answers as evidence."""
        family, nobody = self._family, np.zeros(0, dtype=np.int32)
        return Observations(
            nobody,
            nobody,
            np.zeros(0),
            (self._n_users, family.n_items),
            family.scale,
            evidence=family.profile_reports(self._named, self._accepted * family.answers),
            catalogue=catalogue,
        )


def profile_elements(
    counts: Ints, items: AnyInts, levels: Uint8s, scale: RatingScale, most: int
) -> tuple[Ints, Ints]:
    """Return the elements of every profile: 2 i, or 2 i + 1 if item i is rated above the user's mean.

    At most ``most`` of a user: of its ratings farthest from the mean, the first ones if equally far.
    """
    ratings, users = scale.values[levels - 1], rows_of(counts)
    residuals = ratings * counts[users] - np.bincount(users, weights=ratings, minlength=counts.size)[users]
    elements = 2 * items.astype(np.int64) + (residuals > 0)
    if counts.max(initial=0) > most:
        order = np.lexsort((-np.abs(residuals), users))
        elements = elements[np.sort(order[places_of(counts) < most])]
    return np.minimum(counts, most), elements
