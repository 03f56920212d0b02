"""The device's part of one-shot protocols: perturb the profile, encode it, send it.

What a device guarantees against any server: its report is drawn from the channel of the mechanism and
budget installed on it; a request carries nothing. When asked again it repeats what it sent, since it
draws the same noise whenever it computes the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from clients.draws import device_draws
from clients.population import Cohort, Population
from dprec.arrays import blocks, offsets, rows_of
from dprec.exchange import ReportSetup
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.profile_calibration import CalibratedProfiles
from dprec.privacy.residual_calibration import CalibratedResiduals, calibrated_for
from dprec.wire import ReportCodec

_REPORT, _CHOICE, _ROUND = "report", "choice", 1
_CELLS_AT_ONCE = 1 << 20
"""Bounds the memory of a worker, whatever the size of its cohorts and profiles."""


def reports(cohort: Cohort) -> list[bytes]:
    """Return the encoded report of every user of a cohort.

    A user's noise is drawn from random words of its own, so it does not depend on other people.
    """
    calibrated, codec = installed_mechanism(cohort.population)
    return [report for part in _parts(cohort, calibrated) for report in _encoded(part, calibrated, codec)]


def _encoded(cohort: Cohort, calibrated: CalibratedMechanism, codec: ReportCodec) -> list[bytes]:
    """Return the encoded reports of part of a cohort."""
    if isinstance(calibrated, CalibratedProfiles):
        return _about_profiles(cohort, calibrated)
    if calibrated.mechanism.hides_rated_items:
        return _whole_rows(cohort, calibrated, codec)
    return codec.encode(offsets(cohort.counts), cohort.items, perturbed(cohort, calibrated))


def perturbed(cohort: Cohort, calibrated: CalibratedMechanism) -> NDArray[np.uint16]:
    """Return the symbols of the rated items, the same whenever they are computed, shape (ratings,)."""
    counts = cohort.counts
    noise = device_draws(cohort, _REPORT).per_cell(counts, cohort.items, _ROUND)
    if isinstance(calibrated, CalibratedResiduals):
        choice = device_draws(cohort, _CHOICE).per_cell(counts, cohort.items, _ROUND)
        return calibrated.answers(counts, cohort.levels, choice, noise)
    return calibrated.perturb(counts, cohort.levels, noise)


def _about_profiles(cohort: Cohort, calibrated: CalibratedProfiles) -> list[bytes]:
    """Answer about whole profiles; every user gives the same number of answers."""
    counts, elements = calibrated.elements(cohort.counts, cohort.items, cohort.levels)
    choice, noise = device_draws(cohort, _CHOICE), device_draws(cohort, _REPORT)
    rows = [
        calibrated.code.answers(
            counts, elements, choice.per_user(answer, _ROUND), noise.per_user(answer, _ROUND)
        )
        for answer in range(calibrated.answers)
    ]
    return calibrated.numbers.encode(np.stack(rows, axis=1))


def _whole_rows(rows: Cohort, calibrated: CalibratedMechanism, codec: ReportCodec) -> list[bytes]:
    """Report every item of the catalogue, rated or not."""
    n_items = rows.population.n_items
    cells = np.full(rows.size, n_items)
    levels: NDArray[np.uint8] = np.zeros((rows.size, n_items), dtype=np.uint8)
    levels[rows_of(rows.counts), rows.items] = rows.levels
    noise = device_draws(rows, _REPORT).per_cell(cells, np.tile(np.arange(n_items), rows.size), _ROUND)
    symbols = calibrated.perturb(cells, levels.ravel(), noise)
    shown = np.flatnonzero(~np.isnan(calibrated.reference_channel.values[symbols]))
    counts = np.bincount(shown // n_items, minlength=rows.size)
    return codec.encode(offsets(counts), shown % n_items, symbols[shown])


def _parts(cohort: Cohort, calibrated: CalibratedMechanism) -> Iterator[Cohort]:
    """Divide a cohort into parts that report about `_CELLS_AT_ONCE` cells each."""
    counts = cohort.counts
    cells = np.full_like(counts, calibrated.n_items) if calibrated.mechanism.hides_rated_items else counts
    for users in blocks(cells, _CELLS_AT_ONCE):
        yield Cohort(cohort.population, cohort.start + users.start, cohort.start + users.stop)


@lru_cache(maxsize=4)
def installed_mechanism(population: Population) -> tuple[CalibratedMechanism, ReportCodec]:
    """Return the mechanism installed on the devices of a population, and the code of its reports."""
    setup = population.installed(ReportSetup)
    calibrated = calibrated_for(setup.mechanism, setup.privacy, population.scale, population.n_items)
    return calibrated, calibrated.codec()
