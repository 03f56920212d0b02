"""The page of one run."""

from __future__ import annotations

from markupsafe import Markup

from simulation.analysis.columns import SERVER_SEES, STATUS
from simulation.analysis.measures import Measure, headlines, measures_in
from simulation.analysis.numbers import loss, size, with_claim
from simulation.analysis.vocabulary import TRUST_IN_WORDS, listed, plural, server_sees
from simulation.pages.completion_section import completion_sections
from simulation.pages.deployment import HOW_TO_PROJECT, projection_sections, run_projections
from simulation.pages.figures.rendering import Draw
from simulation.pages.markup import render_template
from simulation.pages.page import Section, figures, page, paragraph
from simulation.pages.run_plots import summary_plot, user_bytes_plot
from simulation.pages.run_sections import noise_sections, ranking_sections, rounds_sections, user_table
from simulation.pages.words import run_in_words
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import Accuracy, DatasetSummary


def run_page(run: RunFiles, config_text: str, population: float | None, draw: Draw) -> str:
    """Return the page of a run.

    Parameters
    ----------
    run : RunFiles
    config_text : str
        Contents of config.yaml.
    population : float or None
        Number of users in a deployment.
    draw : callable
        Renders a figure and writes its files.
    """
    summary = run.summary
    notes = [*summary.notes, *_unknown_entities(summary.dataset)]
    sections = [
        Section(
            "results",
            "How accurate, how private, how many bytes",
            (_tiles(run), figures([draw(summary_plot(run))])),
        ),
        *ranking_sections(run),
        Section("users", "Bytes and ε per user", (user_table(run), figures([draw(user_bytes_plot(run))]))),
        *noise_sections(run, draw),
        *rounds_sections(run, draw),
        *completion_sections(run, draw),
        *projection_sections(run_projections(run, population) if population else [], population),
        _provenance(run, config_text, projected=population is not None),
    ]
    return page(summary.name, "dprec run", run_in_words(run), notes, sections)


def _unknown_entities(dataset: DatasetSummary) -> list[str]:
    unknown = [
        plural(count, entity)
        for entity, count in (
            ("user", dataset.users_only_in_test),
            ("item", dataset.items_only_in_test),
        )
        if count
    ]
    return [f"Only in the test ratings, never in the training ratings: {listed(unknown)}."] if unknown else []


def _tiles(run: RunFiles) -> Markup:
    summary = run.summary
    accuracy, privacy, traffic = summary.accuracy.measures(), summary.privacy, summary.traffic
    tiles = [
        (_headed(measure, summary.accuracy), f"{value:.{measure.digits}f}", measure.direction)
        for measure in headlines(measures_in(accuracy))
        if (value := accuracy.get(measure.column)) is not None
    ]
    per_user, claimed = privacy.epsilon_per_user, privacy.epsilon_claimed
    composed = privacy.epsilon_composed
    seen = server_sees(
        trust=privacy.trust,
        hides_rated_items=privacy.hides_rated_items,
        unlinked=privacy.unlinked,
        sends=traffic.uplink.message_bytes > 0,
        spends=per_user.max != 0,
    )
    tiles += [
        (STATUS.title, privacy.status, TRUST_IN_WORDS[privacy.trust]),
        ("ε per rating", with_claim(privacy.epsilon_per_rating, claimed.per_rating), "largest of any user"),
        (
            "ε per user",
            with_claim(per_user.max, claimed.per_user),
            f"largest; median {loss(per_user.median)}",
        ),
        (
            "ε per user, composed",
            loss(composed.max),
            f"largest, δ = {privacy.delta:g}; median {loss(composed.median)}",
        ),
        (SERVER_SEES.title, seen, plural(traffic.rounds, "round")),
    ]
    for spent, words in ((traffic.uplink, "from the device"), (traffic.downlink, "to the device")):
        detail = f"95 % below {size(spent.message_p95_per_user)}, largest {size(spent.message_max_per_user)}"
        if spent.network_mean_per_user is not None:
            detail += f"; {size(spent.network_mean_per_user)} on the network"
        tiles.append((f"mean bytes {words}", size(spent.message_mean_per_user), detail))
    return render_template("tiles.html", tiles=tiles)


def _headed(measure: Measure, accuracy: Accuracy) -> str:
    return f"F-score at {accuracy.k}" if measure.column == "f_score_at_k" else measure.label


def _provenance(run: RunFiles, config_text: str, *, projected: bool) -> Section:
    summary = run.summary
    seconds, environment = summary.time, summary.environment
    versions = ", ".join(f"{key} {value}" for key, value in environment.items() if isinstance(value, str))
    words = (
        f"{seconds.total_s:.1f} s in total: {seconds.clients_s:.1f} s on the devices, "
        f"{seconds.server_s:.1f} s on the server, {seconds.startup_s:.1f} s to start up; peak memory "
        f"{summary.peak_memory_mb:,.0f} MB. {versions}."
    )
    return Section(
        "provenance",
        "How it was made",
        (
            paragraph(words),
            *(() if projected else (paragraph(HOW_TO_PROJECT),)),
            render_template("configuration.html", config=config_text),
        ),
    )
