"""The figures of a comparison: accuracy first, then how users differ, and noise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from dprec.accounting import COMPARABLE_UNITS, ComparableUnit
from dprec.arrays import Floats
from dprec.reports import DeviceChannel
from simulation.analysis.gains import NOTHING_SENT
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    ProtocolResult,
    at_reference,
    by_accuracy,
    by_protocol,
    reference_budget,
)
from simulation.analysis.vocabulary import DASH, Metric, grouped_by, listed, size
from simulation.pages.deployment import Traffic
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.figures.accuracy import (
    SPENT,
    EpsilonAxis,
    Series,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
    draw_accuracy_by_round,
)
from simulation.pages.figures.drawing import Plot
from simulation.pages.figures.looks import Look, Looks, printable, shortened
from simulation.pages.figures.noise import SampledNoise, distance_plot, draw_expected, sampled_noise_plot
from simulation.pages.figures.users import SPREAD_QUANTILES, Spread, draw_spreads, evaluated_rounds
from simulation.pages.page import Section
from simulation.pages.words import label_of
from simulation.storage.columns import read_rows
from simulation.storage.directories import NOISE
from simulation.storage.files import Columns
from simulation.storage.run_files import bytes_per_user, read_device_channel, read_rounds


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


def seen(results: Sequence[ProtocolResult], metric: Metric, against: str) -> str:
    """Say what is seen, for readers who cannot see it."""
    own = [result for result in by_accuracy(results, metric) if not result.baseline]
    most = f"the most accurate of {len(by_protocol(own))} is {printable(own[0].name)}"
    return f"{metric.label} against {against}; {most}, {own[0].mean(metric.column):.3f}."


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
    unproved = [
        f"Not drawn, because no {axis.name} is proved: {listed(names)}."
        for axis in drawn
        if (
            names := [
                name
                for name, points in by_protocol(own).items()
                if all(result.budget and axis.value(result) is None for result in points)
            ]
        )
    ]
    units, asked = listed(axis.name for axis in drawn), any(axis.asked for axis in drawn)
    bars = "Error bars: one standard deviation over runs."
    draw = partial(draw_accuracy_against_epsilon, results=results, metric=metric, looks=looks)
    return Plot(
        f"accuracy-epsilon{suffix}",
        f"{metric.label} against {units}",
        _caption(results, bars, *unproved, dagger=asked, at=False),
        seen(results, metric, units),
        [partial(draw, axis=axis) for axis in drawn],
        full_width=len(drawn) > 1,
    )


def bytes_plot(results: Sequence[ProtocolResult], metric: Metric, looks: Looks, suffix: str) -> Plot | None:
    """Return the plot of accuracy against bytes per user; None if no protocol's bytes are known."""
    shown = at_reference(results)
    sending = [each for each in shown if not each.baseline and each.bytes_per_user]
    if not any(each.mean(metric.column) is not None for each in sending):
        return None
    drawn = [what for what, key in SPENT.items() if any(getattr(each, key) for each in sending)]
    draw = partial(draw_accuracy_against_bytes, results=shown, metric=metric, looks=looks)
    return Plot(
        f"accuracy-bytes{suffix}",
        f"{metric.label} against bytes per user",
        _caption(results),
        seen(sending, metric, "mean bytes per user, of messages and on the network"),
        [partial(draw, what=what) for what in drawn],
        full_width=len(drawn) > 1,
    )


def evaluation_plots(part: EvaluationPart) -> list[Plot]:
    """Return the figures of accuracy against privacy, bytes and rounds; that against epsilon comes first."""
    files, results, metric, looks, suffix = part.files, part.results, part.metric, part.looks, part.suffix
    axes = epsilon_axes(results, files.matched_unit, files.matched_delta)
    plots = [
        epsilon_plot(results, metric, axes, looks, suffix),
        distance_plot(results) if metric.column == "rmse" else None,
        bytes_plot(results, metric, looks, suffix),
    ]
    traces = _traces(part)
    # With a single evaluated round, accuracy against bytes shows it all.
    if any(trace.y.size > 1 for trace in traces):
        lone = "A marker alone is a one-shot protocol, a line an iterative one."
        draw = partial(draw_accuracy_by_round, traces=traces, results=results, metric=metric, looks=looks)
        plots.append(
            Plot(
                f"accuracy-rounds{suffix}",
                "One-shot and iterative protocols, round by round",
                _caption(results, lone, dagger=False),
                seen(at_reference(results), metric, "the bytes per user so far"),
                [draw],
            )
        )
    return [plot for plot in plots if plot]


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


