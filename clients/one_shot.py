"""The device's part of one-shot protocols: report on the profile, and answer what follows the report.

What a device guarantees against any server: its report is that of the mechanism and budget installed on it; a
request for it carries nothing. What follows is answered for one question only. When asked again, a device
repeats what it sent, since it draws the same noise whenever it computes an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

from flwr.app import Context

from clients.draws import device_draws
from clients.memory import Memory
from clients.population import Cohort, Population
from dprec.messages import COUNT_ROUND, CountRequest
from dprec.ragged import blocks
from dprec.refusals import Refusal, RefusalCode
from dprec.reports import DrawsFor, FollowUp, Profiles, ReportFamily
from dprec.setups import OneShotSetup, ReportSetup

_CELLS_AT_ONCE = 1 << 20
"""Bounds the memory of a worker, whatever the size of its cohorts and profiles."""


def reports(cohort: Cohort) -> list[bytes]:
    """Return the encoded report of every user of a cohort.

    A user's noise is drawn from random words of its own, so it does not depend on other people.
    """
    family = installed_family(cohort.population)
    return [report for part in _parts(cohort, family) for report in family.encode(*held(part))]


def held(cohort: Cohort) -> tuple[Profiles, DrawsFor]:
    """Return what the devices of a cohort compute from: their profiles, and random words by purpose."""
    return Profiles(cohort.counts, cohort.items, cohort.levels), partial(device_draws, cohort)


def _parts(cohort: Cohort, family: ReportFamily) -> Iterator[Cohort]:
    """Divide a cohort into parts that report about `_CELLS_AT_ONCE` cells each."""
    for users in blocks(family.work(cohort.counts), _CELLS_AT_ONCE):
        yield Cohort(cohort.population, cohort.start + users.start, cohort.start + users.stop)


def count_reports(cohort: Cohort, request: CountRequest, context: Context) -> list[bytes]:
    """Return the encoded answer of every user of a cohort to what follows the reports.

    Parameters
    ----------
    cohort : Cohort
    request : CountRequest
    context : Context
        Its state records what the node has answered.

    Raises
    ------
    Refusal
        When the devices are not set up for it, or the question is malformed, or they have answered another.
    """
    follow_up = installed_follow_up(cohort.population)
    if not follow_up.accepts(request.groups):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "malformed groups of items")
    Memory.of(cohort.population, COUNT_ROUND, context).answer_once(COUNT_ROUND, request.groups)
    profiles, draws = held(cohort)
    return follow_up.encode(profiles, request.groups, draws)


@lru_cache(maxsize=4)
def installed_family(population: Population) -> ReportFamily:
    """Return what the devices of a population report."""
    setup = population.installed(ReportSetup)
    return setup.mechanism.family(setup.privacy, population.scale, population.n_items)


def installed_follow_up(population: Population) -> FollowUp:
    """Return what the devices of a population answer after their reports.

    Raises
    ------
    Refusal
        When they are not set up for it.
    """
    population.installed(OneShotSetup)
    follow_up = installed_family(population).follow_up
    if follow_up is None:
        raise Refusal(RefusalCode.NOT_SET_UP, "asked to count ratings of devices that are not set up for it")
    return follow_up
