"""The columns of a table of settings, each defined once for the pages and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dprec.privacy.units import ComparableUnit
from simulation.analysis.gains import NOTHING_SENT, Gain, from_best, gain, gain_digits, is_best, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import (
    DASH,
    Metric,
    loss,
    loss_per,
    number,
    spread_in_words,
    with_claim,
    with_spread,
)


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table with one line per setting."""

    title: str
    hint: str
    """Its unit, or how it is counted."""
    value: Callable[[ProtocolResult], float | str | None]
    """What a setting is sorted by; None if the column does not apply to it."""
    text: Callable[[ProtocolResult], str]
    """The same, as text for a reader."""
    numeric: bool = True


def accuracy_column(metric: Metric, *, direction: bool = False) -> ResultColumn:
    """Return the column of a measure, and whether it says which way is better."""
    hint = metric.direction if direction else ""
    return mean_column(metric.label, hint, metric.column, metric.digits)


def spread_column(
    metric: Metric, results: Sequence[ProtocolResult], *, direction: bool = False
) -> ResultColumn:
    """Return the column of a measure with its standard deviations over seeds and folds, which the hint names.

    Parameters
    ----------
    settings : sequence of Setting
        Those of the table.
    direction : bool
        Whether its heading says which way is better.
    """
    plain = accuracy_column(metric, direction=direction)
    averages = [average for result in results if (average := result.average(metric.column))]
    return replace(
        plain,
        hint=_hint(plain.hint, spread_in_words(averages)),
        text=lambda result: with_spread(result.average(metric.column), metric.digits),
    )


def baseline_columns(metric: Metric, results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return the column that holds every setting against nothing sent; none where that was not run.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    """
    baseline = nothing_sent(results)
    if baseline is None:
        return []

    def gained(result: ProtocolResult) -> Gain | None:
        return None if result.baseline == NOTHING_SENT else gain(result, baseline, metric)

    def text(result: ProtocolResult) -> str:
        against = gained(result)
        return DASH if against is None else against.written(gain_digits(metric))

    def value(result: ProtocolResult) -> float | None:
        against = gained(result)
        return None if against is None else against.mean

    intervals = dict.fromkeys(against.interval for result in results if (against := gained(result)))
    return [ResultColumn("against nothing sent", _hint(metric.label, *intervals), value, text)]


def best_columns(metric: Metric, results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return the column that holds every setting against the best of its budget; none without intervals.

    Parameters
    ----------
    measure : Measure
        The main one.
    settings : sequence of Setting
        Those that predict the same.
    """
    compared, digits = [gain for each in results if (gain := from_best(each))], gain_digits(metric)
    if not compared:
        return []

    def text(result: ProtocolResult) -> str:
        if is_best(result):
            return "best"
        gain = from_best(result)
        if gain is None:
            return DASH
        width = f" ± {number(gain.half_width, digits)}"
        return number(-gain.mean, digits) + width + ("" if gain.significant else ", not told apart")

    def value(result: ProtocolResult) -> float | None:
        gain = from_best(result)
        return 0.0 if is_best(result) else None if gain is None else -gain.mean

    hint = _hint(f"{metric.label}, same budget", *dict.fromkeys(gain.interval for gain in compared))
    return [ResultColumn("behind the best", hint, value, text)]


def _hint(first: str, *spreads: str) -> str:
    """Join a hint with what the ± in its column is."""
    named = " or ".join(spread for spread in spreads if spread)
    return ", ".join(part for part in (first, f"± {named}" if named else "") if part)


def figure_column(
    title: str, hint: str, value: Callable[[ProtocolResult], float | None], digits: int
) -> ResultColumn:
    """Return a column of numbers with the given number of decimals."""
    return ResultColumn(title, hint, value, lambda result: number(value(result), digits))


def mean_column(title: str, hint: str, column: str, digits: int) -> ResultColumn:
    """Return a column of comparison.csv, averaged over folds and seeds."""
    return figure_column(title, hint, lambda result: result.mean(column), digits)


def composed_column(results: Sequence[ProtocolResult]) -> ResultColumn:
    """Return the column of the losses per user by composition; its hint has the delta with which they hold.

    Parameters
    ----------
    settings : sequence of Setting
        Those of the table.
    """
    deltas = sorted({delta for result in results if (delta := result.mean("delta")) is not None})
    return ResultColumn(
        f"{loss_per('user')}, composed",
        ", ".join(["largest", *(f"δ={delta:g}" for delta in deltas)]),
        lambda result: result.composed,
        lambda result: loss(result.composed) + result.profiles_compared(result.composed),
    )


def trust_columns(results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return the column of whom users trust; none where all protocols with a budget trust alike.

    Parameters
    ----------
    settings : sequence of Setting
        Those of the table.
    """
    return [TRUST] if len({result.trust for result in results if result.budget is not None}) > 1 else []


def _loss_column(unit: ComparableUnit, hint: str) -> ResultColumn:
    def largest(result: ProtocolResult) -> float | None:
        # A guarantee holds for everybody, so it is that of the worst run.
        return result.epsilon(unit)

    def text(result: ProtocolResult) -> str:
        proved, claimed = largest(result), result.claimed(unit)
        compared = result.profiles_compared(claimed if proved is None else proved) if unit == "user" else ""
        return with_claim(proved, claimed, result.word) + compared

    return ResultColumn(loss_per(unit), hint, largest, text)


def _median_loss() -> ResultColumn:
    plain = mean_column(loss_per("user"), "median", "epsilon_per_user_median", 1)

    def text(result: ProtocolResult) -> str:
        return plain.text(result) + result.profiles_compared(result.mean("epsilon_per_user_median"))

    return replace(plain, text=text)


def _bytes_columns(title: str, direction: str) -> tuple[ResultColumn, ...]:
    return tuple(
        mean_column(title, f"per user, {which}", f"{direction}_message_{statistic}_per_user", 0)
        for which, statistic in (("mean", "mean"), ("95th percentile", "p95"), ("largest", "max"))
    )


BUDGET = ResultColumn(
    "budget",
    "ε",
    lambda result: result.budget,
    lambda result: DASH if result.budget is None else f"{result.budget:g}",
)
LOSSES = (_loss_column("rating", ""), _loss_column("user", "largest"))
MEDIAN_LOSS = _median_loss()
BYTES = figure_column("bytes", "per user", lambda result: result.bytes_per_user, 0)
BYTES_UP = _bytes_columns("bytes up", "uplink")
BYTES_DOWN = _bytes_columns("bytes down", "downlink")
NETWORK = tuple(
    mean_column(f"network {way}", "per user, mean", f"{link}_network_mean_per_user", 0)
    for way, link in (("up", "uplink"), ("down", "downlink"))
)
TOTAL_BYTES = mean_column("bytes in all", "messages, all users", "total_message_bytes", 0)
ROUNDS = mean_column("rounds", "", "rounds", 0)
RUNS = figure_column("runs", "", lambda result: len(result.rows), 0)
STATUS = ResultColumn(
    "privacy", "", lambda result: result.status, lambda result: result.status, numeric=False
)
TRUST = ResultColumn("trusted", "", lambda result: result.trust, lambda result: result.trust, numeric=False)
SERVER_SEES = ResultColumn(
    "server sees", "", lambda result: result.server_sees, lambda result: result.server_sees, numeric=False
)
