"""The device's part of one-shot protocols: report on the profile, and answer what follows the report.

What a device guarantees against any server: its report is that of the mechanism and budget installed on it; a
request for it carries nothing. What follows is answered for one question only. When asked again, a device
repeats what it sent, since it draws the same noise whenever it computes an answer.
"""

from collections.abc import Iterator
from functools import lru_cache, partial

from flwr.app import Context

from clients.memory import Memory
from clients.population import Partition, Population, device_draws
from dprec.arrays import blocks
from dprec.exchange import COUNT_ROUND, CountRequest, OneShotSetup, Refusal, RefusalCode, ReportSetup
from dprec.reports import DrawsFor, FollowUp, Profiles, ReportFamily

_CELLS_AT_ONCE = 1 << 20
"""Bounds the memory of a worker, whatever the size of its partitions and profiles."""


def reports(partition: Partition) -> list[bytes]:
    """Return the encoded report of every user of a partition, each by random words of the user's own."""
    family = installed_family(partition.population)
    return [report for part in _parts(partition, family) for report in family.encode(*held(part))]


def held(partition: Partition) -> tuple[Profiles, DrawsFor]:
    """Return what the devices of a partition compute from: their profiles, and random words by purpose."""
    return Profiles(partition.counts, partition.items, partition.levels), partial(device_draws, partition)


def _parts(partition: Partition, family: ReportFamily) -> Iterator[Partition]:
    """Divide a partition into parts that report about `_CELLS_AT_ONCE` cells each."""
    for users in blocks(family.work(partition.counts), _CELLS_AT_ONCE):
        yield Partition(partition.population, partition.start + users.start, partition.start + users.stop)


def count_reports(partition: Partition, request: CountRequest, context: Context) -> list[bytes]:
    """Return the encoded answer of every user of a partition to what follows the reports.

    Raises Refusal when the devices are not set up for it, or the question is malformed, or they have answered
    another.
    """
    follow_up = installed_follow_up(partition.population)
    if not follow_up.accepts(request.groups):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "malformed groups of items")
    Memory.of(partition.population, COUNT_ROUND, context).answer_once(COUNT_ROUND, request.groups)
    profiles, draws = held(partition)
    return follow_up.encode(profiles, request.groups, draws)


@lru_cache(maxsize=4)
def installed_family(population: Population) -> ReportFamily:
    """Return what the devices of a population report."""
    return population.installed(ReportSetup).family(population.scale, population.n_items)


def installed_follow_up(population: Population) -> FollowUp:
    """Return what the devices of a population answer after their reports; raises Refusal if nothing."""
    population.installed(OneShotSetup)
    follow_up = installed_family(population).follow_up
    if follow_up is None:
        raise Refusal(RefusalCode.NOT_SET_UP, "asked to count ratings of devices that are not set up for it")
    return follow_up
