"""What mechanisms do to ratings, sampled and in theory, and what completions learn: mixtures, AlterEgos."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Floats
from dprec.channel import Channel
from dprec.completion import FittedMixture
from dprec.reports import DeviceChannel
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    ProtocolResult,
    at_reference,
    by_protocol,
    reference_budget,
)
from simulation.analysis.vocabulary import grouped_by
from simulation.pages.drawing import Panel, Plot, curve, entry, legend, log_axis, point, titled
from simulation.pages.looks import (
    DASHED,
    DASHES,
    DOTTED,
    INK,
    MUTED,
    SERIES,
    SOLID,
    SURFACE,
    Look,
    Looks,
    ramp,
    shortened,
)
from simulation.pages.words import at_budget, label_of
from simulation.protocols.domains import LearnedDomains
from simulation.storage.columns import read_rows
from simulation.storage.directories import NOISE
from simulation.storage.run_files import read_device_channel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW_SYMBOLS = 12
_MOST_ROWS = 12
"""Most true ratings that a figure shows; from a finer scale it shows nine at even distances."""


def noise_panels(noise: DeviceChannel) -> list[Panel]:
    """Return what is sent and read for every true rating, and E[r* | r]."""
    few = noise.channel.symbols <= _FEW_SYMBOLS
    sent = partial(_draw_matrix if few else _draw_densities, channel=noise.channel)
    return [sent, partial(draw_expected, mechanisms=[("mean", Look(SERIES[0], "o"), noise)])]


_LONGEST = 60
"""Letters of a label for which a legend of one column has room."""


def draw_expected(ax: Axes, mechanisms: Sequence[tuple[str, Look, DeviceChannel]]) -> None:
    """Draw E[r* | r] of mechanisms for one scale, by name and look, against the line of no bias."""
    inputs = mechanisms[0][2].ratings
    ends = [float(inputs[0]), float(inputs[-1])]
    ax.plot(ends, ends, color=MUTED, linewidth=1.1, linestyle=DOTTED)
    handles = {math.inf: entry("no bias", Look(MUTED, "", DOTTED))}
    for place, (colour, (label, look, noise)) in enumerate(
        zip(ramp(len(mechanisms)), mechanisms, strict=True)
    ):
        dashes, shown = DASHES[place % len(DASHES)], _shown(np.arange(noise.ratings.size))
        ax.plot(noise.ratings, noise.expected, color=colour, linestyle=dashes)
        words = [
            f"{shortened(label, _LONGEST)}: a true {at:g} is read as {mean:.2f} on average"
            for at, mean in zip(noise.ratings[shown], noise.expected[shown], strict=True)
        ]
        point(ax, noise.ratings[shown], noise.expected[shown], colour, words, marker=look.marker)
        first, *others = label.split(", ")
        named = shortened(first, 20) + (f" + {len(others)}" if others else "")
        handles[float(noise.expected[-1]) + place * 1e-9] = entry(named, Look(colour, look.marker, dashes))
    if inputs.size <= 6:
        ax.set_xticks(inputs, [f"{rating:g}" for rating in inputs])
    titled(ax, "Mean of what the server reads, E[r*|r]", x="true rating, r")
    legend(ax, [handles[at] for at in sorted(handles, reverse=True)])


def _draw_densities(ax: Axes, channel: Channel) -> None:
    shown = ~np.isnan(channel.values)
    values = channel.values[shown]
    rows = _shown(np.flatnonzero(~np.isnan(channel.inputs)))
    step = float(np.median(np.diff(values))) if values.size > 1 else 1.0
    # The two end symbols may stand for whole tails; as densities they would dwarf the rest.
    inner = slice(1, -1) if values.size > 3 else slice(None)
    handles = []
    for row, colour in zip(rows, ramp(rows.size), strict=True):
        density = channel.probabilities[row, shown] / step
        own = density[inner]
        ax.plot(values[inner], own, color=colour, linewidth=1.6)
        handles.append(entry(f"r = {channel.inputs[row]:g}", Look(colour)))
        for end in (0, -1):
            if density[end] > 1.5 * own.max():
                at = values[inner][end], own[end]
                style: dict[str, Any] = {"ha": "center", "color": colour, "textcoords": "offset points"}
                ax.annotate(f"{density[end] * step:.0%}", at, (0, 4), fontsize=10, **style)
    ax.set_ylim(bottom=0)
    titled(ax, "What the server reads", x="what the server reads, r*", y="density, by true rating r")
    legend(ax, handles, columns=4)


def _draw_matrix(ax: Axes, channel: Channel) -> None:
    """Draw the channel as a matrix of probabilities, with the numbers in it."""
    levels = _shown(np.arange(channel.inputs.size))
    light, *_, strong, _ = ramp(7)
    most = float(channel.probabilities.max())
    for row, level in enumerate(levels):
        for symbol, share in enumerate(channel.probabilities[level].tolist()):
            dark = share > most / 2
            # Columns change colour halfway up the ramp, so that they stay legible in light and dark alike.
            look = {"color": strong if dark else light, "alpha": 0.25 + 0.75 * share / most}
            ax.bar(symbol, 0.94, 0.94, bottom=row - 0.47, **look)
            words = "0" if share == 0 else f"{share:.2f}".lstrip("0") if share < 0.995 else "1"
            letters: Any = {"fontsize": 11 if channel.symbols <= 8 else 9, "color": SURFACE if dark else INK}
            ax.text(symbol, row, words, ha="center", va="center_baseline", **letters)
    sent = [f"{symbol}: {value}" for symbol, value in enumerate(_ticks(channel.values))]
    ax.set_xticks(range(channel.symbols), sent)
    ax.set_yticks(range(levels.size), _ticks(channel.inputs[levels]))
    ax.grid(visible=False)
    titled(
        ax,
        "Probability of each symbol",
        x="symbol sent: what the server reads for it, r*",
        y="true rating, r",
    )


def _shown(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of a channel that a figure has room for."""
    few = rows.size <= _MOST_ROWS
    return rows if few else rows[np.linspace(0, rows.size - 1, 9).round().astype(np.int64)]


