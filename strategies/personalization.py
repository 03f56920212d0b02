"""The broadcast after a completion: everybody gets the table of items, and its own prior."""

from __future__ import annotations

import numpy as np
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.exchange import PERSONALIZE, PRIOR, Personalization
from dprec.wire import TrafficLedger
from strategies.envelope import request_content
from strategies.roster import Roster
from strategies.rounds import RoundAccount


def broadcast_table(
    grid: Grid, roster: Roster, group: str, table: bytes, priors: NDArray[np.float64], traffic: TrafficLedger
) -> dict[str, int]:
    """Send the table to everybody; return the bytes charged, as `RoundAccount.spent` does.

    Parameters
    ----------
    group : str
        Run key.
    priors : ndarray, shape (users, 1 + factors)
        See `Personalization`.
    traffic : TrafficLedger
        Charged in place: the table in full to every user, although a partition shares it.
    """
    sent = priors.astype(PRIOR)
    own = sent.shape[1] * PRIOR.itemsize
    account = RoundAccount(PERSONALIZE, group, traffic)
    alone = request_content(Personalization(table, bytes(own)))
    account.charge_request(slice(None), alone, len(table) + own)
    contents = {}
    for partition_id in range(len(roster.node_ids)):
        partition = roster.partition(partition_id)
        request = Personalization(table, sent[partition.start : partition.stop].tobytes())
        contents[partition_id] = request_content(request)
    account.deliver(grid, roster, contents)
    return account.spent()
