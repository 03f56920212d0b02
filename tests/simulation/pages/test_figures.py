"""The figures: pure functions of numbers, and the small rules that they rest on."""

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.accounting import Trust
from simulation.analysis.gains import Gain
from simulation.analysis.populations import Course, Point
from simulation.analysis.protocol_results import ProtocolResult, read_results
from simulation.analysis.vocabulary import METRICS, TRUST_IN_WORDS, Metric
from simulation.pages.comparison_plots import bytes_plot, epsilon_plot
from simulation.pages.figures.accuracy import (
    EpsilonAxis,
    Series,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
    draw_accuracy_against_tau,
    draw_accuracy_against_users,
    draw_accuracy_by_round,
)
from simulation.pages.figures.drawing import to_figure
from simulation.pages.figures.marks import Axis, Line, Spot, Text, accuracy_axis, log_axis, plain_axis
from simulation.pages.figures.panels import (
    FAINT,
    INK,
    MUTED,
    NAMES,
    REFERENCE,
    RULE,
    Entry,
    Panel,
    looks_of,
    most_telling,
    shortened,
    spread_out,
)
from simulation.pages.figures.rendering import Plot, Rendered, render
from simulation.pages.figures.users import (
    PREDICTION_QUANTILES,
    bins,
    draw_rounds,
    draw_summary,
    evaluated_rounds,
    group_by_rating,
)
from simulation.storage.run_files import read_run
from strategies.participation import RoundRecord
from tests.results import result

RMSE = METRICS[0]
SIGNS = next(metric for metric in METRICS if not metric.lower_is_better)
Directories = Callable[..., Path]


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


PER_RATING = EpsilonAxis("rating")


def by_epsilon(results: Sequence[ProtocolResult], axis: EpsilonAxis = PER_RATING) -> Panel:
    return draw_accuracy_against_epsilon(results, RMSE, axis, looks_of(results))


def by_bytes(results: Sequence[ProtocolResult], metric: Metric = RMSE) -> Panel:
    return draw_accuracy_against_bytes(results, metric, looks_of(results))[0]


def lines(panel: Panel) -> list[Line]:
    return [mark for mark in panel.marks if isinstance(mark, Line)]


def named(panel: Panel) -> set[str]:
    """Return the names at lines and beside points."""
    return {end.label for end in panel.ends} | {mark.words for mark in panel.marks if isinstance(mark, Text)}


def shown(panels: Sequence[Panel], *, png: bool = False) -> Rendered:
    return render(Plot("name", "Title", "", "", lambda: panels), png=png)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.2))
def test_labels_are_apart_and_in_order(places: list[float], gap: float) -> None:
    moved = spread_out(sorted(places), gap, 0, 1)
    assert len(moved) == len(places)
    assert all(later - earlier >= gap - 1e-9 for earlier, later in pairwise(moved))
    assert moved[0] >= -1e-9
    assert moved[-1] <= max(1.0, gap * (len(places) - 1)) + 1e-9


@pytest.mark.parametrize(
    ("places", "moved"),
    [
        ([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]),
        ([0.5, 0.5, 0.9], [0.45, 0.55, 0.9]),
        ([0.0, 0.0, 0.01, 0.02], [0.0, 0.1, 0.2, 0.3]),
        ([0.99, 1.0], [0.9, 1.0]),
    ],
)
def test_labels_move_no_further_than_they_must(places: list[float], moved: list[float]) -> None:
    assert spread_out(places, 0.1, 0, 1) == pytest.approx(moved)


def test_names_are_made_drawable() -> None:
    assert shortened("a\nb\x07") == "a·b·"
    assert len(shortened("x" * 200)) == 24


