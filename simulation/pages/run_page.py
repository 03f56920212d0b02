"""The page of one run: its figures in a few sentences, a picture, large, and what lies behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from markupsafe import Markup

from dprec.accounting import COMPARABLE_UNITS
from simulation.analysis import vocabulary
from simulation.analysis.columns import ANY_TWO, LOSSES, SERVER_SEES, STATUS, ResultColumn, composed_column
from simulation.analysis.drawing import drawing_of
from simulation.analysis.protocol_results import ProtocolResult, metrics_of, result_of
from simulation.analysis.vocabulary import (
    DASH,
    Metric,
    headlines,
    listed,
    loss,
    main_metric,
    number,
    plural,
    size,
)
from simulation.pages import run_sections as parts
from simulation.pages.deployment import HOW_TO_PROJECT, projection_sections, run_projections
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.figures.users import HELD_AGAINST, draw_summary, evaluated_rounds
from simulation.pages.page import Section, figures, page, paragraph, render_template
from simulation.pages.words import components_in_words, run_in_words
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import NEARLY_ALL, DirectionSummary, Summary


def answer_sentence(summary: Summary) -> str:
    """Return the figures of a run in a few sentences; what is worse than nothing sent says so first."""
    result = result_of(summary)
    accurate = _accuracy_in_words(summary)
    if not summary.traffic.uplink.message_bytes:
        return f"{accurate or 'No accuracy was measured'}, with nothing sent."
    if not accurate:
        deployed = summary.devices == "deployed"
        accurate = "Only the devices know the accuracy" if deployed else "No accuracy was measured"
    up, down = summary.traffic.uplink, summary.traffic.downlink
    return (
        f"{accurate}. {_privacy_in_words(result)}. A user sends {_price(up)} and is sent {_price(down)}; the "
        f"server sees {result.server_sees}."
    )


def _price(spent: DirectionSummary) -> str:
    return size(spent.message_mean_per_user) + "".join(f" ({each})" for each in _on_the_network(spent))


def _on_the_network(spent: DirectionSummary) -> list[str]:
    network = spent.network_mean_per_user
    return [] if network is None else [f"{size(network)} on the network"]


def _against(summary: Summary, metric: Metric) -> float | None:
    """Return what is reached with nothing sent, if a metric was measured then too and something is sent."""
    sends = summary.traffic.uplink.message_bytes > 0
    return summary.nothing_sent if metric.column in HELD_AGAINST and sends else None


def _accuracy_in_words(summary: Summary) -> str:
    """Return the accuracy beside what is reached with nothing sent; nothing if it was not measured."""
    accuracy = summary.accuracy.metrics()
    metric = main_metric(accuracy)
    if metric is None:
        return ""
    value, digits, baseline = accuracy[metric.column], metric.digits - 1, _against(summary, metric)
    assert value is not None, "a main metric without a value"
    reached = f"{metric.label} {number(value, digits)} on {summary.dataset.test_ratings:,} held-out ratings"
    if baseline is None:
        return reached
    against = f"{reached}, against {number(baseline, digits)} with nothing sent ({metric.direction})"
    return f"Worse than sending nothing: {against}" if metric.better(baseline, value) else against


NONE_PROVED = "none is proved"


def _privacy_in_words(result: ProtocolResult) -> str:
    """Return the losses that are bounded, the largest of any user, each with what it is for."""
    rating, user = (
        _bound(result.epsilon(unit), result.claimed(unit), result.word) for unit in ("rating", "user")
    )
    composed, any_two, with_delta = result.composed, result.any_two, f"with δ = {result.delta or 0:g}"
    if rating == user == "" and composed is None:
        return "No ε is proved or claimed"
    said = [f"{rating} per rating"] if rating and rating != user else []
    known = result.epsilon("user") or result.claimed("user") or composed
    said += [f"{user} per user"] if user else []
    if composed is not None and loss(composed) != user:
        said.append(f"{loss(composed)} per user by composition {with_delta}")
    compared = result.profiles_compared(known, link=" on the ")
    proved = NONE_PROVED if any_two is None else f"it is {loss(any_two)} {with_delta}"
    # A directory of an earlier version does not say.
    beside = f"; for any two profiles {proved}" if _says_any_two(result) else ""
    return f"ε is {listed(said)}{compared}{beside}"


def _says_any_two(result: ProtocolResult) -> bool:
    return "epsilon_any_two" in result.rows[0]


def _bound(proved: float | None, claimed: float | None, word: str) -> str:
    """Write a loss that is proved, claimed or declared; nothing if there is none."""
    if claimed is None:
        return "" if proved is None else loss(proved)
    known = "not proved" if proved is None else f"proved is {loss(proved)}"
    return f"{loss(claimed)} ({word}; {known})"


def _tiles(summary: Summary) -> Markup:
    result, accuracy = result_of(summary), summary.accuracy.metrics()
    tiles = [
        (_headed(metric, summary), f"{value:.{metric.digits}f}", _beside(metric, summary))
        for metric in headlines(metrics_of([result]))
        if (value := accuracy.get(metric.column)) is not None
    ]
    tiles.append((STATUS.title, result.status, vocabulary.TRUST_IN_WORDS[result.trust]))
    tiles += _loss_tiles(result)
    tiles.append((SERVER_SEES.title, result.server_sees, plural(summary.traffic.rounds, "round")))
    for name, spent in (("up", summary.traffic.uplink), ("down", summary.traffic.downlink)):
        detail = "; ".join(["in messages, mean", *_on_the_network(spent)])
        tiles.append((f"bytes {name} per user", size(spent.message_mean_per_user), detail))
    return render_template("tiles.html", tiles=tiles)


def _loss_tiles(result: ProtocolResult) -> Iterator[tuple[str, str, str]]:
    """Yield the losses; without those per rating and per user where only a composition is bounded."""
    composed = result.composed
    for column, unit in zip(LOSSES, COMPARABLE_UNITS, strict=True):
        proved, claimed = result.epsilon(unit), result.claimed(unit)
        if proved is None and claimed is not None:
            yield column.title, loss(claimed), f"{result.word}, not proved"
        elif proved is not None or composed is None:
            yield _tile(column, result)
    if composed is not None and composed != result.epsilon("user"):
        yield _tile(composed_column([result]), result)
    if _says_any_two(result):
        yield _tile(ANY_TWO, result)


def _tile(column: ResultColumn, result: ProtocolResult) -> tuple[str, str, str]:
    """Return the tile of a column, whose figure is large and what qualifies it is not."""
    figure, _, qualified = column.text(result).partition(", ")
    detail = NONE_PROVED if figure == DASH else ", ".join(filter(None, (qualified, column.hint)))
    return column.title, figure, detail


def _beside(metric: Metric, summary: Summary) -> str:
    baseline = _against(summary, metric)
    words = "" if baseline is None else f"; {number(baseline, metric.digits)} with nothing sent"
    return metric.direction + words


def _headed(metric: Metric, summary: Summary) -> str:
    return f"{metric.label} at {summary.accuracy.k}" if metric.column.endswith("_at_k") else metric.label


def _summary_plot(run: RunFiles) -> Plot:
    """Return the figure of a run's three answers."""
    metric = main_metric(run.summary.accuracy.metrics())
    reading = (
        "Dots and bars: median, middle 50 % and 90 % of the predictions; dashed: perfect ones."
        if metric
        else ""
    )
    if metric and len(evaluated_rounds(run.rounds, metric)) > 1:
        reading = "Accuracy: one point per evaluated round."
    return Plot(
        "summary",
        "The run at a glance",
        f"{reading} Bytes count whole messages in both directions.".strip(),
        f"Accuracy, ε per user, and bytes per user, median {size(float(np.median(run.bytes_per_user)))}.",
        partial(draw_summary, run),
        full_width=True,
    )


