"""What mechanisms do to ratings, sampled and in theory, and what completions learn: mixtures, AlterEgos."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Floats
from dprec.channel import Channel
from dprec.completion import FittedMixture
from dprec.reports import DeviceChannel
from simulation.analysis.protocol_results import ProtocolResult, by_protocol
from simulation.pages.figures.marks import Axis, Line, Mark, Text, level_axis, log_axis, plain_axis, stairs
from simulation.pages.figures.panels import (
    DASHES,
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Entry,
    Look,
    Panel,
    chart,
    ramp,
    shortened,
)
from simulation.pages.figures.rendering import Plot
from simulation.protocols.domains import AlterEgo, LearnedDomains

_FEW_SYMBOLS = 12
_MOST_ROWS = 12
"""Most true ratings that a figure shows; from a finer scale it shows nine at even distances."""


def draw_noise(noise: DeviceChannel) -> list[Panel]:
    """Draw what is sent and read for every true rating, and E[r* | r]."""
    few = noise.channel.symbols <= _FEW_SYMBOLS
    sent = _matrix(noise.channel) if few else _densities(noise.channel)
    return [sent, _expected([("mean", Look(SERIES[0], "o"), noise)])]


def draw_mechanisms(mechanisms: Sequence[tuple[str, Look, DeviceChannel]]) -> list[Panel]:
    """Draw E[r* | r] of the mechanisms of a comparison, for one scale, which have names and looks."""
    return [_expected(mechanisms)]


_LONGEST = 60
"""Letters of a label for which a legend of one column has room."""


def _expected(mechanisms: Sequence[tuple[str, Look, DeviceChannel]]) -> Panel:
    """Draw E[r* | r] against the line of no bias."""
    inputs = mechanisms[0][2].ratings
    ends = [float(inputs[0]), float(inputs[-1])]
    lines, names = [Line(ends, ends, MUTED, 1.1, "4 3")], [Entry("no bias", MUTED, dashes="4 3", at=ends[-1])]
    for place, (colour, (label, look, noise)) in enumerate(
        zip(ramp(len(mechanisms)), mechanisms, strict=True)
    ):
        dashes, shown = DASHES[place % len(DASHES)], _shown(np.arange(noise.ratings.size))
        own, read = noise.ratings[shown], noise.expected[shown]
        words = [
            f"{shortened(label, _LONGEST)}: a true {at:g} is read as {mean:.2f} on average"
            for at, mean in zip(own, read, strict=True)
        ]
        lines.append(Line(noise.ratings, noise.expected, colour, dashes=dashes))
        lines.append(Line(own, read, colour, 0, marker=look.marker, words=words))
        first, *others = label.split(", ")
        named = shortened(first, 20) + (f" + {len(others)}" if others else "")
        names.append(Entry(named, colour, look.marker, dashes, float(read[-1])))
    every = np.concatenate([ends, *(noise.expected for *_, noise in mechanisms)])
    y = plain_axis(float(every.min()), float(every.max()), pad=0.06, grid=True)
    x = level_axis(inputs.tolist(), "true rating, r")
    return replace(chart("Mean of what the server reads, E[r*|r]", x, y, lines), ends=names)


def _densities(channel: Channel) -> Panel:
    shown = ~np.isnan(channel.values)
    values = channel.values[shown]
    rows = _shown(np.flatnonzero(~np.isnan(channel.inputs)))
    step = float(np.median(np.diff(values))) if values.size > 1 else 1.0
    # The two end symbols may stand for whole tails; as densities they would dwarf the rest.
    inner = slice(1, -1) if values.size > 3 else slice(None)
    labelled = {0, rows.size // 2, rows.size - 1} if rows.size > 6 else range(rows.size)
    lines, tails, most = [], [], 0.0
    for place, (row, colour) in enumerate(zip(rows, ramp(rows.size), strict=True)):
        density = channel.probabilities[row, shown] / step
        own, highest = density[inner], float(density[inner].max())
        label = f"r = {channel.inputs[row]:g}" if place in labelled else ""
        lines.append(Line(values[inner], own, colour, 1.6, label=label))
        for end in (0, -1):
            if density[end] > 1.5 * highest:
                at, words = (values[inner][end], own[end]), f"{density[end] * step:.0%}"
                tails.append(Text(*at, words, colour, shift=(0.0, -8.0), size=10.5))
        most = max(most, highest)
    x = plain_axis(float(values[0]), float(values[-1]), "what the server reads, r*")
    y = plain_axis(0, 1.12 * most, "density, by true rating r", ticks=4, grid=True)
    return chart("What the server reads", x, y, lines, tails)


_CORNERS = np.array([[-1, 1, 1, -1], [-1, -1, 1, 1]])


def _matrix(channel: Channel) -> Panel:
    """Draw the channel as a matrix of probabilities, with the numbers in it."""
    levels = _shown(np.arange(channel.inputs.size))
    colours = ramp(7)
    most = float(channel.probabilities.max())
    marks: list[Mark] = []
    for row, level in enumerate(levels):
        for symbol, share in enumerate(channel.probabilities[level].tolist()):
            dark = share > most / 2
            corners = symbol + 0.47 * _CORNERS[0], row + 0.47 * _CORNERS[1]
            # Columns change colour halfway up the ramp, so that they stay legible in light and dark alike.
            marks.append(Line(*corners, colours[5 if dark else 0], 0, fill=0.25 + 0.75 * share / most))
            words = "0" if share == 0 else f"{share:.2f}".lstrip("0") if share < 0.995 else "1"
            size = 11.0 if channel.symbols <= 8 else 9.5
            marks.append(Text(symbol, row, words, SURFACE if dark else INK, size=size))
    ticks = [(place, f"{place}: {value}") for place, value in _ticks(channel.values)]
    x = Axis(-0.5, channel.symbols - 0.5, ticks, "symbol sent: what the server reads for it, r*")
    y = Axis(-0.5, levels.size - 0.5, _ticks(channel.inputs[levels]), "true rating, r")
    return Panel("Probability of each symbol", x, y, marks)


def _shown(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of a channel that a figure has room for."""
    few = rows.size <= _MOST_ROWS
    return rows if few else rows[np.linspace(0, rows.size - 1, 9).round().astype(np.int64)]