def _ticks(values: Floats) -> list[str]:
    return ["none" if np.isnan(value) else f"{value:.3g}" for value in values]


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

    def outside(self, low: float, high: float) -> float:
        """Return the probability of noise outside an interval."""
        return float(self.theory[(self.edges[:-1] < low) | (self.edges[1:] > high)].sum())


def sampled_noise_plot(epsilon: float, noises: Sequence[SampledNoise]) -> Plot:
    """Return the plot of the noise that was sampled at one epsilon."""
    window = _window(noises)
    words = "; ".join(
        f"{noise.protocol} ({noise.mechanism}): {noise.difference:.2%} from theory in total variation, "
        f"{noise.outside(*window):.0%} of its noise outside the panel"
        for noise in noises
    )
    return Plot(
        f"noise-epsilon-{epsilon:g}",
        f"Noise at ε = {epsilon:g} per rating",
        f"Filled: samples. Line: theory. {words}.",
        f"Density of the noise at epsilon {epsilon:g}, sampled and in theory.",
        [partial(_draw_sampled_noise, noises=noises)],
    )


def _draw_sampled_noise(ax: Axes, noises: Sequence[SampledNoise]) -> None:
    """Draw the densities of noise, as histograms of the samples with the theory as outlines."""
    handles = []
    for place, noise in enumerate(noises):
        colour, dashes = SERIES[place % len(SERIES)], DASHES[place // len(SERIES) % len(DASHES)]
        sampled, theory = (shares / np.diff(noise.edges) for shares in (noise.sampled, noise.theory))
        ax.stairs(sampled, noise.edges, fill=True, color=colour, alpha=0.3, linewidth=0)
        ax.stairs(theory, noise.edges, color=colour, linewidth=1.4, linestyle=dashes)
        label = shortened(f"{noise.protocol}, {noise.mechanism}", _LONGEST)
        handles.append(entry(label, Look(colour, "", dashes)))
    ax.set_xlim(_window(noises))
    titled(ax, "Noise: samples filled, theory as a line", x="noise r* − r", y="density")
    legend(ax, handles, columns=1)


_WINDOW = 3.0
"""How much wider a panel may be than the narrowest noise in it, which other tails would dwarf."""


def _window(noises: Sequence[SampledNoise]) -> tuple[float, float]:
    lows, highs = [noise.edges[0] for noise in noises], [noise.edges[-1] for noise in noises]
    return float(max(min(lows), _WINDOW * max(lows))), float(min(max(highs), _WINDOW * min(highs)))


_BOUND, _MEASURED = "distance_bound", "distance_measured"

_LINES = (
    (_BOUND, "bound", DASHED),
    (_MEASURED, "measured", SOLID),
    ("rmse", "RMSE of the predictions", DOTTED),
)
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
        [partial(_draw_distances, results=bounded)],
    )


def _draw_distances(ax: Axes, results: Sequence[ProtocolResult]) -> None:
    """Draw the bound, the distance measured and the RMSE of protocols against epsilon per cell."""
    named = by_protocol(results)
    colours = dict(zip(named, ramp(len(named)), strict=True))
    drawn = {
        (name, column): sorted(
            (loss, value)
            for result in points
            if (loss := result.epsilon("rating")) and (value := result.mean(column))
        )
        for name, points in named.items()
        for column, *_ in _LINES
    }
    losses, values = zip(*(place for places in drawn.values() for place in places), strict=True)
    log_axis(ax.xaxis, losses, at_values=True)
    log_axis(ax.yaxis, values)
    for name, colour in colours.items():
        for column, words, dashes in _LINES:
            x, y = np.array(drawn[name, column]).reshape(-1, 2).T
            said = [
                f"{shortened(name)}, ε {loss:.3g}: {words} {value:.3g}" for loss, value in drawn[name, column]
            ]
            curve(ax, x, y, Look(colour, "o", dashes), "", said, markersize=5)
    titled(ax, "Root mean square per cell, in rating units", x="ε per cell, rated or not")
    handles = [entry(shortened(name), Look(colour, "o")) for name, colour in colours.items()]
    legend(ax, [*handles, *(entry(words, Look(INK, "", dashes)) for _, words, dashes in _LINES)])


