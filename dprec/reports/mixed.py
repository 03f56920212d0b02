"""Reports of users who have budgets of their own: each begins with the number of its budget.

Behind the number is a report of `CellFamily` at that budget. Who refuses sends nothing. Which budget a user
has is not hidden.

**On a sample** of a user's ratings, drawn by the user's own epsilon, at an epsilon of everybody's: that of
personalised differential privacy (Jorgensen, Yu and Cormode [jorgensen2015], Section IV). A rating takes part
with probability p = (exp(e) - 1) / (exp(t) - 1), e being the user's epsilon and t everybody's, and is then
reported at t. If nobody sees which take part, a rating or none cost e: an output has probability
(1 - p) a + p b with it, and a without, b being at most exp(t) a. But a report names the items that it is
about. With a channel Q, values x and x' of a rating make a report z with probabilities p Q[x, z] and
p Q[x', z], in whose ratio there is no p: it reaches exp(t), and no epsilon below t holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dprec.accounting import ChannelDraws, OwnBudgets, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Bools, Floats, Ints, Uint8s, offsets, rows_of
from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.errors import SettingError
from dprec.observations import Observations
from dprec.reports.base import (
    REPORT_ROUND,
    DeviceChannel,
    DrawsFor,
    ProfileLevels,
    ReportFamily,
    ReportReader,
    ReportSize,
    Wanted,
)
from dprec.reports.cells import CellFamily


@dataclass(frozen=True, eq=False)
class MixedFamily(ReportFamily):
    """One family for each budget; ``asked`` of losses are the numbers of the users' budgets."""

    budget: OwnBudgets
    further_notes: ClassVar[tuple[str, ...]] = (
        "Every user has an epsilon of its own, and 0 is a refusal: such a device sends nothing, and is sent "
        "the table all the same. Which epsilon a user has is seen by the server, and protected by none: a "
        "choice that goes with tastes says something about them.",
    )

    def __post_init__(self) -> None:
        if self.mechanism.report_family is not CellFamily:
            found = f"several, with mechanism {self.mechanism.kind}"
            accepted = "one number, or a mechanism that sends a symbol for each rated item and nothing else"
            raise SettingError("privacy.epsilon", found, accepted)
        super().__post_init__()

    @cached_property
    def families(self) -> dict[int, CellFamily]:
        """The family of each number that a report can begin with."""
        budgets = ((number, epsilon) for number, epsilon in enumerate(self.budget.epsilons) if epsilon)
        return {number: self._at(epsilon) for number, epsilon in budgets}

    def _at(self, epsilon: float) -> CellFamily:
        budget = PrivacyBudget(epsilon=epsilon, per=self.budget.per)
        return CellFamily(self.mechanism, budget, self.scale, self.n_items)

    @property
    def largest(self) -> CellFamily:
        """The family of the largest epsilon."""
        return self.families[len(self.budget.epsilons) - 1]

    def check(self) -> None:
        """Refuse an epsilon for which there is no channel, or a catalogue that reports cannot represent."""
        for family in self.families.values():
            family.check()

    def _numbers(self, known_numbers: Ints | Uint8s | None, users: int) -> Ints:
        """Return the number of every user's budget; where it is not known, that of the largest."""
        if known_numbers is None:
            return np.full(users, len(self.budget.epsilons) - 1)
        return known_numbers.astype(np.int64)

    # The device.

    def encode(self, profiles: ProfileLevels, draws: DrawsFor) -> Sequence[bytes]:
        """Return the report of every user; nothing of those who refuse."""
        counts, numbers = profiles.counts, self._numbers(profiles.numbers, profiles.counts.size)
        number_of_cell, reports = np.repeat(numbers, counts), [b""] * counts.size
        for number, family in self.families.items():
            # A user who chooses again draws anew: the same noise at two budgets would tell the rating.
            noise = draws(f"report {number}").per_cell(counts, profiles.items, REPORT_ROUND)
            users, cells = np.flatnonzero(numbers == number), np.flatnonzero(number_of_cell == number)
            symbols = family.perturb(counts[users], profiles.levels[cells], noise[cells])
            encoded = family.codec.encode(offsets(counts[users]), profiles.items[cells], symbols)
            for user, report in zip(users.tolist(), encoded, strict=True):
                reports[user] = bytes([number]) + report
        return reports

    def crafted(self, profiles: ProfileLevels, draws: DrawsFor) -> Sequence[bytes]:
        """Return the reports that say most for profiles, of users who claim the largest epsilon."""
        number = len(self.budget.epsilons) - 1
        return [bytes([number]) + report for report in self.largest.crafted(profiles, draws)]

    # The server.

    def reader(self, n_users: int, wanted: Wanted) -> ReportReader:
        """Return what reads the reports of so many users."""
        return MixedReader(self, n_users, wanted)

    # What it loses.

    def channel(self, cells: int) -> Channel:
        """Return the channel of the largest epsilon."""
        return self.largest.channel(cells)

    def protects(self, counts: Ints) -> Bools:
        """Return which users have ratings."""
        return counts > 0

    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the exact losses; those who refuse lose nothing."""
        numbers = self._numbers(asked, counts.size)
        per_rating, per_user = np.where(counts > 0, 0.0, np.nan), np.zeros(counts.size)
        for number, family in self.families.items():
            users = numbers == number
            per_rating[users], per_user[users] = family.losses(counts[users])
        return per_rating, per_user

    def draws_about(self, counts: Ints, asked: Ints | None = None) -> ChannelDraws:
        """Return a draw for each rating of those who send, from the channel of their epsilon."""
        numbers = self._numbers(asked, counts.size)
        places = np.searchsorted(list(self.families), numbers)
        sends = np.isin(numbers, list(self.families))
        channels = tuple(family.channel(1) for family in self.families.values())
        return ChannelDraws(channels, np.where(sends, places, 0), np.where(sends, counts, 0))

    def report_losses(self, profiles: ProfileLevels, draws: DrawsFor) -> tuple[Floats, Floats]:
        """Return what devices charge themselves, by their own budgets."""
        return self.losses(profiles.counts, self._numbers(profiles.numbers, profiles.counts.size))

    def evidence_of_one(self, counts: Ints, *, of_values: bool) -> tuple[float, float]:
        """Return the evidence at the largest epsilon, and its mean over all who send."""
        evidence = {
            number: family.evidence_of_one(counts, of_values=of_values)
            for number, family in self.families.items()
        }
        shares = self._sending_shares(list(evidence))
        mean = float(shares @ [usual for _, usual in evidence.values()])
        return max(strongest for strongest, _ in evidence.values()), mean

    def _sending_shares(self, numbers: list[int]) -> Floats:
        """Return the shares of the users with some numbers of budgets, among each other."""
        chosen = np.array([self.budget.shares[number][1] for number in numbers])
        return chosen / chosen.sum()

    def most_losses(self) -> tuple[float, float]:
        """Return what no profile loses more than at the largest epsilon."""
        return self.largest.most_losses()

    def device_channel(self, counts: Ints) -> DeviceChannel | None:
        """Return the channel of the largest epsilon."""
        return self.largest.device_channel(counts)

    # What it costs, and how it is audited.

    def size(self, ratings: int) -> ReportSize:
        """Return the report at the largest epsilon, and the number of the budget."""
        size = self.largest.size(ratings)
        return replace(size, bits=size.bits + 8)

    def parts(self, report: bytes) -> dict[str, int]:
        """Return the bits of the number, of the set of rated items, and of their symbols."""
        return {"number of the budget": 8, **self.families[report[0]].parts(report[1:])}

    def exact_losses(self, entries: int) -> Iterator[tuple[str, float]]:
        """Yield the loss at the largest epsilon."""
        yield from self.largest.exact_losses(entries)

    def audited_symbols(self, exchange: int, reports: Sequence[bytes], items: Ints) -> Ints:
        """Return one more than the symbol of every item; 0 where there is none."""
        symbols = np.zeros((len(reports), self.n_items), dtype=np.int64)
        for number, places, unnumbered in self.by_number(reports):
            symbols[places] = self.families[number].audited_symbols(exchange, unnumbered, items)
        return symbols

    def by_number(self, reports: Sequence[bytes]) -> Iterator[tuple[int, Ints, list[bytes]]]:
        """Yield each number with the places of the reports that begin with it, and what is behind it."""
        first = np.array([report[0] if report else -1 for report in reports], dtype=np.int64)
        for number in self.families:
            places = np.flatnonzero(first == number)
            yield number, places, [reports[place][1:] for place in places.tolist()]


class MixedReader(ReportReader):
    """Reports at several budgets as they arrive; see `ReportReader`."""

    def __init__(self, family: MixedFamily, n_users: int, wanted: Wanted) -> None:
        self._family = family
        self._readers = {
            number: cell_family.reader(n_users, wanted) for number, cell_family in family.families.items()
        }
        self.told: Ints = np.full(n_users, len(family.budget.epsilons) - 1)

    def take(self, users: Ints, reports: Sequence[bytes]) -> Bools:
        """Decode reports; one that begins with no number of a budget is rejected."""
        valid = np.zeros(users.size, dtype=np.bool_)
        for number, places, unnumbered in self._family.by_number(reports):
            self.told[users[places]] = number
            valid[places] = self._readers[number].take(users[places], unnumbered)
        return valid

    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        """Return what all budgets' reports say together."""
        return Observations.joined([reader.observations(catalogue) for reader in self._readers.values()])


