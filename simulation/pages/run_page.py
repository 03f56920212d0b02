"""The page of one run: its figures, large, a picture of them, and the sections behind them."""

from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from markupsafe import Markup

from dprec.completion import COMPLETIONS
from dprec.components import Registry, summary_of
from dprec.errors import plural
from dprec.mechanisms import MECHANISMS
from dprec.protocols.registry import PROTOCOLS
from simulation.analysis.attacks import told
from simulation.analysis.columns import (
    ANY_TWO,
    SERVER_SEES,
    STATUS,
    composed_column,
    figure_column,
    losses_of,
    round_columns,
    text_column,
)
from simulation.analysis.drawing import drawing_of
from simulation.analysis.gains import worse_than_nothing
from simulation.analysis.groups import GroupLine
from simulation.analysis.populations import run_projections
from simulation.analysis.protocol_results import metrics_of, result_of
from simulation.analysis.vocabulary import (
    DASH,
    Metric,
    data_in_words,
    headlines,
    listed,
    loss,
    main_metric,
    number,
    size,
)
from simulation.configuration.strict_yaml import at
from simulation.pages.drawing import Draw
from simulation.pages.noise import noise_plot
from simulation.pages.officer import NO_PERSONAL_DATA, Subject, officer_section
from simulation.pages.page import Section, page, render_template, table
from simulation.pages.run_figures import HELD_AGAINST, averaging_plot, rounds_plot, summary_plot
from simulation.pages.sections import (
    HOW_TO_PROJECT,
    AttackedProtocol,
    attack_section,
    groups_section,
    projection_section,
)
from simulation.storage.column import Column
from simulation.storage.run_files import RunRecord
from simulation.storage.summary import NEARLY_ALL, Summary
from strategies.participation import RoundRecord

_EXAMPLES_LEFT_OUT = (
    "Left out, because the ratings of a user are personal data: dprec report DIR --examples shows them."
)
_EXAMPLES_SHOWN = (
    "This page holds personal data: the identifier and true ratings of a user. Share it with nobody who must "
    "not see them; dprec report DIR draws it without."
)


def run_page(
    run: RunRecord,
    config_text: str,
    population: float | None,
    draw: Draw,
    declared: Sequence[str] = (),
    *,
    examples: bool = False,
) -> str:
    """Return the page of a run: its files, the text of config.yaml, what is said of declared promises.

    ``examples``: whether it shows a user's ratings that are somebody's.
    """
    summary, attacks, drawing = run.summary, run.summary.attacks, drawing_of(run)
    grouped = [
        GroupLine(summary.name, None, by, group) for by, groups in summary.groups.items() for group in groups
    ]
    reached = {} if attacks is None else told(attacks.reached, summary.accuracy.metrics())
    attacked = [AttackedProtocol(summary.name, None, reached)] if reached else []
    notes = [] if attacks is None else [note for attack in attacks.performed for note in attack.notes]
    sent = "" if drawing is None else render_template("sent.svg", drawing=drawing)
    shows_ratings = examples or run.made_up
    personal = (
        _EXAMPLES_SHOWN if examples else "All users are made up." if shows_ratings else NO_PERSONAL_DATA
    )
    sections = [
        officer_section([Subject(result_of(summary), summary)], page=personal),
        *([projection_section(run_projections(run, population), population)] if population else []),
        Section("sent", "What leaves one device", (sent,), folded=False),
        attack_section(attacked, notes, folded=False),
        Section("periods-section", "What reports tell in the course of time", (averaging_plot(run),)),
        _example_section(run, shows_ratings=shows_ratings),
        _ranking_section(run),
        groups_section(grouped),
        Section("noise-section", "Noise of the mechanism", [noise_plot(run.channel)] if run.channel else []),
        _rounds_section(run),
        _completion_section(run, shows_ratings=shows_ratings),
        _provenance(run, config_text, projected=population is not None),
    ]
    metric = main_metric(summary.accuracy.metrics())
    base = None if metric is None else _against(summary, metric)
    verdict = ""
    if metric and base is not None:
        verdict = worse_than_nothing(summary.accuracy.metrics()[metric.column] or 0.0, base, metric) or ""
    tiles = render_template("tiles.html", tiles=run_tiles(summary))
    answer = Section("answer", "Answer", (verdict, tiles, summary_plot(run)))
    noted = [*declared, *summary.notes, *_left_out(summary)]
    return page(summary.name, "dprec run", _in_words(summary), [answer], noted, sections, draw)


def _in_words(summary: Summary) -> str:
    """Say whose ratings a run was on, and what its protocol does."""
    kind, data = summary.protocol, summary.dataset
    about = summary_of(PROTOCOLS[kind]) if kind in PROTOCOLS.kinds else f"Protocol: {_named(kind)}"
    tested_on = "later" if summary.terms and summary.terms.collections else "held-out"
    people = data_in_words(data.model_dump(), lists=data.scale is None, tested_on=tested_on)
    if summary.devices == "deployed":
        people = f"Deployed: {data.users:,} people are enrolled, each with a device; {data.items:,} items."
    return f"{people} {about}"


