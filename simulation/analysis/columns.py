"""The columns of a table of settings, each defined once, and the tables of pages, terminal and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dprec.privacy.units import ComparableUnit
from simulation.analysis.gains import NOTHING_SENT, Gain, from_best, gain, gain_digits, is_best, nothing_sent
from simulation.analysis.settings import (
    Setting,
    at_reference,
    by_evaluation,
    distinguishing_words,
    measures_of,
    settings_of,
)
from simulation.analysis.vocabulary import (
    DASH,
    Measure,
    headlines,
    loss,
    loss_per,
    number,
    spread_in_words,
    with_claim,
    with_spread,
)
from simulation.storage.summary import by_column
from simulation.storage.tables import Row

Line = TypeVar("Line")
Other = TypeVar("Other")


@dataclass(frozen=True)
class TableColumn(Generic[Line]):
    """A column of a table: its heading, and what it says of each line.

    Parameters
    ----------
    title : str
    hint : str
        Its unit, or how it is counted.
    value : callable
        What a line is sorted by; None if the column does not apply to it.
    text : callable
        The same, as text for a reader.
    numeric : bool
    """

    title: str
    hint: str
    value: Callable[[Line], float | str | None]
    text: Callable[[Line], str]
    numeric: bool = True

    def of(self, part: Callable[[Other], Line]) -> TableColumn[Other]:
        """Return the column of a table whose lines have what it speaks of as a part."""
        return TableColumn(
            self.title,
            self.hint,
            lambda line: self.value(part(line)),
            lambda line: self.text(part(line)),
            self.numeric,
        )


SettingColumn = TableColumn[Setting]
"""A column of a table with one line per setting."""


def text_column(title: str, text: Callable[[Line], object], hint: str = "") -> TableColumn[Line]:
    """Return a column of text; a dash stands for None."""

    def value(line: Line) -> str | None:
        said = text(line)
        return None if said is None else str(said)

    def written(line: Line) -> str:
        said = value(line)
        return DASH if said is None else said

    return TableColumn(title, hint, value, written, numeric=False)


def figure_column(
    title: str, hint: str, value: Callable[[Line], float | None], digits: int
) -> TableColumn[Line]:
    """Return a column of numbers with the given number of decimals."""
    return written_column(title, value, lambda known: number(known, digits), hint)


def written_column(
    title: str,
    value: Callable[[Line], float | None],
    written: Callable[[float], str],
    hint: str = "",
) -> TableColumn[Line]:
    """Return a column of numbers that are written in a way of their own; a dash stands for None."""

    def text(line: Line) -> str:
        known = value(line)
        return DASH if known is None else written(known)

    return TableColumn(title, hint, value, text)


def accuracy_column(measure: Measure, *, direction: bool = False) -> SettingColumn:
    """Return the column of a measure, and whether it says which way is better."""
    hint = measure.direction if direction else ""
    return _mean_column(measure.label, hint, measure.column, measure.digits)


def spread_column(measure: Measure, settings: Sequence[Setting], *, direction: bool = False) -> SettingColumn:
    """Return the column of a measure with its standard deviations over seeds and folds, which the hint names.

    Parameters
    ----------
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
    """Return the column that holds every setting against nothing sent; none where that was not run."""
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


def _mean_column(title: str, hint: str, column: str, digits: int) -> SettingColumn:
    """Return a column of comparison.csv, averaged over folds and seeds."""
    return figure_column(title, hint, lambda setting: setting.mean(column), digits)


def composed_column(settings: Sequence[Setting]) -> SettingColumn:
    """Return the column of losses per user by composition; its hint has the delta with which they hold."""
    deltas = sorted({delta for setting in settings if (delta := setting.mean("delta")) is not None})
    return SettingColumn(
        f"{loss_per('user')}, composed",
        ", ".join(["largest", *(f"δ={delta:g}" for delta in deltas)]),
        lambda setting: setting.composed,
        lambda setting: loss(setting.composed) + setting.profiles_compared(setting.composed),
    )


def trust_columns(settings: Sequence[Setting]) -> list[SettingColumn]:
    """Return the column of whom users trust; none where all protocols with a budget trust alike."""
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
    plain = _mean_column(loss_per("user"), "median", "epsilon_per_user_median", 1)

    def text(setting: Setting) -> str:
        return plain.text(setting) + setting.profiles_compared(setting.mean("epsilon_per_user_median"))

    return replace(plain, text=text)