def mixture_plots(mixture: FittedMixture) -> list[Plot]:
    """Return the plot of how a mixture was fitted; none of one that was fitted to nothing."""
    trace = mixture.log_likelihood
    if len(trace) < 2 or min(mixture.sigma) <= 0:
        return []
    plot = Plot(
        "completion",
        "How the mixture was fitted",
        "The log-likelihood must never fall. The mixture is the completion's estimate of the noise.",
        f"The log-likelihood rises from {trace[0]:,.0f} to {trace[-1]:,.0f} in {len(trace)} steps.",
        [partial(_draw_likelihood, trace=trace), partial(_draw_mixture, mixture=mixture)],
        full_width=True,
    )
    return [plot]


def _draw_likelihood(ax: Axes, trace: Sequence[float]) -> None:
    ax.plot(range(1, len(trace) + 1), trace, color=SERIES[0], marker="o", markersize=4)
    titled(ax, "Log-likelihood by step", x="step")


def _draw_mixture(ax: Axes, mixture: FittedMixture) -> None:
    """Draw the Gaussians around 0 that a mixture ended with, and their sum."""
    reach = 3 * max(mixture.sigma)
    places = np.linspace(-reach, reach, 301)
    weights, deviations = np.array([mixture.pi, mixture.sigma])[:, :, None]
    parts = weights * np.exp(-0.5 * (places / deviations) ** 2) / (deviations * math.sqrt(2 * math.pi))
    ax.plot(places, parts.sum(axis=0), color=INK)
    handles = [entry("sum", Look(INK))]
    for place, colour in enumerate(ramp(len(parts))):
        dashes = DASHES[1 + place % (len(DASHES) - 1)]
        ax.plot(places, parts[place], color=colour, linewidth=1.4, linestyle=dashes)
        words = f"π {mixture.pi[place]:.2f}, σ {mixture.sigma[place]:.2f}"
        handles.append(entry(words, Look(colour, "", dashes)))
    ax.set_ylim(bottom=0)
    titled(ax, "Noise estimated by the mixture", x="residual, in rating units", y="density")
    legend(ax, handles)


def alter_ego_plots(domains: LearnedDomains, names: Mapping[str, str]) -> list[Plot]:
    """Return the plot of one user's ratings before and after replacement, if there is one.

    ``names``: what items are called.
    """
    ego = domains.alter_ego
    if ego is None:
        return []
    before, after = (
        [(names.get(item, item), float(rating)) for item, rating in rated]
        for rated in (ego.before, ego.after)
    )
    draw = partial(_draw_rated, scale=ego.scale)
    plot = Plot(
        "alter-ego",
        "One user's AlterEgo",
        f"What user {ego.user} rated in the source domain, and what stands for it in the target domain.",
        f"User {ego.user}: {ego.source_ratings} source ratings become {ego.items} items.",
        [
            partial(draw, title=f"Before: {domains.source.name}", rated=before, total=ego.source_ratings),
            partial(draw, title=f"After: {domains.target.name}", rated=after, total=ego.items),
        ],
        full_width=True,
        height=90.0 + 20 * max(len(before), len(after)),
    )
    return [plot]


def _draw_rated(
    ax: Axes, title: str, rated: Sequence[tuple[str, float]], total: int, scale: Sequence[float]
) -> None:
    """Draw the ratings of one user, an item below the other."""
    margin = 0.05 * (scale[1] - scale[0])
    ax.set_xlim(scale[0] - margin, scale[1] + margin)
    rows, values = range(len(rated)), [rating for _, rating in rated]
    ax.hlines(rows, scale[0] - margin, values, color=SERIES[0], linewidth=1.2, alpha=0.5)
    ax.plot(values, rows, color=SERIES[0], linestyle="none", marker="o")
    ax.set_yticks(rows, [shortened(name) for name, _ in rated])
    ax.set_ylim(len(rated) - 0.4, -0.6)
    ax.grid(visible=False)
    titled(ax, title, x="rating" if total <= len(rated) else f"rating; {total - len(rated)} more not shown")


def noise_of_comparison(files: ComparisonFiles, looks: Looks) -> list[Plot]:
    """Return the figures of what mechanisms send: its mean by true rating, and what was sampled of it."""
    sampled = [sampled_noise_plot(*each) for each in _read_noise(files.directory).items()]
    return [*_mechanism_plots(files, looks), *sampled]


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
            f"The flatter a line, the more it pulls ratings together; dotted: no bias.{at_budget(files)}",
            f"Mean of what is sent against the true rating. {slopes}.",
            [partial(draw_expected, mechanisms=drawn)],
        )


_NOISE_COLUMNS = (
    *("protocol", "mechanism", "epsilon"),
    *("low", "high", "sampled_share", "theoretical_probability"),
)


def _read_noise(directory: Path) -> Mapping[float, Sequence[SampledNoise]]:
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
