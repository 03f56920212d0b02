"""Which protocol to take within limits: one rule for the terminal, `dprec advise`, documents and pages.

Of what is within the limits, the most accurate is taken that is better than nothing sent, and of equal ones
the cheapest. A loss counts if it is proved, an epsilon by composition with the delta that is allowed.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit, Trust
from simulation.analysis.gains import Gain, gain, gain_digits, not_significant, nothing_sent, shown_from
from simulation.analysis.protocol_results import BYTES, ProtocolResult
from simulation.analysis.vocabulary import Metric

SLACK = 1 + 1e-9
"""Losses add up in floating point, and may exceed what was asked for by its rounding."""

RECOVERED = "recovered_level"
"""Column of the share of levels that an attack recovers."""

OWN_DELTA = 1.0
"""As a limit of delta: every loss by composition counts with its own."""


@dataclass(frozen=True)
class Limits:
    """What may be spent, and whom one trusts."""

    epsilon: float
    """Largest privacy loss of any user."""
    unit: ComparableUnit
    """Unit of the loss."""
    max_bytes: float = math.inf
    """Largest mean of the bytes of a user's messages, both ways."""
    trust: Trust = "central"
    """The most that may be trusted: protocols that need more are left out."""
    hide_items: bool = False
    """Leave out protocols with which anybody, the server too, sees which items a user rated."""
    claimed: bool = False
    """Count an epsilon that a paper claims like one that is proved; otherwise it bounds nothing."""
    delta: float | None = None
    """Largest delta with which losses per user may be composed; None counts their sum, which needs none."""
    max_network_bytes: float = math.inf
    """Largest mean of the bytes that a network carries for a user, both ways."""
    max_recovered: float = 1.0
    """Largest share of the levels of ratings that an attack recovers."""
    without: tuple[Trust, ...] = ()
    """Trust models that cannot be had, whatever is trusted more."""
    max_bytes_up: float = math.inf
    """Largest mean of the bytes of the messages that a user sends."""
    max_bytes_down: float = math.inf
    """Largest mean of the bytes of the messages that a user receives."""

    @property
    def most_bytes(self) -> dict[str, float]:
        """The limits of bytes, by what they are of."""
        return {
            "of messages": self.max_bytes,
            "up": self.max_bytes_up,
            "down": self.max_bytes_down,
            "on the network": self.max_network_bytes,
        }

    def allow(self, result: ProtocolResult) -> bool:
        """Return whether a result asks for no more trust, and tells no more of item sets and levels."""
        trust = result.needed_trust
        trusts_more = LEAST_TRUST_FIRST.index(trust) > LEAST_TRUST_FIRST.index(self.trust)
        # Where an attack finds nothing to look at, nothing is recovered.
        keeps = self.max_recovered == 1 or (result.mean(RECOVERED) or 0.0) <= self.max_recovered
        shows = self.hide_items and not result.hides_from_server
        return not (trusts_more or trust in self.without or shows) and keeps

    def loss(self, result: ProtocolResult) -> float:
        """Return the loss of a result that counts; infinite without a bound."""
        if result.status != "proved":
            promised = result.promised(self.unit) if self.claimed else None
            return math.inf if promised is None else promised
        losses, needed = [result.epsilon(self.unit)], result.delta
        # What holds of a whole user holds of each rating.
        if (OWN_DELTA if needed is None else needed) <= (self.delta or 0) * SLACK:
            losses.append(result.composed)
        return min((bound for bound in losses if bound is not None), default=math.inf)

    def with_delta(self, result: ProtocolResult) -> float:
        """Return the loss if the delta of a result were allowed; infinite without a bound."""
        if self.unit != "user" or not result.delta:
            return self.loss(result)
        return replace(self, delta=max(self.delta or 0.0, result.delta)).loss(result)

    def keep(self, result: ProtocolResult) -> bool:
        """Return whether the loss of a result is within epsilon."""
        return self.loss(result) <= self.epsilon * SLACK

    def keep_with_delta(self, result: ProtocolResult) -> bool:
        """Return the same if the delta of a result were allowed."""
        return self.with_delta(result) <= self.epsilon * SLACK

    def carry(self, result: ProtocolResult) -> bool:
        """Return whether the bytes of a result are within limits."""
        return not self.bytes_over(result)

    def bytes_over(self, result: ProtocolResult) -> dict[str, float]:
        """Return by how many bytes a result exceeds which limits; infinite where its bytes are not known."""
        spent = (result.bytes_per_user, *(result.mean(column) for column in BYTES))
        carried = 0.0 if result.bytes_per_user == 0 else result.network_bytes_per_user
        over = {
            what: (math.inf if mean is None else mean) - most
            for (what, most), mean in zip(self.most_bytes.items(), (*spent, carried), strict=True)
            if most < math.inf
        }
        return {what: excess for what, excess in over.items() if excess > 0}


@dataclass(frozen=True)
class Candidate:
    """A protocol that is compared with others."""

    result: ProtocolResult
    accuracy: float
    against: Gain | None
    """How much better it is than nothing sent; None where that was not run, or not on the same ratings."""
    better: bool
    """Whether it counts as better than nothing sent; everything does where that was not run."""
    rank: float
    """What candidates are sorted by, the most accurate first."""


