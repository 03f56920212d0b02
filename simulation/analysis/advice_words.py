"""Advice in words, for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from simulation.analysis.advice import Advice, AdviceLimits, Offer, counted_loss
from simulation.analysis.gains import NOTHING_SENT, Gain, gain_digits
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import TRUST_IN_WORDS, listed, loss, spread_in_words, with_spread


def advice_lines(advice: Advice) -> list[str]:
    """Return advice as lines for the terminal."""
    limits, best = advice.limits, advice.best
    answer = "send nothing: " if best.result.baseline == NOTHING_SENT else ""
    within = [f"within {limits.privacy} and {limits.max_bytes:,.0f} bytes per user", *limits.conditions]
    return [
        f"{', '.join(within)}: {answer}{_named(best, advice)}",
        f"  {TRUST_IN_WORDS[best.result.trust]}; the server sees {best.result.server_sees}; "
        f"rounds: {_rounds(best.result):g}; runs: {best.accuracy.count}",
        *_against_baseline(advice),
        *_users_needed(advice),
        *_alike(advice),
        *_left_out(advice),
        *_next_better(advice),
    ]


def _against_baseline(advice: Advice) -> Iterator[str]:
    """Yield what is held against nothing sent, and by which rule."""
    digits = gain_digits(advice.metric)
    if advice.best.against_baseline:
        against = advice.best.against_baseline
        yield f"  against nothing sent: {against.written(digits)} ({_rule(against)})"
    names = dict.fromkeys(offer.result.name for offer in advice.not_better)
    if advice.best.result.baseline != NOTHING_SENT:
        if names and advice.best.against_baseline:
            yield f"  not better than nothing sent by more than their uncertainty: {listed(names)}"
        return
    if not names:
        yield "  nothing else is within these limits"
        return
    yield f"  no system within these limits beats nothing sent by more than its uncertainty ({listed(names)})"
    compared = [(offer, offer.against_baseline) for offer in advice.not_better if offer.against_baseline]
    if compared:
        offer, against = max(compared, key=lambda pair: pair[1].mean)
        yield f"  nearest: {offer.result.name}, {against.written(digits)} ({_rule(against)})"


def _users_needed(advice: Advice) -> Iterator[str]:
    """Yield with how many users the best beats nothing sent, if that was tried."""
    if advice.users_needed:
        yield f"  users needed to beat nothing sent: {advice.users_needed}"


def _alike(advice: Advice) -> Iterator[str]:
    """Yield what may be as good, within the limits and at the same budget."""
    if advice.alike:
        names = dict.fromkeys(offer.result.name for offer in advice.alike)
        yield f"  not told apart from it by the 95 % interval over users: {listed(names)}"


def _rule(against: Gain) -> str:
    if against.half_width is None:
        return "one run: the plain difference, nothing is known of its uncertainty"
    return f"± is the {against.interval} of the paired difference"


def _left_out(advice: Advice) -> Iterator[str]:
    for word in ("claimed", "declared"):
        own = [offer.result.name for offer in advice.claimed_only if offer.result.word == word]
        if own:
            names = listed(dict.fromkeys(own))
            yield f"  left out, because ε is {word} and not proved: {names}; --claimed counts a claim"
    needed = {offer.result.name: offer.result.delta or 0.0 for offer in advice.composed_only}
    if needed:
        yield (
            f"  left out, because ε holds by composition only: {listed(needed)}; "
            f"--delta {max(needed.values()):g} counts it"
        )


def _next_better(advice: Advice) -> Iterator[str]:
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
    if offer.result.status in ("claimed", "declared"):
        return f"the proof: its ε is only {offer.result.word}"
    return "giving up privacy"


def _named(offer: Offer, advice: Advice) -> str:
    result, metric = offer.result, advice.metric
    accuracy = with_spread(offer.accuracy, metric.digits)
    spread = spread_in_words([offer.accuracy])
    over = f" ({spread})" if spread else ""
    return (
        f"{result.name} {_privacy(result, advice.limits)}, {metric.label} {accuracy}{over}, "
        f"{offer.bytes_per_user:,.0f} bytes per user{_on_the_network(result)}"
    )


def _on_the_network(result: ProtocolResult) -> str:
    spent = result.network_bytes_per_user
    return "" if spent is None else f" in messages, {spent:,.0f} on the network"


def _privacy(result: ProtocolResult, limits: AdviceLimits) -> str:
    per_rating = counted_loss(result, "rating", claimed=True)
    per_user = counted_loss(result, "user", claimed=True)
    mark = "" if result.status == "proved" else f" ({result.word}, not proved)"
    losses = f"at ε {loss(per_rating)} per rating, {loss(per_user)} per user"
    compared = result.profiles_compared(per_user, " on the ")
    if result.composed is not None and (limits.delta is not None or per_user is None):
        composed = f"{loss(result.composed)} per user with δ = {result.delta or 0.0:g}"
        if per_user is None:
            return f"at ε {composed}{result.profiles_compared(result.composed, ' on the ')}"
        return f"{losses}, {composed}{compared}{mark}"
    return "without privacy" if per_rating is None and per_user is None else f"{losses}{compared}{mark}"


def _rounds(result: ProtocolResult) -> float:
    """Return the mean number of rounds; a table without the column is one of reports that are sent once."""
    rounds = result.mean("rounds")
    return 1.0 if rounds is None else rounds
