"""Answers about whole profiles at a budget for all answers of a user together; as many for everybody."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from dprec.accounting import PrivacyBudget, PrivacyUnit
from dprec.arrays import AnyInts, Bools, Floats, Ints, Pieces, Uint8s, Uint64s, offsets, places_of, rows_of
from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.errors import SettingError
from dprec.observations import Evidence, Observations, ProfileReports
from dprec.randomness import DRAWS, integer_weights, loss_of_draws, uniform_below
from dprec.ratings import RatingScale
from dprec.reports.base import (
    REPORT_ROUND,
    DrawsFor,
    HasChannel,
    ProfileLevels,
    ReportReader,
    ReportSize,
    Wanted,
)
from dprec.reports.cells import IndependentDraws
from dprec.wire import FixedFields

_EXACTLY = Context(prec=50, rounding=ROUND_FLOOR)

_LARGEST_BLOCK = 1024
"""Elements of a block, which the server counts for every answer."""

_MOST_EPSILON = 20.0
"""Loss beyond which integer weights get too few; the rest of a budget stays unspent."""

_WORTH_DIVIDING = 1.5
"""From so many elements per wanted block on, blocks have more than one element."""

_ROUNDING = 1e-6
"""Difference between residuals that are equal but for rounding."""


@dataclass(frozen=True)
class ProfileCode:
    """How a device answers about its profile, and what the server makes of it: subset selection turned round.

    A profile is a set of elements: every rated item with the side of the user's mean that its rating is on.
    In subset selection (Ye and Barg [ye2018]) a device draws one of its elements and sends a random subset,
    which rather holds the element than not. Here the elements are divided into blocks by a public rule, the
    device marks the blocks that its elements lie in, R of C at most, and sends one block: each marked one
    with w of 2**60 draws, each of the others with an even share of the rest. As a channel, the rows are all
    sets of at most R blocks and the symbols the C blocks. Two rows differ most where a block is marked in
    one, and unmarked in the other beside R marked ones, so

        epsilon = log(w / ((2**60 - R w) / (C - R))),

    exact although no machine could hold the matrix. Answering for all elements at once instead of for one
    drawn makes a profile of R elements R times as loud.

    Where few blocks serve best, at small epsilon, an element x lies in block (a x mod p) // k, with a prime p
    and a multiplier a that the device draws anew for every answer and sends with it (a linear hash, Carter
    and Wegman [carter1979]). Then every element that is not in a profile is as likely to share a marked block
    as any other.
    """

    elements: int
    """All that a profile may consist of, two for each item."""
    size: int
    """Elements of a block; the last one may have fewer."""
    marked: int
    """Blocks R that a device marks at most."""
    draws: int
    """Draws w of a marked block."""

    @classmethod
    def at(cls, epsilon: float, n_items: int, profile: int) -> "ProfileCode":
        """Return the code of an answer at a budget.

        About e^epsilon + 1 times as many blocks as marked ones say most; a small catalogue has fewer.
        """
        epsilon = min(epsilon, _MOST_EPSILON)
        elements, wanted = 2 * n_items, _wanted_blocks(epsilon, profile)
        size = 1
        if elements >= _WORTH_DIVIDING * wanted:
            size = max(2, round(elements / wanted))
        if size > _LARGEST_BLOCK:
            found = f"{profile}, for {n_items} items at epsilon {epsilon:g}, which makes blocks of {size}"
            accepted = f"more ratings or a larger epsilon, for blocks of at most {_LARGEST_BLOCK} elements"
            raise SettingError("profile", found, accepted)
        blocks = -(-_modulus(elements, size) // size)
        marked = min(max(1, round(blocks / (math.exp(epsilon) + 1))), blocks // 2)
        return cls.with_blocks(epsilon, elements, size, marked)

    @classmethod
    def with_blocks(cls, epsilon: float, elements: int, size: int, marked: int) -> "ProfileCode":
        """Return the code with blocks of some size of which so many are marked; see the class."""
        blocks = -(-_modulus(elements, size) // size)
        growth, others = Decimal(epsilon).exp(_EXACTLY).next_minus(_EXACTLY), blocks - marked
        share = _EXACTLY.divide(_EXACTLY.multiply(DRAWS, growth), marked * growth + others)
        # The draws of the others are rounded down: they get back at least what that takes.
        return cls(elements, size, marked, math.floor(share) - -(-others // marked))

    @cached_property
    def modulus(self) -> int:
        """The prime p of the division into blocks, or the number of elements if each is a block."""
        return _modulus(self.elements, self.size)

    @property
    def blocks(self) -> int:
        """Number of blocks C."""
        return -(-self.modulus // self.size)

    @property
    def multipliers(self) -> int:
        """Number of divisions into blocks, with the multipliers from 1 on."""
        return self.modulus - 1 if self.size > 1 else 1

    @property
    def fewest_draws(self) -> int:
        """Draws of an unmarked block beside as many marked ones as possible."""
        return (DRAWS - self.marked * self.draws) // (self.blocks - self.marked)

    @cached_property
    def epsilon(self) -> float:
        """Exact loss of one answer between any two profiles, rounded up."""
        return loss_of_draws(self.draws, self.fewest_draws)

    def channel(self, scale: RatingScale) -> Channel:
        """Return the channel between two profiles that have nothing in common, which are the worst pair.

        The lower levels stand for the one and the upper for the other. The symbols are a block of the one, of
        the other, and of neither if there are any: all blocks of a symbol have the same ratio of
        probabilities, so nothing is lost. No other pair is told apart better at any delta: with fewer marked
        blocks, a profile is a mixture of those that mark R, and of R that are marked in both nothing is seen.
        """
        own_draws, other_draws = self.marked * self.draws, self.marked * self.fewest_draws
        neither_draws, middle = DRAWS - own_draws - other_draws, (scale.low + scale.high) / 2
        weights = np.array(
            [[own_draws, other_draws, neither_draws], [other_draws, own_draws, neither_draws]],
            dtype=np.uint64,
        )
        values, symbols = np.array([scale.low, scale.high, middle]), 3 if neither_draws else 2
        rows = (scale.values > middle).astype(np.int64)
        return Channel(weights[rows, :symbols], scale.values, values[:symbols])

    @property
    def numbers(self) -> int:
        """Number of different answers."""
        return self.multipliers * self.blocks

    def answers(self, counts: Ints, elements: Ints, choice: Uint64s, noise: Uint64s) -> Ints:
        """Answer about the profiles of a partition by a multiplier and a block each, shape (users,).

        ``choice`` and ``noise`` are independent words, for the multipliers and for the answers.
        """
        multipliers = 1 + uniform_below(self.multipliers, choice)
        owners = rows_of(counts)
        blocks = multipliers[owners] * elements % self.modulus // self.size
        keys = np.unique(owners * self.blocks + blocks)
        owners, marked = np.divmod(keys, self.blocks)
        numbers = np.bincount(owners, minlength=counts.size)
        # The block that each user sends, given how many it has marked, and which, ascending.
        starts, draws = offsets(numbers)[:-1], integer_weights(noise).astype(np.int64)
        beyond = draws - numbers * self.draws
        honest = beyond < 0
        share, extra = np.divmod(DRAWS - numbers * self.draws, self.blocks - numbers)
        # The draws that are left over belong to the first of the other blocks, one to each.
        long = extra * (share + 1)
        place = np.where(beyond < long, beyond // (share + 1), extra + (beyond - long) // share)
        # Marked blocks are skipped: as many as lie at or before the place.
        skipped = marked - (np.arange(marked.size) - starts[owners]) <= place[owners]
        sent: Ints = place + np.bincount(owners[skipped], minlength=numbers.size)
        sent[honest] = marked[(starts + draws // self.draws)[honest]]
        return (multipliers - 1) * self.blocks + sent

    def naming(self, elements: Ints, choice: Uint64s) -> Ints:
        """Return an answer that names an element each, under a multiplier that is drawn."""
        multipliers = 1 + uniform_below(self.multipliers, choice)
        return (multipliers - 1) * self.blocks + multipliers * elements % self.modulus // self.size

    def counted(self, answers: Ints) -> Ints:
        """Return how many answers name a block of which each element is one, shape (elements,)."""
        if self.size == 1:
            return np.bincount(answers, minlength=self.elements)
        total = np.zeros(self.modulus, dtype=np.int64)
        inverses = np.array([0, *(pow(number, -1, self.modulus) for number in range(1, self.modulus))])
        step = max(1, (1 << 21) // self.size)
        for start in range(0, answers.size, step):
            multipliers, blocks = np.divmod(answers[start : start + step], self.blocks)
            hashed = blocks[:, None] * self.size + np.arange(self.size)
            members = inverses[multipliers + 1][:, None] * hashed % self.modulus
            total += np.bincount(members[hashed < self.modulus], minlength=self.modulus)
        return total[: self.elements]


def _wanted_blocks(epsilon: float, profile: int) -> float:
    return profile * (math.exp(epsilon) + 1)


def _modulus(elements: int, size: int) -> int:
    """Return the elements if each is a block, else the least prime that is not less."""
    number = elements
    while size > 1 and not (number % np.arange(2, math.isqrt(number) + 1)).all():
        number += 1
    return number


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
    """Answers about a whole profile, as many for everybody, at a budget per user; these are its draws."""

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

    @classmethod
    def seen_cells(cls, users: int, items: int, ratings: int) -> int:
        """Return none: no answer is about a cell."""
        return 0

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

    def encode(self, profiles: ProfileLevels, draws: DrawsFor) -> Pieces:
        """Return every user's answers about its profile."""
        return self.numbers.encode(self._answers(profiles, draws))

    def _answers(self, profiles: ProfileLevels, draws: DrawsFor) -> Ints:
        counts, elements = self.elements(profiles.counts, profiles.items, profiles.levels)
        choice, noise = draws("choice"), draws("report")
        rows = [
            self.code.answers(
                counts, elements, choice.per_user(answer, REPORT_ROUND), noise.per_user(answer, REPORT_ROUND)
            )
            for answer in range(self.answers)
        ]
        return np.stack(rows, axis=1)

    def crafted(self, profiles: ProfileLevels, draws: DrawsFor) -> Pieces:
        """Return answers that all name the rating farthest from its user's mean; of several, any.

        Who has no ratings answers as it is drawn.
        """
        counts, users = profiles.counts, rows_of(profiles.counts)
        distances = np.abs(residuals(counts, profiles.levels, self.scale))
        largest = np.zeros(counts.size)
        np.maximum.at(largest, users, distances)
        chosen = distances >= largest[users] - _ROUNDING
        every = profile_elements(counts, profiles.items, profiles.levels, self.scale, self.n_items)[1]
        # How many ratings of every user are the farthest from its mean, and their elements.
        counts, elements = np.bincount(users[chosen], minlength=counts.size), every[chosen]
        choice, noise, first = draws("choice"), draws("report"), offsets(counts)[:-1]
        has, answers = counts > 0, self._answers(profiles, draws)
        for answer in range(self.answers):
            words = choice.per_user(answer, REPORT_ROUND)[has]
            random = noise.per_user(answer, REPORT_ROUND)[has]
            named = (random % counts[has].astype(np.uint64)).astype(np.int64)
            answers[has, answer] = self.code.naming(elements[first[has] + named], words)
        return self.numbers.encode(answers)

    def evidence_of_one(self, counts: Ints, *, of_values: bool) -> tuple[float, float]:
        """Return how much more often than by chance answers name an element: always, and if they are drawn.

        The rating of an honest user is taken to be among those that count.
        """
        code = self.code
        usual = 1 / code.blocks
        return self.answers * (1 - usual), self.answers * (code.draws / DRAWS - usual)

    def reader(self, n_users: int, wanted: Wanted) -> "ProfileReader":
        """Return what reads the answers of so many users."""
        return ProfileReader(self, n_users)

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
        epsilon = min(self._share(self.budget, self.answers), _MOST_EPSILON)
        # From so many items on, elements share blocks.
        return math.ceil(_WORTH_DIVIDING * _wanted_blocks(epsilon, self.mechanism.profile) / 2)

    def answers_about(self, entries: int) -> int:
        """Return all answers: each is about the whole profile."""
        return self.answers

    def audited_symbols(self, exchange: int, reports: Sequence[bytes], items: Ints) -> Ints:
        """Return a symbol for each answer: which elements it names, and how it divides all into blocks."""
        code, answers = self.code, self.numbers.decode(reports)[1]
        if code.size == 1:
            return answers + 1
        multipliers, blocks = np.divmod(answers, code.blocks)
        named = np.zeros_like(answers)
        for element in [*(2 * items).tolist(), *(2 * items + 1).tolist()]:
            named = 2 * named + ((multipliers + 1) * element % code.modulus // code.size == blocks)
        # Which elements share a block is known of every division; a few classes of these tell dependence.
        return 1 + named * _DIVISIONS + multipliers * _DIVISIONS // code.multipliers


class ProfileReader(ReportReader):
    """Answers about profiles as they arrive, counted by the elements that they name; see `ReportReader`."""

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
        family, nobody, code = self._family, np.zeros(0, dtype=np.int32), self._family.code
        below, above = self._named.reshape(family.n_items, 2).T
        # Where elements share blocks by chance, the block of one that nobody has is as likely as any other.
        usual = 1 / code.blocks
        least = usual if code.size > 1 else code.fewest_draws / DRAWS
        answers = self._accepted * family.answers
        return Observations.of(
            nobody,
            nobody,
            np.zeros(0),
            (self._n_users, family.n_items),
            family.scale,
            evidence=ProfileReports(above, below, answers, (least, usual), code.draws / DRAWS),
            catalogue=catalogue,
        )


def profile_elements(
    counts: Ints, items: AnyInts, levels: Uint8s, scale: RatingScale, most_ratings: int
) -> tuple[Ints, Ints]:
    """Return the elements of every profile: 2 i, or 2 i + 1 if item i is rated above the user's mean.

    At most ``most_ratings`` of a user: of its ratings farthest from the mean, the first ones if equally far.
    """
    distances = residuals(counts, levels, scale)
    elements = 2 * items.astype(np.int64) + (distances > 0)
    if counts.max(initial=0) > most_ratings:
        order = np.lexsort((-np.abs(distances), rows_of(counts)))
        elements = elements[np.sort(order[places_of(counts) < most_ratings])]
    return np.minimum(counts, most_ratings), elements


def residuals(counts: Ints, levels: Uint8s, scale: RatingScale) -> Floats:
    """Return how far ratings are above their user's mean, times the user's ratings, shape (ratings,)."""
    ratings, users = scale.values[levels - 1], rows_of(counts)
    sums = np.bincount(users, weights=ratings, minlength=counts.size)
    return ratings * counts[users] - sums[users]
