"""The page of one run: a sentence, the picture of its figures, the figures large, and its sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from simulation.analysis.columns import SERVER_SEES, STATUS
from simulation.analysis.vocabulary import (
    DASH,
    TRUST_IN_WORDS,
    Metric,
    headlines,
    listed,
    loss,
    main_metric,
    metrics_in,
    number,
    plural,
    profiles_compared,
    server_sees,
    size,
)
from simulation.pages.deployment import HOW_TO_PROJECT, projection_sections, run_projections
from simulation.pages.figures.rendering import Draw, Plot, Rendered
from simulation.pages.figures.users import draw_bytes, draw_summary, evaluated_rounds, group_by_rating
from simulation.pages.page import Section, figures, page, paragraph, render_template
from simulation.pages.run_sections import (
    completion_sections,
    example_sections,
    noise_sections,
    ranking_sections,
    rounds_sections,
    user_table,
)
from simulation.pages.words import components_in_words, run_in_words
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import Accuracy, DatasetSummary, DirectionSummary, PrivacySummary, Summary


def _run_answer(summary: Summary, picture: Rendered) -> Markup:
    """Return the answer of a run: how accurate, how private, how many bytes, and what the server sees."""
    return render_template(
        "answered.html",
        sentence=answer_sentence(summary),
        picture=figures([picture]),
        tiles=_tiles(summary),
    )


def answer_sentence(summary: Summary) -> str:
    """Return the figures of a run as one sentence."""
    accurate = _accuracy_in_words(summary)
    if not _sends(summary):
        return f"{accurate or 'No accuracy was measured'}, with nothing sent."
    up, down = summary.traffic.uplink, summary.traffic.downlink
    spent = f"{size(up.message_mean_per_user)} up and {size(down.message_mean_per_user)} down per user"
    figures_of_run = ", ".join(filter(None, [accurate, _privacy_in_words(summary)]))
    said = f"{figures_of_run[0].upper()}{figures_of_run[1:]}, for {spent}; the server sees {_seen(summary)}."
    if accurate:
        return said
    deployed = summary.devices == "deployed"
    return f"{said} {'Only the devices know the accuracy' if deployed else 'No accuracy was measured'}."


def _accuracy_in_words(summary: Summary) -> str:
    """Return the accuracy beside what is reached with nothing sent; nothing if it was not measured."""
    accuracy, baseline = summary.accuracy.metrics(), summary.nothing_sent
    metric = main_metric(accuracy)
    if metric is None:
        return ""
    value, digits = accuracy[metric.column], metric.digits - 1
    assert value is not None, "a main metric without a value"
    reached = f"{metric.label} {number(value, digits)} on {summary.dataset.test_ratings:,} held-out ratings"
    if baseline is None or metric.column not in _ALONE or not _sends(summary):
        return reached
    return f"{reached}, against {number(baseline, digits)} with nothing sent ({metric.direction})"


_ALONE = ("rmse", "sign_accuracy")
"""The metrics of `Summary.nothing_sent`."""


def _privacy_in_words(summary: Summary) -> str:
    privacy = summary.privacy
    proved = privacy.epsilon_per_rating, privacy.epsilon_per_user.max
    if privacy.status in ("claimed", "declared"):
        claimed, known, word = privacy.epsilon_claimed, proved[0] is not None, privacy.status
        words = f", {word}; proved is {loss(proved[0])} per rating" if known else f", {word} and not proved"
        return _losses(claimed.per_rating, claimed.per_user, privacy) + words
    composed = privacy.epsilon_composed.max
    if composed is None:
        return _losses(*proved, privacy)
    if proved == (None, None):
        return f"at ε = {_per_user(composed, privacy)} with δ = {privacy.delta:g}"
    differs = loss(composed) != loss(proved[1])
    return _losses(*proved, privacy) + (f" ({loss(composed)} with δ = {privacy.delta:g})" if differs else "")


def _losses(per_rating: float | None, per_user: float | None, privacy: PrivacySummary) -> str:
    """Return the losses that are bounded, the largest of any user."""
    if per_rating is None and per_user is None:
        return "without privacy"
    if per_rating is None or per_rating == per_user:
        return f"at ε = {_per_user(per_user, privacy)}"
    return f"at ε = {loss(per_rating)} per rating" + (
        "" if per_user is None else f" and at most {_per_user(per_user, privacy)}"
    )


def _per_user(epsilon: float | None, privacy: PrivacySummary) -> str:
    return f"{loss(epsilon)} per user{_compared(epsilon, privacy, ' on the ')}"


def _compared(epsilon: float | None, privacy: PrivacySummary, link: str = ", ") -> str:
    return profiles_compared(epsilon, hides_rated_items=privacy.hides_rated_items, link=link)


def _sends(summary: Summary) -> bool:
    return summary.traffic.uplink.message_bytes > 0


def _seen(summary: Summary) -> str:
    privacy = summary.privacy
    return server_sees(
        trust=privacy.trust,
        hides_rated_items=privacy.hides_rated_items,
        unlinked=privacy.unlinked,
        declared=privacy.status == "declared",
        sends=_sends(summary),
        spends=0 not in (privacy.epsilon_per_rating, privacy.epsilon_per_user.max),
    )


def _tiles(summary: Summary) -> Markup:
    accuracy, privacy, traffic = summary.accuracy.metrics(), summary.privacy, summary.traffic
    tiles = [
        (_headed(metric, summary.accuracy), f"{value:.{metric.digits}f}", metric.direction)
        for metric in headlines(metrics_in(accuracy))
        if (value := accuracy.get(metric.column)) is not None
    ]
    per_user, composed, claimed = privacy.epsilon_per_user, privacy.epsilon_composed, privacy.epsilon_claimed
    tiles += [
        (STATUS.title, privacy.status, TRUST_IN_WORDS[privacy.trust]),
        (
            "ε per rating",
            *_loss(privacy, privacy.epsilon_per_rating, claimed.per_rating, "largest of any user"),
        ),
        (
            "ε per user, sum",
            *_loss(
                privacy,
                per_user.max,
                claimed.per_user,
                f"largest{_compared(per_user.max, privacy)}; median {loss(per_user.median)}",
            ),
        ),
    ]
    if composed.max is not None:
        compared = _compared(composed.max, privacy)
        detail = f"largest{compared}, δ = {privacy.delta:g}; median {loss(composed.median)}"
        tiles.append(("ε per user, composed", loss(composed.max), detail))
    tiles += [
        (SERVER_SEES.title, _seen(summary), plural(traffic.rounds, "round")),
        _bytes_tile("mean bytes up per user", traffic.uplink),
        _bytes_tile("mean bytes down per user", traffic.downlink),
    ]
    return render_template("tiles.html", tiles=tiles)


def _loss(
    privacy: PrivacySummary, proved: float | None, claimed: float | None, detail: str
) -> tuple[str, str]:
    """Write the loss that is proved, or else the one that is claimed or declared, and what it is."""
    if proved is None:
        return (DASH, "no bound") if claimed is None else (loss(claimed), f"{privacy.status}, not proved")
    return loss(proved), detail if claimed is None else f"proved; {loss(claimed)} is claimed"


def _bytes_tile(name: str, spent: DirectionSummary) -> tuple[str, str, str]:
    detail = f"95th percentile {size(spent.message_p95_per_user)}, largest {size(spent.message_max_per_user)}"
    if spent.network_mean_per_user is not None:
        detail += f"; {size(spent.network_mean_per_user)} on the network"
    return name, size(spent.message_mean_per_user), detail


def _headed(metric: Metric, accuracy: Accuracy) -> str:
    return f"F-score at {accuracy.k}" if metric.column == "f_score_at_k" else metric.label


_PREDICTIONS = (
    "Predictions for each true rating: the dot is their median, the bar the middle 50 %, the line the middle "
    "90 %. Dashed: perfect predictions."
)


def _summary_plot(run: RunFiles) -> Plot:
    """Return the figure of a run's three answers."""
    summary = run.summary
    metric = main_metric(summary.accuracy.metrics())
    spent, losses = run.bytes_per_user, run.traffic["epsilon_per_user"]
    reading = ""
    if metric is None:
        accurate = "No accuracy was measured."
    elif len(evaluated_rounds(run.rounds, metric)) > 1:
        accurate = f"Left: {metric.label} against the bytes per user, by round."
        reading = "Accuracy: one point per evaluated round."
    else:
        reading = _PREDICTIONS
        groups = group_by_rating(run.predictions["rating"], run.predictions["prediction"])
        accurate = (
            f"Left: the median prediction is {groups[0][1][2]:.2f} for a true rating of {groups[0][0]:.3g} "
            f"and {groups[-1][1][2]:.2f} for one of {groups[-1][0]:.3g}."
        )
    private = (
        f"Middle: epsilon per user, median {np.median(losses):.3g}, largest {losses.max():.3g}."
        if np.isfinite(losses).all()
        else "Middle: the privacy loss has no bound."
    )
    traffic = (
        f"Right: bytes per user, median {size(float(np.median(spent)))}, largest {size(float(spent.max()))}."
    )
    return Plot(
        "summary",
        "The run at a glance",
        f"{reading} Bytes count whole messages in both directions.",
        f"Three panels. {accurate} {private} {traffic}",
        lambda: draw_summary(run),
        full_width=True,
    )


