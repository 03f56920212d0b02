"""The plots of a comparison: their names, how to read them, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.protocol_results import ProtocolResult, at_reference, by_protocol, reference_budget
from simulation.analysis.vocabulary import Metric, listed, loss, size, spread_in_words
from simulation.pages.figures.accuracy import (
    EpsilonAxis,
    Trace,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
    draw_accuracy_by_round,
)
from simulation.pages.figures.looks import Looks, baselines_described, baselines_in_words, trust_in_words
from simulation.pages.figures.rendering import Plot
from simulation.pages.figures.users import evaluated_rounds
from simulation.pages.words import label_of
from simulation.storage.run_files import read_rounds


def epsilon_plot(
    results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis, looks: Looks, suffix: str
) -> Plot | None:
    """Return the plot of accuracy against epsilon; None if no protocol has a value on the axis."""
    drawn = [
        result
        for result in results
        if result.baseline is None and axis.value(result) and result.mean(metric.column) is not None
    ]
    if not drawn:
        return None
    lines = [*_curves_in_words(drawn, metric, axis), *_references_in_words(results, metric)]
    lines += baselines_described(results, metric)
    return Plot(
        f"accuracy-epsilon-{'asked' if axis.asked else f'per-{axis.unit}'}{suffix}",
        f"{metric.label} against {axis.name}",
        " ".join([*_how_to_read(results, drawn, metric, axis), *trust_in_words(looks)]),
        f"{metric.label} against {axis.label}, on a logarithmic axis. {'; '.join(lines)}.",
        lambda style: draw_accuracy_against_epsilon(style, results, metric, axis, looks),
    )


def _curves_in_words(results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis) -> Iterator[str]:
    def point(result: ProtocolResult) -> str:
        return f"{result.mean(metric.column):.3f} at {loss(axis.value(result))}"

    for name, points in by_protocol(results).items():
        first, *others = sorted(points, key=lambda result: axis.value(result) or 0)
        yield f"{name} {point(first)}" + (f" to {point(others[-1])}" if others else "")


def _references_in_words(results: Sequence[ProtocolResult], metric: Metric) -> Iterator[str]:
    for result in results:
        mean = result.mean(metric.column)
        if result.reference and mean is not None:
            yield f"{result.name} {mean:.3f} without privacy, as a horizontal line"


def _how_to_read(
    results: Sequence[ProtocolResult], drawn: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis
) -> Iterator[str]:
    averages = [average for result in drawn if (average := result.average(metric.column))]
    # A bar is over folds only where there is a single seed.
    spread = spread_in_words(replace(each, folds=None) if each.seeds else each for each in averages)
    yield f"Error bars: one {spread}." if spread else "One run per point: no error bars."
    if any(result.reference for result in results):
        yield "Dashed lines: no privacy."
    yield from baselines_in_words(results)
    if axis.asked:
        yield _DAGGER
    unproved = [
        name
        for name, points in by_protocol(results).items()
        if all(result.budget and axis.value(result) is None for result in points)
    ]
    if unproved:
        yield f"Not drawn, because no {axis.name} is proved: {listed(unproved)}."
    hiding = [name for name, points in by_protocol(drawn).items() if points[0].flag("hides_rated_items")]
    if hiding and axis.unit == "rating":
        yield f"For {listed(hiding)}, ε covers every entry, rated or not."


_DAGGER = "†: not proved to keep its budget; the table says what is proved and what is not."


def bytes_plot(results: Sequence[ProtocolResult], metric: Metric, looks: Looks, suffix: str) -> Plot | None:
    """Return the plot of accuracy against bytes per user; None if no protocol's bytes are known."""
    competing = [result for result in results if result.baseline is None]
    if not any(result.bytes_per_user for result in competing):
        return None
    dagger = [_DAGGER] if any(result.falls_short for result in competing) else []
    lines = [
        f"{name} {points[0].bytes_per_user or 0:,.0f} bytes, {metric.label} "
        f"{metric.best([result.mean(metric.column) or 0.0 for result in points]):.3f} at best"
        for name, points in by_protocol(competing).items()
    ]
    lines += baselines_described(results, metric)
    frontiers = (
        "Each stepped line is the frontier of one budget: nothing at that budget is more accurate for as "
        "many bytes or fewer. Points on the frontier are filled, the others hollow."
    )
    several = len({result.budget for result in competing if result.budget}) > 1
    numbers = ["The number beside a marker is its ε, where there is room."] if several else []
    return Plot(
        f"accuracy-bytes{suffix}",
        f"{metric.label} against bytes per user",
        " ".join([frontiers, *numbers, *dagger, *baselines_in_words(results), *trust_in_words(looks)]),
        f"{metric.label} against mean bytes per user, on a logarithmic axis. {'; '.join(lines)}.",
        lambda style: draw_accuracy_against_bytes(style, results, metric, looks),
    )


def round_plot(
    traces: Sequence[Trace],
    results: Sequence[ProtocolResult],
    metric: Metric,
    looks: Looks,
    suffix: str,
    reference: float | None,
) -> Plot:
    """Return the plot of accuracy by round, one-shot protocols beside iterative ones, and the baselines."""
    lines = [
        f"{trace.label} {trace.accuracy[0]:.3f} to {trace.accuracy[-1]:.3f} in {trace.accuracy.size} rounds "
        f"and {size(float(trace.bytes_per_user[-1]))}"
        if trace.accuracy.size > 1
        else f"{trace.label} {trace.accuracy[0]:.3f} in one round and {size(float(trace.bytes_per_user[0]))}"
        for trace in traces
    ]
    lines += baselines_described(results, metric)
    read = ["A single marker is a one-shot protocol; a line has one per evaluated round."]
    read += [] if reference is None else [f"Protocols with a budget are shown at ε = {reference:g}."]
    return Plot(
        f"accuracy-rounds{suffix}",
        "One-shot and iterative protocols, round by round",
        " ".join([*read, *baselines_in_words(results), *trust_in_words(looks)]),
        f"{metric.label} against the cumulative bytes per user. {'; '.join(lines)}.",
        lambda style: draw_accuracy_by_round(style, traces, results, metric, looks),
    )


def traces_of(files: ComparisonFiles, results: Sequence[ProtocolResult], metric: Metric) -> list[Trace]:
    """Return how accurate every protocol was by round, averaged over its runs at the reference budget."""
    reference = reference_budget(files.results)
    traces = []
    for result in at_reference([result for result in results if result.baseline is None]):
        courses = [
            evaluated_rounds(read_rounds(cell, files.summary(cell)), metric) for cell in files.cells(result)
        ]
        users = result.mean("users")
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
            traces.append(Trace(result.name, label_of(result, reference), total / users, accuracy))
    return traces
