"""The figures: what is plotted, and the small rules that decide what is."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from simulation.analysis.gains import Gain
from simulation.analysis.populations import Point, PopulationCourse
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import METRICS, Metric
from simulation.pages.comparison_figures import (
    EpsilonAxis,
    accuracy_plot,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
    draw_accuracy_against_users,
)
from simulation.pages.drawing import Plot, point, render, titled, to_figure
from simulation.pages.looks import COLOURS, INK, MUTED, RULE, looks_of
from simulation.pages.run_figures import (
    PREDICTION_QUANTILES,
    draw_rounds,
    evaluated_rounds,
    group_by_rating,
    rounds_plot,
    summary_plot,
)
from simulation.pages.run_page import run_tiles
from simulation.storage.run_files import RANK, read_run
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


def by_epsilon(results: Sequence[ProtocolResult], *, asked: bool = False) -> Axes:
    ax = axes()
    draw_accuracy_against_epsilon(
        ax, results, RMSE, EpsilonAxis("rating", requested=asked), looks_of(results)
    )
    return ax


def by_bytes(results: Sequence[ProtocolResult], metric: Metric = RMSE, what: str = "messages") -> Axes:
    ax = axes()
    draw_accuracy_against_bytes(ax, results, metric, what, looks_of(results))
    return ax


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
    ax = by_epsilon([*CURVES, *BASELINES])
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
    assert {text.get_text() for text in by_epsilon(results, asked=True).texts} == names
    assert {text.get_text() for text in by_epsilon(results).texts} == {"sound", "claimed"}
    assert {text.get_text() for text in by_bytes(results).texts} == names


def test_bytes_of_messages_and_of_the_network_have_their_frontiers() -> None:
    network = {"a": 9e3, "b": 5e3, "c": 8e3}
    results = [
        result(
            name, spent, rmse, uplink_network_mean_per_user=network[name], downlink_network_mean_per_user=0.0
        )
        for name, spent, rmse in (("a", 100, 1.0), ("b", 200, 1.2), ("c", 300, 0.9))
    ]
    steps = [curves(by_bytes(results, what=what), MUTED)[0] for what in ("messages", "the network")]
    assert steps[0][0][:-1] == [100, 200, 300]
    assert steps[0][1] == [1.0, 1.0, 0.9, 0.9]
    assert steps[1][0][:-1] == [5e3, 8e3, 9e3]
    assert steps[1][1] == [1.2, 0.9, 0.9, 0.9]


@pytest.mark.parametrize(
    ("results", "labels"),
    [
        ([result("a", 100, 1.0, uplink_network_mean_per_user=9e3, downlink_network_mean_per_user=1.0)], 2),
        ([result("a", 100, 1.0)], 2),
        ([result("a", 100, 1.0, None)], 1),
        ([result("a", math.inf, 1.0)], 1),
        ([result("a", math.inf, 1.0, None)], 0),
    ],
)
def test_accuracy_is_drawn_against_what_is_known(results: list[ProtocolResult], labels: int) -> None:
    plot = accuracy_plot(results, RMSE, EpsilonAxis("rating"), looks_of(results), "")
    assert (0 if plot is None else len(to_figure(plot).axes)) == labels


MANY = [result(f"p{place}", 100.0 * 2**place, 1.0 - place / 100, 1.0) for place in range(8)]


def test_what_is_recommended_is_named_first_and_what_is_not_named_is_told_by_its_marker() -> None:
    def named_with(first: Sequence[str]) -> tuple[set[str], Line2D]:
        ax = axes()
        draw_accuracy_against_bytes(ax, MANY, RMSE, "messages", looks_of(MANY), first)
        drawn = legend(ax)
        return {text.get_text() for text in ax.texts}, drawn["2 more"]

    plain, more = named_with([])
    assert plain == {f"p{place}" for place in range(2, 8)}
    assert (more.get_marker(), more.get_linestyle()) == ("o", "None")
    assert named_with(["p0", "not drawn"])[0] == {"p0", *(f"p{place}" for place in range(3, 8))}


@pytest.mark.parametrize(
    ("rmse", "words"),
    [
        (1.05, "Shaded: worse than nothing sent."),
        (9.0, "Shaded: worse than nothing sent, where that is on the scale."),
        (None, ""),
    ],
)
def test_the_caption_says_what_is_shaded(rmse: float | None, words: str) -> None:
    results = MANY if rmse is None else [*MANY, baseline("nothing-sent", rmse)]
    plot = accuracy_plot(results, RMSE, EpsilonAxis("rating"), looks_of(results), "")
    assert plot is not None
    assert (words in plot.caption) if words else ("Shaded" not in plot.caption)


def test_the_caption_names_a_random_order() -> None:
    (row,) = baseline("nothing-sent", 1.05).rows
    random = ProtocolResult("random-list", None, ({**row, "ndcg_at_10": 0.01},))
    results = [*MANY, random]
    plot = accuracy_plot(results, RMSE, EpsilonAxis("rating"), looks_of(results), "")
    assert plot is not None
    assert "Shaded: worse than a random order." in plot.caption


@pytest.mark.parametrize(("metric", "worst"), [(RMSE, 1), (SIGNS, 0)])
def test_what_is_worse_than_nothing_sent_is_shaded(metric: Metric, worst: int) -> None:
    results = [
        ProtocolResult(
            one.name, one.budget, tuple({**row, "rmse": None, metric.column: row["rmse"]} for row in one.rows)
        )
        for one in [*CURVES, *BASELINES]
    ]
    ax = by_bytes(results, metric)
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


@pytest.mark.parametrize("ranking", [False, True])
def test_a_figure_without_privacy_says_what_the_tile_says_the_server_sees(
    run_directory: Directories, ranking: bool
) -> None:
    """Ratings, or sets of items: the axis of their lists counts whole items."""
    summary = (run := read_run(run_directory(mechanism="none", epsilon=None))).summary
    if ranking:
        lists = summary.accuracy.model_copy(update={"rmse": None, "mae": None, "ndcg_at_10": 0.5})
        summary = summary.model_copy(update={"accuracy": lists})
        run = replace(run, predictions={RANK: np.arange(1.0, 31.0)})
    seen = next(text for title, text, _ in run_tiles(summary) if title == "server sees")
    assert seen == ("item sets" if ranking else "true ratings")
    accurate, private, _ = panels(summary_plot(replace(run, summary=summary)))
    assert f"no privacy: the server\nsees {seen}" in {text.get_text() for text in private.texts}
    if ranking:
        assert accurate.get_xticks().tolist() == [1, 5, 10, 15, 20]


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


def test_losses_and_updates_are_drawn_round_by_round(run_directory: Directories) -> None:
    """A round of which nothing is known leaves a gap; the clip stands beside the norm."""
    run = read_run(run_directory(protocol="iterative", rounds=4, per="user"))
    first, *others = run.rounds
    run = replace(run, rounds=(replace(first, epsilon=None, observed={}), *others))
    lost, norms, losses = panels(rounds_plot(run))
    for ax, expected in (
        (lost, [[0.5, 0.75, 1.0]]),
        (norms, [[1.0, 2 / 3, 0.5], [1.0, 1.0, 1.0]]),
        (losses, [[0.55, 0.5 + 0.1 / 3, 0.525]]),
    ):
        drawn = [places(line) for line in ax.lines if len(places(line)[0]) == 4]
        assert [line[0] for line in drawn] == [[1, 2, 3, 4]] * len(expected)
        assert np.isnan([line[1][0] for line in drawn]).all()
        assert [line[1][1:] for line in drawn] == [pytest.approx(each) for each in expected]
    assert set(legend(norms)) == {"norm", "clip"}
    assert rounds_plot(replace(run, rounds=run.rounds[:2])) is None


def test_a_ring_on_the_baseline_is_where_a_protocol_begins_to_beat_it() -> None:
    def reached(name: str, users: float, gained: float) -> Point:
        return Point(users, result(name, 100.0, 1.05 - gained), 1.05 - gained, Gain(gained, None, None, 3))

    gains = {"a": {1e3: -0.1, 1e5: 0.1}, "b": {1e3: -0.2, 1e5: -0.1}}
    every = [
        PopulationCourse(
            name, 1.0, "synthetic", "nothing sent", tuple(reached(name, *each) for each in own.items())
        )
        for name, own in gains.items()
    ]
    ax = axes()
    draw_accuracy_against_users(ax, every, RMSE, looks_of([each.points[0].result for each in every]), "Users")
    assert places(ax.lines[-1]) == [[pytest.approx(1e4)], [pytest.approx(1.05)]]
    (base,) = curves(ax, INK)
    assert base[1] == pytest.approx([1.05] * 4)
    assert named(ax) == {"a", "b", "nothing sent", "begins to beat nothing sent", "local model"}
