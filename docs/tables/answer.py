"""What the results say in sentences, from the committed summaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docs.tables.leaderboard import accuracy, evaluation_in_words, grouped
from docs.tables.listed import systems
from docs.tables.results import Result, summary
from simulation.analysis.floors import NOTHING_SENT, gain_digits
from simulation.analysis.numbers import number
from simulation.analysis.vocabulary import TRUST_IN_WORDS, listed, plural


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
        Those that predict the same, floors included.
    """
    floor = next((result for result in results if result.floor and _is(result, NOTHING_SENT)), None)
    if floor is not None:
        yield f"With nothing sent, a device alone reaches {accuracy(floor)}."
        yield from _published(results)
    proved = [result for result in results if result.epsilon is not None and result.status == "proved"]
    if proved:
        best = _best(proved)
        yield f"The best that is proved is `{best.protocol}`, {_told(best)}; {TRUST_IN_WORDS[best.trust]}."
        hidden = [result for result in proved if result.server_sees == "noise only"]
        if hidden and best not in hidden:
            own = _best(hidden)
            yield f"The best of those whose server sees noise only is `{own.protocol}`, {_told(own)}."
    seen = next((result for result in results if result.floor and _is(result, "sets-only")), None)
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
    several = f"{plural(len(published), 'preset')} of published systems"
    better = [
        f"`{result.protocol}` ({_gained(result)})"
        for result in published
        if (gained := result.against_nothing_sent) and gained.beyond_doubt
    ]
    if better:
        yield f"Of {several}, these do better: {listed(better)}."
    else:
        yield f"Of {several}, none does better."


def _is(result: Result, floor: str) -> bool:
    """Return whether a floor is the named one; what it predicts, if not stars, ends its name."""
    return result.protocol == floor or result.protocol.startswith(f"{floor}-")


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
    measure = results[0].measured_by
    best = measure.best([result.accuracy for result in results])
    return next(result for result in results if result.accuracy == best)
