"""The page of one run: its figures in a few sentences, a picture, large, and the sections behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup

from dprec.accounting import COMPARABLE_UNITS
from dprec.channel import Channel
from dprec.reports import DeviceChannel
from simulation.analysis import attacks, vocabulary
from simulation.analysis.columns import (
    ANY_TWO,
    LOSSES,
    SERVER_SEES,
    STATUS,
    ResultColumn,
    composed_column,
)
from simulation.analysis.drawing import drawing_of
from simulation.analysis.groups import GroupLine
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
    profiles_compared,
    size,
)
from simulation.pages.attacks import attack_section
from simulation.pages.deployment import HOW_TO_PROJECT, projection_section, run_projections
from simulation.pages.drawing import Draw, Plot
from simulation.pages.groups import groups_section
from simulation.pages.looks import SERIES, Look
from simulation.pages.noise import alter_ego_plots, mixture_plots, noise_panels
from simulation.pages.page import Cell, Section, cell, figures, page, render_template, rows_table
from simulation.pages.users import (
    HELD_AGAINST,
    evaluated_rounds,
    has_periods,
    periods_panels,
    summary_panels,
)
from simulation.pages.words import components_in_words, run_in_words
from simulation.protocols.domains import LearnedDomains
from simulation.storage.run_files import RunRecord
from simulation.storage.summary import NEARLY_ALL, DirectionSummary, RankingSummary, Summary


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
    reached = f"{metric.label} {number(value, digits)} on {summary.dataset.test_ratings:,} held-out "
    reached += "ratings" if summary.dataset.scale else "items"
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
    # What the sum of losses keeps as well holds without a delta.
    beyond = "" if loss(any_two) == user and result.status == "proved" else f" {with_delta}"
    proved = NONE_PROVED if any_two is None else f"it is {loss(any_two)}{beyond}"
    return f"ε is {listed(said)}{compared}; for any two profiles {proved}"


def _bound(proved: float | None, claimed: float | None, word: str) -> str:
    """Write a loss that is proved, claimed or declared; nothing if there is none."""
    if claimed is None:
        return "" if proved is None else loss(proved)
    known = "not proved" if proved is None else f"proved is {loss(proved)}"
    return f"{loss(claimed)} ({word}; {known})"


def _tiles(summary: Summary) -> Markup:
    result, accuracy = result_of(summary), summary.accuracy.metrics()
    tiles = []
    for metric in headlines(metrics_of([result])):
        if (value := accuracy.get(metric.column)) is not None:
            baseline, at = _against(summary, metric), f" at {summary.accuracy.k}"
            known = "" if baseline is None else f"; {number(baseline, metric.digits)} with nothing sent"
            named = metric.label + at * metric.column.endswith("_at_k")
            tiles.append((named, f"{value:.{metric.digits}f}", metric.direction + known))
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
    yield _tile(ANY_TWO, result)


def _tile(column: ResultColumn, result: ProtocolResult) -> tuple[str, str, str]:
    """Return the tile of a column, whose figure is large and what qualifies it is not."""
    figure, _, qualified = column.text(result).partition(", ")
    detail = NONE_PROVED if figure == DASH else ", ".join(filter(None, (qualified, column.unit)))
    return column.title, figure, detail


def summary_plot(run: RunRecord) -> Plot:
    """Return the figure of a run's three answers."""
    metric = main_metric(run.summary.accuracy.metrics())
    reading = ""
    if has_periods(run):
        reading = "Accuracy: one point per period. "
    elif metric and len(evaluated_rounds(run.rounds, metric)) > 1:
        reading = "Accuracy: one point per evaluated round. "
    elif metric and run.summary.dataset.scale:
        reading = "Dots and bars: median, middle 50 % and 90 % of the predictions; dashed: perfect ones. "
    elif metric:
        reading = "Test items among the first of each list. "
    return Plot(
        "summary",
        "The run at a glance",
        f"{reading}Bytes count whole messages in both directions.",
        f"Accuracy, ε per user, and bytes per user, median {size(float(np.median(run.bytes_per_user)))}.",
        summary_panels(run),
        full_width=True,
        width=330,
        height=210,
    )


