"""The summary of a deployed run: what a server knows, and null for what it cannot know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.ratings import RatingScale
from simulation.configuration.models import RunConfig
from simulation.protocols.outcome import ServerOutcome
from simulation.storage.summarise import notes_on_composition, summary_of
from simulation.storage.summary import Accuracy, DatasetSummary, Summary

_LEDGERS = (
    "Deployed: losses are those that follow from what the server was sent. What a device has spent is in its "
    "own ledger, with answers that came to nothing."
)
_SECRETS = "Every device drew its noise from a secret of its own."
_SEEDED = "A test: devices drew from the seed of the configuration; who knows it can remove the noise."


def summarise_deployed(
    config: RunConfig,
    scale: RatingScale,
    n_items: int,
    outcome: ServerOutcome,
    composed: NDArray[np.float64],
    *,
    seeded: bool,
    total_seconds: float,
) -> Summary:
    """Return the summary of a deployed run that is not stored yet.

    Parameters
    ----------
    composed : ndarray of float64, shape (users,)
        The users' losses by composition.
    seeded : bool
        Whether devices drew from a seed.
    """
    dataset = DatasetSummary(
        kind="deployed",
        users=composed.size,
        items=n_items,
        train_ratings=None,
        test_ratings=None,
        scale=(scale.low, scale.high),
        levels=tuple(scale.values.tolist()),
        binarized_above=scale.cut,
        users_only_in_test=None,
        items_only_in_test=None,
    )
    summary = summary_of(
        config,
        dataset,
        Accuracy.model_validate({"rmse": None, "mae": None}),
        outcome,
        composed,
        (_LEDGERS, _SEEDED if seeded else _SECRETS, *notes_on_composition(config, composed.size)),
        startup_seconds=0.0,
        total_seconds=total_seconds,
    )
    return summary.model_copy(update={"devices": "deployed"})
