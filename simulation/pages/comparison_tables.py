"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from simulation.analysis.columns import (
    BUDGET,
    BYTES,
    BYTES_DOWN,
    BYTES_UP,
    LOSSES,
    MEDIAN_LOSS,
    NETWORK,
    ROUNDS,
    RUNS,
    SERVER_SEES,
    STATUS,
    TOTAL_BYTES,
    SettingColumn,
    accuracy_column,
    best_columns,
    composed_column,
    figure_column,
    floor_columns,
    headline_columns,
    headline_rows,
    spread_column,
    trust_columns,
)
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.gains import NOTHING_SENT, is_best, not_told_apart
from simulation.analysis.settings import Setting, at_reference, frontier, measures_of, reference_budget
from simulation.analysis.vocabulary import number
from simulation.configuration.dotted_keys import at
from simulation.pages.evaluation_parts import EvaluationPart, RunLinks
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.panels import SERIES
from simulation.pages.page import (
    Cell,
    Column,
    Section,
    number_cell,
    paragraph,
    render_template,
    table,
    text_cell,
)


def named_cell(setting: Setting, looks: Looks, links: RunLinks) -> Cell:
    """Return the name of a protocol, with the colour of its lines, as a link where its run has a page."""
    colour = looks[setting.name].colour
    look = str(SERIES.index(colour)) if colour in SERIES else "reference"
    address = links.get((setting.name, setting.budget))
    name = Markup('<a href="{}">{}</a>').format(address, setting.name) if address else setting.name
    chip = Markup('<span class="chip look-{}" aria-hidden="true"></span>{}')
    return Cell(chip.format(look, name), setting.name)


def heading(column: SettingColumn) -> Column:
    """Return the heading of a column."""
    return Column(column.title, column.hint, column.numeric)


def setting_cell(column: SettingColumn, setting: Setting) -> Cell:
    """Return what a column says of a setting."""
    return Cell(column.text(setting), column.value(setting))


def headline_table(part: EvaluationPart) -> Markup:
    """Return the headline of one evaluation; rows after the first ten are folded."""
    shown, others = headline_rows(part.settings, part.measure)
    columns = headline_columns(part.settings, part.measure, part.files.matched_unit)
    budget = reference_budget(part.settings)
    at = "" if budget is None else f" at ε = {budget:g} per {part.files.matched_unit}, or the nearest it has"
    return render_template(
        "headline.html",
        caption=f"Each protocol{at}; the most accurate first",
        columns=[Column("protocol", numeric=False), *map(heading, columns)],
        shown=[_row(setting, columns, part) for setting in shown],
        others=[_row(setting, columns, part) for setting in others],
        summary=_summary(others, part) if others else "",
        table=f"table{part.suffix}",
    )


def _row(
    setting: Setting, columns: Sequence[SettingColumn], part: EvaluationPart
) -> tuple[str, str, list[Cell]]:
    """Return the kind of a row in words and for its style, and its cells."""
    words = "floor" if setting.floor else "no privacy" if setting.reference else ""
    style = "base" if setting.floor == NOTHING_SENT else ""
    cells = [setting_cell(column, setting) for column in columns]
    return words, style, [named_cell(setting, part.looks, part.links), *cells]


def _summary(settings: Sequence[Setting], part: EvaluationPart) -> str:
    """Say what is folded."""
    measure = part.measure
    first, last = (number(settings[place].mean(measure.column), measure.digits - 1) for place in (0, -1))
    return f"{len(settings)} more, {measure.label} {first} to {last}"


def best_table(part: EvaluationPart) -> Markup:
    """Return the most accurate setting of every budget, beside the cheapest on its frontier."""
    settings, measure = part.settings, part.measure
    accuracy, against = accuracy_column(measure), floor_columns(measure, settings)
    of_cheap = (accuracy, *against, BYTES, STATUS, *trust_columns(settings))
    of_accurate = (*of_cheap, *LOSSES)
    # Floors are what the others are compared with; they compete at no budget.
    competing = [setting for setting in settings if setting.floor is None]
    given = sorted({setting.budget for setting in competing if setting.budget is not None})
    without = [None] if any(setting.budget is None for setting in competing) else []
    tested = any(is_best(setting) for setting in competing)
    rows = []
    for budget in [*given, *without]:
        best = frontier([setting for setting in competing if setting.budget == budget], measure)
        if not best:
            continue
        accurate, cheap = best[-1], best[0]
        rows.append(
            [
                Cell("none" if budget is None else f"ε {budget:g}", budget),
                named_cell(accurate, part.looks, part.links),
                *(setting_cell(column, accurate) for column in of_accurate),
                *([text_cell(_alike(accurate, competing))] if tested else []),
                named_cell(cheap, part.looks, part.links),
                *(setting_cell(column, cheap) for column in of_cheap),
            ]
        )
    columns = [
        Column("budget", numeric=False),
        Column("most accurate", numeric=False),
        *map(heading, of_accurate),
        *([Column("not told apart from it", numeric=False)] if tested else []),
        Column("fewest bytes", numeric=False),
        *map(heading, of_cheap),
    ]
    return table(
        "Most accurate, and fewest bytes on the frontier, at each budget",
        columns,
        rows,
    )