def _named(kind: str) -> str:
    """Name a component that is not ours; one of a user is called by its module and class."""
    return f"{kind}, your own." if ":" in kind else f"{kind}."


def _against(summary: Summary, metric: Metric) -> float | None:
    """Return what is reached with nothing sent, if a metric was measured then too and something is sent."""
    sends = summary.traffic.uplink.message_bytes > 0
    return summary.nothing_sent if metric.column in HELD_AGAINST and sends else None


def run_tiles(summary: Summary) -> list[tuple[str, str, str]]:
    """Return the figures of a run, each with its name and what qualifies it."""
    result, accuracy = result_of(summary), summary.accuracy.metrics()
    tiles = []
    for metric in headlines(metrics_of([result])):
        if (value := accuracy.get(metric.column)) is not None:
            baseline, at_k = _against(summary, metric), f" at {summary.accuracy.k}"
            comparison = "" if baseline is None else f"; {number(baseline, metric.digits)} with nothing sent"
            title = metric.label + at_k * metric.column.endswith("_at_k")
            tiles.append((title, f"{value:.{metric.digits}f}", metric.direction + comparison))
    tiles.append((STATUS.title, result.status, f"{result.trust} model"))
    losses = [*losses_of([result]), composed_column([result])]
    columns = {column.title: column for column in losses if column.text(result) != DASH}
    if result.composed is not None and result.composed == result.epsilon("user"):
        del columns[losses[-1].title]
    for column in [*(columns.values() or losses[:2]), ANY_TWO]:
        figure, _, qualified = column.text(result).partition(", ")
        detail = "none is proved" if figure == DASH else ", ".join(filter(None, (qualified, column.unit)))
        if column is ANY_TWO and figure not in (DASH, loss(result.epsilon("user"))):
            # What the sum of losses keeps as well holds without a delta.
            detail = f"δ={result.delta or 0:g}"
        tiles.append((column.title, figure, detail))
    tiles.append((SERVER_SEES.title, result.server_sees, plural(summary.traffic.rounds, "round")))
    for name, spent in (("up", summary.traffic.uplink), ("down", summary.traffic.downlink)):
        network = spent.network_mean_per_user
        detail = "in messages, mean" + ("" if network is None else f"; {size(network)} on the network")
        tiles.append((f"bytes {name} per user", size(spent.message_mean_per_user), detail))
    return tiles


def _left_out(summary: Summary) -> list[str]:
    """Say why figures of the first k items are left out, if they are, and who is only in the test ratings."""
    (share, k), dataset = (summary.accuracy.whole_lists, summary.accuracy.k), summary.dataset
    notes = []
    if share is not None and share >= NEARLY_ALL:
        notes.append(
            f"Precision, recall and F-score at {k} are left out: {share:.0%} of the users have at most {k} "
            "candidates, so that any list holds them all."
        )
    counts = (("user", dataset.users_only_in_test), ("item", dataset.items_only_in_test))
    if unknown := [plural(count, entity) for entity, count in counts if count]:
        notes.append(f"Only in the test part, never in the train part: {listed(unknown)}.")
    return notes


def _example_section(run: RunRecord, *, shows_ratings: bool) -> Section:
    """Return the section with some predictions of one user, if anybody has enough test ratings.

    ``shows_ratings``: whether they are shown; otherwise only what shows them is said.
    """
    names, example = run.summary.item_names, run.example
    columns: list[Column[tuple[str, float, float]]] = [
        text_column("item", lambda row: names.get(row[0], row[0])),
        figure_column("true rating", "", itemgetter(1), "{:g}".format),
        figure_column("prediction", "", itemgetter(2), 2),
    ]
    content: tuple[Markup | str, ...] = ()
    if example is not None and shows_ratings:
        rows = table(f"Test ratings of user {example.user}", columns, example.predicted)
        content = ("" if run.made_up else _EXAMPLES_SHOWN, rows)
    elif example is not None:
        content = (_EXAMPLES_LEFT_OUT,)
    return Section("example", "Predictions for one user", content)


def _ranking_section(run: RunRecord) -> Section:
    """Return the figures of lists from the catalogue, and of those from a sample, if they were measured."""
    rated, accuracy = run.summary.dataset.scale is not None, run.summary.accuracy
    among = f"all items that a user {'has not rated' if rated else 'does not have'}"
    hits = "a relevant test rating" if rated else "a test item"

    def at_cutoff(cutoff: int) -> Column[tuple[str, Mapping[int, float]]]:
        return figure_column(f"at {cutoff}", "", lambda row: row[1][cutoff], 4)

    tables = [
        table(
            f"Among {candidates}; means over {ranking.users:,} users with {hits}",
            [text_column("metric", itemgetter(0)), *map(at_cutoff, ranking.ndcg_at)],
            [
                (name.removesuffix("_at").replace("_", " "), figures)
                for name, figures in ranking
                if name.endswith("_at") and figures
            ],
        )
        for candidates, ranking in ((among, accuracy.ranking), ("sampled items", accuracy.sampled_ranking))
        if ranking is not None
    ]
    if not tables:
        return Section("ranking", "", ())
    words = f"Lists by {'predicted rating' if rated else 'score'}; a hit is an item with {hits}."
    return Section("ranking", "Ranking over the catalogue", (words if rated else "", *tables))


