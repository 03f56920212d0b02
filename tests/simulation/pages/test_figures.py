"""The figures: pure functions of numbers, and the small rules that they rest on."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import fromstring

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from simulation.pages.figures.labels import PointLabel, label_points, spread_out, titled

from simulation.analysis.gains import Gain
from simulation.analysis.populations import Course, Point
from simulation.analysis.protocol_results import ProtocolResult, frontier, read_results
from simulation.analysis.vocabulary import METRICS, TRUST_IN_WORDS, Metric
from simulation.pages.comparison_plots import bytes_plot, epsilon_plot
from simulation.pages.comparison_sections import population_section
from simulation.pages.figures.accuracy import (
    EpsilonAxis,
    Trace,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
    draw_accuracy_against_users,
    draw_accuracy_by_round,
)
from simulation.pages.figures.axes import accuracy_axis, log_axis, plain_axis
from simulation.pages.figures.looks import looks_of
from simulation.pages.figures.panels import (
    INK,
    NAMES,
    NARROW,
    REFERENCE,
    WIDE,
    Style,
    note,
    panels,
    shortened,
)
from simulation.pages.figures.rendering import Rendered, inline_svg, render, to_svg
from simulation.pages.figures.users import (
    PREDICTION_QUANTILES,
    bins,
    draw_summary,
    evaluated_rounds,
    group_by_rating,
)
from simulation.storage.run_files import read_run
from strategies.participation import RoundRecord

RMSE = METRICS[0]
Directories = Callable[..., Path]


def result(name: str, spent: float, rmse: float, budget: float | None = 1.0) -> ProtocolResult:
    row = {
        "rmse": rmse,
        "uplink_message_mean_per_user": spent,
        "downlink_message_mean_per_user": 0.0,
        "epsilon_per_rating": budget,
        "epsilon_per_user_max": budget,
    }
    return ProtocolResult(name, budget, (row,))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.2))
def test_labels_are_apart_and_in_order(places: list[float], gap: float) -> None:
    moved = spread_out(sorted(places), gap)
    assert len(moved) == len(places)
    assert all(later - earlier >= gap - 1e-9 for earlier, later in pairwise(moved))
    assert moved[0] >= -1e-9
    assert moved[-1] <= max(1.0, gap * (len(places) - 1)) + 1e-9


def test_labels_that_do_not_touch_stay() -> None:
    assert spread_out([0.1, 0.5, 0.9], 0.1) == [0.1, 0.5, 0.9]
    assert spread_out([0.5, 0.5, 0.9], 0.1) == pytest.approx([0.45, 0.55, 0.9])


def test_names_are_made_drawable() -> None:
    assert shortened("a\nb\x07") == "a·b·"
    assert len(shortened("x" * 200)) == 26


@pytest.mark.parametrize("style", [WIDE, NARROW])
@pytest.mark.parametrize("unit", ["rating", "user"])
def test_one_unit_per_axis_error_bars_and_references(
    comparison_directory: Directories, style: object, unit: str
) -> None:
    results = [
        one
        for one in read_results(comparison_directory() / "comparison.csv")
        if one.evaluation and one.evaluation.metric == RMSE
    ]
    figure = draw_accuracy_against_epsilon(style, results, RMSE, EpsilonAxis(unit), looks_of(results))  # type: ignore[arg-type]
    (ax,) = figure.axes
    assert ax.get_xlabel().startswith(f"ε per {unit}")
    drawn = [container for container in ax.containers if isinstance(container, ErrorbarContainer)]
    expected = {one.name for one in results if one.private}
    assert len(drawn) == len(expected) == 4
    losses = {one.epsilon(unit) for one in results if one.private}  # type: ignore[arg-type]
    assert {float(x) for container in drawn for x in container.lines[0].get_xdata()} == losses
    flat = [
        line
        for line in ax.lines
        if len(set(np.asarray(line.get_ydata()))) == 1 and len(line.get_xdata()) == 2
    ]
    assert [float(line.get_ydata()[0]) for line in flat] == [pytest.approx(0.945)]


@pytest.mark.parametrize(("status", "marked"), [("proved", False), ("claimed", True), ("none", True)])
def test_what_does_not_keep_its_budget_is_marked_on_the_axis_of_budgets(status: str, marked: bool) -> None:
    results = [result("sound", 1, 1, 1.0), result("claimed", 1, 1, 1.0)]
    results[0].rows[0]["status"], results[1].rows[0]["status"] = "proved", status
    axis = EpsilonAxis("rating", asked=True)
    assert [one.falls_short for one in results] == [False, marked]
    (ax,) = draw_accuracy_against_epsilon(WIDE, results, RMSE, axis, looks_of(results)).axes
    assert {text.get_text() for text in ax.texts} == {"sound", "claimed †" if marked else "claimed"}
    assert all(container.lines[0].get_xdata() == [1.0] for container in ax.containers)
    (legend,) = draw_accuracy_against_bytes(WIDE, results, RMSE, looks_of(results)).legends
    assert {text.get_text() for text in legend.get_texts()} == {"sound", "claimed †" if marked else "claimed"}


@pytest.mark.parametrize(("delta", "missing"), [(None, "a"), (1e-6, "b")])
def test_what_has_no_place_on_the_axis_is_named(delta: float | None, missing: str) -> None:
    composed, summed = result("a", 1, 1), result("b", 1, 1)
    composed.rows[0].update(epsilon_per_user_max=None, epsilon_composed_max=1.0)
    results, axis = [composed, summed], EpsilonAxis("user", delta)
    plot = epsilon_plot(results, RMSE, axis, looks_of(results), "")
    assert plot is not None
    assert f"Not drawn, because no {axis.name} is proved: {missing}." in plot.caption


def test_without_any_bytes_there_is_no_figure_of_them() -> None:
    results = [result("a", 1, 1)]
    assert bytes_plot(results, RMSE, looks_of(results), "") is not None
    results[0].rows[0]["uplink_message_mean_per_user"] = math.inf
    assert bytes_plot(results, RMSE, looks_of(results), "") is None


def test_points_on_the_frontier_are_filled(comparison_directory: Directories) -> None:
    results = read_results(comparison_directory() / "comparison.csv")
    (ax,) = draw_accuracy_against_bytes(WIDE, results, RMSE, looks_of(results)).axes
    marks = [line for line in ax.lines if line.get_linestyle() == "None"]
    filled = [line for line in marks if line.get_color() != "#ffffff"]
    assert len(marks) == len(results)
    assert len(filled) == len(
        [
            one
            for budget in (None, 0.5, 1.0, 3.0)
            for one in frontier([s for s in results if s.budget == budget], RMSE)
        ]
    )


@pytest.mark.parametrize(
    "results",
    [{}, {"epsilon": None, "mechanism": "none"}, {"rounds": 5, "protocol": "iterative", "per": "user"}],
)
def test_the_main_figure_has_three_panels(run_directory: Directories, results: dict[str, object]) -> None:
    figure = draw_summary(WIDE, read_run(run_directory(**results)))
    assert [heading(ax).split(":")[0] for ax in figure.axes] == [
        "How accurate",
        "How private",
        "How many bytes",
    ]


@pytest.mark.parametrize(
    ("trusted", "words"),
    [(True, "no privacy: the server\nsees true ratings"), (False, "the loss has no bound")],
)
def test_an_unbounded_loss_is_not_said_to_show_the_ratings_unless_it_does(
    run_directory: Directories, trusted: bool, words: str
) -> None:
    directory = run_directory(mechanism="none", epsilon=None, completion="mf")
    summary = json.loads((directory / "summary.json").read_text())
    summary["privacy"]["trusts_server"] = trusted
    (directory / "summary.json").write_text(json.dumps(summary))
    private = draw_summary(WIDE, read_run(directory)).axes[1]
    assert words in {text.get_text() for text in private.texts}


def test_a_claimed_loss_is_not_drawn_as_one_that_holds(run_directory: Directories) -> None:
    claims = {"privacy.status": "claimed", "privacy.epsilon_claimed.per_user": 90.0}
    directory = run_directory(mechanism="none", epsilon=None, completion="mf", altered=claims)
    private = draw_summary(WIDE, read_run(directory)).axes[1]
    words = "ε 90 per user is claimed,\nnothing is proved"
    assert words in {text.get_text() for text in private.texts}


def heading(ax: Axes) -> str:
    return ax.get_title(loc="left")


def test_drawing_changes_no_setting(run_directory: Directories) -> None:
    before = dict(matplotlib.rcParams)
    to_svg(draw_summary(WIDE, read_run(run_directory())))
    assert dict(matplotlib.rcParams) == before


def test_matplotlib_is_loaded_for_drawing_only_and_pyplot_never() -> None:
    check = (
        "import sys, simulation.console.command_line; assert 'matplotlib' not in sys.modules;"
        "import simulation.pages; assert 'matplotlib.pyplot' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_a_figure_inside_a_page_has_the_colours_of_the_page(run_directory: Directories) -> None:
    drawn = to_svg(draw_summary(WIDE, read_run(run_directory())))
    inside = inline_svg(drawn, "summary")
    assert all(colour in drawn and colour not in inside for colour in NAMES if colour in drawn)
    assert "#ffffff" in drawn
    assert 'fill="var(--surface)"' in inside
    assert "style" not in inside
    assert len(inside) < 0.6 * len(drawn)


@pytest.mark.parametrize("words", ["<script>alert(1)</script>", '" onload="x', "&amp;", "]]>"])
def test_text_inside_a_figure_stays_text(words: str) -> None:
    figure, (ax,) = panels(WIDE)
    note(ax, 0.5, 0.5, words, WIDE)
    (shown,) = [
        each for each in fromstring(inline_svg(to_svg(figure), "x")).iter("text") if each.text == words
    ]
    assert set(shown.attrib) <= {"x", "y", "fill", "font-size", "text-anchor"}


def test_figures_of_a_page_share_no_identifier() -> None:
    figure, (ax,) = panels(WIDE)
    ax.plot([0, 1], [0, 1], "o", color=INK)
    drawn = to_svg(figure)
    one, other = (re.findall(r'id="([^"]+)"', inline_svg(drawn, name)) for name in ("one", "other"))
    assert len(one) == len(other) > 1
    assert not set(one) & set(other)
    assert set(re.findall(r'#([^")]+)', inline_svg(drawn, "one"))) == set(one)


def test_predictions_are_grouped_by_rating() -> None:
    ratings = np.array([1.0, 1.0, 5.0])
    groups = group_by_rating(ratings, np.array([2.0, 4.0, 3.0]))
    assert [place for place, _ in groups] == [1.0, 5.0]
    assert [quantiles[PREDICTION_QUANTILES.index(50)] for _, quantiles in groups] == [3.0, 3.0]
    assert len(group_by_rating(np.linspace(-10, 10, 500), np.zeros(500))) == 10


def test_bytes_of_rounds_add_up_also_where_nothing_was_measured() -> None:
    rounds = [
        RoundRecord(number, 1, 0, accuracy, 4, 5, 0, 1, 0.1)
        for number, accuracy in ((1, {"rmse": 2.0}), (2, None), (3, {"rmse": 1.0}))
    ]
    assert evaluated_rounds(rounds, RMSE) == [(1, 6.0, 2.0), (3, 18.0, 1.0)]


def baseline(name: str, rmse: float, spent: float, epsilon: float | None) -> ProtocolResult:
    (row,) = result(name, spent, rmse, epsilon).rows
    return ProtocolResult(name, None, ({**row, "baseline": name},))


BASELINES = [
    result("plain", 500, 0.9, None),
    result("private", 200, 1.1, 0.5),
    result("private", 200, 1.0, 1.0),
    baseline("nothing-sent", 1.05, 0.0, 0.0),
    baseline("item-average", 1.01, 30.0, None),
]


@pytest.mark.parametrize("style", [WIDE, NARROW])
def test_colours_and_markers_say_whom_users_trust(style: Style) -> None:
    trusts = ["local", "central", "local", "secure-aggregation", "shuffle", "local"]
    results = [result(f"p{place}", 100.0 + place, 1.0 + place / 10) for place in range(len(trusts))]
    for each, trust in zip(results, trusts, strict=True):
        each.rows[0]["trust"] = trust
    looks = looks_of([*results, *BASELINES], by_trust=True)
    assert [looks[each.name].trust for each in results] == trusts
    assert len({looks[each.name].colour for each in results}) == 4
    assert len({(look.colour, look.marker, str(look.dashes)) for look in looks.values()}) == len(looks)
    families = {
        trust: {looks[f"p{place}"].marker for place in range(6) if trusts[place] == trust} for trust in trusts
    }
    assert sum(map(len, families.values())) == len(set().union(*families.values()))
    for figure in (
        draw_accuracy_against_epsilon(style, results, RMSE, EpsilonAxis("user"), looks),
        draw_accuracy_against_bytes(style, results, RMSE, looks),
    ):
        legend = {text.get_text() for each in figure.legends for text in each.get_texts()}
        assert set(TRUST_IN_WORDS.values()) <= legend
    plain = draw_accuracy_against_epsilon(WIDE, results, RMSE, EpsilonAxis("user"), looks_of(results))
    assert not plain.legends


@pytest.mark.parametrize("style", [WIDE, NARROW])
def test_a_ring_on_the_baseline_is_where_a_protocol_begins_to_beat_it(style: Style) -> None:
    every = [
        Course(name, 1.0, "synthetic", tuple(point(name, users, gain) for users, gain in gains.items()))
        for name, gains in {"a": {1e3: -0.1, 1e5: 0.1}, "b": {1e3: -0.2, 1e5: -0.1}}.items()
    ]
    looks = looks_of([each.points[0].result for each in every], by_trust=True)
    figure = draw_accuracy_against_users(style, every, RMSE, looks)
    (ax,) = figure.axes
    (rings,) = [line for line in ax.lines if line.get_markerfacecolor() == "none"]
    assert [tuple(place) for place in rings.get_xydata()] == [(pytest.approx(1e4), pytest.approx(1.05))]
    (baseline,) = [line for line in ax.lines if line.get_color() == INK and line is not rings]
    assert baseline.get_ydata().tolist() == pytest.approx([1.05, 1.05])
    words = {text.get_text() for text in ax.texts}
    words |= {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert {"a", "b", "nothing-sent", "begins to beat nothing sent", TRUST_IN_WORDS["local"]} <= words
    section = population_section(every, RMSE, looks, lambda plot: Rendered(plot, "<svg/>", "<svg/>", b""), "")
    (content,) = [str(each.content) for each in section]
    assert "a beats nothing sent from about 10,000 users on at ε = 1 (synthetic ratings)." in content
    assert "b does not beat nothing sent with up to 100,000 users" in content
    assert population_section([], RMSE, looks, render, "") == []


def point(name: str, users: float, gained: float) -> Point:
    against = Gain(gained, None, None, "seed", 1)
    return Point(users, result(name, 100.0, 1.05 - gained), 1.05 - gained, against)


def across(ax: Axes) -> dict[float, str]:
    """The colours of the lines across a whole panel, by where they are."""
    whole = [line for line in ax.lines if line.get_transform() == ax.get_yaxis_transform(which="grid")]
    return {float(line.get_ydata()[0]): str(line.get_color()) for line in whole}


@pytest.mark.parametrize("style", [WIDE, NARROW])
def test_baselines_are_lines_apart_from_references_in_every_figure_of_accuracy(style: Style) -> None:
    looks = looks_of(BASELINES)
    traces = [Trace("private", "private", np.array([200.0]), np.array([1.0]))]
    figures = [
        draw_accuracy_against_epsilon(style, BASELINES, RMSE, EpsilonAxis("rating"), looks),
        draw_accuracy_against_bytes(style, BASELINES, RMSE, looks),
        draw_accuracy_by_round(style, traces, BASELINES, RMSE, looks),
    ]
    for figure, references in zip(figures, ({0.9: REFERENCE}, {}, {}), strict=True):
        (ax,) = figure.axes
        assert across(ax) == {1.05: INK, 1.01: INK, **references}
        words = {text.get_text() for text in ax.texts}
        words |= {text.get_text() for legend in figure.legends for text in legend.get_texts()}
        assert {"nothing-sent", "item-average"} <= words
        low, high = ax.get_ylim()
        assert low < 0.9 + 0.1 * (figure is figures[2]) < 1.05 < high
        (shaded,) = [patch for patch in ax.patches if patch.get_facecolor()[3] < 1]
        assert shaded.get_extents().transformed(ax.transData.inverted()).ymin == pytest.approx(1.05)


def test_a_baseline_is_no_point_among_bytes() -> None:
    (ax,) = draw_accuracy_against_bytes(WIDE, BASELINES, RMSE, looks_of(BASELINES)).axes
    marks = [line for line in ax.lines if line.get_linestyle() == "None"]
    assert sorted(float(line.get_xdata()[0]) for line in marks) == [200.0, 200.0, 500.0]
    assert min(ax.get_xlim()) > 100


def test_baselines_differ_in_their_lines() -> None:
    looks = looks_of([*BASELINES, baseline("global-mean", 1.2, 10.0, None)])
    baselines = [looks[name] for name in ("nothing-sent", "item-average", "global-mean")]
    assert len({str(look.dashes) for look in baselines}) == 3
    assert {look.colour for look in baselines} == {INK}
    assert looks["plain"].colour == REFERENCE
    assert looks["private"].colour not in (INK, REFERENCE)


def test_where_higher_is_better_what_is_below_nothing_sent_is_shaded() -> None:
    metric = next(metric for metric in METRICS if not metric.lower_is_better)
    results = [
        ProtocolResult(one.name, one.budget, tuple({**row, metric.column: row["rmse"]} for row in one.rows))
        for one in BASELINES
    ]
    (ax,) = draw_accuracy_against_bytes(WIDE, results, metric, looks_of(results)).axes
    (shaded,) = [patch for patch in ax.patches if patch.get_facecolor()[3] < 1]
    assert shaded.get_extents().transformed(ax.transData.inverted()).ymax == pytest.approx(1.05)


@pytest.mark.parametrize("style", [WIDE, NARROW])
def test_a_long_legend_leaves_the_panel_its_height(style: Style) -> None:
    def height(count: int) -> float:
        results = [result(f"protocol number {place}", 100 + place, 1 + place / 10) for place in range(count)]
        figure = draw_accuracy_against_bytes(style, results, RMSE, looks_of(results))
        figure.draw_without_rendering()
        (ax,) = figure.axes
        return float(ax.get_position().height * figure.get_figheight())

    assert height(16) == pytest.approx(height(2), rel=0.15)


SIGNS = next(metric for metric in METRICS if not metric.lower_is_better)
USUAL = {"a": [0.9, 1.0], "b": [1.1], "c": [1.25, 1.3]}


@pytest.mark.parametrize(
    ("metric", "far", "words"),
    [
        (RMSE, [2.7, 2.66], "↑ off the scale: far 2.66 to 2.7"),
        (RMSE, [1.2, 2.7, 2.7, 2.7], "↑ off the scale: far 2.7"),
        (SIGNS, [0.2], "↓ off the scale: far 0.2"),
    ],
)
def test_what_would_squash_the_rest_is_left_off_the_scale_and_named(
    metric: Metric, far: list[float], words: str
) -> None:
    _, (ax,) = panels(WIDE)
    accuracy_axis(ax, WIDE, metric, {**USUAL, "far": far})
    low, high = ax.get_ylim()
    assert 0.8 < low < 0.9
    assert 1.3 < high < 1.4
    (note,) = ax.texts
    assert note.get_text().replace("\N{NO-BREAK SPACE}", " ") == words


@pytest.mark.parametrize(
    "values",
    [{}, {"a": [0.9, 1.0, 1.1]}, {"a": [0.9], "b": [2.7]}, {**USUAL, "d": [2.6], "e": [2.7]}],
)
def test_what_is_not_far_from_all_others_or_not_few_stays_on_the_scale(
    values: dict[str, list[float]],
) -> None:
    _, (ax,) = panels(WIDE)
    accuracy_axis(ax, WIDE, RMSE, values, ends=[1.4] if values else [])
    assert all(value <= ax.get_ylim()[1] for each in values.values() for value in each)
    assert not ax.texts


def test_no_figure_of_accuracy_is_squashed() -> None:
    results = [result(f"p{place}", 100 + place, 1 + place / 50) for place in range(6)]
    results.append(result("far", 300, 2.7))
    looks = looks_of(results)
    traces = [
        Trace(each.name, each.name, np.array([200.0, 300.0]), np.full(2, each.mean("rmse")))
        for each in results
    ]
    for figure in (
        draw_accuracy_against_epsilon(NARROW, results, RMSE, EpsilonAxis("rating"), looks),
        draw_accuracy_against_bytes(NARROW, results, RMSE, looks),
        draw_accuracy_by_round(NARROW, traces, results, RMSE, looks),
    ):
        (ax,) = figure.axes
        assert ax.get_ylim()[1] < 1.2
        assert any("far\N{NO-BREAK SPACE}2.7" in text.get_text() for text in ax.texts)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ((1.0, 1.1), ["1.000", "1.025", "1.050", "1.075", "1.100"]),
        ((2.7195, 2.7235), ["2.720", "2.721", "2.722", "2.723"]),
        ((0, 50_000), ["0", "10k", "20k", "30k", "40k", "50k"]),
    ],
)
def test_ticks_have_the_decimals_that_tell_them_apart(limits: tuple[float, float], words: list[str]) -> None:
    _, (ax,) = panels(WIDE)
    ax.set_ylim(*limits)
    plain_axis(ax, which="y", ticks=5)
    shown = ax.yaxis.get_major_formatter().format_ticks(ax.yaxis.get_majorticklocs())
    assert [each for each in words if each not in shown] == []
    assert [float(each.rstrip("k")) * (1e3 if "k" in each else 1) for each in shown] == pytest.approx(
        ax.yaxis.get_majorticklocs()
    )


@pytest.mark.parametrize("low", [1.0, 950.0])
def test_ticks_of_sizes_are_apart_and_enough(low: float) -> None:
    for ratio in (1.01, 1.5, 4, 1e2, 1e9):
        _, (ax,) = panels(NARROW)
        log_axis(ax, [low, low * ratio], in_bytes=True)
        ticks = [tick for tick in ax.get_xticks() if np.prod(np.subtract(ax.get_xlim(), tick)) < 0]
        assert 2 <= len(ticks) <= 8
        assert len(set(ax.xaxis.get_major_formatter().format_ticks(ticks))) == len(ticks)


@given(
    st.lists(st.integers(1, 400), min_size=2, unique=True),
    st.sampled_from([0.25, 1.0, 8.0]),
    st.booleans(),
)
def test_bins_of_integers_fit(counts: list[int], step: float, logarithmic: bool) -> None:
    values = step * np.array(sorted([*counts, min(counts) + 1]), dtype=np.float64)
    edges = bins(values, logarithmic=logarithmic)
    assert edges[0] < values[0]
    assert edges[-1] > values[-1]
    assert edges.size <= 32
    held = np.diff(np.searchsorted(step * np.arange(1, 500), edges))
    assert (held > 0).all()
    assert logarithmic or len(set(held)) == 1


def test_a_protocol_has_one_look_and_no_two_share_theirs() -> None:
    looks = looks_of([result(f"p{place}", 1.0, 1.0) for place in range(40)]).values()
    assert len({(look.colour, look.marker) for look in looks}) == 40


def test_points_show_their_values_on_a_page_and_have_titles_in_a_file(hostile: str) -> None:
    results = [result(hostile, 200, 1.1, 0.5), result("b", 300, 1.0, 2.0), result("b", 300, 0.9, 4.0)]
    drawn = to_svg(draw_accuracy_against_bytes(WIDE, results, RMSE, looks_of(results)))
    inside = fromstring(inline_svg(drawn, "x"))
    shown = {place.get("data-shows"): place for place in inside.iter("circle")}
    assert set(shown) == {
        f"{hostile}, ε 0.5: RMSE 1.1000, 200 B per user",
        "b, ε 2: RMSE 1.0000, 300 B per user",
        "b, ε 4: RMSE 0.9000, 300 B per user",
    }
    assert all(float(place.get("cx")) > 0 and float(place.get("cy")) > 0 for place in shown.values())
    titles = [each.text for each in fromstring(titled(drawn)).iter("{http://www.w3.org/2000/svg}title")]
    assert sorted(titles) == sorted(shown)
    assert {"0.5", "2", "4"} <= {text.text for text in inside.iter("text")}


def test_a_number_beside_a_point_covers_nothing() -> None:
    figure, (ax,) = panels(WIDE)
    ax.set(xlim=(0, 10), ylim=(0, 10))
    label_points(ax, WIDE, [PointLabel(5, 5 + place / 50, str(place), INK) for place in range(9)])
    written = [text.get_text() for text in ax.texts]
    assert written[:2] == ["0", "1"]
    assert len(written) < 9
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


def test_labels_stay_in_the_panel_where_they_fit() -> None:
    places = spread_out([0.0, 0.0, 0.01, 0.02], 0.1)
    assert places == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert spread_out([0.99, 1.0], 0.1) == pytest.approx([0.9, 1.0])