_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class SampledRatingsFamily(MixedFamily):
    """One family, at everybody's epsilon, behind the number of each user's own; see the module."""

    claim: ClassVar[str] = (
        "each rating takes part with probability (exp(e) - 1) / (exp(t) - 1), e being its user's epsilon, "
        "and is reported at t; a rating or none cost e where nobody sees which take part. The server sees "
        "it: a rating that was sampled loses t, and no epsilon below t holds."
    )

    @cached_property
    def everybodys(self) -> float:
        """The epsilon at which ratings are reported."""
        if self.budget.sampled_at is None:
            raise SettingError("privacy.sampled_at", "none", "an epsilon at which ratings are reported")
        return self.budget.sampled_at

    @cached_property
    def shares(self) -> Floats:
        """The probability with which a rating takes part, by the number of its user's budget."""
        return np.expm1(np.array(self.budget.epsilons)) / np.expm1(self.everybodys)

    def _at(self, epsilon: float) -> CellFamily:
        """Return the family of everybody, whatever a user's own epsilon."""
        return super()._at(self.everybodys)

    def encode(self, profiles: ProfileLevels, draws: DrawsFor) -> list[bytes]:
        """Return the report of every user on those ratings that take part."""
        counts, numbers = profiles.counts, self._numbers(profiles.numbers, profiles.counts.size)
        words = draws("sampling of ratings").per_cell(counts, profiles.items, REPORT_ROUND)
        rows = rows_of(counts)
        taken = (words >> np.uint64(11)) * _UNIT < self.shares[numbers[rows]]
        sampled_counts = np.bincount(rows[taken], minlength=counts.size)
        sampled = ProfileLevels(
            sampled_counts, profiles.items[taken], profiles.levels[taken], profiles.numbers
        )
        return list(super().encode(sampled, draws))

    def _sending_shares(self, numbers: list[int]) -> Floats:
        """Return the shares of users with some numbers, each times that of its ratings that take part."""
        return super()._sending_shares(numbers) * self.shares[numbers]

    def accountant(self, counts: Ints, sent: Bools, asked: Ints | None = None) -> PrivacyAccountant:
        """Return the account of what is seen of a sample, with what is claimed: each user's own epsilon."""
        claimed = MixedFamily(self.mechanism, self.budget.unsampled, self.scale, self.n_items)
        proved = super().accountant(counts, sent, asked)
        return replace(proved, claimed=claimed.accountant(counts, sent, asked))

    def size(self, ratings: int) -> ReportSize:
        """Return the report at the largest epsilon, on as many ratings as take part in the mean."""
        return super().size(max(1, round(self.shares[-1] * ratings)))
