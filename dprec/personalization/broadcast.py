"""What the server tells the devices of a completion."""

from __future__ import annotations

import numpy as np

from dprec.completion import CalibratedModel, Completed, ItemBiasesModel
from dprec.observations import Observations
from dprec.personalization.broadcast import Broadcast, TableOptions, derived_broadcast, public_columns
from dprec.wire import ItemTable


def calibrated_broadcast(model: CalibratedModel) -> Broadcast:
    """Return what a calibrated model knows that devices need.

    Users' factors are brought to variance 1 around their priors; what is not known of an item's factors is
    added to the uncertainty of its effect.
    """
    latent = model.latent
    spreads = latent.user_factors.spreads
    unknown = np.diagonal(latent.item_factors.covariances, axis1=1, axis2=2) @ spreads
    units = np.sqrt(spreads)
    table = ItemTable(
        model.cuts,
        latent.items.means,
        np.sqrt(latent.items.variances + unknown),
        model.embedding.items,
        latent.item_factors.means * units,
        *public_columns(model.embedding.popularity, model.catalogue),
    )
    priors = np.column_stack([latent.users.regressed, latent.user_factors.regressed / units])
    return Broadcast(table, priors)


def item_biases_broadcast(model: ItemBiasesModel, n_users: int) -> Broadcast:
    """Return what is known of the items; of no user anything is, so that everybody has the same prior."""
    biases = model.biases
    table = ItemTable(
        model.cuts,
        biases.means,
        np.sqrt(biases.variances),
        model.embedding.items,
        np.zeros((biases.means.size, 0)),
        *public_columns(model.embedding.popularity, model.catalogue),
    )
    return Broadcast(table, np.zeros((n_users, 1)))


def broadcast_of(
    completed: Completed, observations: Observations, options: TableOptions, seed: int
) -> Broadcast:
    """Return what devices are sent: a model's own effects, or what predictions say of them.

    Parameters
    ----------
    observations : Observations
        What it was completed from.
    options : TableOptions
        For a completion that is not calibrated.
    """
    if isinstance(completed, CalibratedModel):
        return calibrated_broadcast(completed)
    if isinstance(completed, ItemBiasesModel):
        return item_biases_broadcast(completed, observations.shape[0])
    return derived_broadcast(completed, observations, options, seed)
