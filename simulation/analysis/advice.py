"""Planning: which protocol of a comparison is the most accurate within a budget of privacy and bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.accounting import COMPARABLE_UNITS, LEAST_TRUST_FIRST, ComparableUnit, Trust
from dprec.errors import InputError
from simulation.analysis.comparison_files import waiting_in
from simulation.analysis.gains import NOTHING_SENT, Gain, gain, not_significant, nothing_sent
from simulation.analysis.populations import courses, users_needed
from simulation.analysis.protocol_results import ProtocolResult, metrics_of, read_results
from simulation.analysis.sentences import guess_in_words, price
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric, listed, loss, number
from simulation.storage.directories import TABLE

_AT_MOST_IN_WORDS: dict[Trust, str] = {
    "local": "in the local model",
    "shuffle": "in the local or shuffle model",
    "secure-aggregation": "without a trusted server",
}
"""What a limit of trust asks for; the central model asks for nothing."""


@dataclass(frozen=True)
class AdviceLimits:
    """What may be spent."""

    epsilon: float
    """Largest privacy loss of any user."""
    unit: ComparableUnit
    """Unit of the loss."""
    max_bytes: float = math.inf
    """Largest mean of the bytes of a user's messages, both ways."""
    trust: Trust = "central"
    """The most that may be trusted: protocols that need more are left out."""
    hide_items: bool = False
    """Leave out protocols that reveal the item set."""
    claimed: bool = False
    """Count an epsilon that a paper claims like one that is proved; otherwise it bounds nothing."""
    delta: float | None = None
    """Largest delta with which losses per user may be composed; None counts their sum, which needs none."""
    max_network_bytes: float = math.inf
    """Largest mean of the bytes that a network carries for a user, both ways."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise InputError("--epsilon", repr(self.epsilon), "a number above 0")
        limits = {"--max-bytes": self.max_bytes, "--max-network-bytes": self.max_network_bytes}
        for option, value in limits.items():
            if not value > 0:
                raise InputError(option, repr(value), "a number above 0")
        if self.delta is None:
            return
        if not 0 < self.delta < 1:
            raise InputError("--delta", repr(self.delta), "a number between 0 and 1")
        if self.unit != "user":
            raise InputError("--delta", f"{self.delta:g}, with --per {self.unit}", "--per user")

    def allows(self, result: ProtocolResult) -> bool:
        """Return whether a result asks for no more trust, and reveals no more of the item set."""
        trusts_more = LEAST_TRUST_FIRST.index(result.trust) > LEAST_TRUST_FIRST.index(self.trust)
        return not trusts_more and (result.flag("hides_rated_items") or not self.hide_items)

    def loss(self, result: ProtocolResult) -> float:
        """Return the loss of a result that counts; infinite without a bound."""
        counted = _counted_loss(result, self.unit, claimed=self.claimed)
        losses = [math.inf if counted is None else counted]
        composed, delta = result.composed, result.delta
        if self.delta is not None and composed is not None and delta is not None:
            losses += [composed] * (result.status == "proved" and delta <= self.delta)
        return min(losses)

    @property
    def words(self) -> str:
        """What may be spent, and what else is asked for."""
        delta = "" if self.delta is None else f" with δ ≤ {self.delta:g}"
        said = [f"ε ≤ {self.epsilon:g} per {self.unit}{delta}"]
        limits = {"of messages": self.max_bytes, "on the network": self.max_network_bytes}
        said += [f"{most:,.0f} bytes {what}" for what, most in limits.items() if math.isfinite(most)]
        said += [_AT_MOST_IN_WORDS[self.trust]] if self.trust in _AT_MOST_IN_WORDS else []
        return ", ".join([*said, *(["with the item set hidden"] if self.hide_items else [])])


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


def _counted_loss(result: ProtocolResult, unit: ComparableUnit, *, claimed: bool) -> float | None:
    """Return the sum of losses that counts: what is proved, or also what is claimed; None without a bound."""
    if result.status == "proved":
        return result.epsilon(unit)
    if not claimed:
        return None
    promised = result.claimed(unit)
    return result.epsilon(unit) if promised is None else promised


_SLACK = 1 + 1e-9
"""Losses that are claimed add up in floating point, and may exceed what was typed by its rounding."""


@dataclass(frozen=True)
class Offer:
    """A result, as compared with others."""

    result: ProtocolResult
    accuracy: float
    epsilon: float
    """In the unit of the limits; infinite if the loss has no bound that counts."""
    bytes_per_user: float
    """Of messages, both ways."""
    network_bytes: float
    """The same on the network; infinite where that is not known."""
    against_baseline: Gain | None = None
    """How much better it is than nothing sent; None for that itself, and where it cannot be told."""

    @property
    def better(self) -> bool:
        """Whether it counts as better than nothing sent."""
        return self.against_baseline is not None and self.against_baseline.better

    def inside(self, limits: AdviceLimits) -> bool:
        """Return whether it is within limits."""
        return self.epsilon <= limits.epsilon * _SLACK and self.carried_within(limits)

    def carried_within(self, limits: AdviceLimits) -> bool:
        """Return whether its bytes are within limits."""
        return self.bytes_per_user <= limits.max_bytes and self.network_bytes <= limits.max_network_bytes


@dataclass(frozen=True)
class Advice:
    """The best result within limits, and the cheapest ways to more accuracy."""

    limits: AdviceLimits
    metric: Metric
    best: Offer
    alike: tuple[Offer, ...]
    """Within the limits: what is not significantly worse than the best, at its budget."""
    not_better: tuple[Offer, ...]
    claimed_only: tuple[Offer, ...]
    composed_only: tuple[Offer, ...]
    """Within the limits: of the protocols that never beat nothing sent there; those whose epsilon is claimed
    and not proved; and those whose epsilon holds with a delta, where the limits have none.
    """
    for_epsilon: Offer | None
    """The more accurate result within the bytes that needs the least additional epsilon."""
    for_bytes: Offer | None
    """The more accurate result within epsilon that needs the fewest bytes."""
    for_both: Offer | None
    """If neither exists: the more accurate result beyond both limits that needs the least additional
    epsilon.
    """
    users_needed: str | None
    """With how many users the best beats nothing sent; None where that was not tried."""


def advise(directory: str | Path, limits: AdviceLimits, metric: str | None = None) -> Advice:
    """Find the most accurate protocol of a comparison within limits.

    Where the comparison has the baseline with nothing sent, what does not count as better than that
    (`Gain.better`) is not recommended, and nothing sent is the answer if nothing is left. Only protocols that
    predict the same ratings can be compared: those that predict the same as the first protocol that has the
    metric.

    Parameters
    ----------
    directory : str or Path
        A comparison's directory.
    metric : str, optional
        Column of the accuracy; by default the first of `METRICS` that any protocol has.

    Raises
    ------
    InputError
        When the directory holds no comparison, or one in which a protocol has no run yet, or nothing is
        within the limits and nothing sent was not compared; the message then names limits that could be met.
    """
    results, chosen = _results(Path(directory), metric)
    comparable = _comparable(results, chosen)
    baseline, offers = _offers(comparable, chosen, limits)
    worthwhile = [offer for offer in offers if baseline is None or offer.better]
    inside = [offer for offer in offers if offer.inside(limits)]

    def place(offer: Offer) -> tuple[float, float, float]:
        return chosen.sort_key(offer.accuracy), offer.bytes_per_user, offer.epsilon

    best = min((offer for offer in inside if offer in worthwhile), key=place, default=baseline)
    if best is None:
        raise InputError(str(directory), f"nothing within {limits.words}", _least_needed(offers, limits))
    beating = {offer.result.name for offer in inside if offer in worthwhile}
    alike = _alike(best.result, comparable, chosen)
    better = [offer for offer in worthwhile if chosen.better(offer.accuracy, best.accuracy)]
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
    """Return what is not significantly worse than the best, if it is judged by its main metric."""
    evaluation = best.evaluation
    return not_significant(best, results) if evaluation and evaluation.metric == metric else []


def _results(directory: Path, column: str | None) -> tuple[list[ProtocolResult], Metric]:
    """Return all results of a comparison, and the metric they are judged by."""
    table = directory / TABLE
    if not table.is_file():
        raise InputError(str(directory), f"no {TABLE}", "a directory that `dprec compare` wrote")
    results = read_results(table)
    if waiting := waiting_in(directory, results):
        raise InputError(str(directory), waiting, "a comparison that is finished; --resume goes on")
    return results, _metric(results, column)


def _comparable(results: Sequence[ProtocolResult], metric: Metric) -> list[ProtocolResult]:
    """Return the results that predict the same as the first that has a metric."""
    data = next(result.data for result in results if result.average(metric.column))
    return [result for result in results if result.data == data]


def _next_better(
    better: Sequence[Offer], limits: AdviceLimits, metric: Metric
) -> tuple[Offer | None, Offer | None, Offer | None]:
    """Return what costs the least additional epsilon, the fewest additional bytes, or both."""

    def by_epsilon(offer: Offer) -> tuple[float, float]:
        return offer.epsilon, metric.sort_key(offer.accuracy)

    def by_bytes(offer: Offer) -> tuple[float, float]:
        return offer.bytes_per_user, metric.sort_key(offer.accuracy)

    cheap = [offer for offer in better if offer.carried_within(limits)]
    private = [offer for offer in better if offer.epsilon <= limits.epsilon * _SLACK]
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
    """Return nothing sent, if the comparison has it, and all other results that the conditions allow."""
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
    accuracy, spent = result.mean(metric.column), result.bytes_per_user
    if accuracy is None or spent is None:
        return None
    carried = result.network_bytes_per_user
    network = 0.0 if spent == 0 else math.inf if carried is None else carried
    against = None if baseline is None else gain(result, baseline, metric)
    return Offer(result, accuracy, limits.loss(result), spent, network, against)


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


def _least_needed(offers: Sequence[Offer], limits: AdviceLimits) -> str:
    """Return, in words, the nearest limits that could be met."""
    private = [offer for offer in offers if math.isfinite(offer.epsilon)]
    if not private:
        return "a comparison with such a protocol"
    affordable = [offer for offer in private if offer.carried_within(limits)]
    allowed = [offer for offer in private if offer.epsilon <= limits.epsilon * _SLACK]
    ways = []
    if affordable:
        least = min(affordable, key=lambda offer: offer.epsilon)
        ways.append(f"with these bytes, ε from {least.epsilon:.4g} ({least.result.name})")
    if allowed:
        least = min(allowed, key=lambda offer: offer.bytes_per_user)
        ways.append(f"with this ε, {price(least.result)} ({least.result.name})")
    if not ways:
        least = min(private, key=lambda offer: (offer.epsilon, offer.bytes_per_user))
        ways.append(f"ε from {least.epsilon:.4g} with {price(least.result)} ({least.result.name})")
    return ", or ".join(ways)


def advice_lines(advice: Advice) -> list[str]:
    """Return advice as lines for the terminal, the answer first."""
    limits, best = advice.limits, advice.best
    answer = "send nothing: " if best.result.baseline == NOTHING_SENT else ""
    return [
        f"within {limits.words}: {answer}{_named(best, advice)}",
        *_against_baseline(advice),
        f"  {TRUST_IN_WORDS[best.result.trust]}; the server sees {best.result.server_sees}",
        *_details(advice),
        *_left_out(advice),
        *_next_better_lines(advice),
    ]


def _against_baseline(advice: Advice) -> Iterator[str]:
    """Yield what is held against nothing sent, and by which rule."""
    if against := advice.best.against_baseline:
        yield f"  against nothing sent: {against.written}{_rule(against)}"
    names = listed(dict.fromkeys(offer.result.title for offer in advice.not_better))
    if advice.best.result.baseline != NOTHING_SENT:
        if names and advice.best.against_baseline:
            yield f"  not better than nothing sent: {names}"
        return
    if not names:
        yield "  nothing else is within these limits"
        return
    yield f"  nothing within these limits beats nothing sent: {names}"
    compared = [(offer, own) for offer in advice.not_better if (own := offer.against_baseline)]
    if compared:
        offer, nearest = max(compared, key=lambda pair: pair[1].mean)
        yield f"  nearest: {offer.result.title}, {nearest.written}{_rule(nearest)}"


def _rule(against: Gain) -> str:
    return f" (± is the {against.interval})" if against.interval else " (its uncertainty is unknown)"


def _details(advice: Advice) -> Iterator[str]:
    """Yield what the best promises and needs, and what may be as good."""
    best, limits = advice.best, advice.limits
    if 0 < best.epsilon < math.inf:
        yield f"  {guess_in_words(best.epsilon, limits.unit)}"
    if advice.users_needed:
        yield f"  users needed to beat nothing sent: {advice.users_needed}"
    if advice.alike:
        names = dict.fromkeys(offer.result.title for offer in advice.alike)
        yield f"  not significantly worse: {listed(names)}"


def _left_out(advice: Advice) -> Iterator[str]:
    for word in ("claimed", "declared"):
        own = [offer.result.title for offer in advice.claimed_only if offer.result.word == word]
        if own:
            names = listed(dict.fromkeys(own))
            yield f"  left out, because ε is {word} and not proved: {names}; --claimed counts a claim"
    needed = {offer.result.title: offer.result.delta or 0.0 for offer in advice.composed_only}
    if needed:
        yield (
            f"  left out, because ε holds by composition only: {listed(needed)}; "
            f"--delta {max(needed.values()):g} counts it"
        )


def _next_better_lines(advice: Advice) -> Iterator[str]:
    if advice.for_epsilon:
        more = _price_in_privacy(advice.for_epsilon, advice.limits)
        yield f"next better for ε: {_named(advice.for_epsilon, advice)}: costs {more}"
    if advice.for_bytes:
        yield f"next better for bytes: {_named(advice.for_bytes, advice)}"
    if advice.for_both:
        yield f"next better, beyond both limits: {_named(advice.for_both, advice)}"
    if not (advice.for_epsilon or advice.for_bytes or advice.for_both):
        yield "nothing in this comparison is more accurate"


def _price_in_privacy(offer: Offer, limits: AdviceLimits) -> str:
    if math.isfinite(offer.epsilon):
        return f"{offer.epsilon - limits.epsilon:,.4g} more ε"
    if offer.result.status in ("claimed", "declared"):
        return f"the proof: its ε is only {offer.result.word}"
    return "giving up privacy"


def _named(offer: Offer, advice: Advice) -> str:
    result, metric = offer.result, advice.metric
    reached = f"{metric.label} {number(offer.accuracy, metric.digits)}"
    return f"{result.title} {_privacy(result, advice.limits)}, {reached}, {price(result)}"


def _privacy(result: ProtocolResult, limits: AdviceLimits) -> str:
    """Say what a result loses in the unit of the limits, and in no other."""
    counted = _counted_loss(result, limits.unit, claimed=True)
    mark = "" if result.status == "proved" else f" ({result.word}, not proved)"
    composes = limits.unit == "user" and result.composed is not None
    if composes and (limits.delta is not None or counted is None):
        compared = result.profiles_compared(result.composed, " on the ")
        return f"at ε {loss(result.composed)} per user with δ = {result.delta or 0.0:g}{compared}{mark}"
    if counted is None:
        bounded = limits.unit == "user" and _counted_loss(result, "rating", claimed=True) is not None
        return f"with no bound per {limits.unit}{mark}" if bounded else "without privacy"
    compared = result.profiles_compared(counted, " on the ") if limits.unit == "user" else ""
    return f"at ε {loss(counted)} per {limits.unit}{compared}{mark}"