def _rounds_section(run: RunRecord) -> Section:
    """Return what changes from round to round, and the table of the rounds, if there are any."""
    columns: list[Column[RoundRecord]] = [
        *round_columns(run.rounds, metrics_of([result_of(run.summary)])),
        figure_column("up", "message bytes", attrgetter("uplink_message_bytes"), 0),
        figure_column("down", "message bytes", attrgetter("downlink_message_bytes"), 0),
        figure_column("seconds", "", attrgetter("seconds"), 2),
    ]
    markup = table("Rounds, all users together", columns, run.rounds)
    return Section("rounds-section", "Round by round", (rounds_plot(run), markup))


def _completion_section(run: RunRecord, *, shows_ratings: bool) -> Section:
    """Return the section on what the completion learned: its diagnostics, a mixture, or two domains.

    ``shows_ratings``: whether the ratings of a user may be.
    """
    learned, domains = run.summary, run.summary.domains
    rows = [
        (key.replace("x_sim", "X-Sim").replace("_", " "), _shown(value))
        for key, value in learned.completion_diagnostics.items()
        if not isinstance(value, dict)
    ]
    if learned.mixture is not None:
        rows += [("noise by the mixture, weights", _shown(list(learned.mixture.pi)))]
        rows += [("noise by the mixture, standard deviations", _shown(list(learned.mixture.sigma)))]
    replaced = Markup("")
    if domains is not None:
        for side in (domains.source, domains.target):
            counts = f"{side.away_from_bridges:,} away from bridges, {side.next_to_bridges:,} next to them"
            edges = f"{side.edges_from_away:,} and {side.edges_to_bridges:,} edges kept"
            rows.append((f"items of {side.name}", f"{counts}, {side.bridges:,} bridges; {edges}"))
        rows.append(("edges between the domains", f"{domains.edges_between:,}"))
    if shows_ratings and domains is not None and (ego := domains.alter_ego) is not None:
        names, rating = learned.item_names, "{:g}".format
        columns: list[Column[tuple[str, tuple[str, float]]]] = [
            text_column("item", lambda row: names.get(row[1][0], row[1][0])),
            text_column("when", itemgetter(0)),
            figure_column("rating", "", lambda row: row[1][1], rating),
        ]
        rated = [("before", pair) for pair in ego.before] + [("after", pair) for pair in ego.after]
        caption = f"AlterEgo of user {ego.user}: {ego.source_ratings} ratings become {ego.items} items"
        replaced = table(f"{caption}, the first of which are here", columns, rated, sortable=False)
    diagnostics = [text_column("diagnostic", itemgetter(0)), text_column("value", itemgetter(1))]
    content = replaced, table("Diagnostics", diagnostics, rows, sortable=False)
    return Section("completion-section", f"What the completion learned ({learned.completion})", content)


def _shown(value: Any) -> str | None:
    if isinstance(value, list):
        few = [_shown(entry) or DASH for entry in value[:5]]
        return ", ".join(few) + (f", … ({len(value)} in all)" if len(value) > len(few) else "")
    if isinstance(value, float):
        return f"{value:,.5g}"
    return None if value is None else str(value)


def _provenance(run: RunRecord, config_text: str, *, projected: bool) -> Section:
    """Return how a run was made: its components, how long it took, and the configuration."""

    def described(what: str, registry: Registry[Any], kind: str) -> str:
        registered = kind in registry.kinds
        return f"{what} ({kind}): {summary_of(registry[kind])}" if registered else f"{what}: {_named(kind)}"

    summary, seconds = run.summary, run.summary.time
    parts = [described("Completion", COMPLETIONS, summary.completion)]
    if (at(run.config, "protocol", "mechanism", "kind") or "none") != "none":
        parts.insert(0, described("Mechanism", MECHANISMS, summary.mechanism))
    versions = ", ".join(
        f"{key} {value}" for key, value in summary.environment.items() if isinstance(value, str)
    )
    words = (
        f"{seconds.total_s:.1f} s in total: {seconds.clients_s:.1f} s on the devices, "
        f"{seconds.server_s:.1f} s on the server, {seconds.startup_s:.1f} s to start up; peak memory "
        f"{summary.peak_memory_mb:,.0f} MB. {versions}."
    )
    configuration = render_template("configuration.html", config=config_text)
    content = " ".join(parts), words, "" if projected else HOW_TO_PROJECT, configuration
    return Section("provenance", "How it was made", content)