@pytest.mark.parametrize("unit", ["rating", "user"])
def test_one_unit_per_axis_error_bars_and_references(comparison_directory: Directories, unit: Any) -> None:
    results = [
        one
        for one in read_results(comparison_directory() / "comparison.csv")
        if one.evaluation and one.evaluation.metric == RMSE
    ]
    panel = by_epsilon(results, EpsilonAxis(unit))
    assert panel.x.label.startswith(f"ε per {unit}")
    bars = [line for line in lines(panel) if np.isnan(line.y).any()]
    private = {one.name for one in results if one.private}
    assert len(bars) == len(private) == 4
    assert {float(x) for line in bars for x in line.x} == {
        one.epsilon(unit) for one in results if one.private
    }
    flat = [line for line in lines(panel) if len(set(np.asarray(line.y))) == 1 and not line.marker]
    assert [float(line.y[0]) for line in flat] == [pytest.approx(0.945)]
    assert named(panel) == {one.name for one in results}


@pytest.mark.parametrize(("status", "marked"), [("proved", False), ("claimed", True), ("none", True)])
def test_what_does_not_keep_its_budget_is_marked_on_the_axis_of_budgets(status: str, marked: bool) -> None:
    results = [result("sound", 1, 1, 1.0), result("claimed", 3, 2, 1.0)]
    results[1].rows[0]["status"] = status
    names = {"sound", "claimed †" if marked else "claimed"}
    assert named(by_epsilon(results, EpsilonAxis("rating", asked=True))) == names
    assert named(by_epsilon(results)) == {"sound", "claimed"}
    assert named(by_bytes(results)) == names


@pytest.mark.parametrize(("delta", "missing"), [(None, "a"), (1e-6, "b")])
def test_what_has_no_place_on_the_axis_is_named(delta: float | None, missing: str) -> None:
    composed, summed = result("a", 1, 1), result("b", 1, 1)
    composed.rows[0].update(epsilon_per_user_max=None, epsilon_composed_max=1.0)
    results, axis = [composed, summed], EpsilonAxis("user", delta)
    plot = epsilon_plot(results, RMSE, [axis], looks_of(results), "")
    assert plot is not None
    assert f"Not drawn, because no {axis.name} is proved: {missing}." in plot.caption


def test_every_unit_has_a_panel_of_its_own() -> None:
    results, axes = [result("a", 1, 1)], [EpsilonAxis("rating"), EpsilonAxis("user")]
    plot = epsilon_plot(results, RMSE, axes, looks_of(results), "")
    assert plot is not None
    assert [panel.x.label for panel in plot.draw()] == ["ε per rating", "ε per user, largest of any user"]
    results[0].rows[0]["epsilon_per_user_max"] = None
    plot = epsilon_plot(results, RMSE, axes, looks_of(results), "")
    assert plot is not None
    assert len(plot.draw()) == 1


def test_at_most_six_lines_are_named_the_unbeaten_ones_first() -> None:
    results = [result(f"p{place}", 1, 1 + place / 10, budget) for place in range(9) for budget in (1.0, 2.0)]
    results += [result("cheap", 1, 1.99, 0.5), result("cheap", 1, 1.98, 0.6), result("plain", 1, 1.05, None)]
    panel = by_epsilon(results)
    assert named(panel) == {"p0", "cheap", "plain", "p1", "p2", "p3"}
    assert [line.colour for line in lines(panel)].count(FAINT) == 5
    assert Entry("5 more", FAINT, "o") in panel.legend
    assert {"p8", "p0"} <= {mark.words.split(",")[0] for mark in panel.marks if isinstance(mark, Spot)}


def test_a_price_that_rounding_alone_makes_lower_names_nothing() -> None:
    every = {f"p{place}": [(1.0, place / 10)] for place in range(6)} | {"near": [(0.99999, 9.0)]}
    assert most_telling(every) == [f"p{place}" for place in range(6)]


def test_without_any_bytes_there_is_no_figure_of_them() -> None:
    results = [result("a", 1, 1)]
    assert bytes_plot(results, RMSE, looks_of(results), "") is not None
    results[0].rows[0]["uplink_message_mean_per_user"] = math.inf
    assert bytes_plot(results, RMSE, looks_of(results), "") is None


