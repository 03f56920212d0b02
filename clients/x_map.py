"""The device's part of X-Map after its ratings are sent: replace its source items, send the AlterEgo.

The mechanism, its budget and the sensitivity it is calibrated to are installed on the device; what a
request brings is checked to lie within that sensitivity. A device draws the same replacements
whenever it is asked, so that asking again reveals nothing more of the same table.
"""

from __future__ import annotations

import numpy as np
from flwr.app import ConfigRecord
from numpy.typing import NDArray

from clients.population import Cohort
from dprec.crossdomain.alter_ego import alter_egos
from dprec.crossdomain.alter_ego_codec import AlterEgoCodec, RowCodec, ValueCode
from dprec.crossdomain.replacement import ReplacementDraws
from dprec.ragged import rows_of
from dprec.randomness import words
from dprec.setups import XMapSetup
from dprec.sorted_keys import find


def reports(cohort: Cohort, asked: NDArray[np.bool_], request: ConfigRecord) -> list[bytes]:
    """Return the encoded AlterEgos of the users of a cohort who are asked.

    Parameters
    ----------
    cohort : Cohort
    asked : ndarray of bool, shape (users,)
    request : ConfigRecord
        Holds where the target domain lies in the catalogue, and candidates for the source items.

    Raises
    ------
    ValueError
        When the request is malformed, or its X-Sim values are wider than the installed sensitivity.
    """
    population = cohort.population
    installed = population.installed(XMapSetup).replacement
    start, stop, rows = request.get("start"), request.get("stop"), request.get("rows")
    if not (isinstance(start, int) and isinstance(stop, int) and 0 <= start < stop <= population.n_items):
        raise ValueError("a request without a target domain")
    if not isinstance(rows, bytes):
        raise ValueError("a request without rows")
    deviations, private = installed.transfer == "deviation", installed.epsilon is not None
    codec = RowCodec(population.n_items, stop - start, with_steps=private, with_means=deviations)
    candidates, means = codec.unpack(rows)
    if np.any((candidates.items >= start) & (candidates.items < stop)):
        raise ValueError("candidates for items of the target domain itself")
    if installed.sensitivity < 2 and np.any(candidates.steps < 0):
        raise ValueError("X-Sim values below 0, for a sensitivity of 1")
    draws = ReplacementDraws.prepare(
        candidates,
        installed.epsilon or 0.0,
        installed.sensitivity,
        stop - start,
        whole_catalogue=installed.whole_catalogue,
    )
    values = cohort.values
    if deviations and candidates.items.size:
        places, _ = find(candidates.items, cohort.items)
        values = values - ValueCode.of(population.scale, deviations=False).decode(means)[places]
    egos = alter_egos(
        rows_of(cohort.counts),
        cohort.items,
        values,
        cohort.size,
        draws,
        words(population.seed, "replacement", cohort.first_rating, cohort.items.size),
        start,
    )
    made = AlterEgoCodec(stop - start, ValueCode.of(population.scale, deviations=deviations)).encode(egos)
    return [report for report, wanted in zip(made, asked.tolist(), strict=True) if wanted]