def _bytes_columns(title: str, direction: str) -> tuple[SettingColumn, ...]:
    return tuple(
        _mean_column(title, f"per user, {which}", f"{direction}_message_{statistic}_per_user", 0)
        for which, statistic in (("mean", "mean"), ("95th percentile", "p95"), ("largest", "max"))
    )


BUDGET: SettingColumn = written_column("budget", lambda setting: setting.budget, "{:g}".format, "ε")
LOSSES = (_loss_column("rating", ""), _loss_column("user", "largest"))
MEDIAN_LOSS = _median_loss()
BYTES: SettingColumn = figure_column("bytes", "per user", lambda setting: setting.bytes_per_user, 0)
BYTES_UP = _bytes_columns("bytes up", "uplink")
BYTES_DOWN = _bytes_columns("bytes down", "downlink")
NETWORK = tuple(
    _mean_column(f"network {way}", "per user, mean", f"{link}_network_mean_per_user", 0)
    for way, link in (("up", "uplink"), ("down", "downlink"))
)
TOTAL_BYTES = _mean_column("bytes in all", "messages, all users", "total_message_bytes", 0)
ROUNDS = _mean_column("rounds", "", "rounds", 0)
RUNS: SettingColumn = figure_column("runs", "", lambda setting: len(setting.rows), 0)
STATUS: SettingColumn = text_column("privacy", lambda setting: setting.status)
TRUST: SettingColumn = text_column("trusted", lambda setting: setting.trust)
SERVER_SEES: SettingColumn = text_column("server sees", lambda setting: setting.server_sees)


def every_column(measure: Measure, settings: Sequence[Setting]) -> list[SettingColumn]:
    """Return all that a table says of settings that predict the same, the main measure first.

    A figure that is added to the summary of a run gets its column here.
    """
    measures = [measure, *(other for other in measures_of(settings) if other != measure)]
    main, *others = [spread_column(each, settings, direction=True) for each in measures]
    return [
        BUDGET,
        main,
        *floor_columns(measure, settings),
        *best_columns(measure, settings),
        *others,
        STATUS,
        *trust_columns(settings),
        *LOSSES,
        composed_column(settings),
        MEDIAN_LOSS,
        SERVER_SEES,
        ROUNDS,
        *(*BYTES_UP, *BYTES_DOWN, *NETWORK),
        TOTAL_BYTES,
    ]


MOST_ROWS = 10
"""Rows that are shown before the rest is unfolded."""


def headline_rows(settings: Sequence[Setting], measure: Measure) -> tuple[list[Setting], list[Setting]]:
    """Return one setting per protocol, at the reference budget or its nearest, the most accurate first.

    Returns
    -------
    tuple of list
        Those that are shown, nothing sent always among them, and the others.
    """
    known = [
        (measure.sort_key(accuracy), setting.name, setting)
        for setting in at_reference(settings)
        if (accuracy := setting.mean(measure.column)) is not None
    ]
    ordered = [setting for *_, setting in sorted(known, key=lambda entry: entry[:2])]
    floors = [setting for setting in ordered if setting.floor == NOTHING_SENT]
    others = [setting for setting in ordered if setting not in floors]
    shown = [*floors, *others[: MOST_ROWS - len(floors)]]
    return (
        [setting for setting in ordered if setting in shown],
        [setting for setting in ordered if setting not in shown],
    )


def headline_columns(
    settings: Sequence[Setting], measure: Measure, unit: ComparableUnit
) -> list[SettingColumn]:
    """Return the columns of the headline, after the name of the protocol."""
    rounded = replace(measure, digits=gain_digits(measure))
    return [
        SettingColumn("ε asked", f"per {unit}", _asked, lambda setting: _asked_in_words(setting, unit)),
        spread_column(rounded, settings),
        *floor_columns(measure, settings),
        replace(LOSSES[1], hint="sum"),
        replace(composed_column(settings), title="ε composed"),
        BYTES_UP[0],
        BYTES_DOWN[0],
        SERVER_SEES,
    ]


def _asked(setting: Setting) -> float | None:
    """Return the budget of a setting; 0 where nothing is spent."""
    return 0.0 if setting.budget is None and setting.epsilon("user") == 0 else setting.budget


def _asked_in_words(setting: Setting, unit: ComparableUnit) -> str:
    asked = _asked(setting)
    if asked is None:
        return DASH
    if not setting.falls_short:
        return f"{asked:g}"
    claimed = setting.claimed(unit)
    if claimed in (None, asked):
        return f"{asked:g} {setting.word}"
    return (
        f"{asked:g}, {setting.word} {loss(claimed)}"
        if setting.status == "declared"
        else (f"{asked:g}, claims {loss(claimed)}")
    )