def run_page(
    run: RunRecord, config_text: str, population: float | None, draw: Draw, declared: Sequence[str] = ()
) -> str:
    """Return the page of a run: its files, the text of config.yaml, what is said of declared promises."""
    summary = run.summary
    picture = figures([summary_plot(run)], draw)
    answer = render_template(
        "answered.html", sentence=answer_sentence(summary), picture=picture, tiles=_tiles(summary)
    )
    sections = [projection_section(run_projections(run, population), population)] if population else []
    if drawing := drawing_of(run):
        sent = render_template("sent.svg", drawing=drawing)
        sections.append(Section("sent", "What leaves one device", (sent,)))
    performed = () if summary.attacks is None else summary.attacks.performed
    sections.append(
        attack_section(attacks.of_run(summary), {}, [note for each in performed for note in each.notes])
    )
    grouped = [
        GroupLine(summary.name, None, by, own) for by, groups in summary.groups.items() for own in groups
    ]
    folded = [
        _periods_section(run),
        _example_section(run),
        *ranking_sections(run),
        groups_section(grouped, grouped, {summary.name: Look(SERIES[0], "o")}),
        Section("users", "Bytes and ε per user", (user_table(run),)),
        Section(
            "noise-section", "Noise of the mechanism", ([noise_plot(run.channel)] if run.channel else [],)
        ),
        _rounds_section(run),
        _completion_section(run),
        _provenance(run, config_text, projected=population is not None),
    ]
    sections += [replace(section, folded=True) for section in folded]
    notes = [*declared, *summary.notes, *_left_out(summary)]
    return page(summary.name, "dprec run", run_in_words(run), notes, sections, draw, answer)


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


def _provenance(run: RunRecord, config_text: str, *, projected: bool) -> Section:
    seconds, environment = run.summary.time, run.summary.environment
    versions = ", ".join(f"{key} {value}" for key, value in environment.items() if isinstance(value, str))
    words = (
        f"{seconds.total_s:.1f} s in total: {seconds.clients_s:.1f} s on the devices, "
        f"{seconds.server_s:.1f} s on the server, {seconds.startup_s:.1f} s to start up; peak memory "
        f"{run.summary.peak_memory_mb:,.0f} MB. {versions}."
    )
    configuration = render_template("configuration.html", config=config_text)
    content = components_in_words(run), words, "" if projected else HOW_TO_PROJECT, configuration
    return Section("provenance", "How it was made", content)


_USER_FIGURES = {
    "ratings": "ratings",
    "uplink_message_bytes": "messages from the device, bytes",
    "uplink_network_bytes": "network from the device, bytes",
    "downlink_message_bytes": "messages to the device, bytes",
    "downlink_network_bytes": "network to the device, bytes",
    "messages": "messages, both ways",
    "epsilon_per_rating": "ε per rating",
    "epsilon_per_user": "ε per user",
    "epsilon_composed": "ε per user, composed",
}
"""Columns of traffic.csv, and what they are called."""

_STATISTICS = ("mean", "smallest", "5th percentile", "median", "95th percentile", "largest")


def user_table(run: RunRecord) -> Markup:
    """Return how every figure that applies is distributed over the users."""
    privacy = run.summary.privacy
    compared = profiles_compared(privacy.epsilon_per_user.max, hides_rated_items=privacy.hides_rated_items)
    rows: list[Sequence[Cell]] = []
    for column, label in _USER_FIGURES.items():
        known = run.traffic[column][np.isfinite(run.traffic[column])]
        if known.size:
            statistics = [float(known.mean()), *np.percentile(known, (0, 5, 50, 95, 100)).tolist()]
            written = loss if "ε" in label else _count
            named = f"{label}{compared}" if "per user" in label else label
            rows.append([named, *(cell(each, written) for each in statistics)])
    return rows_table(f"How {run.summary.traffic.users:,} users differ", ("per user", *_STATISTICS), rows)


def _count(value: float) -> str:
    """Write a count, or the mean of counts."""
    return number(value, 0 if value == round(value) or value >= 100 else 1)


def _example_section(run: RunRecord) -> Section:
    """Return the section with some predictions of one user, if anybody has enough test ratings."""
    title = "Predictions for one user"
    if run.example is None:
        return Section("example", title, ())
    names = run.summary.item_names
    rows: list[Sequence[Cell]] = [
        (names.get(item, item), cell(rating, "{:g}".format), cell(prediction, 2))
        for item, rating, prediction in run.example.predicted
    ]
    headings = "item", "true rating", "prediction"
    return Section(
        "example", title, (rows_table(f"Test ratings of user {run.example.user}", headings, rows),)
    )


def ranking_sections(run: RunRecord) -> list[Section]:
    """Return the figures of lists from the catalogue, if they were measured."""
    rated = run.summary.dataset.scale is not None
    hit = "a relevant test rating" if rated else "a test item"
    by = (
        "predicted rating; hits are items with a relevant test rating"
        if rated
        else "score; hits are test items"
    )
    titles = {
        f"Among all items that a user {'has not rated' if rated else 'does not have'}": "ranking",
        "Among sampled items": "sampled_ranking",
    }
    sections = []
    for title, name in titles.items():
        ranking: RankingSummary | None = getattr(run.summary.accuracy, name)
        if ranking is not None:
            caption = f"{title}; means over {ranking.users:,} users with {hit}"
            rows: list[Sequence[Cell]] = [
                (key.removesuffix("_at").replace("_", " "), *(cell(at[each], 4) for each in ranking.ndcg_at))
                for key, at in ranking
                if key.endswith("_at") and at
            ]
            headings = ["metric", *(f"at {each}" for each in ranking.ndcg_at)]
            content = f"Lists by {by}.", rows_table(caption, headings, rows)
            sections.append(Section("ranking", "Ranking over the catalogue", content))
    return sections


