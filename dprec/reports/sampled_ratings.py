"""Reports on a sample of a user's ratings, drawn by the user's own epsilon, at an epsilon of everybody's.

Sampling is that of personalised differential privacy (Jorgensen, Yu and Cormode [jorgensen2015], Section IV).
A rating takes part with probability p = (exp(e) - 1) / (exp(t) - 1), e being the user's epsilon and t
everybody's, and is then reported at t. If nobody sees which take part, a rating or none cost e: an output
has probability (1 - p) a + p b with it, and a without, b being at most exp(t) a. But a report names the items
that it is about. With a channel Q, values x and x' of a rating make a report z with probabilities p Q[x, z]
and p Q[x', z], in whose ratio there is no p: it reaches exp(t), and no epsilon below t holds.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dprec.accounting import PrivacyAccountant
from dprec.arrays import Bools, Floats, Ints, rows_of
from dprec.errors import SettingError
from dprec.reports.base import REPORT_ROUND, DrawsFor, Profiles, ReportSize
from dprec.reports.cells import CellFamily
from dprec.reports.mixed import MixedFamily

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

    def encode(self, profiles: Profiles, draws: DrawsFor) -> list[bytes]:
        """Return the report of every user on those ratings that take part."""
        counts, numbers = profiles.counts, self._numbers(profiles.numbers, profiles.counts.size)
        words = draws("sampling of ratings").per_cell(counts, profiles.items, REPORT_ROUND)
        rows = rows_of(counts)
        taken = (words >> np.uint64(11)) * _UNIT < self.shares[numbers[rows]]
        kept = np.bincount(rows[taken], minlength=counts.size)
        own = profiles.numbers
        return list(super().encode(Profiles(kept, profiles.items[taken], profiles.levels[taken], own), draws))

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
