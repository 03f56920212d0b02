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
from clients.population import Partition, Population
from dprec.arrays import blocks, offsets, rows_of
from dprec.exchange import ReportSetup
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.profile_calibration import CalibratedProfiles
from dprec.privacy.residual_calibration import CalibratedResiduals, calibrated_for
from dprec.wire import ReportCodec

_REPORT, _CHOICE, _ROUND = "report", "choice", 1
_CELLS_AT_ONCE = 1 << 20
"""Bounds the memory of a worker, whatever the size of its partitions and profiles."""


def reports(partition: Partition) -> list[bytes]:
    """Return the encoded report of every user of a partition.

    A user's noise is drawn from random words of its own, so it does not depend on other people.
    """
    calibrated, codec = installed_mechanism(partition.population)
    return [report for part in _parts(partition, calibrated) for report in _encoded(part, calibrated, codec)]


def _encoded(partition: Partition, calibrated: CalibratedMechanism, codec: ReportCodec) -> list[bytes]:
    """Return the encoded reports of part of a partition."""
    if isinstance(calibrated, CalibratedProfiles):
        return _about_profiles(partition, calibrated)
    if calibrated.mechanism.hides_rated_items:
        return _whole_rows(partition, calibrated, codec)
    return codec.encode(offsets(partition.counts), partition.items, perturbed(partition, calibrated))


def perturbed(partition: Partition, calibrated: CalibratedMechanism) -> NDArray[np.uint16]:
    """Return the symbols of the rated items, the same whenever they are computed, shape (ratings,)."""
    counts = partition.counts
    noise = device_draws(partition, _REPORT).per_cell(counts, partition.items, _ROUND)
    if isinstance(calibrated, CalibratedResiduals):
        choice = device_draws(partition, _CHOICE).per_cell(counts, partition.items, _ROUND)
        return calibrated.answers(counts, partition.levels, choice, noise)
    return calibrated.perturb(counts, partition.levels, noise)


def _about_profiles(partition: Partition, calibrated: CalibratedProfiles) -> list[bytes]:
    """Answer about whole profiles; every user gives the same number of answers."""
    counts, elements = calibrated.elements(partition.counts, partition.items, partition.levels)
    choice, noise = device_draws(partition, _CHOICE), device_draws(partition, _REPORT)
    rows = [
        calibrated.code.answers(
            counts, elements, choice.per_user(answer, _ROUND), noise.per_user(answer, _ROUND)
        )
        for answer in range(calibrated.answers)
    ]
    return calibrated.numbers.encode(np.stack(rows, axis=1))


def _whole_rows(rows: Partition, calibrated: CalibratedMechanism, codec: ReportCodec) -> list[bytes]:
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


def _parts(partition: Partition, calibrated: CalibratedMechanism) -> Iterator[Partition]:
    """Divide a partition into parts that report about `_CELLS_AT_ONCE` cells each."""
    counts = partition.counts
    cells = np.full_like(counts, calibrated.n_items) if calibrated.mechanism.hides_rated_items else counts
    for users in blocks(cells, _CELLS_AT_ONCE):
        yield Partition(partition.population, partition.start + users.start, partition.start + users.stop)


@lru_cache(maxsize=4)
def installed_mechanism(population: Population) -> tuple[CalibratedMechanism, ReportCodec]:
    """Return the mechanism installed on the devices of a population, and the code of its reports."""
    setup = population.installed(ReportSetup)
    calibrated = calibrated_for(setup.mechanism, setup.privacy, population.scale, population.n_items)
    return calibrated, calibrated.codec()
