"""Planning: which protocol of a comparison is the most accurate within a budget of privacy and bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.errors import InputError
from simulation.analysis.advice import AdviceLimits
from simulation.analysis.gains import Gain, gain, not_significant, nothing_sent
from simulation.analysis.populations import courses, users_needed
from simulation.analysis.protocol_results import ProtocolResult, metrics_of, read_results
from simulation.analysis.vocabulary import Average, Metric
from simulation.storage.directories import TABLE

_SLACK = 1 + 1e-9
"""Losses that are claimed add up in floating point, and may exceed what was typed by its rounding."""


@dataclass(frozen=True)
class Offer:
    """A setting, as compared with others."""

    result: ProtocolResult
    accuracy: Average
    epsilon: float
    """In the unit of the limits; infinite if the loss has no bound that counts."""
    bytes_per_user: float
    against_baseline: Gain | None = None
    """How much better it is than nothing sent; None for that itself, and where it cannot be told."""

    @property
    def beyond_doubt(self) -> bool:
        """Whether it is better than nothing sent by more than its uncertainty."""
        return self.against_baseline is not None and self.against_baseline.beyond_doubt

    def inside(self, limits: AdviceLimits) -> bool:
        """Return whether it is within limits."""
        return self.within(limits.epsilon, limits.max_bytes)

    def within(self, epsilon: float, max_bytes: float) -> bool:
        """Return whether both limits hold."""
        return self.epsilon <= epsilon * _SLACK and self.bytes_per_user <= max_bytes


@dataclass(frozen=True)
class Advice:
    """The best setting within limits, and the cheapest ways to more accuracy."""

    limits: AdviceLimits
    metric: Metric
    best: Offer
    alike: tuple[Offer, ...]
    """Within the limits: what cannot be told apart from the best at its budget."""
    not_better: tuple[Offer, ...]
    claimed_only: tuple[Offer, ...]
    composed_only: tuple[Offer, ...]
    """Within the limits: of the protocols that never beat nothing sent there; those whose epsilon is claimed
    and not proved; and those whose epsilon holds with a delta, where the limits have none.
    """
    for_epsilon: Offer | None
    """The more accurate setting within the bytes that needs the least additional epsilon."""
    for_bytes: Offer | None
    """The more accurate setting within epsilon that needs the fewest additional bytes."""
    for_both: Offer | None
    """If neither exists: the more accurate setting beyond both limits that needs the least additional
    epsilon.
    """
    users_needed: str | None
    """With how many users the best beats nothing sent; None where that was not tried."""


def advise(directory: str | Path, limits: AdviceLimits, metric: str | None = None) -> Advice:
    """Find the most accurate protocol of a comparison within limits.

    Where the comparison has the baseline with nothing sent, what is not better than that by more than its
    uncertainty (`Gain.beyond_doubt`) is not recommended, and nothing sent is the answer if nothing is left.
    Only protocols that predict the same ratings can be compared: those that predict the same as the first
    protocol that has the measure.

    Parameters
    ----------
    directory : str or Path
        A comparison's directory; only its comparison.csv is read.
    measure : str, optional
        Column of the accuracy; by default the first of `METRICS` that any protocol has.

    Raises
    ------
    InputError
        When the directory holds no comparison, or nothing is within the limits and nothing sent was not
        compared; the message then names limits that could be met.
    """
    results, chosen = _settings(Path(directory), metric)
    comparable = _comparable(results, chosen)
    baseline, offers = _offers(comparable, chosen, limits)
    worthwhile = [offer for offer in offers if baseline is None or offer.beyond_doubt]
    inside = [offer for offer in offers if offer.inside(limits)]
    best = min(
        (offer for offer in inside if offer in worthwhile),
        key=lambda offer: (chosen.sort_key(offer.accuracy.mean), offer.bytes_per_user, offer.epsilon),
        default=baseline,
    )
    if best is None:
        raise InputError(str(directory), nothing_within(limits), least_needed(offers, limits))
    beating = {offer.result.name for offer in inside if offer in worthwhile}
    alike = _alike(best.result, comparable, chosen)
    better = [offer for offer in worthwhile if chosen.better(offer.accuracy.mean, best.accuracy.mean)]
    return Advice(
        limits,
        chosen,
        best,
        tuple(offer for offer in inside if offer.result in alike),
        tuple(offer for offer in inside if offer.result.name not in beating),
        tuple(_claimed_only(comparable, chosen, limits)),
        tuple(_composed_only(comparable, chosen, limits)),
        *_next_better(better, limits, chosen),
        users_needed(courses(results, chosen), best.result),
    )


def _alike(best: ProtocolResult, results: Sequence[ProtocolResult], metric: Metric) -> list[ProtocolResult]:
    """Return what cannot be told apart from a setting, if it is judged by its main measure."""
    evaluation = best.evaluation
    return not_significant(best, results) if evaluation and evaluation.metric == metric else []


def _settings(directory: Path, column: str | None) -> tuple[list[ProtocolResult], Metric]:
    """Return all settings of a comparison, and what they are judged by."""
    table = directory / TABLE
    if not table.is_file():
        raise InputError(str(directory), f"no {TABLE}", "a directory that `dprec compare` wrote")
    results = read_results(table)
    return results, _metric(results, column)


def _comparable(results: Sequence[ProtocolResult], metric: Metric) -> list[ProtocolResult]:
    """Return the settings that predict the same as the first that has a measure."""
    data = next(result.data for result in results if result.average(metric.column))
    return [result for result in results if result.data == data]


def _next_better(
    better: Sequence[Offer], limits: AdviceLimits, metric: Metric
) -> tuple[Offer | None, Offer | None, Offer | None]:
    """Return what costs the least additional epsilon, the fewest additional bytes, or both."""

    def by_epsilon(offer: Offer) -> tuple[float, float]:
        return offer.epsilon, metric.sort_key(offer.accuracy.mean)

    def by_bytes(offer: Offer) -> tuple[float, float]:
        return offer.bytes_per_user, metric.sort_key(offer.accuracy.mean)

    cheap = [offer for offer in better if offer.within(math.inf, limits.max_bytes)]
    private = [offer for offer in better if offer.within(limits.epsilon, math.inf)]
    for_epsilon = min(cheap, key=by_epsilon, default=None)
    for_bytes = min(private, key=by_bytes, default=None)
    neither = for_epsilon is None and for_bytes is None
    return for_epsilon, for_bytes, min(better, key=by_epsilon, default=None) if neither else None


def _metric(results: Sequence[ProtocolResult], column: str | None) -> Metric:
    known = metrics_of(results)
    if column is None and known:
        return known[0]
    named = next((metric for metric in known if metric.column == column), None)
    if named is None:
        raise InputError("--metric", repr(column), ", ".join(metric.column for metric in known) or "none")
    return named


def _offers(
    results: Sequence[ProtocolResult], metric: Metric, limits: AdviceLimits
) -> tuple[Offer | None, list[Offer]]:
    """Return nothing sent, if the comparison has it, and all other settings that the conditions allow."""
    baseline = nothing_sent([result for result in results if result.average(metric.column)])
    offers = []
    for result in results:
        offer = _offer(result, metric, limits, baseline)
        if result is not baseline and limits.allows(result) and offer:
            offers.append(offer)
    return None if baseline is None else _offer(baseline, metric, limits, None), offers


def _offer(
    result: ProtocolResult, metric: Metric, limits: AdviceLimits, baseline: ProtocolResult | None
) -> Offer | None:
    accuracy, spent = result.average(metric.column), result.bytes_per_user
    if accuracy is None or spent is None:
        return None
    against = None if baseline is None else gain(result, baseline, metric)
    return Offer(result, accuracy, limits.loss(result), spent, against)


def _claimed_only(results: Sequence[ProtocolResult], metric: Metric, limits: AdviceLimits) -> list[Offer]:
    """Return what a claim would bring within the limits."""
    if limits.claimed:
        return []
    _, offers = _offers(results, metric, replace(limits, claimed=True))
    return [offer for offer in offers if offer.result.status != "proved" and offer.inside(limits)]


def _composed_only(results: Sequence[ProtocolResult], metric: Metric, limits: AdviceLimits) -> list[Offer]:
    """Return what a delta would bring within the limits."""
    deltas = [delta for result in results if (delta := result.delta) is not None]
    if limits.delta is not None or limits.unit != "user" or not deltas:
        return []
    _, offers = _offers(results, metric, replace(limits, delta=max(deltas)))
    return [
        offer
        for offer in offers
        if offer.inside(limits) and not replace(offer, epsilon=limits.loss(offer.result)).inside(limits)
    ]


def nothing_within(limits: AdviceLimits) -> str:
    """Say that nothing is within limits."""
    within = f"nothing within {limits.privacy} and {limits.max_bytes:,.0f} bytes per user"
    return " ".join([within, *limits.conditions])


def least_needed(offers: Sequence[Offer], limits: AdviceLimits) -> str:
    """Return, in words, the nearest limits that could be met."""
    private = [offer for offer in offers if math.isfinite(offer.epsilon)]
    if not private:
        return "a comparison with such a protocol"
    affordable = [offer for offer in private if offer.bytes_per_user <= limits.max_bytes]
    allowed = [offer for offer in private if offer.epsilon <= limits.epsilon * _SLACK]
    ways = []
    if affordable:
        least = min(affordable, key=lambda offer: offer.epsilon)
        ways.append(f"with these bytes, ε from {least.epsilon:.4g} ({least.result.name})")
    if allowed:
        least = min(allowed, key=lambda offer: offer.bytes_per_user)
        ways.append(f"with this ε, bytes from {math.ceil(least.bytes_per_user):,} ({least.result.name})")
    if not ways:
        least = min(private, key=lambda offer: (offer.epsilon, offer.bytes_per_user))
        ways.append(
            f"ε from {least.epsilon:.4g} and {math.ceil(least.bytes_per_user):,} bytes ({least.result.name})"
        )
    return ", or ".join(ways)