def test_bytes_of_messages_and_of_the_network_have_their_panels_and_frontiers() -> None:
    results = [result("a", 100, 1.0), result("b", 200, 1.2), result("c", 300, 0.9)]
    for each, network in zip(results, (9e3, 5e3, 8e3), strict=True):
        each.rows[0].update(uplink_network_mean_per_user=network, downlink_network_mean_per_user=0.0)
    panels = draw_accuracy_against_bytes(results, RMSE, looks_of(results))
    steps = [next(line for line in lines(panel) if line.colour == MUTED) for panel in panels]
    assert steps[0].x[:-1].tolist() == [100, 200, 200, 300, 300]
    assert steps[0].y.tolist() == [1.0, 1.0, 1.0, 1.0, 0.9, 0.9]
    assert steps[1].x[:-1].tolist() == [5e3, 8e3, 8e3, 9e3, 9e3]
    assert steps[1].y.tolist() == [1.2, 1.2, 0.9, 0.9, 0.9, 0.9]


def test_names_beside_points_cover_nothing_and_points_in_one_place_share_one() -> None:
    results = [result(f"p{place}", 100.0, 1 + place / 1000) for place in range(3)]
    results += [result(f"q{place}", 400.0 * (1 + place), 1.2) for place in range(3)]
    panel = by_bytes(results)
    assert named(panel) == {"p0 + 2", "q0", "q1", "q2"}
    root = fromstring(f"<div>{shown([panel]).inline}</div>")
    boxes = [
        (x - wide * (text.get("text-anchor") == "end"), float(text.get("y", 0)), wide)
        for text in root.iter("text")
        if text.get("stroke")
        for x, wide in [(float(text.get("x", 0)), 6 * len(text.text or ""))]
    ]
    assert len(boxes) == 4
    for place, (x, y, wide) in enumerate(boxes):
        assert not any(abs(y - v) < 10 and x < u + w and u < x + wide for u, v, w in boxes[:place])


def test_a_protocol_has_the_colour_of_its_trust_model_in_every_figure() -> None:
    trusts: list[Trust] = ["local", "central", "local", "secure-aggregation", "shuffle"]
    results = [
        result(f"p{place}", 100.0 * (1 + place), 1.0 + place / 10, trust=trust)
        for place, trust in enumerate(trusts)
    ]
    looks = looks_of([*results, *BASELINES])
    assert len({looks[each.name].colour for each in results}) == 4
    assert len({looks[each.name].marker for each in results}) == 4
    assert looks["p0"] == looks["p2"]
    assert (looks["plain"].colour, looks["nothing-sent"].colour) == (REFERENCE, INK)
    for panel in (by_epsilon(results), by_bytes(results)):
        legend = {entry.label: entry.colour for entry in panel.legend}
        assert {legend[TRUST_IN_WORDS[trust]] for trust in trusts} == {
            look.colour for look in looks_of(results).values()
        }
        assert {line.colour for line in lines(panel) if line.marker} == {
            looks[each.name].colour for each in results
        }


def test_named_lines_of_one_colour_differ_in_dashes() -> None:
    results = [result(f"p{place}", 1, 1 + place, budget) for place in range(5) for budget in (1.0, 2.0)]
    panel = by_epsilon(results)
    assert len({(end.colour, end.dashes) for end in panel.ends}) == 5


@pytest.mark.parametrize(("metric", "worse"), [(RMSE, (1.05, 1.12)), (SIGNS, (1.0, 1.05))])
def test_what_is_worse_than_nothing_sent_is_shaded(metric: Metric, worse: tuple[float, float]) -> None:
    results = [
        ProtocolResult(
            one.name, one.budget, tuple({**row, "rmse": None, metric.column: row["rmse"]} for row in one.rows)
        )
        for one in BASELINES
    ]
    panel = by_bytes([each for each in results if each.budget != 1.0], metric)
    (area,) = [line for line in lines(panel) if line.fill]
    assert area.colour == RULE
    assert (np.min(area.y), np.max(area.y)) == pytest.approx(worse, abs=0.02)
    assert Entry("nothing sent", INK, at=1.05) in panel.ends


