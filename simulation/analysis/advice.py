"""Planning: which protocol of a comparison is the most accurate within a budget of privacy and bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.errors import InputError
from dprec.privacy.guarantee import LEAST_TRUST_FIRST, Trust
from dprec.privacy.units import COMPARABLE_UNITS, ComparableUnit
from simulation.analysis.gains import NOTHING_SENT, Gain, gain, gain_digits, not_told_apart, nothing_sent
from simulation.analysis.populations import courses, users_needed
from simulation.analysis.settings import Setting, measures_of, read_settings
from simulation.analysis.vocabulary import (
    TRUST_IN_WORDS,
    Average,
    Measure,
    listed,
    loss,
    spread_in_words,
    with_spread,
)
from simulation.storage.names import TABLE

_AT_MOST_IN_WORDS: dict[Trust, str] = {
    "nobody": "with nobody trusted",
    "shuffler": "with nobody trusted but whoever shuffles",
    "sum": "without trusting the server",
}
"""What a limit of trust asks for; trusting the server asks for nothing."""


@dataclass(frozen=True)
class AdviceLimits:
    """What may be spent.

    Parameters
    ----------
    epsilon : float
        Largest privacy loss of any user.
    unit : {"rating", "user"}
        Unit of the loss.
    max_bytes : float
        Largest mean of the bytes of a user's messages, both directions together.
    trust : {"server", "sum", "shuffler", "nobody"}
        The most that may be trusted: protocols that need more are left out.
    hide_items : bool
        Leave out protocols that show which items were rated.
    claimed : bool
        Count an epsilon that a paper claims like one that is proved; otherwise it bounds nothing.
    delta : float or None
        Largest delta with which losses per user may be composed; None counts their sum, which needs none.
    """

    epsilon: float
    unit: ComparableUnit
    max_bytes: float
    trust: Trust = "server"
    hide_items: bool = False
    claimed: bool = False
    delta: float | None = None

    def __post_init__(self) -> None:
        for option, value in (("--epsilon", self.epsilon), ("--max-bytes", self.max_bytes)):
            if not (math.isfinite(value) and value > 0):
                raise InputError(option, repr(value), "a number above 0")
        if self.delta is None:
            return
        if not 0 < self.delta < 1:
            raise InputError("--delta", repr(self.delta), "a number between 0 and 1")
        if self.unit != "user":
            raise InputError("--delta", f"{self.delta:g}, with --per {self.unit}", "--per user")

    def allows(self, setting: Setting) -> bool:
        """Return whether a setting asks for no more trust, and shows no more of the rated items."""
        trusts_more = LEAST_TRUST_FIRST.index(setting.trust) > LEAST_TRUST_FIRST.index(self.trust)
        return not trusts_more and (setting.flag("hides_rated_items") or not self.hide_items)

    def loss(self, setting: Setting) -> float:
        """Return the loss of a setting that counts; infinite without a bound."""
        counted = _counted_loss(setting, self.unit, claimed=self.claimed)
        losses = [math.inf if counted is None else counted]
        composed, delta = setting.composed, setting.delta
        if self.delta is not None and composed is not None and delta is not None:
            losses += [composed] * (setting.status == "proved" and delta <= self.delta)
        return min(losses)

    @property
    def privacy(self) -> str:
        """The limit of the loss, in words."""
        with_delta = "" if self.delta is None else f" with δ ≤ {self.delta:g}"
        return f"ε ≤ {self.epsilon:g} per {self.unit}{with_delta}"

    @property
    def conditions(self) -> Iterator[str]:
        """What else is asked for, in words."""
        if self.trust in _AT_MOST_IN_WORDS:
            yield _AT_MOST_IN_WORDS[self.trust]
        if self.hide_items:
            yield "with the rated items hidden"


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


def most_trust(name: str) -> Trust:
    """Return the limit of trust of that name.

    Raises
    ------
    InputError
    """
    for trust in LEAST_TRUST_FIRST:
        if trust == name:
            return trust
    raise InputError("--trust", repr(name), ", ".join(LEAST_TRUST_FIRST))


def _counted_loss(setting: Setting, unit: ComparableUnit, *, claimed: bool) -> float | None:
    """Return the sum of losses that counts: what is proved, or also what is claimed; None without a bound."""
    if setting.status == "proved":
        return setting.epsilon(unit)
    if not claimed:
        return None
    promised = setting.claimed(unit)
    return setting.epsilon(unit) if promised is None else promised


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
        raise InputError(str(directory), _nothing_within(limits), _least_needed(offers, limits))
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


def _nothing_within(limits: AdviceLimits) -> str:
    """Say that nothing is within limits."""
    within = f"nothing within {limits.privacy} and {limits.max_bytes:,.0f} bytes per user"
    return " ".join([within, *limits.conditions])


def _least_needed(offers: Sequence[Offer], limits: AdviceLimits) -> str:
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


def advice_lines(advice: Advice) -> list[str]:
    """Return advice as lines for the terminal."""
    limits, best = advice.limits, advice.best
    answer = "send nothing: " if best.setting.floor == NOTHING_SENT else ""
    within = [f"within {limits.privacy} and {limits.max_bytes:,.0f} bytes per user", *limits.conditions]
    return [
        f"{', '.join(within)}: {answer}{_named(best, advice)}",
        f"  {TRUST_IN_WORDS[best.setting.trust]}; the server sees {best.setting.server_sees}; "
        f"rounds: {_rounds(best.setting):g}; runs: {best.accuracy.count}",
        *_against_floor(advice),
        *_users_needed(advice),
        *_alike_lines(advice),
        *_left_out(advice),
        *_next_better_lines(advice),
    ]


def _against_floor(advice: Advice) -> Iterator[str]:
    """Yield what is held against nothing sent, and by which rule."""
    digits = gain_digits(advice.measure)
    if advice.best.against_floor:
        against = advice.best.against_floor
        yield f"  against nothing sent: {against.written(digits)} ({_rule(against)})"
    names = dict.fromkeys(offer.setting.name for offer in advice.not_better)
    if advice.best.setting.floor != NOTHING_SENT:
        if names and advice.best.against_floor:
            yield f"  not better than nothing sent by more than their uncertainty: {listed(names)}"
        return
    if not names:
        yield "  nothing else is within these limits"
        return
    yield f"  no system within these limits beats nothing sent by more than its uncertainty ({listed(names)})"
    compared = [(offer, offer.against_floor) for offer in advice.not_better if offer.against_floor]
    if compared:
        offer, against = max(compared, key=lambda pair: pair[1].mean)
        yield f"  nearest: {offer.setting.name}, {against.written(digits)} ({_rule(against)})"


def _users_needed(advice: Advice) -> Iterator[str]:
    """Yield with how many users the best beats nothing sent, if that was tried."""
    if advice.users_needed:
        yield f"  users needed to beat nothing sent: {advice.users_needed}"


def _alike_lines(advice: Advice) -> Iterator[str]:
    """Yield what may be as good, within the limits and at the same budget."""
    if advice.alike:
        names = dict.fromkeys(offer.setting.name for offer in advice.alike)
        yield f"  not told apart from it by the 95 % interval over users: {listed(names)}"


def _rule(against: Gain) -> str:
    if against.half_width is None:
        return "one run: the plain difference, nothing is known of its uncertainty"
    return f"± is the {against.interval} of the paired difference"


def _left_out(advice: Advice) -> Iterator[str]:
    for word in ("claimed", "declared"):
        own = [offer.setting.name for offer in advice.claimed_only if offer.setting.word == word]
        if own:
            names = listed(dict.fromkeys(own))
            yield f"  left out, because ε is {word} and not proved: {names}; --claimed counts a claim"
    needed = {offer.setting.name: offer.setting.delta or 0.0 for offer in advice.composed_only}
    if needed:
        yield (
            f"  left out, because ε holds by composition only: {listed(needed)}; "
            f"--delta {max(needed.values()):g} counts it"
        )


def _next_better_lines(advice: Advice) -> Iterator[str]:
    limits = advice.limits
    if advice.for_epsilon:
        price = _price(advice.for_epsilon, limits)
        yield f"next better for ε: {_named(advice.for_epsilon, advice)}: costs {price}"
    if advice.for_bytes:
        cost = advice.for_bytes.bytes_per_user - limits.max_bytes
        yield f"next better for bytes: {_named(advice.for_bytes, advice)}: costs {cost:,.0f} more bytes"
    if advice.for_both:
        yield f"next better, beyond both limits: {_named(advice.for_both, advice)}"
    if not (advice.for_epsilon or advice.for_bytes or advice.for_both):
        yield "nothing in this comparison is more accurate"


def _price(offer: Offer, limits: AdviceLimits) -> str:
    """Say what an offer costs in privacy."""
    if math.isfinite(offer.epsilon):
        return f"{offer.epsilon - limits.epsilon:,.4g} more ε"
    if offer.setting.status in ("claimed", "declared"):
        return f"the proof: its ε is only {offer.setting.word}"
    return "giving up privacy"


def _named(offer: Offer, advice: Advice) -> str:
    setting, measure = offer.setting, advice.measure
    accuracy = with_spread(offer.accuracy, measure.digits)
    spread = spread_in_words([offer.accuracy])
    over = f" ({spread})" if spread else ""
    return (
        f"{setting.name} {_privacy(setting, advice.limits)}, {measure.label} {accuracy}{over}, "
        f"{offer.bytes_per_user:,.0f} bytes per user{_on_the_network(setting)}"
    )


def _on_the_network(setting: Setting) -> str:
    spent = setting.network_bytes_per_user
    return "" if spent is None else f" in messages, {spent:,.0f} on the network"


def _privacy(setting: Setting, limits: AdviceLimits) -> str:
    per_rating = _counted_loss(setting, "rating", claimed=True)
    per_user = _counted_loss(setting, "user", claimed=True)
    mark = "" if setting.status == "proved" else f" ({setting.word}, not proved)"
    losses = f"at ε {loss(per_rating)} per rating, {loss(per_user)} per user"
    compared = setting.profiles_compared(per_user, " on the ")
    if setting.composed is not None and (limits.delta is not None or per_user is None):
        composed = f"{loss(setting.composed)} per user with δ = {setting.delta or 0.0:g}"
        if per_user is None:
            return f"at ε {composed}{setting.profiles_compared(setting.composed, ' on the ')}"
        return f"{losses}, {composed}{compared}{mark}"
    return "without privacy" if per_rating is None and per_user is None else f"{losses}{compared}{mark}"


def _rounds(setting: Setting) -> float:
    """Return the mean number of rounds; a table without the column is one of reports that are sent once."""
    rounds = setting.mean("rounds")
    return 1.0 if rounds is None else rounds
