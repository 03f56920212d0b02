"""Planning: which protocol of a comparison is the most accurate within a budget of privacy and bytes."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit, Trust
from dprec.errors import InputError, plural
from dprec.protocols.base import TOLD
from simulation.analysis.answer import becomes_right, guess_in_words, price
from simulation.analysis.decision import RECOVERED, SLACK, Candidate, Limits, candidates, decide
from simulation.analysis.gains import (
    NOTHING_SENT,
    POPULARITY,
    Gain,
    baseline_in_words,
    from_best,
    gain,
    not_significant,
    nothing_sent,
    strongest,
)
from simulation.analysis.populations import PopulationCourse, course_of, courses, notes_on_delta
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    ProtocolResult,
    metrics_of,
    read_comparison,
)
from simulation.analysis.vocabulary import Metric, grouped_by, listed, loss, number, protected
from simulation.storage.directories import TABLE

_AT_MOST_IN_WORDS: dict[Trust, str] = {
    "local": "in the local model",
    "shuffle": "in the local or shuffle model",
    "secure-aggregation": "without a trusted server",
}
"""What a limit of trust asks for; the central model asks for nothing."""


@dataclass(frozen=True)
class AdviceLimits(Limits):
    """Limits that somebody has typed; raises InputError where they cannot be."""

    def __post_init__(self) -> None:
        above = {
            "--epsilon": self.epsilon,
            "--max-bytes": self.max_bytes,
            "--max-bytes-up": self.max_bytes_up,
            "--max-bytes-down": self.max_bytes_down,
            "--max-network-bytes": self.max_network_bytes,
        }
        for option, value in above.items():
            if not value > 0 or (option == "--epsilon" and value == math.inf):
                raise InputError(option, repr(value), "a number above 0")
        if not 0 < self.max_recovered <= 1:
            raise InputError("--max-recovered", repr(self.max_recovered), "a number above 0, at most 1")
        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError("--delta", repr(self.delta), "a number between 0 and 1")
        if self.delta is not None and self.unit != "user":
            raise InputError("--delta", f"{self.delta:g}, with --per {self.unit}", "--per user")

    @property
    def words(self) -> str:
        """What may be spent, and what else is asked for."""
        delta = "" if self.delta is None else f" with δ ≤ {self.delta:g}"
        words = [f"ε ≤ {self.epsilon:g} per {self.unit}{delta}"]
        words += [
            f"{plural(round(limit), 'byte')} {what}"
            for what, limit in self.most_bytes.items()
            if math.isfinite(limit)
        ]
        words += [f"{self.max_recovered:.0%} of levels recovered"] if self.max_recovered < 1 else []
        words += [_AT_MOST_IN_WORDS[self.trust]] if self.trust in _AT_MOST_IN_WORDS else []
        words += [f"without the {trust} model" for trust in self.without]
        return ", ".join([*words, *(["with item sets hidden from the server"] if self.hide_items else [])])


_Named = TypeVar("_Named", bound=str)


def one_of(option: str, name: str, accepted: Sequence[_Named]) -> _Named:
    """Return what an option names, or refuse it."""
    if chosen := next((choice for choice in accepted if choice == name), None):
        return chosen
    raise InputError(option, repr(name), ", ".join(accepted))


@dataclass(frozen=True)
class Advice:
    """The best result within limits, and the cheapest ways to more accuracy."""

    limits: AdviceLimits
    metric: Metric
    best: Candidate
    alike: tuple[ProtocolResult, ...]
    """Within the limits: what is not significantly worse than the best, at its budget."""
    not_better: tuple[Candidate, ...]
    """Within the limits: of the protocols that never beat nothing sent there."""
    claimed_only: tuple[ProtocolResult, ...]
    composed_only: tuple[ProtocolResult, ...]
    """What would be within the limits if claims counted; and if a larger delta were allowed."""
    least: float | None
    """The smallest proved loss of what was given a budget, within the other limits or not; None without."""
    for_epsilon: Candidate | None
    """The more accurate result within the bytes that needs the least additional epsilon."""
    for_bytes: Candidate | None
    """The more accurate result within epsilon that needs the fewest bytes."""
    course: PopulationCourse | None
    """Of the best with several numbers of users; None where none were tried."""
    less_trust: tuple[Candidate, ...]
    """Within the limits, the best of each model that trusts less than the best does."""
    popularity: Candidate | None
    """Of lists: popularity, which is public or else costs everybody's set; None where it was not run."""


