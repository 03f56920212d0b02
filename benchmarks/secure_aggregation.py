"""Seconds and bytes of one secure sum of item biases over MovieLens 100K's catalogue, on two cores.

    python benchmarks/secure_aggregation.py [--drawn 1000] [--left-out 100000] [--dropouts 0.1]

Every device contributes a count and a sum for each of 30 of 1,682 items, with noise for epsilon 1 per user at
delta 1e-6; of the devices, a tenth may drop out and five collude. In the first row every mask is drawn: keys
are agreed on (X25519), secrets shared and put together, and the total is compared bit by bit with the one of
the second row, in which the masks that cancel are left out. The limit of each row is 60 seconds a round.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dprec.gradients import RoundDraws
from dprec.private_als import TARGET_BITS, StatisticsContributions, StatisticsLayout
from dprec.randomness import DeviceDraws, generator, uniform_below, words
from dprec.secure_aggregation import MessageSizes, device_keys, graph_size, unpack_vector
from dprec.secure_aggregation.masking import MaskedSum, SumContext
from dprec.sums import SecureAggregation

ITEMS, CHOSEN, PARTITION, CORES = 1_682, 30, 2_500, 2
EPSILON, DELTA, PUBLIC_SEED, ROUND = 1.0, 1e-6, 5, 1
LAYOUT = StatisticsLayout(np.full(ITEMS, 256), 0, 1.0, 4.0, 0.5, CHOSEN)


def draws(first: int, count: int) -> RoundDraws:
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    devices = DeviceDraws.of(bytes(16), first, np.zeros(count + 1, dtype=np.int64), *nothing, "benchmark")
    return RoundDraws(devices, ROUND, PUBLIC_SEED)


def contributions(first: int, count: int) -> StatisticsContributions:
    keys = words(1, "items", first * ITEMS, count * ITEMS).reshape(count, ITEMS)
    items = np.sort(keys.argpartition(CHOSEN, axis=1)[:, :CHOSEN], axis=1)
    targets = uniform_below(2 << TARGET_BITS, words(1, "targets", first * CHOSEN, count * CHOSEN))
    targets -= 1 << TARGET_BITS
    indptr = np.arange(count + 1) * CHOSEN
    return StatisticsContributions(
        indptr, items.ravel().astype(np.int32), targets, np.ones((count, 1), np.float32)
    )


def reports_of(aggregation: SecureAggregation, first: int, count: int) -> list[bytes]:
    multiplier = aggregation.multiplier(EPSILON, DELTA)
    return aggregation.encode(contributions(first, count), LAYOUT, multiplier, draws(first, count))


def plain_sum(aggregation: SecureAggregation, first: int, present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the sum over the devices of a partition that are present, without masks."""
    reports = [
        report
        for report, here in zip(reports_of(aggregation, first, present.size), present, strict=True)
        if here
    ]
    return aggregation.decode(reports, LAYOUT, aggregation.multiplier(EPSILON, DELTA))[1].total


def secure_aggregation(aggregation: SecureAggregation, users: int, bits: int) -> MaskedSum:
    order = generator(PUBLIC_SEED, f"order of secure sum {ROUND}").permutation(users)
    size = graph_size(users, aggregation.dropouts, aggregation.colluders)
    context = SumContext(f"benchmark {ROUND}".encode(), LAYOUT.size, bits)
    return MaskedSum(device_keys(draws(0, users).devices, ROUND), order, size, context)


def masked_sum(
    aggregation: SecureAggregation, bits: int, first: int, present: NDArray[np.bool_], users: int
) -> NDArray[np.uint64]:
    """Return the sum of the masked vectors of the devices of a partition that are present."""
    summed = secure_aggregation(aggregation, users, bits)
    total = np.zeros(LAYOUT.size, dtype=np.uint64)
    for user, report in enumerate(reports_of(aggregation, first, present.size)):
        if present[user]:
            total += summed.masked(first + user, unpack_vector(report, LAYOUT.size, bits))
    return total


def parts(present: NDArray[np.bool_], size: int) -> list[tuple[int, NDArray[np.bool_]]]:
    return [(first, present[first : first + size]) for first in range(0, present.size, size)]


def left_out(
    pool: ProcessPoolExecutor, aggregation: SecureAggregation, present: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Return the total with the masks that cancel left out."""
    partitions = parts(present, PARTITION)
    totals = pool.map(plain_sum, [aggregation] * len(partitions), *zip(*partitions, strict=True))
    total = sum(totals, start=np.zeros(LAYOUT.size, dtype=np.int64))
    return np.asarray(total, dtype=np.uint64)


def drawn(
    pool: ProcessPoolExecutor, aggregation: SecureAggregation, bits: int, present: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Return the total, unmasked from what devices send and reveal."""
    users = present.size
    partitions = parts(present, -(-users // CORES))
    fixed = [aggregation] * len(partitions), [bits] * len(partitions)
    totals = pool.map(masked_sum, *fixed, *zip(*partitions, strict=True), [users] * len(partitions))
    masked = sum(totals, start=np.zeros(LAYOUT.size, dtype=np.uint64))
    return secure_aggregation(aggregation, users, bits).total(masked, present).astype(np.uint64)


def line(users: int, masks: str, bits: int, seconds: float, aggregation: SecureAggregation) -> str:
    degree = graph_size(users, aggregation.dropouts, aggregation.colluders).degree
    sizes = MessageSizes(degree, LAYOUT.size, bits)
    up, down = sum(sizes.uplink), sum(sizes.downlink)
    return (
        f"{users:>7,} users, masks {masks:8}: {seconds:5.1f} s a round, {degree} neighbours, {bits} bits a "
        f"number, {sizes.vector:,} bytes of numbers; {up:,} bytes up, {down:,} down"
    )


def main() -> None:
    """Print both rows, and whether the totals are the same."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--drawn", type=int, default=1_000, help="users with every mask drawn")
    arguments.add_argument("--left-out", type=int, default=100_000, help="users without masks that cancel")
    arguments.add_argument("--dropouts", type=float, default=0.1, help="share that drops out, and is borne")
    chosen = arguments.parse_args()
    with ProcessPoolExecutor(CORES) as pool:
        for users, masks in ((chosen.drawn, "drawn"), (chosen.left_out, "left out")):
            aggregation = SecureAggregation(dropouts=chosen.dropouts).among(users)
            bits = (
                aggregation.report_bits(LAYOUT, CHOSEN, aggregation.multiplier(EPSILON, DELTA)) // LAYOUT.size
            )
            gone = generator(1, "dropouts").permutation(users)[: int(0.9 * chosen.dropouts * users)]
            present = ~np.isin(np.arange(users), gone)
            begun = time.perf_counter()
            if masks == "drawn":
                total = drawn(pool, aggregation, bits, present)
            else:
                total = left_out(pool, aggregation, present)
            print(line(users, masks, bits, time.perf_counter() - begun, aggregation))
            if masks == "drawn":
                same = np.array_equal(total, left_out(pool, aggregation, present) % (1 << bits))
                print(f"        {'the same' if same else 'ANOTHER'} total, bit for bit, with masks left out")


if __name__ == "__main__":
    main()