def test_a_run_is_drawn_against_nothing_sent_and_says_if_it_is_worse(run_directory: Directories) -> None:
    run = read_run(run_directory(rounds=5, protocol="iterative", per="user"))
    reached = evaluated_rounds(run.rounds, RMSE)[-1][2]
    panels = {value: draw_rounds(run, RMSE, value) for value in (None, reached - 0.5, reached + 0.5)}
    below, above = panels[reached - 0.5], panels[reached + 0.5]
    assert list(below.notes) == ["Worse than nothing sent, by 0.500."]
    assert not above.notes
    for value, panel in panels.items():
        base = [line for line in lines(panel) if line.colour == INK]
        assert [line.y.tolist() for line in base] == [[value] * 3] * (value is not None)
        assert value is None or panel.y.low < value < panel.y.high
    error = next(metric for metric in METRICS if metric.column == "relative_error")
    of_error = replace(run, rounds=[replace(each, accuracy={"relative_error": 0.1}) for each in run.rounds])
    assert not draw_rounds(of_error, error, 0.01).notes
    with_summary = replace(run, summary=run.summary.model_copy(update={"nothing_sent": reached - 0.5}))
    assert list(draw_summary(with_summary)[0].notes) == ["Worse than nothing sent, by 0.500."]


@pytest.mark.parametrize(
    "results",
    [{}, {"epsilon": None, "mechanism": "none"}, {"rounds": 5, "protocol": "iterative", "per": "user"}],
)
def test_the_main_figure_has_three_panels(run_directory: Directories, results: dict[str, object]) -> None:
    panels = draw_summary(read_run(run_directory(**results)))
    assert [panel.title.split(":")[0] for panel in panels] == [
        "How accurate",
        "How private",
        "How many bytes",
    ]


@pytest.mark.parametrize(
    ("altered", "words"),
    [
        ({"privacy.trusts_server": True}, "no privacy: the server\nsees true ratings"),
        ({"privacy.trusts_server": False}, "the loss has no bound"),
        (
            {"privacy.status": "claimed", "privacy.epsilon_claimed.per_user": 90.0},
            "ε 90 per user is claimed,\nnothing is proved",
        ),
    ],
)
def test_an_unbounded_loss_is_said_to_be_what_it_is(
    run_directory: Directories, altered: dict[str, Any], words: str
) -> None:
    directory = run_directory(mechanism="none", epsilon=None, completion="mf", altered=altered)
    assert list(draw_summary(read_run(directory))[1].notes) == [words]


def test_drawing_with_matplotlib_changes_no_setting_and_draws_the_same(run_directory: Directories) -> None:
    before = dict(matplotlib.rcParams)
    panels = draw_summary(read_run(run_directory()))
    figure = to_figure([*panels, by_epsilon(BASELINES)])
    png = shown(panels, png=True).png
    assert png is not None
    assert png.startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before
    assert [ax.get_title(loc="left").split(":")[0] for ax in figure.axes[:3]] == [
        "How accurate",
        "How private",
        "How many bytes",
    ]
    assert {text.get_text() for text in figure.axes[3].texts} == {"nothing sent", "plain", "private"}


@pytest.mark.thorough
def test_no_page_loads_matplotlib(run_directory: Directories) -> None:
    check = (
        "import sys, simulation.pages; simulation.pages.report(sys.argv[1]);"
        "assert 'matplotlib' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", check, run_directory()], check=False).returncode == 0


