"""The page of a comparison: which protocol, at what price."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.privacy.device_channel import DeviceChannel
from dprec.privacy.units import COMPARABLE_UNITS
from simulation.analysis.columns import (
    BUDGET,
    BYTES,
    BYTES_DOWN,
    BYTES_UP,
    LOSSES,
    MEDIAN_LOSS,
    ROUNDS,
    RUNS,
    SERVER_SEES,
    TOTAL_BYTES,
    SettingColumn,
    accuracy_column,
    figure_column,
)
from simulation.analysis.measures import MEASURES, Measure
from simulation.analysis.numbers import DASH, loss, size
from simulation.analysis.projection import Projection, project
from simulation.analysis.settings import (
    Evaluation,
    Setting,
    at_reference,
    by_evaluation,
    frontier,
    reference_budget,
    told_apart,
)
from simulation.analysis.vocabulary import listed, plural
from simulation.pages.comparison_figures import (
    QUANTILES,
    EpsilonAxis,
    Looks,
    Spread,
    Trace,
    by_protocol,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
    draw_accuracy_by_round,
    draw_mechanisms,
    draw_spreads,
    looks_of,
)
from simulation.pages.distance_figure import distance_plot
from simulation.pages.markup import Cell, Column, Html, element, joined, number_cell, table, text_cell
from simulation.pages.noise_samples import read_noise, sampled_noise_section
from simulation.pages.page import Section, figures, page, paragraph, projection_section
from simulation.pages.plots import Plot, Rendered
from simulation.pages.run_figures import evaluated_rounds
from simulation.pages.run_files import (
    ComparisonFiles,
    Numbers,
    at,
    read_rounds,
    read_traffic,
)
from simulation.pages.style import SERIES
from simulation.pages.words import comparison_in_words, label_of, merged_notes
from simulation.storage.channel_file import read_channel

Draw = Callable[[Plot], Rendered]


def comparison_page(files: ComparisonFiles, population: float | None, draw: Draw) -> str:
    """Return the page of a comparison.

    Parameters
    ----------
    files : ComparisonFiles
    population : float or None
        Users of a deployment.
    draw : callable
        Renders a figure, and keeps its files.
    """
    groups = by_evaluation(files.settings)
    looks = looks_of(files.settings)
    for own in groups.values():
        looks |= looks_of(own)
    traffic = reference_traffic(files)
    sections: list[Section] = []
    suffixes: list[str] = []
    for evaluation, settings in groups.items():
        words = told_apart(evaluation, list(groups))
        suffixes.append(_suffix(words, suffixes))
        sections += _accuracy_sections(files, evaluation, settings, looks, draw, words, suffixes[-1])
    sections += [
        _spread_section(files, traffic, looks, draw),
        _noise_section(files, draw),
        *sampled_noise_section(read_noise(files.directory), looks, draw),
        *_published_section(files),
        projection_section(projections(traffic, population) if population else [], population),
        _provenance(),
    ]
    title = str(files.config.get("title") or files.config.get("name") or files.directory.name)
    return page(title, "dprec, a comparison", comparison_in_words(files), _notes(files), sections)


def projections(
    traffic: Sequence[tuple[Setting, str, Numbers]], population: float
) -> list[tuple[str, Projection]]:
    """Project the traffic of every protocol to a population, both directions together."""
    return [(label, project(_both(columns), population)) for _, label, columns in traffic]


def reference_traffic(files: ComparisonFiles) -> list[tuple[Setting, str, Numbers]]:
    """Return setting, label and traffic of one run of every protocol, at the reference budget."""
    reference = reference_budget(files.settings)
    return [
        (setting, label_of(setting, reference), read_traffic(cells[0]))
        for setting in at_reference(files.settings)
        if (cells := files.cells(setting))
    ]


def _suffix(words: Sequence[str], taken: Sequence[str]) -> str:
    """Return what tells the figures of a group from those of others, in the names of their files."""
    # Whatever a table says, a figure stays in its directory.
    suffix = "".join("-" + re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)
    return f"{suffix}-{len(taken) + 1}" if suffix in taken else suffix


def _notes(files: ComparisonFiles) -> list[object]:
    every = [
        (name, str(note))
        for name, summaries in files.summaries.items()
        for summary in summaries
        for note in at(summary, "privacy", "notes") or ()
    ]
    protocols = len(by_protocol(files.settings))
    shown: list[object] = []
    if files.unfinished:
        missing = listed(files.unfinished[:4]) + (" and others" if len(files.unfinished) > 4 else "")
        shown.append(f"{plural(len(files.unfinished), 'run')} not finished and left out: {missing}.")
    for names, note, others in merged_notes(every):
        whom = "Every protocol" if len(names) == protocols > 1 else listed(names)
        more = f" (Other numbers in {plural(others, 'other run')}.)" if others else ""
        shown.append(joined(element("strong", f"{whom}:"), f" {note}{more}"))
    return shown


def _accuracy_sections(
    files: ComparisonFiles,
    evaluation: Evaluation,
    settings: list[Setting],
    looks: Looks,
    draw: Draw,
    words: Sequence[str],
    suffix: str,
) -> list[Section]:
    measure = evaluation.measure
    of_what = f" ({', '.join(words)})" if words else ""
    asked = EpsilonAxis(files.matched_unit, asked=True)
    axes = [EpsilonAxis(unit) for unit in COMPARABLE_UNITS]
    if any(asked.falls_short(setting) for setting in settings):
        axes.insert(0, asked)
    rendered = [
        draw(plot) for axis in axes if (plot := _epsilon_plot(settings, measure, axis, looks, suffix))
    ]
    if measure.column == "rmse" and (distances := distance_plot(settings, looks)):
        rendered.append(draw(distances))
    rendered.append(draw(_bytes_plot(settings, measure, looks, suffix)))
    traces = _traces(files, settings, measure)
    course: object = paragraph(
        f"{DASH} By round: every protocol here has one evaluated round; accuracy against bytes shows it all.",
        "dash",
    )
    if any(trace.accuracy.size > 1 for trace in traces):
        rendered.append(draw(_round_plot(traces, measure, looks, suffix, reference_budget(files.settings))))
        course = None
    return [
        Section(
            f"best{suffix}",
            f"Most accurate at each budget{of_what}",
            (_best_table(settings, measure, looks),),
        ),
        Section(
            f"figures{suffix}",
            f"Accuracy, privacy and bytes{of_what}",
            tuple(part for part in (figures(rendered), course) if part is not None),
        ),
        Section(
            f"table{suffix}",
            f"Every protocol, every figure{of_what}",
            (_table(files, settings, measure, looks),),
        ),
    ]


def _best_table(settings: Sequence[Setting], measure: Measure, looks: Looks) -> Html:
    """Return the best of every budget, and the cheapest beside it."""
    accuracy = accuracy_column(measure, spread=False)
    of_accurate, of_cheap = (accuracy, BYTES, *LOSSES), (accuracy, BYTES)
    given = sorted({setting.budget for setting in settings if setting.budget is not None})
    without = [None] if any(setting.budget is None for setting in settings) else []
    rows = []
    for budget in [*given, *without]:
        best = frontier([setting for setting in settings if setting.budget == budget], measure)
        if not best:
            continue
        accurate, cheap = best[-1], best[0]
        rows.append(
            [
                Cell("none" if budget is None else f"ε {budget:g}", budget),
                _named(accurate, looks),
                *(_cell(column, accurate) for column in of_accurate),
                _named(cheap, looks),
                *(_cell(column, cheap) for column in of_cheap),
            ]
        )
    columns = [
        Column("budget", numeric=False),
        Column("most accurate", numeric=False),
        *(Column(column.title, column.hint) for column in of_accurate),
        Column("fewest bytes", numeric=False),
        *(Column(column.title, column.hint) for column in of_cheap),
    ]
    return table("The two ends of each budget's frontier", columns, rows)


def _named(setting: Setting, looks: Looks) -> Cell:
    return Cell(joined(_chip(setting.name, looks), setting.name), setting.name)


def _chip(name: str, looks: Looks) -> Html:
    colour = looks[name].colour
    look = SERIES.index(colour) if colour in SERIES else "reference"
    return element("span", class_=f"chip look-{look}", aria_hidden="true")


def _table(files: ComparisonFiles, settings: Sequence[Setting], measure: Measure, looks: Looks) -> Html:
    measures = [
        measure,
        *(other for other in MEASURES if other != measure and any(s.average(other.column) for s in settings)),
    ]
    accuracies = [accuracy_column(each, direction=True) for each in measures]
    columns = [BUDGET, *accuracies, *LOSSES, MEDIAN_LOSS, SERVER_SEES, ROUNDS]
    columns += [*BYTES_UP, *BYTES_DOWN, TOTAL_BYTES, *_timing_columns(files), RUNS]
    return table(
        "Means over seeds and folds, ± one standard deviation; ε is the largest",
        [_PROTOCOL, *(Column(column.title, column.hint, column.numeric) for column in columns)],
        [[_named(setting, looks), *(_cell(column, setting) for column in columns)] for setting in settings],
    )


_PROTOCOL = Column("protocol", numeric=False)


def _timing_columns(files: ComparisonFiles) -> list[SettingColumn]:
    """Return the seconds on devices and server, which are in a table of their own."""
    timings = {(timing.name, timing.budget): timing for timing in files.timings}

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


def _cell(column: SettingColumn, setting: Setting) -> Cell:
    return Cell(column.text(setting), column.value(setting))


def _epsilon_plot(
    settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis, looks: Looks, suffix: str
) -> Plot | None:
    drawn = [
        setting for setting in settings if axis.value(setting) and setting.mean(measure.column) is not None
    ]
    if not drawn:
        return None
    lines = []
    for name, points in by_protocol(drawn).items():
        ordered = sorted(points, key=lambda setting: axis.value(setting) or 0)
        lines.append(
            f"{name} {ordered[0].mean(measure.column):.3f} at {loss(axis.value(ordered[0]))}"
            + (
                f" to {ordered[-1].mean(measure.column):.3f} at {loss(axis.value(ordered[-1]))}"
                if len(ordered) > 1
                else ""
            )
        )
    lines += [
        f"{setting.name} {setting.mean(measure.column):.3f} without privacy, as a horizontal line"
        for setting in settings
        if setting.reference and setting.mean(measure.column) is not None
    ]
    runs = max(len(setting.rows) for setting in drawn)
    bars = f"Bars: one standard deviation over {runs} runs." if runs > 1 else "One run each, hence no bars."
    hiding = [name for name, points in by_protocol(drawn).items() if points[0].flag("hides_rated_items")]
    cell = (
        f" {listed(hiding)} keep{'s' if len(hiding) == 1 else ''} ε for every entry, rated or not."
        if hiding
        else ""
    )
    dagger = (
        " †: the ε in the ledger is larger than the one asked for, or none is proved; see the table."
        if axis.asked
        else ""
    )
    unproved = [
        name
        for name, points in by_protocol(settings).items()
        if not axis.asked and all(setting.budget and setting.epsilon(axis.unit) is None for setting in points)
    ]
    missing = f" Not drawn, as no ε is proved: {listed(unproved)}." if unproved else ""
    references = " Dashed lines have no privacy." if any(setting.reference for setting in settings) else ""
    return Plot(
        f"accuracy-epsilon-{'asked' if axis.asked else f'per-{axis.unit}'}{suffix}",
        f"{measure.label} against {axis.name}",
        f"{bars}{references}{dagger}{missing}{cell if axis.unit == 'rating' else ''}",
        f"{measure.label} against {axis.label}, logarithmic. {'; '.join(lines)}.",
        lambda style: draw_accuracy_against_epsilon(style, settings, measure, axis, looks),
    )


def _bytes_plot(settings: Sequence[Setting], measure: Measure, looks: Looks, suffix: str) -> Plot:
    lines = [
        f"{name} {points[0].bytes_per_user or 0:,.0f} bytes, {measure.label} "
        f"{measure.best([setting.mean(measure.column) or 0.0 for setting in points]):.3f} at best"
        for name, points in by_protocol(settings).items()
    ]
    return Plot(
        f"accuracy-bytes{suffix}",
        f"{measure.label} against bytes per user",
        "Each step line is the frontier of one budget: nothing at that budget is more accurate for as few "
        "bytes. Points on it are filled, the others hollow.",
        f"{measure.label} against mean bytes per user, logarithmic. {'; '.join(lines)}.",
        lambda style: draw_accuracy_against_bytes(style, settings, measure, looks),
    )


def _round_plot(
    traces: Sequence[Trace], measure: Measure, looks: Looks, suffix: str, reference: float | None
) -> Plot:
    lines = [
        f"{trace.label} {trace.accuracy[0]:.3f} to {trace.accuracy[-1]:.3f} in {trace.accuracy.size} rounds "
        f"and {size(float(trace.bytes_per_user[-1]))}"
        if trace.accuracy.size > 1
        else f"{trace.label} {trace.accuracy[0]:.3f} in one round and {size(float(trace.bytes_per_user[0]))}"
        for trace in traces
    ]
    budget = "" if reference is None else f" Protocols with a budget are at ε = {reference:g}."
    return Plot(
        f"accuracy-rounds{suffix}",
        "One-shot against iterative, by round",
        f"A single mark is a one-shot protocol; a line has a mark for every evaluated round.{budget}",
        f"{measure.label} against the cumulative bytes per user. {'; '.join(lines)}.",
        lambda style: draw_accuracy_by_round(style, traces, measure, looks),
    )


def _traces(files: ComparisonFiles, settings: Sequence[Setting], measure: Measure) -> list[Trace]:
    """Return how the accuracy of every protocol grew, the mean over its runs at the reference budget."""
    reference = reference_budget(files.settings)
    traces = []
    for setting in at_reference(settings):
        courses = [evaluated_rounds(read_rounds(cell), measure) for cell in files.cells(setting)]
        users = setting.mean("users")
        shared = (
            set.intersection(*({number for number, _, _ in course} for course in courses))
            if courses
            else set()
        )
        if not shared or not users:
            continue
        kept = np.array(
            [[(total, value) for number, total, value in course if number in shared] for course in courses]
        )
        total, accuracy = kept.mean(axis=0).T
        if (total > 0).all():
            traces.append(Trace(setting.name, label_of(setting, reference), total / users, accuracy))
    return traces


def _spread_section(
    files: ComparisonFiles, traffic: Sequence[tuple[Setting, str, Numbers]], looks: Looks, draw: Draw
) -> Section:
    heading = "How users differ"
    if not traffic:
        return Section(
            "users", heading, (paragraph(f"{DASH} The runs themselves are not in this directory.", "dash"),)
        )
    reference = reference_budget(files.settings)
    budget = "" if reference is None else f" Budgets: ε = {reference:g} unless the label says another."
    caption = f"Line: all users. Bars: 90 % and 50 % of them. Dot: the median.{budget}"
    spent = [_spread(setting, label, _both(columns)) for setting, label, columns in traffic]
    lost = [
        _spread(setting, label, columns["epsilon_per_user"])
        for setting, label, columns in traffic
        if np.isfinite(columns["epsilon_per_user"]).all() and columns["epsilon_per_user"].max() > 0
    ]
    plots = [
        Plot(
            "bytes-per-user",
            "Bytes per user",
            caption,
            "Bytes per user of each protocol. " + _medians(spent, "bytes"),
            lambda style: draw_spreads(
                style, spent, "Bytes per user, both directions", "bytes", looks, in_bytes=True
            ),
        )
    ]
    if lost:
        plots.append(
            Plot(
                "epsilon-per-user",
                "ε per user",
                caption,
                "Privacy loss per user of each protocol. " + _medians(lost, "epsilon"),
                lambda style: draw_spreads(
                    style, lost, "ε per user, over everything sent", "ε per user", looks, in_bytes=False
                ),
            )
        )
    content: list[object] = [figures([draw(plot) for plot in plots])]
    if not lost:
        content.append(paragraph(f"{DASH} ε per user: nothing here has one.", "dash"))
    return Section("users", heading, tuple(content))


def _spread(setting: Setting, label: str, values: NDArray[np.float64]) -> Spread:
    return Spread(setting.name, label, np.percentile(values, QUANTILES))


def _medians(spreads: Sequence[Spread], unit: str) -> str:
    return "; ".join(
        f"{spread.label} median {spread.quantiles[3]:,.4g} {unit}, largest {spread.quantiles[-1]:,.4g}"
        for spread in spreads
    ) + "."  # fmt: skip


def _noise_section(files: ComparisonFiles, draw: Draw) -> Section:
    heading = "Noise of the mechanisms"
    reference = reference_budget(files.settings)
    mechanisms: dict[str, tuple[list[str], DeviceChannel]] = {}
    for setting in at_reference(files.settings):
        cells = files.cells(setting) if setting.private else []
        noise = read_channel(cells[0]) if cells else None
        if noise is None:
            continue
        # Protocols that share a mechanism share a line.
        names, _ = mechanisms.setdefault(noise.channel.weights.tobytes().hex(), ([], noise))
        names.append(label_of(setting, reference))
    if not mechanisms:
        return Section(
            "noise-section",
            heading,
            (paragraph(f"{DASH} Does not apply: no mechanism here maps a rating to a symbol.", "dash"),),
        )
    drawn = [(", ".join(names), noise) for names, noise in mechanisms.values()]
    lines = [f"{label}: slope {noise.slope:.2f}" for label, noise in drawn]
    budget = "" if reference is None else f" At ε = {reference:g} unless the label says another."
    plot = Plot(
        "noise",
        "What the server reads, on average",
        f"A flat line pulls every rating to one value; the dashed line has no bias.{budget} "
        "The page of a single run shows the whole distribution.",
        f"Mean of what is sent against the true rating. {'; '.join(lines)}.",
        lambda style: draw_mechanisms(style, drawn),
    )
    return Section("noise-section", heading, (figures([draw(plot)]),))


def _published_section(files: ComparisonFiles) -> list[Section]:
    """Return published costs beside the measured ones, where the configuration asks for it."""
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
        "What papers print for a round, beside what was counted here. A payload is the encoded report "
        "alone, a message is all of it."
    )
    return [
        Section(
            "published",
            "Published costs beside measured ones",
            (paragraph(words), table("Cost of a round", columns, rows)),
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


def _provenance() -> Section:
    words = (
        "Every line of the table is in comparison.csv too, run by run; what took how long is in timing.csv, "
        "each run in cells/, what was asked for in comparison.yaml, the figures in figures/ as PNG and SVG."
    )
    return Section("provenance", "How it was made", (paragraph(words),))


def _both(columns: Numbers) -> NDArray[np.float64]:
    return columns["uplink_message_bytes"] + columns["downlink_message_bytes"]
