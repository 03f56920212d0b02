"""The plots of one run: their names, how to read them, and what they show."""

from __future__ import annotations

import numpy as np

from simulation.analysis.vocabulary import main_metric, size
from simulation.pages.figures.rendering import Plot
from simulation.pages.figures.users import draw_bytes, draw_summary, evaluated_rounds, group_by_rating
from simulation.storage.run_files import RunFiles

_PREDICTIONS = (
    "Predictions for each true rating: the dot is their median, the bar the middle 50 %, the line the middle "
    "90 %. Dashed: perfect predictions."
)


def summary_plot(run: RunFiles) -> Plot:
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
        lambda style: draw_summary(style, run),
        full_width=True,
    )


def user_bytes_plot(run: RunFiles) -> Plot:
    """Return the plot of the bytes of each direction."""
    up, down = run.traffic["uplink_message_bytes"], run.traffic["downlink_message_bytes"]
    return Plot(
        "bytes-per-user",
        "Bytes per user, by direction",
        "Whole messages, as if each user were alone on a node. A broadcast is charged in full to every user.",
        f"Two histograms. From the device: median {size(float(np.median(up)))}, 95th percentile "
        f"{size(float(np.percentile(up, 95)))}. To the device: median {size(float(np.median(down)))}, 95th "
        f"percentile {size(float(np.percentile(down, 95)))}.",
        lambda style: draw_bytes(style, run),
        full_width=True,
    )