def _periods_section(run: RunRecord) -> Section:
    """Return the section on a run of several collections, period by period."""
    metric = main_metric(run.summary.accuracy.metrics())
    plots = []
    if metric is not None and has_periods(run):
        plots.append(
            Plot(
                "periods",
                "In the course of time",
                "Left: each point is what is predicted of the ratings of the next period. Right: the share "
                "of the reported ratings of which the likeliest level, given all reports so far, is the true "
                "one, as far as reports tell levels apart: fresh noise averages out, and what is answered "
                "once does not.",
                f"{metric.label} in each of {len(run.rounds)} periods.",
                periods_panels(run, metric),
                full_width=True,
            )
        )
    return Section("periods-section", "Period by period", (plots,))


def noise_plot(noise: DeviceChannel) -> Plot:
    """Return the figure of what a channel sends for every true rating, and its mean."""
    per_user = (
        f" Calibrated for the median user, who reports {noise.cells:,} cells." if noise.per_user else ""
    )
    return Plot(
        "noise",
        "What the mechanism sends, and what the server reads",
        f"{_symbols_in_words(noise.channel)} The mean of what is read rises with a slope of "
        f"{noise.slope:.2f}; below 1, reports are pulled to the middle of the scale.{per_user}",
        f"A true {noise.ratings[0]:g} is read as {noise.expected[0]:.2f} on average, a true "
        f"{noise.ratings[-1]:g} as {noise.expected[-1]:.2f}.",
        noise_panels(noise),
        full_width=True,
    )


def _symbols_in_words(channel: Channel) -> str:
    """Say what is sent, which is a symbol, and what number the server reads for it."""
    if channel.symbols != 2:
        return f"What is sent is one of {channel.symbols} symbols, each read as a number."
    no, yes = ("not rated" if np.isnan(value) else f"{value:.3g}" for value in channel.values)
    return f"A bit is sent: the server reads {no} for a 0 and {yes} for a 1."


def _rounds_section(run: RunRecord) -> Section:
    """Return the table of the rounds, if there are any."""
    metrics = [
        each
        for each in metrics_of([result_of(run.summary)])
        if any((record.accuracy or {}).get(each.column) is not None for record in run.rounds)
    ]
    rows: list[Sequence[Cell]] = [
        (
            *(cell(each, 0) for each in (record.round, record.replies, record.failures)),
            *(cell((record.accuracy or {}).get(each.column), each.digits) for each in metrics),
            *(cell(each, 0) for each in (record.uplink_message_bytes, record.downlink_message_bytes)),
            cell(record.seconds, 2),
        )
        for record in run.rounds
    ]
    headings: list[str | tuple[str, str]] = [
        *("round", "replies", "failures", *(each.label for each in metrics)),
        *(("up", "message bytes"), ("down", "message bytes"), "seconds"),
    ]
    shown = rows_table("Rounds, all users together", headings, rows) if rows else ""
    return Section("rounds-section", "Round by round", (shown,))


def _completion_section(run: RunRecord) -> Section:
    """Return the section on what the completion learned, with figures, if it reports anything."""
    learned, domains = run.summary, run.summary.domains
    rows: list[Sequence[Cell]] = [
        (key.replace("x_sim", "X-Sim").replace("_", " "), _shown(value))
        for key, value in learned.completion_diagnostics.items()
        if not isinstance(value, dict)
    ]
    content = (
        [] if learned.mixture is None else mixture_plots(learned.mixture),
        "" if domains is None else _layers_table(domains),
        [] if domains is None else alter_ego_plots(domains, learned.item_names),
        rows_table("Diagnostics", ("diagnostic", "value"), rows, sortable=False) if rows else "",
    )
    return Section("completion-section", f"What the completion learned ({learned.completion})", content)


def _layers_table(domains: LearnedDomains) -> Markup:
    """Return how many items every layer of two domains has, and how many edges were kept between them."""
    sides = domains.source, domains.target
    layers = {
        "NN: away from bridges": "away_from_bridges",
        "NB: next to a bridge": "next_to_bridges",
        "BB: bridges": "bridges",
        "edges, NN to NB": "edges_from_away",
        "edges, NB to BB": "edges_to_bridges",
    }
    rows: list[Sequence[Cell]] = [
        (words, *(cell(getattr(side, name), 0) for side in sides)) for words, name in layers.items()
    ]
    rows.append(("edges between the domains", *[cell(domains.edges_between, 0)] * 2))
    headings = ["items", *(side.name for side in sides)]
    return rows_table("The two domains as layers", headings, rows, sortable=False)


def _shown(value: Any) -> str | None:
    if isinstance(value, list):
        few = [_shown(entry) or DASH for entry in value[:5]]
        return ", ".join(few) + (f", … ({len(value)} in all)" if len(value) > len(few) else "")
    if isinstance(value, float):
        return f"{value:,.5g}"
    return None if value is None else str(value)