def advise(directory: str | Path, limits: AdviceLimits, metric: str | None = None) -> Advice:
    """Find the most accurate protocol of a comparison within limits.

    What does not count as better than nothing sent (`Gain.better`) is not recommended, where that was run;
    it is the answer if nothing is left. Only what predicts the same as the first with the metric is compared.

    Parameters
    ----------
    directory : str or Path
    metric : str, optional
        Column of the accuracy; by default the first of `METRICS` that any protocol has.

    Raises
    ------
    InputError
        When there is no comparison, or a protocol has no run yet, or nothing is within the limits and
        nothing sent was not run; the message then names limits that could be met.
    """
    results, chosen = _results(Path(directory), metric, limits)
    data = next(result.data for result in results if result.average(chosen.column))
    comparable = [result for result in results if result.data == data]
    if limits.unit == "rating" and all(result.lists for result in comparable):
        raise InputError("--per", "rating, of lists", "--per user, for which lists are compared")
    contenders = candidates(comparable, chosen)
    bases = nothing_sent(comparable), strongest(comparable, POPULARITY)
    quiet, popular = (
        next((candidate for candidate in contenders if candidate.result is base), None) for base in bases
    )
    competing = [
        candidate for candidate in contenders if candidate.result.baseline not in (NOTHING_SENT, TOLD)
    ]
    allowed = [candidate for candidate in competing if limits.allow(candidate.result)]
    inside = decide(allowed, limits)
    best = next((candidate for candidate in inside if candidate.better), quiet)
    if best is None:
        possible = _least_needed([candidate.result for candidate in allowed], limits)
        raise InputError(str(directory), f"nothing within {limits.words}", possible)
    return _advice(limits, chosen, best, competing, inside, popular, courses(results, chosen))


def usual_unit(directory: str | Path) -> ComparableUnit:
    """Return the unit of epsilon where none is typed: users, whom every promise about lists covers.

    Raises InputError where there is no comparison.
    """
    results = _read(Path(directory)).results
    return "user" if results and all(result.lists for result in results) else "rating"


def _advice(
    limits: AdviceLimits,
    metric: Metric,
    best: Candidate,
    competing: Sequence[Candidate],
    inside: Sequence[Candidate],
    popularity: Candidate | None,
    all_courses: Sequence[PopulationCourse],
) -> Advice:
    """Return the best within limits with what competes with it, inside of them and outside."""
    beating = {candidate.result.name for candidate in inside if candidate.better}
    evaluation = best.result.evaluation
    # The others of a budget are held against its best by the main metric alone.
    judged = [candidate.result for candidate in inside if evaluation and evaluation.metric == metric]
    allowed = [candidate for candidate in competing if limits.allow(candidate.result)]
    better = [candidate for candidate in allowed if candidate.better and _beyond_chance(candidate, best)]
    cheaply = [candidate for candidate in better if limits.carry(candidate.result)]
    privately = [candidate for candidate in better if limits.keep(candidate.result)]
    outside = [
        candidate.result
        for candidate in allowed
        if limits.carry(candidate.result) and not limits.keep(candidate.result)
    ]
    losses = [
        limits.with_delta(candidate.result) for candidate in competing if candidate.result.budget is not None
    ]
    return Advice(
        limits,
        metric,
        best,
        alike=tuple(not_significant(best.result, judged)),
        not_better=tuple(candidate for candidate in inside if candidate.result.name not in beating),
        claimed_only=tuple(filter(replace(limits, claimed=True).keep, outside)),
        composed_only=tuple(filter(limits.keep_with_delta, outside)),
        least=min(filter(math.isfinite, losses), default=None),
        for_epsilon=min(cheaply, key=lambda candidate: _more_privacy(candidate.result, limits), default=None),
        for_bytes=min(privately, key=lambda candidate: candidate.result.bytes_per_user or 0.0, default=None),
        course=course_of(all_courses, best.result),
        less_trust=_needing_less_trust(limits, best, competing),
        popularity=popularity,
    )


def _needing_less_trust(
    limits: AdviceLimits, best: Candidate, competing: Sequence[Candidate]
) -> tuple[Candidate, ...]:
    """Return the best of each model that trusts less, the most trust first; what beats nothing sent alone."""
    less = LEAST_TRUST_FIRST[: LEAST_TRUST_FIRST.index(best.result.needed_trust)]
    chosen = []
    for trusted in (replace(limits, trust=trust) for trust in reversed(less)):
        inside = decide((each for each in competing if trusted.allow(each.result)), trusted)
        chosen += [each for each in inside[:1] if each.better and each not in chosen]
    return tuple(chosen)


