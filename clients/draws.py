"""Where the devices of a cohort take their random words from; see `dprec.randomness.devices`."""

from __future__ import annotations

from functools import lru_cache

from clients.population import Cohort, Population
from dprec.arrays import offsets
from dprec.exchange import to_json
from dprec.randomness import Draws


def device_draws(cohort: Cohort, purpose: str) -> Draws:
    """Return the draws of a cohort's users for one purpose.

    They depend on the run and on all that is installed on the devices: with another mechanism, budget or
    number of rounds they are others.
    """
    population = cohort.population
    return population.keys.draws(
        cohort.start,
        offsets(cohort.counts),
        cohort.items,
        cohort.values,
        purpose,
        to_json(population.setup),
    )


def draws_of_rounds(cohort: Cohort, purpose: str) -> Draws:
    """Return the draws of a cohort that is asked again and again, made ready in its first round."""
    ready = _ready(cohort.population)
    whose = cohort.start, cohort.stop, purpose
    if whose not in ready:
        ready[whose] = device_draws(cohort, purpose)
    return ready[whose]


@lru_cache(maxsize=4)
def _ready(population: Population) -> dict[tuple[int, int, str], Draws]:
    """Return what a worker has made ready for a population: 16 bytes for each user of its cohorts."""
    return {}