def _user_bytes_plot(run: RunFiles) -> Plot:
    """Return the plot of the bytes of each direction."""
    up, down = run.traffic["uplink_message_bytes"], run.traffic["downlink_message_bytes"]
    return Plot(
        "bytes-per-user",
        "Bytes per user, by direction",
        "Whole messages, as if each user were alone on a node. A broadcast is charged in full to every user.",
        f"Two histograms. From the device: median {size(float(np.median(up)))}, 95th percentile "
        f"{size(float(np.percentile(up, 95)))}. To the device: median {size(float(np.median(down)))}, 95th "
        f"percentile {size(float(np.percentile(down, 95)))}.",
        lambda: draw_bytes(run),
        full_width=True,
    )


def run_page(
    run: RunFiles, config_text: str, population: float | None, draw: Draw, declared: Sequence[str] = ()
) -> str:
    """Return the page of a run.

    Parameters
    ----------
    config_text : str
        Contents of config.yaml.
    declared : sequence of str
        What there is to say of a promise that a user-defined class declares.
    """
    summary = run.summary
    notes = [*declared, *summary.notes, *_unknown_entities(summary.dataset)]
    answer = _run_answer(summary, draw(_summary_plot(run)))
    projected = projection_sections(run_projections(run, population) if population else [], population)
    sections = [
        *example_sections(run),
        *ranking_sections(run),
        Section("users", "Bytes and ε per user", (user_table(run), figures([draw(_user_bytes_plot(run))]))),
        *noise_sections(run, draw),
        *rounds_sections(run, draw),
        *completion_sections(run, draw),
        _provenance(run, config_text, projected=population is not None),
    ]
    folded = [replace(section, folded=True) for section in sections]
    return page(summary.name, "dprec run", run_in_words(run), notes, [*projected, *folded], answer)


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
            paragraph(components_in_words(run)),
            paragraph(words),
            *(() if projected else (paragraph(HOW_TO_PROJECT),)),
            render_template("configuration.html", config=config_text),
        ),
    )
