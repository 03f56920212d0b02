"""The columns of a table of settings, each defined once for the pages and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dprec.accounting import ComparableUnit
from simulation.analysis.floors import NOTHING_SENT, Gain, gain, gain_digits, nothing_sent
from simulation.analysis.measures import Measure
from simulation.analysis.numbers import DASH, loss, number, spread_in_words, with_claim, with_spread
from simulation.analysis.rivals import from_best, is_best
from simulation.analysis.settings import Setting
from simulation.analysis.vocabulary import loss_per


@dataclass(frozen=True)
class SettingColumn:
    """A column of a table with one line per setting.

    Parameters
    ----------
    title : str
    hint : str
        Its unit, or how it is counted.
    value : callable
        What a setting is sorted by; None if the column does not apply to it.
    text : callable
        The same, as text for a reader.
    numeric : bool
    """

    title: str
    hint: str
    value: Callable[[Setting], float | str | None]
    text: Callable[[Setting], str]
    numeric: bool = True


def accuracy_column(measure: Measure, *, direction: bool = False) -> SettingColumn:
    """Return the column of a measure, and whether it says which way is better."""
    hint = measure.direction if direction else ""
    return mean_column(measure.label, hint, measure.column, measure.digits)


def spread_column(measure: Measure, settings: Sequence[Setting], *, direction: bool = False) -> SettingColumn:
    """Return the column of a measure with its standard deviations over seeds and folds, which the hint names.

    Parameters
    ----------
    measure : Measure
    settings : sequence of Setting
        Those of the table.
    direction : bool
        Whether its heading says which way is better.
    """
    plain = accuracy_column(measure, direction=direction)
    averages = [average for setting in settings if (average := setting.average(measure.column))]
    return replace(
        plain,
        hint=_hint(plain.hint, spread_in_words(averages)),
        text=lambda setting: with_spread(setting.average(measure.column), measure.digits),
    )


def floor_columns(measure: Measure, settings: Sequence[Setting]) -> list[SettingColumn]:
    """Return the column that holds every setting against nothing sent; none where that was not run.

    Parameters
    ----------
    measure : Measure
    settings : sequence of Setting
        Those that predict the same.
    """
    floor = nothing_sent(settings)
    if floor is None:
        return []

    def gained(setting: Setting) -> Gain | None:
        return None if setting.floor == NOTHING_SENT else gain(setting, floor, measure)

    def text(setting: Setting) -> str:
        against = gained(setting)
        return DASH if against is None else against.written(gain_digits(measure))

    def value(setting: Setting) -> float | None:
        against = gained(setting)
        return None if against is None else against.mean

    intervals = dict.fromkeys(against.interval for setting in settings if (against := gained(setting)))
    return [SettingColumn("against nothing sent", _hint(measure.label, *intervals), value, text)]


def best_columns(measure: Measure, settings: Sequence[Setting]) -> list[SettingColumn]:
    """Return the column that holds every setting against the best of its budget; none without intervals.

    Parameters
    ----------
    measure : Measure
        The main one.
    settings : sequence of Setting
        Those that predict the same.
    """
    compared, digits = [gain for each in settings if (gain := from_best(each))], gain_digits(measure)
    if not compared:
        return []

    def text(setting: Setting) -> str:
        if is_best(setting):
            return "best"
        gain = from_best(setting)
        if gain is None:
            return DASH
        width = f" ± {number(gain.half_width, digits)}"
        return number(-gain.mean, digits) + width + ("" if gain.told_apart else ", not told apart")

    def value(setting: Setting) -> float | None:
        gain = from_best(setting)
        return 0.0 if is_best(setting) else None if gain is None else -gain.mean

    hint = _hint(f"{measure.label}, same budget", *dict.fromkeys(gain.interval for gain in compared))
    return [SettingColumn("behind the best", hint, value, text)]


def _hint(first: str, *spreads: str) -> str:
    """Join a hint with what the ± in its column is."""
    named = " or ".join(spread for spread in spreads if spread)
    return ", ".join(part for part in (first, f"± {named}" if named else "") if part)


def figure_column(
    title: str, hint: str, value: Callable[[Setting], float | None], digits: int
) -> SettingColumn:
    """Return a column of numbers with the given number of decimals."""
    return SettingColumn(title, hint, value, lambda setting: number(value(setting), digits))


def mean_column(title: str, hint: str, column: str, digits: int) -> SettingColumn:
    """Return a column of comparison.csv, averaged over folds and seeds."""
    return figure_column(title, hint, lambda setting: setting.mean(column), digits)


def composed_column(settings: Sequence[Setting]) -> SettingColumn:
    """Return the column of the losses per user by composition; its hint has the delta with which they hold.

    Parameters
    ----------
    settings : sequence of Setting
        Those of the table.
    """
    deltas = sorted({delta for setting in settings if (delta := setting.mean("delta")) is not None})
    return SettingColumn(
        f"{loss_per('user')}, composed",
        ", ".join(["largest", *(f"δ={delta:g}" for delta in deltas)]),
        lambda setting: setting.composed,
        lambda setting: loss(setting.composed) + setting.profiles_compared(setting.composed),
    )


def trust_columns(settings: Sequence[Setting]) -> list[SettingColumn]:
    """Return the column of whom users trust; none where all protocols with a budget trust alike.

    Parameters
    ----------
    settings : sequence of Setting
        Those of the table.
    """
    return [TRUST] if len({setting.trust for setting in settings if setting.budget is not None}) > 1 else []


def _loss_column(unit: ComparableUnit, hint: str) -> SettingColumn:
    def largest(setting: Setting) -> float | None:
        # A guarantee holds for everybody, so it is that of the worst run.
        return setting.epsilon(unit)

    def text(setting: Setting) -> str:
        proved, claimed = largest(setting), setting.claimed(unit)
        compared = setting.profiles_compared(claimed if proved is None else proved) if unit == "user" else ""
        return with_claim(proved, claimed, setting.word) + compared

    return SettingColumn(loss_per(unit), hint, largest, text)


def _median_loss() -> SettingColumn:
    plain = mean_column(loss_per("user"), "median", "epsilon_per_user_median", 1)

    def text(setting: Setting) -> str:
        return plain.text(setting) + setting.profiles_compared(setting.mean("epsilon_per_user_median"))

    return replace(plain, text=text)


def _bytes_columns(title: str, direction: str) -> tuple[SettingColumn, ...]:
    return tuple(
        mean_column(title, f"per user, {which}", f"{direction}_message_{statistic}_per_user", 0)
        for which, statistic in (("mean", "mean"), ("95th percentile", "p95"), ("largest", "max"))
    )


BUDGET = SettingColumn(
    "budget",
    "ε",
    lambda setting: setting.budget,
    lambda setting: DASH if setting.budget is None else f"{setting.budget:g}",
)
LOSSES = (_loss_column("rating", ""), _loss_column("user", "largest"))
MEDIAN_LOSS = _median_loss()
BYTES = figure_column("bytes", "per user", lambda setting: setting.bytes_per_user, 0)
BYTES_UP = _bytes_columns("bytes up", "uplink")
BYTES_DOWN = _bytes_columns("bytes down", "downlink")
NETWORK = tuple(
    mean_column(f"network {way}", "per user, mean", f"{link}_network_mean_per_user", 0)
    for way, link in (("up", "uplink"), ("down", "downlink"))
)
TOTAL_BYTES = mean_column("bytes in all", "messages, all users", "total_message_bytes", 0)
ROUNDS = mean_column("rounds", "", "rounds", 0)
RUNS = figure_column("runs", "", lambda setting: len(setting.rows), 0)
STATUS = SettingColumn(
    "privacy", "", lambda setting: setting.status, lambda setting: setting.status, numeric=False
)
TRUST = SettingColumn(
    "trusted", "", lambda setting: setting.trust, lambda setting: setting.trust, numeric=False
)
SERVER_SEES = SettingColumn(
    "server sees", "", lambda setting: setting.server_sees, lambda setting: setting.server_sees, numeric=False
)
