"""One user's messages under a configuration, drawn: the protocol runs on a few made-up people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dprec.datasets import Synthetic
from dprec.splits import Holdout
from simulation.analysis.drawing import Drawing, drawing_of
from simulation.configuration.loading import load
from simulation.configuration.models import EvaluationOptions, RunConfig, SimulationOptions
from simulation.configuration.strict_yaml import find_configuration
from simulation.execution import load_ratings, run_prepared
from simulation.pages.looks import COLOURS
from simulation.pages.page import render_template


def drawn(config: RunConfig) -> Drawing | None:
    """Return what one of a few made-up people sends and is sent; None if nothing.

    Synthetic data keep their catalogue and their mean number of ratings; others have those of MovieLens 100K.
    """
    small: dict[str, Any] = {"simulation": SimulationOptions(backend="local", workers=1)}
    dataset: Any = config.dataset
    if dataset.kind not in ("synthetic", "synthetic-domains"):
        dataset = Synthetic(positive=">= 4" if dataset.holds_sets else None)
        small |= {"split": Holdout(), "evaluation": EvaluationOptions()}
    users = min(dataset.users, 200)
    small["dataset"] = replace(dataset, users=users, ratings=dataset.ratings * users // dataset.users)
    config = config.model_copy(update=small)
    train, test = load_ratings(config)
    return drawing_of(run_prepared(config, train, test, None))


def drawing_svg(drawing: Drawing) -> str:
    """Return a drawing as an SVG file, in light or dark as its reader prefers."""
    return str(render_template("sent.svg", drawing=drawing, colours=COLOURS))


def sent_drawing(config: str | Path | RunConfig) -> str:
    """Return what leaves a device under a configuration, and what comes back, as an SVG element of a page.

    Parameters
    ----------
    config : str, Path or RunConfig
        A configuration, its file or the name of a preset.

    Returns
    -------
    str
        Empty if nothing is sent.
    """
    loaded = config if isinstance(config, RunConfig) else load(find_configuration(str(config)))
    drawing = drawn(loaded)
    return "" if drawing is None else str(render_template("sent.svg", drawing=drawing))