def test_a_figure_in_a_page_has_its_colours_and_one_in_a_file_its_own(run_directory: Directories) -> None:
    drawn = shown(draw_summary(read_run(run_directory())))
    assert drawn.png is None
    assert not any(colour in drawn.inline for colour in NAMES)
    assert "var(--ink)" in drawn.inline
    assert "style" not in drawn.inline
    assert "id=" not in drawn.inline
    assert "var(" not in drawn.svg
    assert INK in drawn.svg


@pytest.mark.parametrize(
    "words", ["<script>alert(1)</script>", '" onload="x', "&amp;", "]]>", '="#1b2530"', "#123456"]
)
def test_text_inside_a_figure_stays_text(words: str) -> None:
    panel = Panel(
        words, Axis(label=words), Axis(ticks=[(0.5, words)], label=words),
        [Text(0.5, 0.5, words, INK), Spot(0.5, 0.5, words)],
        [Entry(words, INK, at=0.5)], [Entry(words, INK)], [words],
        width=4000,
    )  # fmt: skip
    drawn = shown([panel])
    inside = fromstring(f"<div>{drawn.inline}</div>")
    assert [each.text for each in inside.iter("text")] == [words] * 8
    assert [each.get("data-shows") for each in inside.iter("circle")] == [words]
    (title,) = fromstring(drawn.svg).iter("{http://www.w3.org/2000/svg}title")
    assert title.text == words


def test_points_show_their_values_on_a_page_and_have_titles_in_a_file(hostile: str) -> None:
    drawn = shown(
        [by_epsilon([result(hostile, 200, 1.1, 0.5), result("b", 300, 1.0, 2.0), result("b", 300, 0.9, 4.0)])]
    )
    inside = fromstring(f"<div>{drawn.inline}</div>")
    places = {place.get("data-shows"): place for place in inside.iter("circle")}
    assert set(places) == {
        f"{hostile}, ε 0.5: RMSE 1.1000, 200 B per user",
        "b, ε 2: RMSE 1.0000, 300 B per user",
        "b, ε 4: RMSE 0.9000, 300 B per user",
    }
    assert all(float(place.get("cx", 0)) > 0 and float(place.get("cy", 0)) > 0 for place in places.values())
    titles = [each.text for each in fromstring(drawn.svg).iter("{http://www.w3.org/2000/svg}title")]
    assert set(titles) == set(places)


def test_marks_lie_where_their_values_are() -> None:
    marks = [
        Line([1, 10, np.nan, 100], [0, 1, 1, 2], INK),
        Line([1, 100, 100, 1], [0, 0, 2, 2], RULE, 0, fill=0.5),
    ]
    panel = Panel("", Axis(1, 100, log=True), Axis(0, 2), marks, width=120, height=100)
    line, area = fromstring(shown([panel]).inline).iter("path")
    assert line.get("d") == "M8.0 109.0L58.0 59.0M108.0 9.0"
    assert area.get("d") == "M8.0 109.0L108.0 109.0L108.0 9.0L8.0 9.0z"


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


def test_a_ring_on_the_baseline_is_where_a_protocol_begins_to_beat_it() -> None:
    every = [
        Course(
            name,
            1.0,
            "synthetic",
            "nothing sent",
            tuple(point(name, users, gain) for users, gain in gains.items()),
        )
        for name, gains in {"a": {1e3: -0.1, 1e5: 0.1}, "b": {1e3: -0.2, 1e5: -0.1}}.items()
    ]
    looks = looks_of([each.points[0].result for each in every])
    panel = draw_accuracy_against_users(every, RMSE, looks)
    (rings,) = [line for line in lines(panel) if line.hollow == "none"]
    assert (list(rings.x), list(rings.y)) == ([pytest.approx(1e4)], [pytest.approx(1.05)])
    (base,) = [line for line in lines(panel) if line.colour == INK and line is not rings]
    assert np.asarray(base.y).tolist() == pytest.approx([1.05] * 4)
    assert named(panel) == {"a", "b", "nothing sent"}
    assert {"begins to beat nothing sent", TRUST_IN_WORDS["local"]} <= {each.label for each in panel.legend}


