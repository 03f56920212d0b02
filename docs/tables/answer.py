"""What the results say in sentences, from the committed summaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docs.tables.leaderboard import accuracy, evaluation_in_words, grouped
from docs.tables.results import Result, summary, systems
from dprec.privacy.guarantee import LEAST_TRUST_FIRST
from simulation.analysis.gains import NOTHING_SENT, gain_digits
from simulation.analysis.sentences import SETS_ONLY
from simulation.analysis.vocabulary import TRUST_IN_WORDS, listed, number, plural


def answer(name: str, budget: str) -> str:
    """Return the statements about everything that a summary predicts, at one budget.

    Parameters
    ----------
    name : str
    budget : str
        The ε that protocols were given.
    """
    results = [result for result in summary(name) if result.epsilon in (None, float(budget))]
    paragraphs = []
    for group in grouped(results):
        about = f"**{evaluation_in_words(group)}, ε = {float(budget):g} per {group[0].unit}.**"
        paragraphs.append(" ".join([about, *statements(group)]))
    return "\n\n".join(paragraphs)


def statements(results: Sequence[Result]) -> Iterator[str]:
    """Yield what the results at one budget say, a sentence each.

    Parameters
    ----------
    results : sequence of Result
        Those that predict the same, baselines included.
    """
    baseline = next((result for result in results if result.baseline and _is(result, NOTHING_SENT)), None)
    if baseline is not None:
        yield f"With nothing sent, a device alone reaches {accuracy(baseline)}."
        yield from _published(results)
    yield from _proved([result for result in results if result.epsilon is not None])
    seen = next((result for result in results if result.baseline and _is(result, SETS_ONLY)), None)
    if seen is not None:
        yield f"Sending which items were rated, and no value, reaches {accuracy(seen)} (`{seen.protocol}`)."
    clear = [result for result in results if result.reference]
    if clear:
        own = _best(clear)
        yield f"Without privacy, `{own.protocol}` reaches {accuracy(own)}."


def _published(results: Sequence[Result]) -> Iterator[str]:
    names = {preset for system in systems().values() for preset in system.presets}
    published = [result for result in results if result.preset in names and result.epsilon is not None]
    if not published:
        return
    better = [result for result in published if _beats(result)]
    if len(published) == 1:
        said = f"is {_gained(published[0])}" if better else "does not do better"
        yield f"The one preset of a published system, `{published[0].protocol}`, {said}."
        return
    several = f"{plural(len(published), 'preset')} of published systems"
    if better:
        do = "one does" if len(better) == 1 else "these do"
        gains = listed([f"`{result.protocol}` ({_gained(result)})" for result in better])
        yield f"Of {several}, {do} better: {gains}."
    else:
        yield f"Of {several}, none does better."


def _proved(results: Sequence[Result]) -> Iterator[str]:
    """Yield what the best reaches that keeps its budget, and the best of those that hide the rated items."""
    proved = [result for result in results if result.status == "proved"]
    if not proved:
        return
    best, compared = _best(proved), [result for result in proved if result.against_nothing_sent]
    if compared and not any(_beats(result) for result in compared):
        opening = "Nor does any other protocol that keeps its ε; the best is"
    else:
        opening = "The best that keeps its ε is"
    seen = f"{_trust(best)}, and the server sees {best.server_sees}"
    yield f"{opening} `{best.protocol}`, {_told(best)}; {seen}."
    hidden = [result for result in proved if result.hides_rated_items]
    of_trust = [[each for each in hidden if each.trust == trust] for trust in LEAST_TRUST_FIRST]
    at_each = [_best(own) for own in of_trust if own]
    if at_each and at_each != [best]:
        told = (f"`{result.protocol}` {accuracy(result)} ({_trust(result)})" for result in at_each)
        yield f"Where it is hidden too which items were rated, the best is {listed(told)}."


def _is(result: Result, baseline: str) -> bool:
    """Return whether a baseline is the named one; what it predicts, if not stars, ends its name."""
    return result.protocol == baseline or result.protocol.startswith(f"{baseline}-")


def _beats(result: Result) -> bool:
    """Return whether a result is better than nothing sent by more than its uncertainty."""
    gained = result.against_nothing_sent
    return gained is not None and gained.beyond_doubt


def _trust(result: Result) -> str:
    return TRUST_IN_WORDS[result.trust]


def _told(result: Result) -> str:
    """Return accuracy, gain and bytes."""
    gained = f" ({_gained(result)} than nothing sent)" if result.against_nothing_sent else ""
    up, down = number(result.bytes_up, 0), number(result.bytes_down, 0)
    return f"{accuracy(result)}{gained}, for {up} bytes up and {down} down per user"


def _gained(result: Result) -> str:
    gained = result.against_nothing_sent
    assert gained is not None
    return gained.written(gain_digits(result.measured_by))


def _best(results: Sequence[Result]) -> Result:
    metric = results[0].measured_by
    best = metric.best([result.accuracy for result in results])
    return next(result for result in results if result.accuracy == best)