def _ticks(values: Floats) -> list[tuple[float, str]]:
    return [(place, "none" if np.isnan(value) else f"{value:.3g}") for place, value in enumerate(values)]


@dataclass(frozen=True, eq=False)
class SampledNoise:
    """The noise of one mechanism at one epsilon, in intervals."""

    protocol: str
    mechanism: str
    edges: Floats
    """In rating units."""
    sampled: Floats
    theory: Floats
    """Shares of the samples, and probabilities, between the edges."""

    @property
    def difference(self) -> float:
        """Total variation: half the sum of the absolute differences between sampled shares and theory."""
        return float(np.abs(self.sampled - self.theory).sum()) / 2


def sampled_noise_plot(epsilon: float, noises: Sequence[SampledNoise]) -> Plot:
    """Return the plot of the noise that was sampled at one epsilon."""
    window = _window(noises)
    words = "; ".join(
        f"{noise.protocol} ({noise.mechanism}): {noise.difference:.2%} from theory in total variation, "
        f"{_outside(noise, *window):.0%} of its noise outside the panel"
        for noise in noises
    )
    return Plot(
        f"noise-epsilon-{epsilon:g}",
        f"Noise at ε = {epsilon:g} per rating",
        f"Filled: samples. Line: theory. {words}.",
        f"Density of the noise at epsilon {epsilon:g}, sampled and in theory.",
        partial(_draw_sampled_noise, noises),
    )