def test_how_much_noise_protocols_stand_is_one_curve_for_all_of_them() -> None:
    sums = [
        result(name, 100.0, rmse, budget, tau=tau, trust=trust)
        for name, trust, rmse, budget, tau in (
            ("a", "central", 1.0, 1.0, 0.01),
            ("a", "central", 0.9, 4.0, 0.002),
            ("b", "local", 1.02, 4.0, 0.02),
        )
    ]
    across = [each for each in BASELINES if each.budget is None]
    looks = looks_of([*sums, *across])
    panel = draw_accuracy_against_tau(sums, across, RMSE, looks)
    curves = {line.colour: line for line in lines(panel) if line.marker}
    assert {looks[name].marker for name in "ab"} == {curves[looks[name].colour].marker for name in "ab"}
    assert np.asarray(curves[looks["a"].colour].x).tolist() == pytest.approx([100, 500])
    assert named(panel) >= {"a", "nothing sent", "plain"}


def point(name: str, users: float, gained: float) -> Point:
    against = Gain(gained, None, None, 3)
    return Point(users, result(name, 100.0, 1.05 - gained), 1.05 - gained, against)


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
    axis, (note,) = accuracy_axis(metric, {**USUAL, "far": far})
    assert 0.8 < axis.low < 0.9
    assert 1.3 < axis.high < 1.4
    assert note.replace("\N{NO-BREAK SPACE}", " ") == words


@pytest.mark.parametrize(
    "values",
    [{}, {"a": [0.9, 1.0, 1.1]}, {"a": [0.9], "b": [2.7]}, {**USUAL, "d": [2.6], "e": [2.7]}],
)
def test_what_is_not_far_from_all_others_or_not_few_stays_on_the_scale(
    values: dict[str, list[float]],
) -> None:
    axis, notes = accuracy_axis(RMSE, values, ends=[1.4] if values else [])
    assert all(axis.holds(value) for each in values.values() for value in each)
    assert not notes


def test_no_figure_of_accuracy_is_squashed() -> None:
    results = [result(f"p{place}", 100 + place, 1 + place / 50) for place in range(6)]
    results.append(result("far", 300, 2.7))
    traces = [
        Series(each.name, each.name, np.array([200.0, 300.0]), np.full(2, each.mean("rmse")), ["", ""])
        for each in results
    ]
    rounds = draw_accuracy_by_round(traces, results, RMSE, looks_of(results))
    for panel in (by_epsilon(results), by_bytes(results), rounds):
        assert panel.y.high < 1.2
        assert any("far\N{NO-BREAK SPACE}2.7" in note for note in panel.notes)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.0, 1.1, ["1.00", "1.02", "1.04", "1.06", "1.08", "1.10"]),
        (2.7195, 2.7235, ["2.720", "2.721", "2.722", "2.723"]),
        (0, 50_000, ["0", "10k", "20k", "30k", "40k", "50k"]),
        (-2.5, 2.5, ["-2", "-1", "0", "1", "2"]),
        (7, 7, ["6.8", "7.0", "7.2"]),
    ],
)
def test_ticks_have_the_decimals_that_tell_them_apart(low: float, high: float, words: list[str]) -> None:
    axis = plain_axis(low, high)
    assert [each for _, each in axis.ticks] == words
    assert [float(each.rstrip("k")) * (1e3 if "k" in each else 1) for each in words] == pytest.approx(
        [at for at, _ in axis.ticks]
    )


@pytest.mark.parametrize("low", [1.0, 950.0])
def test_ticks_of_sizes_are_apart_and_enough(low: float) -> None:
    for ratio in (1.01, 1.5, 4, 1e2, 1e9):
        axis = log_axis([low, low * ratio], in_bytes=True)
        assert 2 <= len(axis.ticks) <= 8
        assert all(axis.holds(at) for at, _ in axis.ticks)
        assert len({words for _, words in axis.ticks}) == len(axis.ticks)


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
