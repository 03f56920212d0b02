"""The device's part after a report of bits and counts: count the ratings that the report left out.

What a device guarantees against any server: a rating about which a bit was sent is in no count, and every
other one in exactly one, whatever the groups of items are. It counts for one set of groups only. It draws the
same random words whenever it is asked, so asking again with the same groups reveals nothing more, and other
groups are refused.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from flwr.app import Context

from clients.draws import device_draws
from clients.memory import Memory
from clients.one_shot import installed_mechanism, perturbed
from clients.population import Partition, Population
from dprec.exchange import COUNT_ROUND, CountRequest, OneShotSetup, Refusal, RefusalCode
from dprec.privacy.calibrated_counts import CalibratedCounts


def count_reports(partition: Partition, request: CountRequest, context: Context) -> list[bytes]:
    """Return the encoded counts of every user of a partition.

    Parameters
    ----------
    context : Context
        Its state records what the node has answered.

    Raises
    ------
    Refusal
        When the devices are not set up to count, the groups are malformed, or they have counted for others.
    """
    counting = _counting(partition.population)
    valid, groups = counting.group_codec.decode([request.groups])
    if not valid.all():
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "malformed groups of items")
    Memory.of(partition.population, COUNT_ROUND, context).answer_once(COUNT_ROUND, request.groups)
    cells, of_rating = partition.counts, groups[0, partition.items]
    left = counting.left(perturbed(partition, counting.calibrated))
    sizes = counting.grouped(cells, of_rating, left)
    counts = counting.grouped(cells, of_rating, left & (partition.levels >= counting.least_level))
    draws = device_draws(partition, "counts").asked(request.groups)
    words = np.column_stack([draws.per_user(group, COUNT_ROUND) for group in range(sizes.shape[1])])
    return counting.codec.encode(counting.perturb(cells, counts, sizes, words))


@lru_cache(maxsize=4)
def _counting(population: Population) -> CalibratedCounts:
    """Return the counts that are installed on the devices of a population."""
    population.installed(OneShotSetup)
    counting = CalibratedCounts.of(installed_mechanism(population)[0])
    if counting is None:
        raise Refusal(RefusalCode.NOT_SET_UP, "asked to count ratings of devices that are not set up for it")
    return counting