def _beyond_chance(rival: Candidate, best: Candidate) -> bool:
    """Return whether another candidate is more accurate by more than an interval, where there is one.

    Of one budget, that of their difference; otherwise that of the other against nothing sent.
    """
    behind = from_best(best.result) if rival.result.budget == best.result.budget else None
    if behind is not None and behind.base == rival.result.name:
        return behind.significant
    width = rival.against.half_width if rival.against else None
    return best.rank - rival.rank > (width or 0.0)


def _read(directory: Path) -> ComparisonFiles:
    if not (directory / TABLE).is_file():
        raise InputError(str(directory), f"no {TABLE}", "a directory that `dprec compare` wrote")
    return read_comparison(directory)


def _results(
    directory: Path, column: str | None, limits: AdviceLimits
) -> tuple[list[ProtocolResult], Metric]:
    """Return all results of a comparison, and the metric they are judged by."""
    files = _read(directory)
    if files.waiting:
        raise InputError(str(directory), files.waiting, "a comparison that is finished; --resume goes on")
    results = [*files.results, *files.populations]
    if limits.max_recovered < 1 and not any(RECOVERED in row for result in results for row in result.rows):
        accepted = "one by dprec attack COMPARISON --attack reconstruction"
        raise InputError("--max-recovered", "a comparison without attacks", accepted)
    available = metrics_of(results)
    chosen = next((metric for metric in available if column in (None, metric.column)), None)
    if chosen is None:
        raise InputError("--metric", repr(column), ", ".join(metric.column for metric in available) or "none")
    return results, chosen


def _least_needed(results: Sequence[ProtocolResult], limits: AdviceLimits) -> str:
    """Return, in words, the nearest limits that could be met."""
    private = [result for result in results if math.isfinite(limits.loss(result))]
    by_loss = sorted(private, key=lambda result: (limits.loss(result), result.bytes_per_user or 0.0))
    by_bytes = sorted(private, key=lambda result: result.bytes_per_user or 0.0)
    ways = []
    if composed := [result for result in filter(limits.carry, results) if limits.keep_with_delta(result)]:
        ways.append(f"with --delta {_delta(composed):g}, {_names(composed)}")
    if affordable := next(filter(limits.carry, by_loss), None):
        ways.append(f"with these bytes, ε from {limits.loss(affordable):.4g} ({affordable.name})")
    if cheapest := next(filter(limits.keep, by_bytes), None):
        ways.append(f"with this ε, {price(cheapest)} ({cheapest.name})")
    if by_loss and not ways:
        ways.append(f"ε from {limits.loss(by_loss[0]):.4g} with {price(by_loss[0])} ({by_loss[0].name})")
    return ", or ".join(ways) or "a comparison with such a protocol"


def advice_lines(advice: Advice) -> list[str]:
    """Return advice as lines for the terminal, the answer first."""
    limits, best = advice.limits, advice.best.result
    order = ", which leaves a random order" if best.in_random_order else ""
    answer = f"send nothing{order}: " if best.baseline == NOTHING_SENT else ""
    lines = [
        f"within {limits.words}: {answer}{_in_words(advice.best, advice)}",
        *_against_baseline(advice),
        *_against_popularity(advice),
        *(f"  in the {each.result.trust} model: {_in_words(each, advice)}" for each in advice.less_trust),
        f"  {best.trust} model; the server sees {best.server_sees}",
        *_revealed(best, limits),
        *_guesses(best, limits),
        *(f"  {note}" for note in notes_on_delta(limits.delta or 0.0, [best])),
    ]
    course = advice.course
    lines += [f"  users needed to beat {course.base}: {course.users_needed}"] if course else []
    lines += [f"  not significantly worse: {_names(advice.alike)}"] if advice.alike else []
    left_out = [*_left_out(advice)]
    if advice.composed_only and best.baseline == NOTHING_SENT and not advice.not_better:
        # Nothing was weighed: what an option changes comes before an answer that is none.
        return [*left_out, *lines, *_next_better(advice)]
    return [*lines, *(f"  {line}" for line in left_out), *_next_better(advice)]


