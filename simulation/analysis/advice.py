"""Planning: which protocol of a comparison is the most accurate within a budget of privacy and bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.errors import InputError
from simulation.analysis.averages import Average
from simulation.analysis.floors import Gain, gain, nothing_sent
from simulation.analysis.limits import AdviceLimits
from simulation.analysis.measures import Measure
from simulation.analysis.populations import courses, users_needed
from simulation.analysis.rivals import not_told_apart
from simulation.analysis.settings import Setting, measures_of, read_settings
from simulation.storage.directories import TABLE

_SLACK = 1 + 1e-9
"""Losses that are claimed add up in floating point, and may exceed what was typed by its rounding."""


@dataclass(frozen=True)
class Offer:
    """A setting, as compared with others.

    Parameters
    ----------
    setting : Setting
    accuracy : Average
    epsilon : float
        In the unit of the limits; infinite if the loss has no bound that counts.
    bytes_per_user : float
    against_floor : Gain or None
        How much better it is than nothing sent; None for that itself, and where it cannot be told.
    """

    setting: Setting
    accuracy: Average
    epsilon: float
    bytes_per_user: float
    against_floor: Gain | None = None

    @property
    def beyond_doubt(self) -> bool:
        """Whether it is better than nothing sent by more than its uncertainty."""
        return self.against_floor is not None and self.against_floor.beyond_doubt

    def inside(self, limits: AdviceLimits) -> bool:
        """Return whether it is within limits."""
        return self.within(limits.epsilon, limits.max_bytes)

    def within(self, epsilon: float, max_bytes: float) -> bool:
        """Return whether both limits hold."""
        return self.epsilon <= epsilon * _SLACK and self.bytes_per_user <= max_bytes


@dataclass(frozen=True)
class Advice:
    """The best setting within limits, and the cheapest ways to more accuracy.

    Parameters
    ----------
    limits : AdviceLimits
    measure : Measure
    best : Offer
    alike : tuple of Offer
        Within the limits: what cannot be told apart from the best at its budget.
    not_better, claimed_only, composed_only : tuple of Offer
        Within the limits: of the protocols that never beat nothing sent there; those whose epsilon is claimed
        and not proved; and those whose epsilon holds with a delta, where the limits have none.
    for_epsilon : Offer or None
        The more accurate setting within the bytes that needs the least additional epsilon.
    for_bytes : Offer or None
        The more accurate setting within epsilon that needs the fewest additional bytes.
    for_both : Offer or None
        If neither exists: the more accurate setting beyond both limits that needs the least additional
        epsilon.
    users_needed : str or None
        With how many users the best beats nothing sent; None where that was not tried.
    """

    limits: AdviceLimits
    measure: Measure
    best: Offer
    alike: tuple[Offer, ...]
    not_better: tuple[Offer, ...]
    claimed_only: tuple[Offer, ...]
    composed_only: tuple[Offer, ...]
    for_epsilon: Offer | None
    for_bytes: Offer | None
    for_both: Offer | None
    users_needed: str | None


def advise(directory: str | Path, limits: AdviceLimits, measure: str | None = None) -> Advice:
    """Find the most accurate protocol of a comparison within limits.

    Where the comparison has the floor with nothing sent, what is not better than that by more than its
    uncertainty (`Gain.beyond_doubt`) is not recommended, and nothing sent is the answer if nothing is left.
    Only protocols that predict the same ratings can be compared: those that predict the same as the first
    protocol that has the measure.

    Parameters
    ----------
    directory : str or Path
        A comparison's directory; only its comparison.csv is read.
    limits : AdviceLimits
    measure : str, optional
        Column of the accuracy; by default the first of `MEASURES` that any protocol has.

    Raises
    ------
    InputError
        When the directory holds no comparison, or nothing is within the limits and nothing sent was not
        compared; the message then names limits that could be met.
    """
    settings, chosen = _settings(Path(directory), measure)
    comparable = _comparable(settings, chosen)
    floor, offers = _offers(comparable, chosen, limits)
    worthwhile = [offer for offer in offers if floor is None or offer.beyond_doubt]
    inside = [offer for offer in offers if offer.inside(limits)]
    best = min(
        (offer for offer in inside if offer in worthwhile),
        key=lambda offer: (chosen.sort_key(offer.accuracy.mean), offer.bytes_per_user, offer.epsilon),
        default=floor,
    )
    if best is None:
        raise InputError(str(directory), nothing_within(limits), least_needed(offers, limits))
    beating = {offer.setting.name for offer in inside if offer in worthwhile}
    alike = _alike(best.setting, comparable, chosen)
    better = [offer for offer in worthwhile if chosen.better(offer.accuracy.mean, best.accuracy.mean)]
    return Advice(
        limits,
        chosen,
        best,
        tuple(offer for offer in inside if offer.setting in alike),
        tuple(offer for offer in inside if offer.setting.name not in beating),
        tuple(_claimed_only(comparable, chosen, limits)),
        tuple(_composed_only(comparable, chosen, limits)),
        *_next_better(better, limits, chosen),
        users_needed(courses(settings, chosen), best.setting),
    )


def _alike(best: Setting, settings: Sequence[Setting], measure: Measure) -> list[Setting]:
    """Return what cannot be told apart from a setting, if it is judged by its main measure."""
    evaluation = best.evaluation
    return not_told_apart(best, settings) if evaluation and evaluation.measure == measure else []


def _settings(directory: Path, column: str | None) -> tuple[list[Setting], Measure]:
    """Return all settings of a comparison, and what they are judged by."""
    table = directory / TABLE
    if not table.is_file():
        raise InputError(str(directory), f"no {TABLE}", "a directory that `dprec compare` wrote")
    settings = read_settings(table)
    return settings, _measure(settings, column)


def _comparable(settings: Sequence[Setting], measure: Measure) -> list[Setting]:
    """Return the settings that predict the same as the first that has a measure."""
    data = next(setting.data for setting in settings if setting.average(measure.column))
    return [setting for setting in settings if setting.data == data]


def _next_better(
    better: Sequence[Offer], limits: AdviceLimits, measure: Measure
) -> tuple[Offer | None, Offer | None, Offer | None]:
    """Return what costs the least additional epsilon, the fewest additional bytes, or both."""

    def by_epsilon(offer: Offer) -> tuple[float, float]:
        return offer.epsilon, measure.sort_key(offer.accuracy.mean)

    def by_bytes(offer: Offer) -> tuple[float, float]:
        return offer.bytes_per_user, measure.sort_key(offer.accuracy.mean)

    cheap = [offer for offer in better if offer.within(math.inf, limits.max_bytes)]
    private = [offer for offer in better if offer.within(limits.epsilon, math.inf)]
    for_epsilon = min(cheap, key=by_epsilon, default=None)
    for_bytes = min(private, key=by_bytes, default=None)
    neither = for_epsilon is None and for_bytes is None
    return for_epsilon, for_bytes, min(better, key=by_epsilon, default=None) if neither else None


def _measure(settings: Sequence[Setting], column: str | None) -> Measure:
    known = measures_of(settings)
    if column is None and known:
        return known[0]
    named = next((measure for measure in known if measure.column == column), None)
    if named is None:
        raise InputError("--measure", repr(column), ", ".join(measure.column for measure in known) or "none")
    return named


def _offers(
    settings: Sequence[Setting], measure: Measure, limits: AdviceLimits
) -> tuple[Offer | None, list[Offer]]:
    """Return nothing sent, if the comparison has it, and all other settings that the conditions allow."""
    floor = nothing_sent([setting for setting in settings if setting.average(measure.column)])
    offers = []
    for setting in settings:
        offer = _offer(setting, measure, limits, floor)
        if setting is not floor and limits.allows(setting) and offer:
            offers.append(offer)
    return None if floor is None else _offer(floor, measure, limits, None), offers


def _offer(setting: Setting, measure: Measure, limits: AdviceLimits, floor: Setting | None) -> Offer | None:
    accuracy, spent = setting.average(measure.column), setting.bytes_per_user
    if accuracy is None or spent is None:
        return None
    against = None if floor is None else gain(setting, floor, measure)
    return Offer(setting, accuracy, limits.loss(setting), spent, against)


def _claimed_only(settings: Sequence[Setting], measure: Measure, limits: AdviceLimits) -> list[Offer]:
    """Return what a claim would bring within the limits."""
    if limits.claimed:
        return []
    _, offers = _offers(settings, measure, replace(limits, claimed=True))
    return [offer for offer in offers if offer.setting.status != "proved" and offer.inside(limits)]


def _composed_only(settings: Sequence[Setting], measure: Measure, limits: AdviceLimits) -> list[Offer]:
    """Return what a delta would bring within the limits."""
    deltas = [delta for setting in settings if (delta := setting.delta) is not None]
    if limits.delta is not None or limits.unit != "user" or not deltas:
        return []
    _, offers = _offers(settings, measure, replace(limits, delta=max(deltas)))
    return [
        offer
        for offer in offers
        if offer.inside(limits) and not replace(offer, epsilon=limits.loss(offer.setting)).inside(limits)
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
        ways.append(f"with these bytes, ε from {least.epsilon:.4g} ({least.setting.name})")
    if allowed:
        least = min(allowed, key=lambda offer: offer.bytes_per_user)
        ways.append(f"with this ε, bytes from {math.ceil(least.bytes_per_user):,} ({least.setting.name})")
    if not ways:
        least = min(private, key=lambda offer: (offer.epsilon, offer.bytes_per_user))
        ways.append(
            f"ε from {least.epsilon:.4g} and {math.ceil(least.bytes_per_user):,} bytes ({least.setting.name})"
        )
    return ", or ".join(ways)
