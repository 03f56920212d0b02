"""The page of one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simulation.analysis.columns import SERVER_SEES
from simulation.analysis.measures import HEADLINE_MEASURES, MEASURES, Measure, main_measure
from simulation.analysis.numbers import DASH, loss, size
from simulation.analysis.projection import Projection, project
from simulation.analysis.vocabulary import plural, server_sees
from simulation.pages.channel_figures import draw_noise
from simulation.pages.cross_domain_figures import cross_domain_plots
from simulation.pages.markup import Cell, Column, Html, element, joined, number_cell, table, text_cell
from simulation.pages.page import Section, figures, page, paragraph, projection_section
from simulation.pages.plots import Plot, Rendered
from simulation.pages.run_figures import (
    draw_bytes,
    draw_completion,
    draw_rounds_figure,
    draw_summary,
    evaluated_rounds,
    group_by_rating,
    numbers,
)
from simulation.pages.run_files import RunFiles, at
from simulation.pages.words import run_in_words

Draw = Callable[[Plot], Rendered]


def run_page(run: RunFiles, config_text: str, population: float | None, draw: Draw) -> str:
    """Return the page of a run.

    Parameters
    ----------
    run : RunFiles
    config_text : str
        config.yaml as it is.
    population : float or None
        Users of a deployment.
    draw : callable
        Renders a figure, and keeps its files.
    """
    summary = run.summary
    notes = [*summary["privacy"]["notes"], *_unknown_entities(summary["dataset"])]
    sections = [
        Section(
            "results",
            "How accurate, how private, how many bytes",
            (_tiles(run), figures([draw(summary_plot(run))])),
        ),
        Section("users", "Bytes and ε of every user", (_user_table(run), figures([draw(_bytes_plot(run))]))),
        _noise_section(run, draw),
        _rounds_section(run, draw),
        _completion_section(run, draw),
        projection_section(projections(run, population) if population else [], population),
        _provenance(run, config_text),
    ]
    return page(summary["name"], "dprec, one run", run_in_words(run), notes, sections)


def projections(run: RunFiles, population: float) -> list[tuple[str, Projection]]:
    """Project the traffic of a run to a population, by direction."""
    both = project(run.bytes_per_user, population)
    rows = [
        ("from the devices", project(run.traffic["uplink_message_bytes"], population)),
        ("to the devices", project(run.traffic["downlink_message_bytes"], population)),
        ("both", both),
    ]
    factor = at(run.summary, "traffic", "deployed_factor")
    if factor:
        rows.append((f"both, deployed (x {factor:.2f})", both.times(factor)))
    return rows


_PREDICTIONS = (
    "Predictions: dot, bar and line are the median, 50 % and 90 % of them for every true rating; dashed, "
    "perfect ones."
)


def summary_plot(run: RunFiles) -> Plot:
    """Return the figure of a run's three answers."""
    summary = run.summary
    measure = main_measure(summary["accuracy"])
    spent, losses = run.bytes_per_user, run.traffic["epsilon_per_user"]
    how = ""
    if measure is None:
        accurate = "No accuracy was measured."
    elif len(evaluated_rounds(run.rounds, measure)) > 1:
        accurate = f"Left: {measure.label} against the bytes per user, by round."
        how = "Accuracy: a point for every evaluated round."
    else:
        how = _PREDICTIONS
        groups = group_by_rating(run.predictions["rating"], run.predictions["prediction"])
        accurate = (
            f"Left: the median prediction is {groups[0][1][2]:.2f} for a true rating of {groups[0][0]:.3g} "
            f"and {groups[-1][1][2]:.2f} for one of {groups[-1][0]:.3g}."
        )
    private = (
        f"Middle: epsilon per user, median {np.median(losses):.3g}, largest {losses.max():.3g}."
        if np.isfinite(losses).all()
        else "Middle: no privacy loss is bounded."
    )
    traffic = (
        f"Right: bytes per user, median {size(float(np.median(spent)))}, largest {size(float(spent.max()))}."
    )
    return Plot(
        "summary",
        "The run at a glance",
        f"{how} Bytes are those of whole messages, both directions.",
        f"Three panels. {accurate} {private} {traffic}",
        lambda style: draw_summary(style, run),
        full_width=True,
    )


def _unknown_entities(dataset: dict[str, Any]) -> list[str]:
    found = [
        f"{count:,} {what} in the test ratings have no training rating"
        for what, count in (
            ("users", dataset.get("users_only_in_test")),
            ("items", dataset.get("items_only_in_test")),
        )
        if count
    ]
    return [" and ".join(found) + "."] if found else []