def _revealed(best: ProtocolResult, limits: AdviceLimits) -> Iterator[str]:
    """Yield that item sets are revealed, where whole users are to be protected."""
    revealed = not best.hides_from_server and best.server_sees != "nothing"
    if revealed and (limits.unit == "user" or best.lists):
        yield "  the server sees which items were rated; --hide-items leaves such protocols out"


def _guesses(best: ProtocolResult, limits: AdviceLimits) -> Iterator[str]:
    """Yield what the loss means for a guesser, and what holds between profiles that are further apart."""
    spent, between = limits.loss(best), best.any_two
    if 0 < spent < math.inf:
        yield f"  {guess_in_words(spent, limits.unit, best)}"
    if limits.unit == "user" and between is not None and between > spent * SLACK:
        yield f"  between any two profiles ε is {loss(between)}: {becomes_right(between, best)}"


def _delta(results: Iterable[ProtocolResult]) -> float:
    return max(result.delta or 0.0 for result in results)


def _names(results: Iterable[ProtocolResult]) -> str:
    return listed(dict.fromkeys(result.title for result in results))


def _against_baseline(advice: Advice) -> Iterator[str]:
    """Yield what is held against nothing sent, and by which rule."""
    against, others, best = advice.best.against, advice.not_better, advice.best.result
    base = against.base if against else baseline_in_words(best)
    names = _names(candidate.result for candidate in others)
    if best.baseline != NOTHING_SENT:
        if against:
            yield f"  against {base}: {against.written}{_rule(against)}"
            yield from [f"  not better than {base}: {names}"] if names else []
        return
    limits, least = advice.limits, advice.least
    if least is not None and least > limits.epsilon * SLACK:
        yield f"  no protocol ran at ε ≤ {limits.epsilon:g} per {limits.unit}; the smallest is {loss(least)}"
    elif not names:
        yield "  no other protocol of this comparison is within these limits"
    if not names:
        return
    yield f"  of the protocols within these limits, none beats {base}: {names}"
    compared = [
        (difference.mean, candidate.result.title, difference)
        for candidate in others
        if (difference := candidate.against)
    ]
    if compared:
        _, title, nearest = max(compared, key=lambda entry: entry[:2])
        yield f"  nearest: {title}, {nearest.written}{_rule(nearest)}"


def _against_popularity(advice: Advice) -> Iterator[str]:
    """Yield what a list by popularity is worth, which sends nothing only where popularity is public."""
    popular, best, metric = advice.popularity, advice.best.result, advice.metric
    if popular is None or popular.result is best:
        return
    reached = f"{metric.label} {number(popular.accuracy, metric.digits)}"
    difference = gain(best, popular.result, metric)
    words = f"; {best.title} is {difference.written}{_rule(difference)}" if difference else ""
    yield f"  a list by popularity, which sends nothing only where that is public: {reached}{words}"


def _rule(against: Gain) -> str:
    if against.interval:
        return f" (± is the {against.interval})"
    return " (comparison.csv has no interval for this difference)"


def _left_out(advice: Advice) -> Iterator[str]:
    for word in ("claimed", "declared"):
        if unproved := [result for result in advice.claimed_only if result.word == word]:
            because = f"because ε is {word} and not proved: {_names(unproved)}; --claimed counts a claim"
            yield f"left out, {because}"
    by_delta = grouped_by((f"{result.delta or 0.0:g}", result) for result in advice.composed_only)
    for delta, results in by_delta.items():
        because = f"because ε ≤ {advice.limits.epsilon:g} holds only with δ = {delta}: {_names(results)}"
        smaller = advice.limits.delta
        anew = f", a comparison with --set match.delta={smaller:g} as well" if smaller else ""
        yield f"left out, {because}; --delta {delta} counts it{anew}"


def _next_better(advice: Advice) -> Iterator[str]:
    limits, privacy, traffic = advice.limits, advice.for_epsilon, advice.for_bytes
    if privacy:
        more = _price_in_privacy(privacy.result, limits)
        yield f"next better for ε: {_in_words(privacy, advice)}: {more}"
        yield from _other_promise(privacy.result, advice)
    if traffic:
        result = traffic.result
        over = listed(
            f"{excess:,.0f} more bytes {what}" if excess < math.inf else f"bytes {what} that are not known"
            for what, excess in limits.bytes_over(result).items()
        )
        yield f"next better for bytes: {_in_words(traffic, advice)}: costs {over or 'no more'}"
        yield from _other_promise(result, advice)
    if not (privacy or traffic):
        yield "no protocol of this comparison is more accurate, beyond chance, within either limit"


