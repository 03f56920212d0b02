"""Planning: which protocol of a comparison is the most accurate within a budget of privacy and bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dprec.errors import InputError
from dprec.privacy.units import COMPARABLE_UNITS, ComparableUnit
from simulation.analysis.averages import Average
from simulation.analysis.measures import MEASURES, Measure
from simulation.analysis.numbers import loss, with_spread
from simulation.analysis.settings import Setting, read_settings
from simulation.storage.names import TABLE

_SLACK = 1 + 1e-9
"""A realised epsilon may exceed the promised one by the rounding of a logarithm."""


@dataclass(frozen=True)
class Limits:
    """What may be spent.

    Parameters
    ----------
    epsilon : float
        Largest privacy loss of any user.
    unit : {"rating", "user"}
        Unit of the loss.
    max_bytes : float
        Largest mean of the bytes of a user's messages, both directions together.
    untrusted : bool
        Leave out protocols whose server sees true ratings.
    hide_items : bool
        Leave out protocols that show which items were rated.
    """

    epsilon: float
    unit: ComparableUnit
    max_bytes: float
    untrusted: bool = False
    hide_items: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise InputError("--epsilon", repr(self.epsilon), "a number above 0")
        if not (math.isfinite(self.max_bytes) and self.max_bytes > 0):
            raise InputError("--max-bytes", repr(self.max_bytes), "a number above 0")


@dataclass(frozen=True)
class Offer:
    """A setting, as compared with others.

    Parameters
    ----------
    setting : Setting
    accuracy : Average
    epsilon : float
        In the unit of the limits; infinite if the loss has no bound.
    bytes_per_user : float
    """

    setting: Setting
    accuracy: Average
    epsilon: float
    bytes_per_user: float

    def within(self, epsilon: float, max_bytes: float) -> bool:
        """Return whether both limits hold."""
        return self.epsilon <= epsilon * _SLACK and self.bytes_per_user <= max_bytes


@dataclass(frozen=True)
class Advice:
    """The best setting within limits, and the cheapest ways to more accuracy.

    Parameters
    ----------
    limits : Limits
    measure : Measure
    best : Offer
    for_epsilon : Offer or None
        The more accurate setting within the bytes that needs the least additional epsilon.
    for_bytes : Offer or None
        The more accurate setting within epsilon that needs the fewest additional bytes.
    for_both : Offer or None
        If neither exists: the more accurate setting beyond both limits that needs the least additional
        epsilon.
    """

    limits: Limits
    measure: Measure
    best: Offer
    for_epsilon: Offer | None
    for_bytes: Offer | None
    for_both: Offer | None


def privacy_unit(name: str) -> ComparableUnit:
    """Return the privacy unit of that name.

    Raises
    ------
    InputError
    """
    for unit in COMPARABLE_UNITS:
        if unit == name:
            return unit
    raise InputError("--per", repr(name), " or ".join(COMPARABLE_UNITS))


def advise(directory: str | Path, limits: Limits, measure: str | None = None) -> Advice:
    """Find the most accurate protocol of a comparison within limits.

    Only protocols that predict the same ratings can be compared: those that predict the same as the first
    protocol that has the measure.

    Parameters
    ----------
    directory : str or Path
        A comparison's directory; only its comparison.csv is read.
    limits : Limits
    measure : str, optional
        Column of the accuracy; by default the first of `MEASURES` that any protocol has.

    Raises
    ------
    InputError
        When the directory holds no comparison, or nothing is within the limits; the message then names
        limits that could be met.
    """
    table = Path(directory) / TABLE
    if not table.is_file():
        raise InputError(str(directory), f"no {TABLE}", "a directory that `dprec compare` wrote")
    settings = read_settings(table)
    chosen = _measure(settings, measure)
    data = next(setting.data for setting in settings if setting.average(chosen.column))
    offers = _offers([setting for setting in settings if setting.data == data], chosen, limits)
    inside = [offer for offer in offers if offer.within(limits.epsilon, limits.max_bytes)]
    if not inside:
        raise InputError(str(directory), _nothing(limits), _least(offers, limits))
    sign = 1 if chosen.lower_is_better else -1
    best = min(inside, key=lambda offer: (sign * offer.accuracy.mean, offer.bytes_per_user, offer.epsilon))
    better = [offer for offer in offers if chosen.better(offer.accuracy.mean, best.accuracy.mean)]
    for_epsilon = _cheapest(
        [offer for offer in better if offer.within(math.inf, limits.max_bytes)], _by_epsilon(sign)
    )
    for_bytes = _cheapest(
        [offer for offer in better if offer.within(limits.epsilon, math.inf)],
        lambda offer: (offer.bytes_per_user, sign * offer.accuracy.mean),
    )
    for_both = None if for_epsilon or for_bytes else _cheapest(better, _by_epsilon(sign))
    return Advice(limits, chosen, best, for_epsilon, for_bytes, for_both)


def advice_lines(advice: Advice) -> list[str]:
    """Return advice as lines for the terminal."""
    limits, best = advice.limits, advice.best
    lines = [
        f"within ε ≤ {limits.epsilon:g} per {limits.unit} and {limits.max_bytes:,.0f} bytes per user: "
        f"{_named(best, advice)}",
        f"  the server sees {best.setting.server_sees}; rounds: {_rounds(best.setting):g}; "
        f"runs: {best.accuracy.count}",
    ]
    if advice.for_epsilon:
        cost = advice.for_epsilon.epsilon - limits.epsilon
        price = f"{cost:,.4g} more ε" if math.isfinite(cost) else "giving up privacy"
        lines.append(f"next better for ε: {_named(advice.for_epsilon, advice)}: costs {price}")
    if advice.for_bytes:
        cost = advice.for_bytes.bytes_per_user - limits.max_bytes
        lines.append(
            f"next better for bytes: {_named(advice.for_bytes, advice)}: costs {cost:,.0f} more bytes"
        )
    if advice.for_both:
        lines.append(f"next better, beyond both limits: {_named(advice.for_both, advice)}")
    if not (advice.for_epsilon or advice.for_bytes or advice.for_both):
        lines.append("nothing in this comparison is more accurate")
    return lines


def _named(offer: Offer, advice: Advice) -> str:
    setting, measure = offer.setting, advice.measure
    where = (
        "without privacy"
        if math.isinf(offer.epsilon)
        else f"at ε {_loss(setting, 'rating')} per rating, {_loss(setting, 'user')} per user"
    )
    return (
        f"{setting.name} {where}, {measure.label} {with_spread(offer.accuracy, measure.digits)}, "
        f"{offer.bytes_per_user:,.0f} bytes per user"
    )


def _rounds(setting: Setting) -> float:
    """Return the mean number of rounds; a table without the column is one of reports that are sent once."""
    rounds = setting.mean("rounds")
    return 1.0 if rounds is None else rounds


def _loss(setting: Setting, unit: ComparableUnit) -> str:
    return loss(setting.epsilon(unit))


def _measure(settings: Sequence[Setting], column: str | None) -> Measure:
    known = [measure for measure in MEASURES if any(setting.average(measure.column) for setting in settings)]
    if column is None and known:
        return known[0]
    named = next((measure for measure in known if measure.column == column), None)
    if named is None:
        raise InputError("--measure", repr(column), ", ".join(measure.column for measure in known) or "none")
    return named


def _offers(settings: Sequence[Setting], measure: Measure, limits: Limits) -> list[Offer]:
    offers = []
    for setting in settings:
        accuracy, spent = setting.average(measure.column), setting.bytes_per_user
        refused = (limits.untrusted and setting.flag("trusts_server")) or (
            limits.hide_items and not setting.flag("hides_rated_items")
        )
        if accuracy is None or spent is None or refused:
            continue
        loss = setting.epsilon(limits.unit)
        offers.append(Offer(setting, accuracy, math.inf if loss is None else loss, spent))
    return offers


def _by_epsilon(sign: int) -> Callable[[Offer], tuple[float, float]]:
    return lambda offer: (offer.epsilon, sign * offer.accuracy.mean)


def _cheapest(offers: Sequence[Offer], key: Callable[[Offer], tuple[float, float]]) -> Offer | None:
    return min(offers, key=key, default=None)


def _nothing(limits: Limits) -> str:
    conditions = [
        f"nothing within ε ≤ {limits.epsilon:g} per {limits.unit}",
        f"and {limits.max_bytes:,.0f} bytes per user",
    ]
    conditions += ["without trusting the server"] * limits.untrusted
    conditions += ["with the rated items hidden"] * limits.hide_items
    return " ".join(conditions)


def _least(offers: Sequence[Offer], limits: Limits) -> str:
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