def _tiles(run: RunFiles) -> Html:
    summary = run.summary
    accuracy, privacy, traffic = summary["accuracy"], summary["privacy"], summary["traffic"]
    tiles = [
        (_headed(measure, accuracy), f"{accuracy[measure.column]:.{measure.digits}f}", measure.direction)
        for measure in HEADLINE_MEASURES
        if accuracy.get(measure.column) is not None
    ]
    per_user = privacy["epsilon_per_user"]
    seen = server_sees(trusts_server=privacy["trusts_server"], hides_rated_items=privacy["hides_rated_items"])
    tiles += [
        ("ε per rating", loss(privacy["epsilon_per_rating"]), "largest of any user"),
        ("ε per user", loss(per_user["max"]), f"largest; median {loss(per_user['median'])}"),
        (SERVER_SEES.title, seen, plural(traffic["rounds"], "round")),
    ]
    for direction, words in (("uplink", "from the device"), ("downlink", "to the device")):
        spent = traffic[direction]
        detail = f"95 %: {size(spent['message_p95_per_user'])}, largest {size(spent['message_max_per_user'])}"
        tiles.append((f"bytes {words}, mean", size(spent["message_mean_per_user"]), detail))
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value, element("small", detail)))
            for name, value, detail in tiles
        ),
        class_="tiles",
    )


def _headed(measure: Measure, accuracy: dict[str, Any]) -> str:
    return f"F-score at {accuracy.get('k')}" if measure.column == "f_score_at_k" else measure.label


_USER_FIGURES = (
    ("ratings", "ratings", 0),
    ("uplink_payload_bytes", "payload from the device, bytes", 0),
    ("uplink_message_bytes", "messages from the device, bytes", 0),
    ("downlink_payload_bytes", "payload to the device, bytes", 0),
    ("downlink_message_bytes", "messages to the device, bytes", 0),
    ("messages", "messages", 0),
    ("epsilon_per_rating", "ε per rating", 3),
    ("epsilon_per_user", "ε per user", 3),
)


def _user_table(run: RunFiles) -> Html:
    columns = [Column("per user", numeric=False), Column("mean")]
    columns += [Column(head) for head in ("least", "5 %", "median", "95 %", "largest")]
    rows = []
    for column, label, digits in _USER_FIGURES:
        values = run.traffic[column][np.isfinite(run.traffic[column])]
        found: list[float | None] = [None] * 6
        if values.size:
            found = [float(values.mean()), *np.percentile(values, (0, 5, 50, 95, 100)).tolist()]
        rows.append([Cell(label, label), *(number_cell(value, digits) for value in found)])
    return table(f"How {run.summary['traffic']['users']:,} users differ", columns, rows)


def _bytes_plot(run: RunFiles) -> Plot:
    up, down = run.traffic["uplink_message_bytes"], run.traffic["downlink_message_bytes"]
    return Plot(
        "bytes-per-user",
        "Bytes per user, by direction",
        "Whole messages as if the user were alone on its node. A broadcast is charged to everybody in full.",
        f"Two histograms. From the device: median {size(float(np.median(up)))}, 95th percentile "
        f"{size(float(np.percentile(up, 95)))}. To the device: median {size(float(np.median(down)))}, 95th "
        f"percentile {size(float(np.percentile(down, 95)))}.",
        lambda style: draw_bytes(style, run),
        full_width=True,
    )


def _noise_section(run: RunFiles, draw: Draw) -> Section:
    noise = run.channel
    if noise is None:
        return _dashed("noise", "Noise of the mechanism", "no mechanism that maps a rating to a symbol.")
    calibrated = (
        f" Calibrated for the median user, who reports {noise.cells:,} cells." if noise.per_user else ""
    )
    plot = Plot(
        "noise",
        "What the mechanism sends",
        "Where the mean of what is sent rises more slowly than the true rating, reports are pulled to the "
        f"middle: here by a slope of {noise.slope:.2f}.{calibrated}",
        f"Left: probabilities of what is sent for each of {noise.ratings.size} true ratings. Right: the mean "
        f"of what is sent runs from {noise.expected[0]:.2f} for a true {noise.ratings[0]:g} to "
        f"{noise.expected[-1]:.2f} for a true {noise.ratings[-1]:g}, a slope of {noise.slope:.2f}.",
        lambda style: draw_noise(style, noise),
        full_width=True,
    )
    return Section("noise-section", "Noise of the mechanism", (figures([draw(plot)]),))


