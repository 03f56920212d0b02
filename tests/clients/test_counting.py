"""What devices count after a report of bits and counts, and what they refuse."""

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from numpy.typing import NDArray

from clients.faults import FaultOptions
from clients.one_shot import count_reports, held, installed_follow_up
from clients.population import Partition, Population, open_population, write_population
from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets
from dprec.exchange import CountRequest, OneShotSetup
from dprec.mechanisms import BitsAndCounts, Mechanism, ThresholdBit
from dprec.randomness import RunKeys
from dprec.ratings import Ratings, RatingScale
from dprec.reports.counts import Counts

STARS = RatingScale.evenly(1, 5, 1)
USERS, ITEMS = 4000, 3
GROUPS = np.array([[0, 1, 1]])


def context() -> Context:
    return Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})


def populate(
    folder: Path,
    levels: tuple[int, ...],
    size: int = USERS,
    mechanism: Mechanism = BitsAndCounts(bits=0.4),  # noqa: B008 (frozen)
    per: float = 1.5,
) -> Population:
    ratings = Ratings(
        indptr=offsets(np.full(USERS, ITEMS)),
        items=np.tile(np.arange(ITEMS, dtype=np.int32), USERS),
        levels=np.tile(np.array(levels, dtype=np.uint8), USERS),
        scale=STARS,
        user_ids=np.arange(USERS),
        item_ids=np.arange(ITEMS),
    )
    write_population(
        folder,
        ratings,
        users_per_node=size,
        keys=RunKeys.derive(2).installed,
        faults=FaultOptions(),
        setup=OneShotSetup(mechanism=mechanism, privacy=PrivacyBudget(epsilon=per)),
    )
    return open_population(str(folder))


def counting(population: Population) -> Counts:
    made = installed_follow_up(population)
    assert isinstance(made, Counts)
    return made


def request(population: Population, groups: NDArray[np.int64] = GROUPS) -> CountRequest:
    return CountRequest(counting(population).group_codec.encode(groups)[0])


def heard(partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the symbols of a partition's reports and its counts."""
    counts = counting(partition.population)
    reports = count_reports(partition, request(partition.population), context())
    symbols = counts.family.drawn(*held(partition)).reshape(partition.size, ITEMS).astype(np.int64)
    return symbols, counts.codec.decode(reports)[1]


def test_a_rating_is_in_its_bit_or_in_the_one_count_of_its_group(tmp_path: Path) -> None:
    """The odds of every report and its counts are those of the two channels: chi-square, false alarm 1e-7."""
    levels = (5, 1, 4)
    partition = populate(tmp_path / "run", levels).partition(0)
    symbols, noisy = heard(partition)
    left = symbols == 2
    for group in (0, 1):
        members, reaching = GROUPS[0] == group, np.array(levels) >= 4
        sizes = left[:, members].sum(axis=1)
        counts = left[:, members & reaching].sum(axis=1)
        for size, count in {*zip(sizes.tolist(), counts.tolist(), strict=True)}:
            own = noisy[(sizes == size) & (counts == count), group]
            if size == 0:
                assert not own.any()
                continue
            table = counting(partition.population)
            expected = _odds(table, size, count) * own.size
            observed = np.bincount(own, minlength=size + 1)
            assert _surprise(observed, expected) < 1e-7**-1, (group, size, count)


def _odds(counts: Counts, size: int, count: int) -> NDArray[np.float64]:
    """Return the probability of every noisy count, from its definition."""
    steps = np.arange(-200, 201)
    shares = np.exp(-1.5 * np.abs(steps))
    return np.bincount(np.clip(count + steps, 0, size), weights=shares / shares.sum(), minlength=size + 1)


def _surprise(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """Return one over the p-value of a chi-square test."""
    from scipy.stats import chisquare

    return 1 / max(float(chisquare(observed, expected).pvalue), 1e-300)


def test_counts_do_not_depend_on_the_partition_and_are_repeated(tmp_path: Path) -> None:
    whole = populate(tmp_path / "whole", (5, 1, 4))
    reports = count_reports(whole.partition(0), request(whole), context())
    split = populate(tmp_path / "split", (5, 1, 4), size=1000)
    parts = [count_reports(split.partition(node), request(split), context()) for node in range(4)]
    assert [report for part in parts for report in part] == reports
    state = context()
    for _ in range(2):
        assert count_reports(whole.partition(0), request(whole), state) == reports


def test_ratings_are_counted_for_one_set_of_groups_only(tmp_path: Path) -> None:
    population, state = populate(tmp_path / "run", (5, 1, 4), size=10), context()
    partition = population.partition(0)
    count_reports(partition, request(population), state)
    with pytest.raises(ValueError, match="asked for round 2 again"):
        count_reports(partition, request(population, 1 - GROUPS), state)


def test_malformed_groups_are_refused(tmp_path: Path) -> None:
    partition = populate(tmp_path / "run", (5, 1, 4), size=10).partition(0)
    for groups in (b"", b"\xff", b"\x00\x00"):
        with pytest.raises(ValueError, match="malformed groups"):
            count_reports(partition, CountRequest(groups), context())


def test_devices_that_send_every_bit_count_nothing(tmp_path: Path) -> None:
    partition = populate(tmp_path / "run", (5, 1, 4), size=10, mechanism=ThresholdBit()).partition(0)
    with pytest.raises(ValueError, match="not set up for it"):
        count_reports(partition, CountRequest(b"\x60"), context())
