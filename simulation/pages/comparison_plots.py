"""The plots of a comparison: their names, how to read them, and what they show."""

from collections.abc import Sequence

import numpy as np

from dprec.accounting import COMPARABLE_UNITS, ComparableUnit
from simulation.analysis.gains import NOTHING_SENT
from simulation.analysis.protocol_results import (
    ProtocolResult,
    at_reference,
    by_accuracy,
    by_protocol,
    reference_budget,
)
from simulation.analysis.vocabulary import Metric, listed, size
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.figures.accuracy import (
    EpsilonAxis,
    Series,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
    draw_accuracy_by_round,
)
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.noise import distance_plot
from simulation.pages.figures.panels import printable, shortened
from simulation.pages.figures.rendering import Plot
from simulation.pages.figures.users import evaluated_rounds
from simulation.pages.words import label_of
from simulation.storage.run_files import read_rounds


def _caption(results: Sequence[ProtocolResult], *more: str, dagger: bool = True, at: bool = True) -> str:
    words = [*more, "Point at a place to see its name and figures."]
    baselines = {result.baseline for result in results} - {None}
    words += ["Shaded: worse than nothing sent."] * (NOTHING_SENT in baselines)
    words += ["Thin lines across: the other baselines."] * bool(baselines - {NOTHING_SENT})
    if at and (budget := reference_budget(results)) is not None:
        words.append(f"Protocols with a budget are at ε = {budget:g}, or next to it.")
    if dagger and any(result.falls_short for result in results):
        words.append("†: not proved to keep its budget.")
    return " ".join(words)


def _seen(results: Sequence[ProtocolResult], metric: Metric, against: str) -> str:
    """Say what is seen, for readers who cannot see it."""
    own = [result for result in by_accuracy(results, metric) if not result.baseline]
    best = own[0]
    most = f"the most accurate of {len(by_protocol(own))} is {printable(best.name)}"
    return f"{metric.label} against {against}; {most}, {best.mean(metric.column):.3f}."


def epsilon_axes(
    results: Sequence[ProtocolResult], unit: ComparableUnit, delta: float | None
) -> list[EpsilonAxis]:
    """Return the axes of what is protected, that in which protocols are matched first."""
    axes = [EpsilonAxis(each) for each in sorted(COMPARABLE_UNITS, key=lambda each: each != unit)]
    if delta is not None:
        axes = [EpsilonAxis("user", delta)]
    if any(result.falls_short for result in results):
        axes.insert(0, EpsilonAxis(unit, delta, asked=True))
    per_user = EpsilonAxis("user", delta)
    if unit == "user" and any(each.any_two not in (None, per_user.value(each)) for each in results):
        axes.append(EpsilonAxis("user", delta, any_two=True))
    return axes


def epsilon_plot(
    results: Sequence[ProtocolResult], metric: Metric, axes: Sequence[EpsilonAxis], looks: Looks, suffix: str
) -> Plot | None:
    """Return the plot of accuracy against epsilon, a panel for each axis on which a protocol has a value."""
    own = [result for result in results if not result.baseline and result.mean(metric.column) is not None]
    drawn = [axis for axis in axes if any(axis.value(result) for result in own)]
    if not drawn:
        return None
    units = listed(axis.name for axis in drawn)
    unproved = [
        f"Not drawn, because no {axis.name} is proved: {listed(names)}."
        for axis in drawn
        if (names := [name for name, points in by_protocol(own).items() if _unproved(points, axis)])
    ]
    bars, asked = "Error bars: one standard deviation over runs.", any(axis.asked for axis in drawn)
    return Plot(
        f"accuracy-epsilon{suffix}",
        f"{metric.label} against {units}",
        _caption(results, bars, *unproved, dagger=asked, at=False),
        _seen(results, metric, units),
        lambda: [draw_accuracy_against_epsilon(results, metric, axis, looks) for axis in drawn],
        full_width=len(drawn) > 1,
    )


def _unproved(points: Sequence[ProtocolResult], axis: EpsilonAxis) -> bool:
    return all(result.budget and axis.value(result) is None for result in points)


def bytes_plot(results: Sequence[ProtocolResult], metric: Metric, looks: Looks, suffix: str) -> Plot | None:
    """Return the plot of accuracy against bytes per user; None if no protocol's bytes are known."""
    shown = at_reference(results)
    sending = [each for each in shown if not each.baseline and each.bytes_per_user]
    if not any(each.mean(metric.column) is not None for each in sending):
        return None
    return Plot(
        f"accuracy-bytes{suffix}",
        f"{metric.label} against bytes per user",
        _caption(results),
        _seen(sending, metric, "mean bytes per user, of messages and on the network"),
        lambda: draw_accuracy_against_bytes(shown, metric, looks),
        full_width=any(each.network_bytes_per_user for each in sending),
    )


def evaluation_plots(part: EvaluationPart) -> list[Plot]:
    """Return the figures of accuracy against privacy, bytes and rounds; that against epsilon comes first."""
    files, results, metric, looks, suffix = part.files, part.results, part.metric, part.looks, part.suffix
    axes = epsilon_axes(results, files.matched_unit, files.matched_delta)
    traces = _traces(part)
    plots = [
        epsilon_plot(results, metric, axes, looks, suffix),
        distance_plot(results) if metric.column == "rmse" else None,
        bytes_plot(results, metric, looks, suffix),
        # With a single evaluated round, accuracy against bytes shows it all.
        _round_plot(traces, part) if any(trace.y.size > 1 for trace in traces) else None,
    ]
    return [plot for plot in plots if plot]


def _round_plot(traces: Sequence[Series], part: EvaluationPart) -> Plot:
    """Return the plot of accuracy by round, one-shot protocols beside iterative ones, and the baselines."""
    results, metric = part.results, part.metric
    return Plot(
        f"accuracy-rounds{part.suffix}",
        "One-shot and iterative protocols, round by round",
        _caption(results, "A marker alone is a one-shot protocol, a line an iterative one.", dagger=False),
        _seen(at_reference(results), metric, "the bytes per user so far"),
        lambda: [draw_accuracy_by_round(traces, results, metric, part.looks)],
    )


def _traces(part: EvaluationPart) -> list[Series]:
    """Return how accurate every protocol was by round, averaged over its runs at the reference budget."""
    files, results, metric = part.files, part.results, part.metric
    reference = reference_budget(files.results)
    traces = []
    for result in at_reference([result for result in results if result.baseline is None]):
        courses = [
            evaluated_rounds(read_rounds(cell, files.summary(cell)), metric) for cell in files.cells(result)
        ]
        users = result.mean("users")
        shared = set.intersection(*({number for number, *_ in each} for each in courses)) if courses else None
        if not shared or not users:
            continue
        rounds = np.array([[each for each in course if each[0] in shared] for course in courses])
        numbers, total, reached = rounds.mean(axis=0).T
        if (total > 0).all():
            label = label_of(result, reference)
            words = [
                f"{printable(label)}, round {number:.0f}: {metric.label} {value:.{metric.digits}f}, "
                f"{size(spent)} per user so far"
                for number, spent, value in zip(numbers, total / users, reached, strict=True)
            ]
            traces.append(Series(result.name, shortened(label), total / users, reached, words))
    return traces