def users_section(files: ComparisonFiles, traffic: Traffic, looks: Looks) -> Section:
    """Return how bytes and losses are distributed over the users of every protocol."""

    def plots(name: str, title: str, axis: str, of: Callable[[Columns], Floats]) -> Iterator[Plot]:
        spent = [(result.name, label, of(columns)) for result, label, columns in traffic]
        spreads = [
            Spread(name, label, np.percentile(values, SPREAD_QUANTILES))
            for name, label, values in spent
            # A logarithmic axis has no place for what sends and loses nothing.
            if np.isfinite(values).all() and values.max() > 0
        ]
        medians = "; ".join(f"{each.label} {each.quantiles[3]:,.4g}" for each in spreads)
        draw = partial(draw_spreads, spreads=spreads, axis=axis, looks=looks, in_bytes=of is bytes_per_user)
        if spreads:
            yield Plot(
                name,
                title,
                f"Line: all users. Bars: the middle 90 % and 50 %. Dot: the median.{_at(files)}",
                f"{title}, medians: {medians}.",
                [draw],
                height=50.0 + 15 * len(spreads),
            )

    drawn = [
        *plots("bytes-per-user", "Bytes per user", "bytes per user, both directions", bytes_per_user),
        *plots("epsilon-per-user", "ε per user", "ε per user", lambda columns: columns["epsilon_per_user"]),
    ]
    why = "No protocol here sends anything." if traffic else "The runs themselves are not in this directory."
    return Section("users", "How users differ", (drawn or f"{DASH} {why}",))


def _at(files: ComparisonFiles) -> str:
    """Return what a caption says of the budget at which protocols are shown."""
    reference = reference_budget(files.results)
    return "" if reference is None else f" ε = {reference:g} unless the label says otherwise."


def noise_section(files: ComparisonFiles, looks: Looks) -> Section:
    """Return the section on what mechanisms send: its mean by true rating, and what was sampled of it."""
    sampled = (sampled_noise_plot(*each) for each in read_noise(files.directory).items())
    return Section("noise-section", "Noise of the mechanisms", ([*_mechanism_plots(files, looks), *sampled],))


def _mechanism_plots(files: ComparisonFiles, looks: Looks) -> Iterator[Plot]:
    """Yield a plot for each scale: mechanisms for stars and for signs share none."""
    reference = reference_budget(files.results)
    scales: dict[tuple[float, ...], dict[str, tuple[list[str], Look, DeviceChannel]]] = {}
    for result in at_reference(files.results):
        cells = files.cells(result) if result.private else []
        noise = read_device_channel(cells[0]) if cells else None
        if noise is None:
            continue
        # Protocols that share a mechanism share a line.
        mechanisms = scales.setdefault(tuple(noise.ratings.tolist()), {})
        key = noise.channel.weights.tobytes().hex()
        names, *_ = mechanisms.setdefault(key, ([], looks[result.name], noise))
        names.append(label_of(result, reference))
    for place, (scale, mechanisms) in enumerate(scales.items(), start=1):
        drawn = [(", ".join(names), look, noise) for names, look, noise in mechanisms.values()]
        of = f", on the scale from {scale[0]:g} to {scale[-1]:g}" if len(scales) > 1 else ""
        slopes = "; ".join(f"{label}: slope {noise.slope:.2f}" for label, _, noise in drawn)
        yield Plot(
            "noise" if place == 1 else f"noise-{place}",
            f"What the server receives, on average{of}",
            f"The flatter a line, the more it pulls ratings together; dotted: no bias.{_at(files)}",
            f"Mean of what is sent against the true rating. {slopes}.",
            [partial(draw_expected, mechanisms=drawn)],
        )


_NOISE_COLUMNS = (
    *("protocol", "mechanism", "epsilon"),
    *("low", "high", "sampled_share", "theoretical_probability"),
)


def read_noise(directory: Path) -> Mapping[float, Sequence[SampledNoise]]:
    """Read noise.csv, by epsilon; empty if there is none."""
    path = directory / NOISE
    rows = read_rows(path, _NOISE_COLUMNS) if path.is_file() else []
    drawn = grouped_by(((row["protocol"], row["mechanism"], row["epsilon"]), row) for row in rows)
    noises: list[tuple[float, SampledNoise]] = []
    for (protocol, mechanism, epsilon), own in drawn.items():
        low, high, sampled, theory = (
            np.array([row[column] for row in own], dtype=np.float64) for column in _NOISE_COLUMNS[3:]
        )
        edges = np.append(low, high[-1])
        noises.append((epsilon, SampledNoise(protocol, mechanism, edges, sampled, theory)))
    return grouped_by(noises)
