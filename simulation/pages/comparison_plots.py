"""The plots of a comparison: their names, how to read them, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.settings import Setting, at_reference, by_protocol, reference_budget
from simulation.analysis.vocabulary import Measure, listed, loss, size, spread_in_words
from simulation.pages.figures.accuracy import (
    EpsilonAxis,
    Trace,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
    draw_accuracy_by_round,
)
from simulation.pages.figures.looks import Looks, floors_described, floors_in_words, trust_in_words
from simulation.pages.figures.rendering import Plot
from simulation.pages.figures.users import evaluated_rounds
from simulation.pages.words import label_of
from simulation.storage.run_files import read_rounds


def epsilon_plot(
    settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis, looks: Looks, suffix: str
) -> Plot | None:
    """Return the plot of accuracy against epsilon; None if no protocol has a place on the axis."""
    drawn = [
        setting
        for setting in settings
        if setting.floor is None and axis.value(setting) and setting.mean(measure.column) is not None
    ]
    if not drawn:
        return None
    lines = [*_curves_in_words(drawn, measure, axis), *_references_in_words(settings, measure)]
    lines += floors_described(settings, measure)
    return Plot(
        f"accuracy-epsilon-{'asked' if axis.asked else f'per-{axis.unit}'}{suffix}",
        f"{measure.label} against {axis.name}",
        " ".join([*_how_to_read(settings, drawn, measure, axis), *trust_in_words(looks)]),
        f"{measure.label} against {axis.label}, on a logarithmic axis. {'; '.join(lines)}.",
        lambda style: draw_accuracy_against_epsilon(style, settings, measure, axis, looks),
    )


def _curves_in_words(settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis) -> Iterator[str]:
    def point(setting: Setting) -> str:
        return f"{setting.mean(measure.column):.3f} at {loss(axis.value(setting))}"

    for name, points in by_protocol(settings).items():
        first, *others = sorted(points, key=lambda setting: axis.value(setting) or 0)
        yield f"{name} {point(first)}" + (f" to {point(others[-1])}" if others else "")


def _references_in_words(settings: Sequence[Setting], measure: Measure) -> Iterator[str]:
    for setting in settings:
        mean = setting.mean(measure.column)
        if setting.reference and mean is not None:
            yield f"{setting.name} {mean:.3f} without privacy, as a horizontal line"


def _how_to_read(
    settings: Sequence[Setting], drawn: Sequence[Setting], measure: Measure, axis: EpsilonAxis
) -> Iterator[str]:
    averages = [average for setting in drawn if (average := setting.average(measure.column))]
    # A bar is over folds only where there is a single seed.
    spread = spread_in_words(replace(each, folds=None) if each.seeds else each for each in averages)
    yield f"Error bars: one {spread}." if spread else "One run per point: no error bars."
    if any(setting.reference for setting in settings):
        yield "Dashed lines: no privacy."
    yield from floors_in_words(settings)
    if axis.asked:
        yield _DAGGER
    unproved = [
        name
        for name, points in by_protocol(settings).items()
        if all(setting.budget and axis.value(setting) is None for setting in points)
    ]
    if unproved:
        yield f"Not drawn, because no {axis.name} is proved: {listed(unproved)}."
    hiding = [name for name, points in by_protocol(drawn).items() if points[0].flag("hides_rated_items")]
    if hiding and axis.unit == "rating":
        yield f"For {listed(hiding)}, ε covers every entry, rated or not."


_DAGGER = "†: not proved to keep its budget; the table says what is proved and what is not."


def bytes_plot(settings: Sequence[Setting], measure: Measure, looks: Looks, suffix: str) -> Plot | None:
    """Return the plot of accuracy against bytes per user; None if no protocol's bytes are known."""
    competing = [setting for setting in settings if setting.floor is None]
    if not any(setting.bytes_per_user for setting in competing):
        return None
    dagger = [_DAGGER] if any(setting.falls_short for setting in competing) else []
    lines = [
        f"{name} {points[0].bytes_per_user or 0:,.0f} bytes, {measure.label} "
        f"{measure.best([setting.mean(measure.column) or 0.0 for setting in points]):.3f} at best"
        for name, points in by_protocol(competing).items()
    ]
    lines += floors_described(settings, measure)
    frontiers = (
        "Each stepped line is the frontier of one budget: nothing at that budget is more accurate for as "
        "many bytes or fewer. Points on the frontier are filled, the others hollow."
    )
    several = len({setting.budget for setting in competing if setting.budget}) > 1
    numbers = ["The number beside a marker is its ε, where there is room."] if several else []
    return Plot(
        f"accuracy-bytes{suffix}",
        f"{measure.label} against bytes per user",
        " ".join([frontiers, *numbers, *dagger, *floors_in_words(settings), *trust_in_words(looks)]),
        f"{measure.label} against mean bytes per user, on a logarithmic axis. {'; '.join(lines)}.",
        lambda style: draw_accuracy_against_bytes(style, settings, measure, looks),
    )


def round_plot(
    traces: Sequence[Trace],
    settings: Sequence[Setting],
    measure: Measure,
    looks: Looks,
    suffix: str,
    reference: float | None,
) -> Plot:
    """Return the plot of accuracy by round, one-shot protocols beside iterative ones, and the floors."""
    lines = [
        f"{trace.label} {trace.accuracy[0]:.3f} to {trace.accuracy[-1]:.3f} in {trace.accuracy.size} rounds "
        f"and {size(float(trace.bytes_per_user[-1]))}"
        if trace.accuracy.size > 1
        else f"{trace.label} {trace.accuracy[0]:.3f} in one round and {size(float(trace.bytes_per_user[0]))}"
        for trace in traces
    ]
    lines += floors_described(settings, measure)
    read = ["A single marker is a one-shot protocol; a line has one per evaluated round."]
    read += [] if reference is None else [f"Protocols with a budget are shown at ε = {reference:g}."]
    return Plot(
        f"accuracy-rounds{suffix}",
        "One-shot and iterative protocols, round by round",
        " ".join([*read, *floors_in_words(settings), *trust_in_words(looks)]),
        f"{measure.label} against the cumulative bytes per user. {'; '.join(lines)}.",
        lambda style: draw_accuracy_by_round(style, traces, settings, measure, looks),
    )


def traces_of(files: ComparisonFiles, settings: Sequence[Setting], measure: Measure) -> list[Trace]:
    """Return how accurate every protocol was by round, averaged over its runs at the reference budget."""
    reference = reference_budget(files.settings)
    traces = []
    for setting in at_reference([setting for setting in settings if setting.floor is None]):
        courses = [
            evaluated_rounds(read_rounds(cell, files.summary(cell)), measure) for cell in files.cells(setting)
        ]
        users = setting.mean("users")
        shared = (
            set.intersection(*({number for number, _, _ in course} for course in courses))
            if courses
            else set()
        )
        if not shared or not users:
            continue
        shared_rounds = np.array(
            [[(total, value) for number, total, value in course if number in shared] for course in courses]
        )
        total, accuracy = shared_rounds.mean(axis=0).T
        if (total > 0).all():
            traces.append(Trace(setting.name, label_of(setting, reference), total / users, accuracy))
    return traces