def run_page(
    run: RunFiles, config_text: str, population: float | None, draw: Draw, declared: Sequence[str] = ()
) -> str:
    """Return the page of a run: its files, the text of config.yaml, what is said of declared promises."""
    summary = run.summary
    notes = [*declared, *summary.notes, *_left_out(summary)]
    answer = render_template(
        "answered.html",
        sentence=answer_sentence(summary),
        picture=figures([draw(_summary_plot(run))]),
        tiles=_tiles(summary),
    )
    folded = [
        *parts.example_sections(run),
        *parts.ranking_sections(run),
        Section("users", "Bytes and ε per user", (parts.user_table(run),)),
        *parts.noise_sections(run, draw),
        *parts.rounds_sections(run),
        *parts.completion_sections(run, draw),
        _provenance(run, config_text, projected=population is not None),
    ]
    sections = projection_sections(run_projections(run, population) if population else [], population)
    if drawing := drawing_of(run):
        sent = render_template("sent.svg", drawing=drawing)
        sections = [*sections, Section("sent", "What leaves one device", (sent,))]
    sections = [*sections, *(replace(section, folded=True) for section in folded)]
    return page(summary.name, "dprec run", run_in_words(run), notes, sections, answer)


def _left_out(summary: Summary) -> list[str]:
    """Say why figures of the first k items are left out, if they are, and who is only in the test ratings."""
    (share, k), dataset = (summary.accuracy.whole_lists, summary.accuracy.k), summary.dataset
    said = []
    if share is not None and share >= NEARLY_ALL:
        said.append(
            f"Precision, recall and F-score at {k} are left out: {share:.0%} of the users have at most {k} "
            "candidates, so that any list holds them all."
        )
    counts = (("user", dataset.users_only_in_test), ("item", dataset.items_only_in_test))
    if unknown := [plural(count, entity) for entity, count in counts if count]:
        said.append(f"Only in the test ratings, never in the training ratings: {listed(unknown)}.")
    return said


def _provenance(run: RunFiles, config_text: str, *, projected: bool) -> Section:
    seconds, environment = run.summary.time, run.summary.environment
    versions = ", ".join(f"{key} {value}" for key, value in environment.items() if isinstance(value, str))
    words = (
        f"{seconds.total_s:.1f} s in total: {seconds.clients_s:.1f} s on the devices, "
        f"{seconds.server_s:.1f} s on the server, {seconds.startup_s:.1f} s to start up; peak memory "
        f"{run.summary.peak_memory_mb:,.0f} MB. {versions}."
    )
    shown = [components_in_words(run), words, *(() if projected else (HOW_TO_PROJECT,))]
    configuration = render_template("configuration.html", config=config_text)
    return Section("provenance", "How it was made", (*map(paragraph, shown), configuration))