def _other_promise(result: ProtocolResult, advice: Advice) -> Iterator[str]:
    """Yield in what the promise of a result differs from that of the best, beside epsilon."""
    promise, best = (_promise(compared, advice.limits) for compared in (result, advice.best.result))
    if changed := [
        f"{what}: {promise[what]} (not {best[what]})" for what in promise if promise[what] != best[what]
    ]:
        yield f"  its promise differs: {'; '.join(changed)}"


def _promise(result: ProtocolResult, limits: AdviceLimits) -> dict[str, str]:
    """Return whom users trust, what is protected and what the server sees, in words."""
    unit: ComparableUnit = "user" if _per_user_only(result, limits) else limits.unit
    bounded = result.promised(unit) is not None or (unit == "user" and result.composed is not None)
    what = protected(unit, result.hides, lists=result.lists) if bounded else "nothing"
    return {"trust": result.trust, "protected": what, "server sees": result.server_sees}


def _more_privacy(result: ProtocolResult, limits: AdviceLimits) -> tuple[float, float, float]:
    """Return what the next better for epsilon is chosen by: its loss, with its delta, and per user."""
    per_user = replace(limits, unit="user").with_delta(result)
    return limits.loss(result), limits.with_delta(result), per_user


def _per_user_only(result: ProtocolResult, limits: AdviceLimits) -> str:
    """Return what counts a loss that is proved of users alone, to limits per rating; otherwise nothing."""
    if limits.unit == "user" or result.status != "proved" or result.epsilon("rating") is not None:
        return ""
    if result.epsilon("user") is not None:
        return "--per user"
    return "" if result.composed is None else f"--per user --delta {result.delta or 0.0:g}"


def _price_in_privacy(result: ProtocolResult, limits: AdviceLimits) -> str:
    spent, composed, delta = limits.loss(result), limits.with_delta(result), f"{result.delta or 0.0:g}"
    if math.isfinite(spent):
        instead = limits.keep_with_delta(result) and spent > limits.epsilon * SLACK
        return f"costs {spent - limits.epsilon:,.4g} more ε{f', or a δ of {delta}' if instead else ''}"
    if result.status in ("claimed", "declared"):
        return f"costs the proof: its ε is only {result.word}"
    if options := _per_user_only(result, limits):
        return f"proved per user only ({options} counts it)"
    if math.isfinite(composed):
        more = f" and {composed - limits.epsilon:,.4g} more ε"
        return f"needs δ = {delta}{'' if limits.keep_with_delta(result) else more}"
    per_rating_only = limits.unit == "user" and result.epsilon("rating") is not None
    return f"costs {'any bound per user: its ε is per rating' if per_rating_only else 'giving up privacy'}"


def _in_words(candidate: Candidate, advice: Advice) -> str:
    result, metric, popular = candidate.result, advice.metric, advice.popularity
    below = popular is not None and metric.better(popular.accuracy, candidate.accuracy)
    reached = (
        f"{metric.label} {number(candidate.accuracy, metric.digits)}{', below popularity' if below else ''}"
    )
    return f"{result.title} {_privacy(result, advice.limits)}, {reached}, {price(result)}"


def _privacy(result: ProtocolResult, limits: AdviceLimits) -> str:
    """Say what a result loses in the unit of the limits, or per user where nothing else is proved."""
    if _per_user_only(result, limits):
        limits = replace(limits, unit="user")
    counted, with_delta = result.promised(limits.unit), ""
    composes = limits.unit == "user" and result.composed is not None
    # What the sum keeps as well holds without delta.
    smaller = counted is not None and loss(limits.loss(result)) not in (loss(counted), loss(math.inf))
    if composes and (smaller or counted is None):
        counted, with_delta = result.composed, f" with δ = {result.delta or 0.0:g}"
    mark = "" if result.status == "proved" else f" ({result.word}, not proved)"
    if counted is None:
        bounded = limits.unit == "user" and result.promised("rating") is not None
        return f"with no bound per {limits.unit}{mark}" if bounded else "without privacy"
    compared = result.profiles_compared(counted, " on the ") if limits.unit == "user" else ""
    return f"at ε {loss(counted)} per {limits.unit}{with_delta}{compared}{mark}"
