"""Where the devices of a partition take their random words from; see `dprec.randomness.devices`."""

from functools import lru_cache

from clients.population import Partition, Population
from dprec.arrays import offsets
from dprec.exchange import drawn_as
from dprec.randomness import Draws


def device_draws(partition: Partition, purpose: str) -> Draws:
    """Return the draws of a partition's users for one purpose.

    They depend on the run and on all that is installed on the devices: with another mechanism, budget or
    number of rounds they are others.
    """
    population = partition.population
    return population.keys.draws(
        partition.start,
        offsets(partition.counts),
        partition.items,
        partition.values,
        purpose,
        drawn_as(population.setup),
    )


def draws_of_rounds(partition: Partition, purpose: str) -> Draws:
    """Return the draws of a partition that is asked again and again, made ready in its first round."""
    ready = _ready(partition.population)
    whose = partition.start, partition.stop, purpose
    if whose not in ready:
        ready[whose] = device_draws(partition, purpose)
    return ready[whose]


@lru_cache(maxsize=4)
def _ready(population: Population) -> dict[tuple[int, int, str], Draws]:
    """Return what a worker has made ready for a population: 16 bytes for each user of its partitions."""
    return {}