def candidates(results: Sequence[ProtocolResult], metric: Metric) -> list[Candidate]:
    """Return the results that have a metric, held against nothing sent."""
    baseline, contenders = nothing_sent(results), []
    for result in results:
        if (accuracy := result.mean(metric.column)) is not None:
            against = gain(result, baseline, metric) if baseline and result is not baseline else None
            better = baseline is None if against is None else against.better
            contenders.append(Candidate(result, accuracy, against, better, metric.sort_key(accuracy)))
    return contenders


def decide(contenders: Iterable[Candidate], limits: Limits) -> list[Candidate]:
    """Return what is within limits, as it is to be taken: what beats nothing sent first."""

    def place(candidate: Candidate) -> tuple[bool, float, float, float, str]:
        result, cost = candidate.result, candidate.result.bytes_per_user or 0.0
        return not candidate.better, candidate.rank, cost, result.budget or 0.0, result.name

    inside = (
        candidate
        for candidate in contenders
        if limits.allow(candidate.result) and limits.keep(candidate.result)
    )
    return sorted((candidate for candidate in inside if limits.carry(candidate.result)), key=place)


@dataclass(frozen=True)
class GridCell:
    """The protocol to take in one trust model, for one thing that is protected, at one epsilon."""

    unit: ComparableUnit
    """What epsilon is for."""
    hides: bool
    """Whether the item set is hidden, so that the whole profile is protected; otherwise values only."""
    trust: Trust
    epsilon: float
    best: ProtocolResult | None
    """The most accurate that is proved to lose no more, of those that beat nothing sent if any does; None if
    nothing is.
    """
    against: Gain | None
    """How much better it is than nothing sent; None where that was not run."""
    with_less: ProtocolResult | None
    """What needs less trust, protects as much and is as accurate: trusting more buys nothing here. Where
    nothing is best, the most accurate that needs no more trust, or as accurate with less.
    """
    alike: tuple[ProtocolResult, ...]
    """What competes in the same cell, ran at the same budget and is not significantly worse."""

    @property
    def delta(self) -> float | None:
        """With which the loss of the best holds; None where it holds without."""
        if self.best is None or Limits(self.epsilon, self.unit).keep(self.best):
            return None
        return self.best.delta

    @property
    def nothing_sent_wins(self) -> bool:
        """Whether even the best is not better than nothing sent."""
        return self.against is not None and not self.against.better


def _least_trust(best: Candidate, less: Sequence[Candidate], shown: float) -> ProtocolResult | None:
    """Return what needs the least trust of candidates that are no worse than the best; None without any."""
    as_good = [
        each.result
        for each in less
        if each.better >= best.better
        and (each.rank - best.rank < shown or not_significant(best.result, [each.result]))
    ]
    return min(as_good, key=lambda result: LEAST_TRUST_FIRST.index(result.trust), default=None)


def decision_grid(
    results: Sequence[ProtocolResult],
    metric: Metric,
    unit: ComparableUnit,
    delta: float | None,
    *,
    epsilons: Sequence[float] = (),
    models: Sequence[Trust] = (),
) -> list[GridCell]:
    """Return a cell for all that is protected, every trust model and every epsilon, in this order.

    Whatever is proved to lose no more than an epsilon competes at it, whatever it was asked for. Protocols
    that reveal the item set are not compared with those that hide it, nor those of two trust models.

    Of losses per user by composition those count that hold with ``delta``, or each with its own. By default
    the epsilons are all that any protocol was given, and the trust ``models`` those of any protocol. What
    hides the item set comes first, the least trust, and the smallest epsilon.
    """
    competing = [candidate for candidate in candidates(results, metric) if candidate.result.baseline is None]
    proved = [candidate.result for candidate in competing if candidate.result.status == "proved"]
    columns = sorted(epsilons or {result.budget for result in proved if result.budget is not None})
    hidden = [hides for hides in (True, False) if any(result.hides == hides for result in proved)]
    present = models or {result.trust for result in proved}
    models = [trust for trust in LEAST_TRUST_FIRST if trust in present]
    cells, order = [], LEAST_TRUST_FIRST.index
    for hides, trust, epsilon in product(hidden, models, columns):
        limits = Limits(epsilon, unit, trust=trust, delta=OWN_DELTA if delta is None else delta)
        inside, with_less = decide(competing, limits), None
        kept = [candidate for candidate in inside if candidate.result.hides >= hides]
        in_cell = [
            candidate
            for candidate in kept
            if (candidate.result.hides, candidate.result.trust) == (hides, trust)
        ]
        less = [candidate for candidate in kept if order(candidate.result.trust) < order(trust)]
        best, against, alike = None, None, list[ProtocolResult]()
        if in_cell:
            best, against = in_cell[0].result, in_cell[0].against
            alike = not_significant(best, [candidate.result for candidate in in_cell])
        # Without a protocol that reveals item sets there, one that hides them, or needs less trust, is taken.
        leading, others = (in_cell, less) if in_cell else (kept, kept)
        if leading:
            with_less = _least_trust(leading[0], others, shown_from(gain_digits(metric)))
        cells.append(GridCell(unit, hides, trust, epsilon, best, against, with_less, tuple(alike)))
    return cells