_ASKED = replace(BUDGET, title="ε asked", hint="")
_MAIN_COSTS = (BYTES_UP[0], BYTES_DOWN[0], SERVER_SEES)
_BRIEF_COSTS = (replace(BYTES_UP[0], hint="per user"), replace(BYTES_DOWN[0], hint="per user"), SERVER_SEES)


@dataclass(frozen=True)
class SmallTable:
    """A table with one line per setting.

    Parameters
    ----------
    title : str or None
    first : str
        Heading of the settings' names.
    columns : tuple of SettingColumn
        The most important first.
    settings : tuple of Setting
    brief : tuple of SettingColumn
        The first columns as they are where there is little room: without the spread of the accuracy.
    """

    title: str | None
    first: str
    columns: tuple[SettingColumn, ...]
    settings: tuple[Setting, ...]
    brief: tuple[SettingColumn, ...] = ()


def run_table(summary: Mapping[str, Any]) -> SmallTable:
    """Return a run as one line: accuracy, privacy and bytes side by side."""
    setting = _run_as_setting(summary)
    first, *others = [*map(accuracy_column, _measures([setting])), LOSSES[0]]
    return SmallTable(None, "run", (first, *_MAIN_COSTS, *others, *_costs([setting])), (setting,))


def tables_of_comparison(rows: Sequence[Row]) -> list[SmallTable]:
    """Return one table per evaluation, with one line per protocol and epsilon.

    Figures are averages over folds and seeds; only the main accuracy is shown with its spread.
    """
    groups = by_evaluation([each for each in settings_of(rows) if each.population is None])
    tables = []
    for evaluation, settings in groups.items():
        main = evaluation.measure
        others = [accuracy_column(each) for each in _measures(settings) if each != main]
        against = floor_columns(main, settings)
        brief = (_ASKED, accuracy_column(main), *against, *_BRIEF_COSTS)
        first = (_ASKED, spread_column(main, settings), *against, *_MAIN_COSTS)
        columns = (*first, *best_columns(main, settings), *others, LOSSES[0], *_costs(settings))
        title = ", ".join(distinguishing_words(evaluation, list(groups))) or None
        tables.append(SmallTable(title, "protocol", columns, tuple(settings), brief))
    return tables


def run_lines(summary: Mapping[str, Any]) -> str:
    """Return the table of a run as text, with a line per figure."""
    small = run_table(summary)
    lines = [(small.first, small.settings[0].name)]
    lines += [(f"{each.title} {each.hint}".strip(), each.text(small.settings[0])) for each in small.columns]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in lines)


def _costs(settings: Sequence[Setting]) -> tuple[SettingColumn, ...]:
    """Return the columns of what comes after the main ones: how far ε carries, and bytes on a network."""
    return STATUS, *trust_columns(settings), LOSSES[1], composed_column(settings), *NETWORK


def _measures(settings: Sequence[Setting]) -> list[Measure]:
    """Return the headline measures that any of the settings has."""
    return headlines(measures_of(settings))


def _run_as_setting(summary: Mapping[str, Any]) -> Setting:
    """Return a run as a setting with a single row."""
    privacy, traffic = summary["privacy"], summary["traffic"]
    row = {
        **by_column(summary["accuracy"]),
        "epsilon_per_rating": privacy["epsilon_per_rating"],
        "epsilon_per_user_max": privacy["epsilon_per_user"]["max"],
        "delta": privacy["delta"],
        "epsilon_composed_max": privacy["epsilon_composed"]["max"],
        "epsilon_claimed_per_rating": privacy["epsilon_claimed"]["per_rating"],
        "epsilon_claimed_per_user": privacy["epsilon_claimed"]["per_user"],
        "status": privacy["status"],
        "uplink_message_mean_per_user": traffic["uplink"]["message_mean_per_user"],
        "downlink_message_mean_per_user": traffic["downlink"]["message_mean_per_user"],
        "uplink_network_mean_per_user": traffic["uplink"]["network_mean_per_user"],
        "downlink_network_mean_per_user": traffic["downlink"]["network_mean_per_user"],
        "trusts_server": privacy["trusts_server"],
        "hides_rated_items": privacy["hides_rated_items"],
        "unlinked": privacy.get("unlinked", False),
    }
    return Setting(summary["name"], None, (row,))
