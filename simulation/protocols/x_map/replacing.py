"""Makes AlterEgos: on the devices, or on the server from ratings that are already private."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dprec.completion import Observations
from dprec.crossdomain import (
    AlterEgos,
    Candidates,
    CrossDomainRatings,
    ReplacementDraws,
    ReplacementOptions,
    RowCodec,
    ValueCode,
    alter_egos,
)
from dprec.randomness import words

if TYPE_CHECKING:
    from strategies.replacement import ReplacementExchange


def replacement_round(
    options: ReplacementOptions,
    candidates: Candidates,
    means: NDArray[np.float64],
    train: CrossDomainRatings,
    group: str,
) -> ReplacementExchange:
    """Return the round in which the devices replace their source items.

    Parameters
    ----------
    means : ndarray of float64, shape (items,)
        Mean ratings of the items, as received.
    train : CrossDomainRatings
        Only the sizes of the domains and the scale are used, not the ratings.
    group : str
        Run key under which the devices find their setup.
    """
    from strategies.replacement import ReplacementExchange

    return ReplacementExchange(
        candidates=candidates,
        means=means,
        rows=RowCodec(
            train.n_items, train.n_targets, with_steps=options.private, with_means=options.deviations
        ),
        ratings=ValueCode.of(train.scale, deviations=False),
        values=ValueCode.of(train.scale, deviations=options.deviations),
        target=(train.target_start, train.target_stop),
        group=group,
    )


def replaced_on_server(
    options: ReplacementOptions,
    candidates: Candidates,
    means: NDArray[np.float64],
    observed: Observations,
    train: CrossDomainRatings,
    seed: int,
) -> AlterEgos:
    """Make the AlterEgos from the uploaded ratings; see `replacement_round` for the parameters."""
    draws = ReplacementDraws.prepare(candidates, 0.0, 1.0, train.n_targets, whole_catalogue=False)
    values = observed.values - means[observed.items] if options.deviations else observed.values
    noise = words(seed, "replacement", 0, observed.items.size)
    return alter_egos(observed.users, observed.items, values, train.n_users, draws, noise, train.target_start)