def _alike(best: Setting, settings: Sequence[Setting]) -> str:
    return ", ".join(setting.name for setting in not_told_apart(best, settings)) or "none"


def settings_table(part: EvaluationPart) -> Markup:
    """Return every figure of every protocol, one line per budget."""
    settings, measure = part.settings, part.measure
    measures = [measure, *(other for other in measures_of(settings) if other != measure)]
    main, *others = [spread_column(each, settings, direction=True) for each in measures]
    columns = [
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
    ]
    columns += [*BYTES_UP, *BYTES_DOWN, *NETWORK, TOTAL_BYTES, *_timing_columns(part.files), RUNS]
    return table(
        "Means over seeds and folds; ε is the largest proved of any run",
        [_PROTOCOL, *map(heading, columns)],
        [
            [
                named_cell(setting, part.looks, part.links),
                *(setting_cell(column, setting) for column in columns),
            ]
            for setting in settings
        ],
    )


_PROTOCOL = Column("protocol", numeric=False)


def _timing_columns(files: ComparisonFiles) -> list[SettingColumn]:
    """Return the seconds on devices and server, which come from timing.csv."""
    own = [timing for timing in files.timings if timing.population is None]
    timings = {(timing.name, timing.budget): timing for timing in own}

    def seconds(column: str, factor: float) -> Callable[[Setting], float | None]:
        def value(setting: Setting) -> float | None:
            timing = timings.get((setting.name, setting.budget))
            mean = None if timing is None else timing.mean(column)
            return None if mean is None else factor * mean

        return value

    device, server = seconds("device_s_per_user", 1000), seconds("server_s", 1)
    return [
        figure_column("device", "ms per user", device, 3),
        figure_column("server", "s", server, 2),
    ]


def published_section(files: ComparisonFiles) -> list[Section]:
    """Return published costs beside the measured ones, if the configuration lists any."""
    published = files.config.get("published")
    if not isinstance(published, list):
        return []
    measured = {setting.name: setting for setting in at_reference(files.settings)}
    columns = [
        Column("protocol", numeric=False),
        Column("published, up", "as printed", numeric=False),
        Column("measured, up", "payload bits per rating"),
        Column("measured, up", "payload bytes per user and round"),
        Column("measured, up", "message bytes per user and round"),
        Column("published, down", "as printed", numeric=False),
        Column("measured, down", "payload bytes per user and round"),
        Column("measured, down", "message bytes per user and round"),
        Column("rounds"),
        Column("source", numeric=False),
    ]
    rows = []
    for line in published:
        label, up, down, source = (at(line, key) for key in ("label", "up", "down", "source"))
        setting = measured.get(str(label))
        rounds = setting.mean("rounds") if setting else None
        rows.append(
            [
                text_cell(label),
                text_cell(up),
                number_cell(_bits_per_rating(setting), 2),
                *(number_cell(_a_round(setting, f"uplink_{what}"), 0) for what in ("payload", "message")),
                text_cell(down),
                *(number_cell(_a_round(setting, f"downlink_{what}"), 0) for what in ("payload", "message")),
                number_cell(rounds, 0),
                text_cell(source),
            ]
        )
    words = (
        "What the papers state for one round, beside what was counted here. A payload is the encoded report "
        "alone; a message is everything that is sent."
    )
    return [
        Section(
            "published",
            "Published costs beside measured ones",
            (paragraph(words), table("Cost of one round", columns, rows)),
        )
    ]


def _bits_per_rating(setting: Setting | None) -> float | None:
    if setting is None:
        return None
    sent, ratings, rounds = (setting.mean(key) for key in ("uplink_payload_bytes", "train_ratings", "rounds"))
    return 8 * sent / ratings / rounds if sent is not None and ratings and rounds else None


def _a_round(setting: Setting | None, what: str) -> float | None:
    if setting is None:
        return None
    spent, rounds = setting.mean(f"{what}_mean_per_user"), setting.mean("rounds")
    return spent / rounds if spent is not None and rounds else None
