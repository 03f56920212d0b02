"""What the server tells the devices of a completion."""

from __future__ import annotations

import numpy as np

from dprec.completion.base import Completed
from dprec.completion.calibrated.completion import CalibratedModel
from dprec.completion.calibrated.item_effects import ItemEffectsModel
from dprec.observations import Observations
from dprec.personalization.derived_broadcast import Broadcast, TableOptions, derived_broadcast, public_columns
from dprec.wire.item_table import ItemTable


def calibrated_broadcast(model: CalibratedModel) -> Broadcast:
    """Return what a calibrated model knows that devices need.

    Users' factors are brought to variance 1 around their priors; what is not known of an item's factors is
    added to the uncertainty of its effect.
    """
    latent = model.latent
    spreads = latent.tastes.spreads
    unknown = np.diagonal(latent.traits.covariances, axis1=1, axis2=2) @ spreads
    units = np.sqrt(spreads)
    table = ItemTable(
        model.cuts,
        latent.items.means,
        np.sqrt(latent.items.variances + unknown),
        model.geometry.items,
        latent.traits.means * units,
        *public_columns(model.geometry.popularity, model.catalogue),
    )
    priors = np.column_stack([latent.users.regressed, latent.tastes.regressed / units])
    return Broadcast(table, priors)


def item_effects_broadcast(model: ItemEffectsModel, n_users: int) -> Broadcast:
    """Return what is known of the items; of no user anything is, so that everybody has the same prior."""
    effects = model.effects
    table = ItemTable(
        model.cuts,
        effects.means,
        np.sqrt(effects.variances),
        model.geometry.items,
        np.zeros((effects.means.size, 0)),
        *public_columns(model.geometry.popularity, model.catalogue),
    )
    return Broadcast(table, np.zeros((n_users, 1)))


def broadcast_of(
    completed: Completed, observations: Observations, options: TableOptions, seed: int
) -> Broadcast:
    """Return what devices are sent: a model's own effects, or what predictions say of them.

    Parameters
    ----------
    completed : Completed
    observations : Observations
        What it was completed from.
    options : TableOptions
        For a completion that is not calibrated.
    seed : int
    """
    if isinstance(completed, CalibratedModel):
        return calibrated_broadcast(completed)
    if isinstance(completed, ItemEffectsModel):
        return item_effects_broadcast(completed, observations.shape[0])
    return derived_broadcast(completed, observations, options, seed)
