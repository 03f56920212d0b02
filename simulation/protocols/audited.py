"""What an audit asks of a protocol, and what a protocol may have it do."""

import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dprec.accounting import PrivacyAccountant, PrivacyUnit
from dprec.arrays import Floats, Ints
from dprec.completion import Observations
from dprec.crossdomain import RecommendationOptions, ReplacementOptions, SimilarityKind
from dprec.exchange import XMapSetup
from dprec.private_als import Aggregation, FactorizationOptions

ROUNDING = 1e-9
"""Relative excess over a promise that adding up floating-point numbers may cause."""

Complete = Callable[[Observations, int], Floats]
"""From ratings and a seed to all entries of what a trusted server releases, shape (users * items,)."""

Sample = Callable[[bool, int, int], Ints]
"""From whether a user takes part, a number of trials and a seed to what is seen in each, as classes."""


@dataclass(frozen=True)
class Promise:
    """What the devices of a protocol promise."""

    epsilon: float
    """For everything that is sent over all rounds."""
    unit: PrivacyUnit
    """What two profiles may differ in."""
    hides_rated_items: bool
    """Whether it holds for which items are rated, too."""
    delta: float = 0.0
    """Probability beyond which it holds; 0 unless the budget is for composed draws."""

    def loss(self, entries: int) -> float:
        """Return the largest loss between two profiles that differ in so many entries.

        A promise per user holds for any difference; one per rating or cell adds up.
        """
        return self.epsilon if self.unit == "user" else self.epsilon * entries

    def unit_of(self, entries: int) -> PrivacyUnit:
        """Return the unit in which a difference in so many entries is counted."""
        return self.unit if entries == 1 else "user"


@dataclass(frozen=True)
class Finding:
    """What one of the tests of an audit measured."""

    test: str
    """What was compared, in words."""
    unit: PrivacyUnit
    """Unit of the promise."""
    promised: float
    """Largest epsilon that the configuration allows; 0 for reports that must not depend on each other."""
    at_least: float
    """Lower bound on the true epsilon; the loss itself if it is exact."""
    charged: float | None
    """Epsilon that the run's ledger charges; None if the ledger does not state it."""
    exact: bool
    """Whether the loss was computed from a matrix rather than bounded by samples."""
    power: float
    """Probability that a leak of twice the promise would have been detected, or noise that is reused."""

    @property
    def defect(self) -> str | None:
        """What contradicts the promise, in words; None if nothing does."""
        allowed = self.promised * (1 + ROUNDING)
        if self.at_least > (allowed if self.exact else self.promised):
            return f"epsilon is at least {self.at_least:.4g}"
        if self.charged is not None and self.charged > allowed:
            return f"the ledger charges {self.charged:.4g}"
        if self.charged is not None and self.at_least > self.charged * (1 + ROUNDING):
            return f"epsilon is at least {self.at_least:.4g}, and the ledger charges {self.charged:.4g}"
        return None

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against the promise."""
        return self.defect is None

    @property
    def strength(self) -> str:
        """How strong the test was, in words."""
        if self.exact:
            return "exact"
        leak = "a twofold leak" if self.promised else "noise that is reused"
        return f"{leak} would be seen with probability {self.power:.2f} or more"


class Auditor(typing.Protocol):
    """What performs an audit: a protocol says which of its tests there are to do."""

    def of_devices(self) -> Iterator[Finding]:
        """Compare what the devices of people send whose profiles differ, in runs of the protocol."""

    def of_releases(self, complete: Complete) -> Iterator[Finding]:
        """Compare what a trusted server releases of two small data sets, many times."""

    def of_samples(self, test: str, sample: Sample) -> Iterator[Finding]:
        """Compare what is seen with a user and without, where a protocol knows the worst of users itself."""

    def of_sums(
        self,
        factorization: FactorizationOptions,
        aggregation: Aggregation,
        multipliers: tuple[float, ...],
        sensitivity: float,
        accountant: Callable[[float], PrivacyAccountant],
    ) -> Iterator[Finding]:
        """Compare sums of contributions with noise; see `PrivateAlsProtocol` for the parameters."""

    def of_outputs(
        self,
        setup: XMapSetup,
        replacement: ReplacementOptions,
        recommendation: RecommendationOptions,
        similarity: SimilarityKind,
    ) -> Iterator[Finding]:
        """Compare replacements, and the neighbours and similarities of predictions; see `XMapProtocol`."""
