"""The figures: what is plotted, and the small rules that decide what is."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from simulation.analysis.gains import Gain
from simulation.analysis.populations import Course, Point
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import METRICS, TRUST_IN_WORDS, Metric, size
from simulation.pages.accuracy import (
    EpsilonAxis,
    bytes_plot,
    draw_accuracy_against_tau,
    draw_accuracy_against_users,
    epsilon_plot,
    scale_accuracy,
)
from simulation.pages.drawing import Plot, log_axis, point, render, titled, to_figure
from simulation.pages.looks import COLOURS, FAINT, INK, MUTED, RULE, looks_of, most_telling, shortened
from simulation.pages.run_page import summary_plot
from simulation.pages.users import (
    PREDICTION_QUANTILES,
    bins,
    draw_rounds,
    evaluated_rounds,
    group_by_rating,
)
from simulation.storage.run_files import read_run
from strategies.participation import RoundRecord
from tests.results import result

RMSE = METRICS[0]
SIGNS = next(metric for metric in METRICS if not metric.lower_is_better)
SVG = "{http://www.w3.org/2000/svg}"
Directories = Callable[..., Path]


def baseline(name: str, rmse: float, spent: float = 0.0) -> ProtocolResult:
    (row,) = result(name, spent, rmse, None).rows
    return ProtocolResult(name, None, ({**row, "baseline": name},))


BASELINES = [baseline("nothing-sent", 1.05), baseline("item-average", 1.01, 30.0)]
CURVES = [result("plain", 500, 0.9, None), result("private", 200, 1.1, 0.5), result("private", 200, 1.0, 1.0)]


def panels(plot: Plot | None) -> list[Axes]:
    assert plot is not None
    return to_figure(plot).axes


def axes() -> Axes:
    return Figure(layout="constrained").subplots()


def by_epsilon(results: Sequence[ProtocolResult], *kinds: EpsilonAxis) -> list[Axes]:
    return panels(epsilon_plot(results, RMSE, kinds or (EpsilonAxis("rating"),), looks_of(results), ""))


def by_bytes(results: Sequence[ProtocolResult], metric: Metric = RMSE) -> list[Axes]:
    return panels(bytes_plot(results, metric, looks_of(results), ""))


def legend(ax: Axes) -> dict[str, Line2D]:
    """Return what the legend below a panel says, and how that is drawn."""
    found = {
        text.get_text(): line
        for each in ax.figure.legends
        for text, line in zip(each.texts, each.get_lines(), strict=True)
    }
    return found


def named(ax: Axes) -> set[str]:
    """Return the names in the legend and beside points."""
    return {*legend(ax), *(text.get_text() for text in ax.texts)}


def places(line: Line2D) -> list[list[float]]:
    """Return where a line goes: the distances to the right, and up."""
    return np.asarray(line.get_xydata()).T.tolist()  # type: ignore[no-any-return]


def curves(ax: Axes, colour: str) -> list[list[list[float]]]:
    """Return the lines of a colour, without those that only mark places."""
    return [
        places(line) for line in ax.lines if line.get_linestyle() != "None" and line.get_color() == colour
    ]


def test_protocols_are_lines_with_error_bars_and_baselines_lie_across() -> None:
    (ax,) = by_epsilon([*CURVES, *BASELINES])
    looks = looks_of(CURVES)
    assert curves(ax, looks["private"].colour) == [[[0.5, 1.0], [1.1, 1.0]]]
    (nothing,) = curves(ax, INK)
    assert set(nothing[1]) == {1.05}
    assert [set(y) for _, y in curves(ax, MUTED)] == [{1.01}]
    assert [set(y) for _, y in curves(ax, looks["plain"].colour)] == [{0.9}]
    assert named(ax) == {"private", "plain", "nothing sent", "local model", "without privacy"}
    assert len(ax.containers) == 1
    assert ax.get_xlabel() == "ε per rating"


@pytest.mark.parametrize(("status", "marked"), [("proved", False), ("claimed", True), ("none", True)])
def test_what_does_not_keep_its_budget_is_marked_on_the_axis_of_budgets(status: str, marked: bool) -> None:
    results = [result("sound", 1, 1, 1.0), result("claimed", 3, 2, 1.0)]
    results[1].rows[0]["status"] = status
    names = {"sound", "claimed †" if marked else "claimed"}
    asked, held = by_epsilon(results, EpsilonAxis("rating", asked=True), EpsilonAxis("rating"))
    assert {text.get_text() for text in asked.texts} == names
    assert {text.get_text() for text in held.texts} == {"sound", "claimed"}
    assert {text.get_text() for text in by_bytes(results)[0].texts} == names


@pytest.mark.parametrize(("delta", "missing"), [(None, "a"), (1e-6, "b")])
def test_what_has_no_place_on_the_axis_is_named(delta: float | None, missing: str) -> None:
    results, axis = [result("a", 1, 1), result("b", 1, 1)], EpsilonAxis("user", delta)
    results[0].rows[0].update(epsilon_per_user_max=None, epsilon_composed_max=1.0)
    plot = epsilon_plot(results, RMSE, [axis], looks_of(results), "")
    assert plot is not None
    assert f"Not drawn, because no {axis.name} is proved: {missing}." in plot.caption


def test_every_unit_has_a_panel_of_its_own() -> None:
    kinds = EpsilonAxis("rating"), EpsilonAxis("user")
    labels = [ax.get_xlabel() for ax in by_epsilon([result("a", 1, 1)], *kinds)]
    assert labels == ["ε per rating", "ε per user, largest of any user"]
    unbounded = result("a", 1, 1)
    unbounded.rows[0]["epsilon_per_user_max"] = None
    assert len(by_epsilon([unbounded], *kinds)) == 1


def test_at_most_six_lines_are_named_the_unbeaten_ones_first() -> None:
    results = [result(f"p{place}", 1, 1 + place / 10, budget) for place in range(9) for budget in (1.0, 2.0)]
    results += [result("cheap", 1, 1.99, 0.5), result("cheap", 1, 1.98, 0.6), result("plain", 1, 1.05, None)]
    (ax,) = by_epsilon(results)
    assert named(ax) >= {"p0", "cheap", "plain", "p1", "p2", "p3", "5 more"}
    assert not named(ax) & {"p4", "p8"}
    assert len(curves(ax, FAINT)) == 5
    dashes = [
        str(legend(ax)[name].get_linestyle()) + str(legend(ax)[name]._dash_pattern)
        for name in ("p0", "p1", "p2", "p3")
    ]
    assert len(set(dashes)) == 4


def test_a_price_that_rounding_alone_makes_lower_names_nothing() -> None:
    every = {f"p{place}": [(1.0, place / 10)] for place in range(6)} | {"near": [(0.99999, 9.0)]}
    assert most_telling(every) == [f"p{place}" for place in range(6)]


def test_bytes_of_messages_and_of_the_network_have_their_panels_and_frontiers() -> None:
    assert len(by_bytes([result("a", 100, 1.0)])) == 1
    network = {"a": 9e3, "b": 5e3, "c": 8e3}
    results = [
        result(
            name, spent, rmse, uplink_network_mean_per_user=network[name], downlink_network_mean_per_user=0.0
        )
        for name, spent, rmse in (("a", 100, 1.0), ("b", 200, 1.2), ("c", 300, 0.9))
    ]
    steps = [curves(ax, MUTED)[0] for ax in by_bytes(results)]
    assert steps[0][0][:-1] == [100, 200, 300]
    assert steps[0][1] == [1.0, 1.0, 0.9, 0.9]
    assert steps[1][0][:-1] == [5e3, 8e3, 9e3]
    assert steps[1][1] == [1.2, 0.9, 0.9, 0.9]
    unknown = [result("a", math.inf, 1.0)]
    assert bytes_plot(unknown, RMSE, looks_of(unknown), "") is None


def test_names_beside_points_cover_nothing_and_points_in_one_place_share_one() -> None:
    results = [result(f"p{place}", 100.0, 1 + place / 1000) for place in range(3)]
    results += [result(f"q{place}", 400.0 * (1 + place), 1.2) for place in range(3)]
    (ax,) = by_bytes(results)
    assert {text.get_text() for text in ax.texts} == {"p0 + 2", "q0", "q1", "q2"}
    boxes = [text.get_window_extent() for text in ax.texts]
    assert all(box.count_overlaps(boxes) == 1 for box in boxes)


def test_a_protocol_has_the_colour_of_its_trust_model_in_every_figure() -> None:
    trusts: Any = ["local", "central", "local", "secure-aggregation", "shuffle"]
    results = [
        result(f"p{place}", 100.0 * (1 + place), 1.0 + place / 10, trust=trust)
        for place, trust in enumerate(trusts)
    ]
    looks = looks_of(results)
    assert len({looks[each.name].colour for each in results}) == 4
    assert len({looks[each.name].marker for each in results}) == 4
    for ax in (*by_epsilon(results), *by_bytes(results)):
        shown = {name: line.get_color() for name, line in legend(ax).items()}
        assert all(shown[TRUST_IN_WORDS[each.trust]] == looks[each.name].colour for each in results)


@pytest.mark.parametrize(("metric", "worst"), [(RMSE, 1), (SIGNS, 0)])
def test_what_is_worse_than_nothing_sent_is_shaded(metric: Metric, worst: int) -> None:
    results = [
        ProtocolResult(
            one.name, one.budget, tuple({**row, "rmse": None, metric.column: row["rmse"]} for row in one.rows)
        )
        for one in [*CURVES, *BASELINES]
    ]
    (ax,) = by_bytes(results, metric)
    (area,) = [each for each in ax.collections if isinstance(each, PolyCollection)]
    edges = area.get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == tuple(sorted((1.05, ax.get_ylim()[worst])))
    assert to_hex(np.ravel(area.get_facecolor())[:3].tolist()) == RULE


@pytest.mark.parametrize(("off", "worse"), [(-0.5, True), (0.5, False)])
def test_a_run_is_drawn_against_nothing_sent_and_says_if_it_is_worse(
    run_directory: Directories, off: float, worse: bool
) -> None:
    run = read_run(run_directory(rounds=5, protocol="iterative", per="user"))
    reached = evaluated_rounds(run.rounds, RMSE)[-1][2]
    ax = axes()
    draw_rounds(ax, run, RMSE, "Title", reached + off)
    assert ax.get_title(loc="left").splitlines()[1:] == ["Worse than nothing sent, by 0.500."] * worse
    (base,) = curves(ax, INK)
    assert set(base[1]) == {reached + off}
    summary = run.summary.model_copy(update={"nothing_sent": reached + off})
    first = panels(summary_plot(replace(run, summary=summary)))[0]
    assert ("Worse than nothing sent" in first.get_title(loc="left")) is worse


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
    accurate, private, spent = panels(summary_plot(read_run(directory)))
    assert [text.get_text() for text in private.texts] == [words]
    assert accurate.get_title(loc="left").startswith("How accurate: RMSE")
    assert spent.get_title(loc="left").startswith("How many bytes:")


HOSTILE = ["<script>alert(1)</script>", '" onload="x', "&amp;", "]]>", "#1b2530", "$x_$"]


def test_text_inside_a_figure_stays_text_and_follows_the_theme() -> None:
    def draw(ax: Axes) -> None:
        titled(ax, "Title\ufffe", "A\N{NO-BREAK SPACE}note", x="\x07 \ud800")
        ax.plot([0, 1], [0, 1], color=INK)
        for place, words in enumerate(HOSTILE):
            ax.text(0, place / 6, words)
            point(ax, [0.5, 2.0, 0.25], [0.5, 9.0, np.nan], INK, [words, "outside", "unknown"])

    before, plot = dict(matplotlib.rcParams), Plot("name", "Title", "", "", [draw])
    drawn = render(plot, png=True)
    assert dict(matplotlib.rcParams) == before
    assert drawn.png is not None
    assert drawn.png.startswith(b"\x89PNG")
    inside, file = fromstring(f"<div>{drawn.inline}</div>"), fromstring(drawn.svg)
    assert {*HOSTILE, "Title·", "A note", "· ·"} <= {each.text for each in inside.iter("text")}
    assert {*HOSTILE, "Title·", "A note", "· ·"} <= {each.text for each in file.iter(f"{SVG}text")}
    assert [each.text for each in inside.iter("title")] == HOSTILE
    assert [each.text for each in file.iter(f"{SVG}title")] == HOSTILE
    held = [(key, value) for each in inside.iter() for key, value in each.attrib.items()]
    assert ("stroke", "var(--ink)") in held
    assert not any(key == "style" or value in (light for light, _ in COLOURS.values()) for key, value in held)
    assert INK in {each.get("stroke") for each in file.iter()}
    assert "var(" not in drawn.svg
    assert render(plot).svg == drawn.svg


def test_names_are_made_drawable() -> None:
    assert shortened("a\nb\x07") == "a·b·"
    assert len(shortened("x" * 200)) == 24


def test_predictions_are_grouped_by_rating() -> None:
    ratings = np.array([1.0, 1.0, 5.0])
    groups = group_by_rating(ratings, np.array([2.0, 4.0, 3.0]))
    assert [place for place, _ in groups] == [1.0, 5.0]
    assert [quantiles[PREDICTION_QUANTILES.index(50)] for _, quantiles in groups] == [3.0, 3.0]
    assert len(group_by_rating(np.linspace(-10, 10, 500), np.zeros(500))) == 10


def test_bytes_of_rounds_add_up_also_where_nothing_was_measured() -> None:
    measured: dict[int, dict[str, float | None] | None] = {1: {"rmse": 2.0}, 2: None, 3: {"rmse": 1.0}}
    rounds = [RoundRecord(number, 1, 0, each, 4, 5, 0, 1, 0.1) for number, each in measured.items()]
    assert evaluated_rounds(rounds, RMSE) == [(1, 6.0, 2.0), (3, 18.0, 1.0)]


def test_a_ring_on_the_baseline_is_where_a_protocol_begins_to_beat_it() -> None:
    def reached(name: str, users: float, gained: float) -> Point:
        return Point(users, result(name, 100.0, 1.05 - gained), 1.05 - gained, Gain(gained, None, None, 3))

    gains = {"a": {1e3: -0.1, 1e5: 0.1}, "b": {1e3: -0.2, 1e5: -0.1}}
    every = [
        Course(name, 1.0, "synthetic", "nothing sent", tuple(reached(name, *each) for each in own.items()))
        for name, own in gains.items()
    ]
    ax = axes()
    draw_accuracy_against_users(ax, every, RMSE, looks_of([each.points[0].result for each in every]))
    assert places(ax.lines[-1]) == [[pytest.approx(1e4)], [pytest.approx(1.05)]]
    (base,) = curves(ax, INK)
    assert base[1] == pytest.approx([1.05] * 4)
    assert named(ax) == {"a", "b", "nothing sent", "begins to beat nothing sent", TRUST_IN_WORDS["local"]}


def test_how_much_noise_protocols_stand_is_one_curve_for_all_of_them() -> None:
    sums = [
        result("a", 100.0, 1.0, 1.0, tau=0.01, trust="central"),
        result("a", 100.0, 0.9, 4.0, tau=0.002, trust="central"),
        result("b", 100.0, 1.02, 4.0, tau=0.02),
    ]
    across, ax = [CURVES[0], *BASELINES], axes()
    looks = looks_of([*sums, *across])
    draw_accuracy_against_tau(ax, sums, across, RMSE, looks)
    (curve,) = curves(ax, looks["a"].colour)
    assert curve[0] == pytest.approx([100, 500])
    assert named(ax) >= {"a", "b", "nothing sent", "plain"}


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
    ax = axes()
    (note,) = scale_accuracy(ax, metric, {**USUAL, "far": far})
    low, high = ax.get_ylim()
    assert 0.8 < low < 0.9
    assert 1.3 < high < 1.4
    assert note.replace("\N{NO-BREAK SPACE}", " ") == words


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"a": [0.9, 1.0, 1.1]},
        {"a": [0.9], "b": [2.7]},
        {**USUAL, "d": [2.6], "e": [2.7]},
        {"a": [1, 100]},
    ],
)
def test_what_is_not_far_from_all_others_or_not_few_stays_on_the_scale(
    values: dict[str, list[float]],
) -> None:
    ax = axes()
    assert not scale_accuracy(ax, RMSE, values, ends=[1.4] if values else [])
    low, high = ax.get_ylim()
    assert all(low <= value <= high for each in values.values() for value in each)


@pytest.mark.parametrize("low", [1.0, 950.0])
def test_ticks_of_sizes_are_apart_and_enough(low: float) -> None:
    for ratio in (1.0, 1.01, 1.5, 4, 20, 1e2, 1e4, 1e9):
        ax = axes()
        start, end = log_axis(ax.xaxis, [low, low * ratio], size)
        words = [size(tick) for tick in ax.get_xticks() if start <= tick <= end]
        assert 1 <= len(set(words)) == len(words) <= 9, ratio


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