def _draw_sampled_noise(noises: Sequence[SampledNoise]) -> list[Panel]:
    """Draw the densities of noise, as histograms of the samples with the theory as outlines."""
    lines, most = [], 0.0
    for place, noise in enumerate(noises):
        colour, dashes = SERIES[place % len(SERIES)], DASHES[place // len(SERIES) % len(DASHES)]
        sampled, theory = (shares / np.diff(noise.edges) for shares in (noise.sampled, noise.theory))
        label = shortened(f"{noise.protocol}, {noise.mechanism}", _LONGEST)
        lines.append(Line(*stairs(noise.edges, sampled), colour, 0, fill=0.3))
        lines.append(Line(*stairs(noise.edges, theory), colour, 1.4, dashes, label=label))
        most = max(most, float(sampled.max()), float(theory.max()))
    x, y = (
        plain_axis(*_window(noises), "noise r* − r"),
        plain_axis(0, 1.06 * most, "density", ticks=4, grid=True),
    )
    return [chart("Noise: samples filled, theory as a line", x, y, lines)]


_WINDOW = 3.0
"""How much wider a panel may be than the narrowest noise in it, which other tails would dwarf."""


def _window(noises: Sequence[SampledNoise]) -> tuple[float, float]:
    lows, highs = [noise.edges[0] for noise in noises], [noise.edges[-1] for noise in noises]
    return float(max(min(lows), _WINDOW * max(lows))), float(min(max(highs), _WINDOW * min(highs)))


def _outside(noise: SampledNoise, low: float, high: float) -> float:
    return float(noise.theory[(noise.edges[:-1] < low) | (noise.edges[1:] > high)].sum())


_BOUND, _MEASURED = "distance_bound", "distance_measured"

_LINES = ((_BOUND, "bound", "5 2"), (_MEASURED, "measured", ""), ("rmse", "RMSE of the predictions", "1 1.5"))
"""Columns of comparison.csv, their labels and their dashes."""


def distance_plot(results: Sequence[ProtocolResult]) -> Plot | None:
    """Return the plot of the distances against epsilon; None if no protocol has a bound."""
    bounded = [result for result in results if result.epsilon("rating") and result.mean(_BOUND)]
    if not bounded:
        return None
    tolerance = bounded[0].mean("distance_tolerance")
    chance = "an unknown probability" if tolerance is None else f"probability at least {1 - tolerance:.3g}"
    return Plot(
        "distance-epsilon",
        "Distance of what the server sees from the ratings",
        f"Bound: Zheng's Theorem 3 per cell shown, with {chance}. Measured: on cells that are truly rated.",
        f"Bound, measured distance and RMSE of {len(by_protocol(bounded))} protocols by epsilon per cell.",
        partial(_draw_distances, bounded),
    )


def _draw_distances(results: Sequence[ProtocolResult]) -> list[Panel]:
    """Draw the bound, the distance measured and the RMSE of protocols against epsilon per cell."""
    lines: list[Line] = []
    named = by_protocol(results)
    for colour, (name, points) in zip(ramp(len(named)), named.items(), strict=True):
        for column, words, dashes in _LINES:
            drawn = sorted(
                (loss, value)
                for result in points
                if (loss := result.epsilon("rating")) and (value := result.mean(column))
            )
            said = [f"{shortened(name)}, ε {loss:.3g}: {words} {value:.3g}" for loss, value in drawn]
            own, reached = [loss for loss, _ in drawn], [value for _, value in drawn]
            lines.append(Line(own, reached, colour, 1.6, dashes, "o", 2.6, words=said))
    x = log_axis(
        np.concatenate([line.x for line in lines]).tolist(), "ε per cell, rated or not", at_values=True
    )
    y = log_axis(np.concatenate([line.y for line in lines]).tolist(), labels=8, grid=True)
    legend = [Entry(shortened(name), colour) for colour, name in zip(ramp(len(named)), named, strict=True)]
    legend += [Entry(words, INK, dashes=dashes) for _, words, dashes in _LINES]
    return [chart("Root mean square per cell, in rating units", x, y, lines, legend=legend)]


def mixture_plots(mixture: FittedMixture) -> list[Plot]:
    """Return the plot of how a mixture was fitted; none of one that was fitted to nothing."""
    trace, sigma = mixture.log_likelihood, mixture.sigma
    if len(trace) < 2 or min(sigma) <= 0:
        return []
    plot = Plot(
        "completion",
        "How the mixture was fitted",
        "The log-likelihood must never fall. The mixture is the completion's estimate of the noise.",
        f"The log-likelihood rises from {trace[0]:,.0f} to {trace[-1]:,.0f} in {len(trace)} steps.",
        partial(draw_completion, trace, mixture.pi, sigma),
        full_width=True,
    )
    return [plot]


def draw_completion(trace: Sequence[float], pi: Sequence[float], sigma: Sequence[float]) -> list[Panel]:
    """Draw how a mixture was fitted: the log-likelihood by step, and the Gaussians around 0 it ended with."""
    steps = Panel(
        "Log-likelihood by step",
        plain_axis(1, len(trace), "step"),
        plain_axis(min(trace), max(trace), pad=0.06, grid=True),
        [Line(range(1, len(trace) + 1), trace, SERIES[0], marker="o", radius=2)],
    )
    reach = 3 * max(sigma)
    places = np.linspace(-reach, reach, 301)
    weights, deviations = np.array([pi, sigma])[:, :, None]
    parts = weights * np.exp(-0.5 * (places / deviations) ** 2) / (deviations * math.sqrt(2 * math.pi))
    lines = [Line(places, parts.sum(axis=0), INK, 1.8, label="sum")]
    for place, (part, share, deviation, colour) in enumerate(
        zip(parts, pi, sigma, ramp(len(pi)), strict=True)
    ):
        dashes = DASHES[1 + place % (len(DASHES) - 1)]
        lines.append(Line(places, part, colour, 1.4, dashes, label=f"π {share:.2f}, σ {deviation:.2f}"))
    y = plain_axis(0, 1.05 * float(parts.sum(axis=0).max()), "density", ticks=4, grid=True)
    x = plain_axis(-reach, reach, "residual, in rating units")
    return [steps, chart("Noise estimated by the mixture", x, y, lines)]


def alter_ego_plots(domains: LearnedDomains, names: Mapping[str, str]) -> list[Plot]:
    """Return the plot of one user's ratings before and after replacement, if there is one.

    ``names``: what items are called.
    """
    ego = domains.alter_ego
    if ego is None:
        return []
    plot = Plot(
        "alter-ego",
        "One user's AlterEgo",
        f"What user {ego.user} rated in the source domain, and what stands for it in the target domain.",
        f"User {ego.user}: {ego.source_ratings} source ratings become {ego.items} items.",
        partial(_draw_alter_ego, domains, ego, names),
        full_width=True,
    )
    return [plot]


def _draw_alter_ego(domains: LearnedDomains, ego: AlterEgo, names: Mapping[str, str]) -> list[Panel]:
    """Draw the ratings of one user before and after replacement."""
    before, after = (
        [(names.get(item, item), rating) for item, rating in rated] for rated in (ego.before, ego.after)
    )
    return [
        _ratings(f"Before: {domains.source.name}", before, ego.source_ratings, ego.scale),
        _ratings(f"After: {domains.target.name}", after, ego.items, ego.scale),
    ]


def _ratings(title: str, rated: Sequence[Sequence[Any]], total: int, scale: Sequence[float]) -> Panel:
    label = "rating" if total <= len(rated) else f"rating; {total - len(rated)} more not shown"
    x = plain_axis(scale[0], scale[1], label, pad=0.05)
    values, rows = [float(value) for _, value in rated], [-row for row in range(len(rated))]
    lines = [
        Line([x.low, each], [row, row], SERIES[0], 1.2, opacity=0.5)
        for each, row in zip(values, rows, strict=True)
    ]
    names = [(row, shortened(str(name))) for row, (name, _) in zip(rows, rated, strict=True)]
    dots = Line(values, rows, SERIES[0], 0, marker="o")
    return chart(
        title, x, Axis(0.4 - len(rated), 0.6, names), [*lines, dots], height=max(60.0, 18.0 * len(rated))
    )