def _rounds_section(run: RunFiles, draw: Draw) -> Section:
    heading = "Round by round"
    measure = main_measure(run.summary["accuracy"])
    evaluated = evaluated_rounds(run.rounds, measure) if measure else []
    content: list[object] = []
    if measure and len(evaluated) > 1:
        users = run.summary["traffic"]["users"]
        (first, _, start), (last, total, end) = evaluated[0], evaluated[-1]
        plot = Plot(
            "rounds",
            "Accuracy against bytes, by round",
            "Every point is an evaluated round; bytes are the mean per user up to it.",
            f"{measure.label} goes from {start:.4g} after round {first} to {end:.4g} after round {last}, "
            f"when the mean user has moved {size(total / users)}.",
            lambda style: draw_rounds_figure(style, run, measure),
        )
        content.append(figures([draw(plot)]))
    else:
        content.append(paragraph(f"{DASH} One evaluated round: there is no course to draw.", "dash"))
    content.append(_rounds_table(run))
    return Section("rounds-section", heading, tuple(content))


def _rounds_table(run: RunFiles) -> Html:
    measures = [
        measure
        for measure in MEASURES
        if any(at(line, "accuracy", measure.column) is not None for line in run.rounds)
    ]
    columns = [Column("round"), Column("replies"), Column("failures")]
    columns += [Column(measure.label) for measure in measures]
    columns += [Column("up", "message bytes"), Column("down", "message bytes"), Column("seconds")]
    rows = [
        [
            number_cell(at(line, "round"), 0),
            number_cell(at(line, "replies"), 0),
            number_cell(at(line, "failures"), 0),
            *(number_cell(at(line, "accuracy", measure.column), measure.digits) for measure in measures),
            number_cell(at(line, "uplink", "message_bytes"), 0),
            number_cell(at(line, "downlink", "message_bytes"), 0),
            number_cell(at(line, "seconds"), 2),
        ]
        for line in run.rounds
    ]
    return table("Rounds, all users together", columns, rows)


def _completion_section(run: RunFiles, draw: Draw) -> Section:
    diagnostics = run.summary.get("completion_diagnostics") or {}
    heading = f"What the completion learned ({run.summary.get('completion') or DASH})"
    if not diagnostics:
        return _dashed("completion", heading, "it says nothing of itself.")
    content: list[object] = []
    trace = numbers(diagnostics.get("log_likelihood"))
    pi, sigma = numbers(diagnostics.get("pi")), numbers(diagnostics.get("sigma"))
    drawn = len(trace) > 1 and len(pi) == len(sigma) > 0 and min(sigma) > 0
    if drawn:
        widest = max(range(len(pi)), key=pi.__getitem__)
        plot = Plot(
            "completion",
            "How the mixture was fitted",
            "The log-likelihood must not fall. The mixture is what the completion takes the noise to be.",
            f"Left: the log-likelihood rises from {trace[0]:,.0f} to {trace[-1]:,.0f} in {len(trace)} steps. "
            f"Right: {len(pi)} Gaussians around 0; the largest share, {pi[widest]:.2f}, has a standard "
            f"deviation of {sigma[widest]:.2f}.",
            lambda style: draw_completion(style, trace, pi, sigma),
            full_width=True,
        )
        content.append(figures([draw(plot)]))
    plots = cross_domain_plots(diagnostics)
    if plots:
        content.append(figures([draw(plot) for plot in plots]))
    rows = [
        [text_cell(key), text_cell(_shown(value))]
        for key, value in diagnostics.items()
        if not (drawn and key == "log_likelihood") and not (plots and isinstance(value, dict))
    ]
    columns = [Column("figure", numeric=False), Column("value", numeric=False)]
    content.append(table("Diagnostics", columns, rows, sortable=False))
    return Section("completion-section", heading, tuple(content))


def _shown(value: Any) -> str | None:
    if isinstance(value, list):
        few = [_shown(entry) or DASH for entry in value[:8]]
        return ", ".join(few) + (f", … ({len(value)} in all)" if len(value) > len(few) else "")
    if isinstance(value, float):
        return f"{value:,.5g}"
    return None if value is None else str(value)


def _provenance(run: RunFiles, config_text: str) -> Section:
    summary = run.summary
    seconds, environment = summary["time"], summary["environment"]
    versions = ", ".join(f"{key} {value}" for key, value in environment.items() if isinstance(value, str))
    words = (
        f"{seconds['total_s']:.1f} s in all: {seconds['clients_s']:.1f} s for the devices, "
        f"{seconds['server_s']:.1f} s for the server, {seconds['startup_s']:.1f} s to start; peak memory "
        f"{summary['peak_memory_mb']:,.0f} MB. {versions}."
    )
    again = joined("Save it as a file and give it to ", element("code", "dprec run"), ".")
    details = element(
        "details",
        element("summary", "The configuration, to run it again"),
        element("p", again),
        element("pre", config_text, tabindex="0", role="region", aria_label="Configuration"),
    )
    return Section("provenance", "How it was made", (paragraph(words), details))


def _dashed(name: str, heading: str, why: str) -> Section:
    return Section(f"{name}-section", heading, (paragraph(f"{DASH} Does not apply: {why}", "dash"),))
