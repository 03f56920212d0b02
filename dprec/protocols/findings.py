"""What audits of protocols measure, and what a protocol lends an auditor to measure it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from dprec.accounting import Adjacency, PrivacyAccountant, PrivacyUnit
from dprec.arrays import Floats, Ints
from dprec.observations import Observations
from dprec.ratings import RatingScale
from dprec.sums import Aggregation, Contributions, Layout

ROUNDING = 1e-9
"""Relative excess over a promise that adding up floating-point numbers may cause."""

Complete = Callable[[Observations, int], Floats]
"""From ratings and a seed to all entries of what a trusted server releases, shape (users * items,)."""

Sample = Callable[[bool, int, int], Ints]
"""From whether a user takes part, a number of trials and a seed to what is seen in each, as classes."""


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
    covers: str = ""
    """What an exact loss is that of, in words, where it is not that of all cases."""

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
            return f"exact, {self.covers}" if self.covers else "exact"
        leak = "a twofold leak" if self.promised else "noise that is reused"
        return f"{leak} would be seen with probability {self.power:.2f} or more"


@dataclass(frozen=True, eq=False)
class NoisySums:
    """The sums that a protocol releases; see `dprec.protocols.sums.SumsProtocol`."""

    probes: Callable[[int], Iterator[tuple[Layout, Contributions[Any]]]]
    """From a seed to releases, and contributions to them that are as long as they get."""
    farthest: float
    """How far apart the contributions of two profiles can be, before they are added up."""
    aggregation: Aggregation
    multipliers: tuple[float, ...]
    sensitivity: float
    accountant: Callable[[float], PrivacyAccountant]

    def epsilon(self, delta: float, longest: float = 1.0, adjacency: Adjacency | None = None) -> float:
        """Return what all releases cost a user whose contributions are so long; by default, as promised."""
        if longest == 0:
            return 0.0
        return float(self.accountant(longest).get_epsilon(delta, adjacency=adjacency)[0])


Moved = Callable[[int, RatingScale, int], float | None]
"""From a number of users, a scale and a seed to how far one of them moves what is computed of others."""


class AuditTests(Protocol):
    """What performs an audit: a protocol says which of its tests there are to do."""

    def of_groups(self, moved: Moved, loss: Callable[[float], float]) -> Iterator[Finding]:
        """Have users move others in groups of several sizes, and return the loss of the farthest move."""

    def of_devices(self) -> Iterator[Finding]:
        """Compare what the devices of people send whose profiles differ, in runs of the protocol."""

    def of_releases(self, complete: Complete) -> Iterator[Finding]:
        """Compare what a trusted server releases of two small data sets, many times."""

    def of_samples(self, test: str, sample: Sample) -> Iterator[Finding]:
        """Compare what is seen with a user and without, where a protocol knows the worst of users itself."""

    def of_sums(self, released: NoisySums) -> Iterator[Finding]:
        """Compare sums of contributions with noise."""

    def of_outputs(self, protocol: Any) -> Iterator[Finding]:
        """Compare what X-Map lets out: replacements, and the neighbours and similarities of predictions."""
