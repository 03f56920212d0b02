"""The report to a trusted server: the chosen items, the user's factors, and a target for each item."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import cut, offsets, rows_of, sizes_of
from dprec.private_als.statistics import TARGET_BITS, Contributions, StatisticsLayout
from dprec.wire import BitStream, ItemSets, longest_item_set, read_item_sets

_FACTOR, _TARGET = np.dtype("<f4"), np.dtype("<i2")
_LARGEST_TARGET = 1 << TARGET_BITS


def encode_contributions(contributions: Contributions, layout: StatisticsLayout) -> list[bytes]:
    """Return one report per user: its item set padded to a byte, its factors, its targets.

    A user without a chosen item sends an empty report. Where item biases are estimated, x is 1 and is not
    sent.
    """
    counts = np.diff(contributions.indptr)
    sets = ItemSets.plan(contributions.indptr, contributions.items, layout.n_items)
    sizes = (sets.lengths + 7) // 8
    bits = np.zeros(int(sizes.sum()) * 8, dtype=np.uint8)
    sets.write(bits, offsets(sizes)[:-1] * 8)
    item_sets = cut(np.packbits(bits).tobytes(), sizes)
    sent = contributions.factors.astype(_FACTOR)[:, : layout.rank]
    factors = cut(sent.tobytes(), np.full(counts.size, sent.shape[1] * _FACTOR.itemsize))
    targets = cut(contributions.targets.astype(_TARGET).tobytes(), counts * _TARGET.itemsize)
    parts = zip(item_sets, factors, targets, strict=True)
    return [own_set + own + target if own_set else b"" for own_set, own, target in parts]


def decode_contributions(
    reports: Sequence[bytes], layout: StatisticsLayout
) -> tuple[NDArray[np.bool_], Contributions]:
    """Read the reports of a partition; the server does not trust the devices.

    Returns
    -------
    valid : ndarray of bool, shape (reports,)
        False for a report that is cut short or too long, or that holds a target or factors beyond their
        bounds, or more items than the limit.
    contributions : Contributions
        Of the valid reports that are not empty.
    """
    lengths = sizes_of(reports)
    longest = -(-longest_item_set(layout.n_items) // 8)
    stream = BitStream([report[:longest] for report in reports])
    filled = np.flatnonzero(lengths)
    ok, counts, items, positions = read_item_sets(stream, filled, layout.n_items)
    set_bytes = (positions - stream.starts[filled] + 7) // 8
    padding = stream.peek(positions, (stream.starts[filled] - positions) % 8)
    factor_bytes = layout.rank * _FACTOR.itemsize
    whole = set_bytes + factor_bytes + counts * _TARGET.itemsize
    ok &= (lengths[filled] == whole) & (padding == 0)
    ok &= counts <= (layout.limit or layout.n_items)

    read = [
        (reports[user], size) for user, size in zip(filled[ok].tolist(), set_bytes[ok].tolist(), strict=True)
    ]
    factors = np.ones((filled.size, layout.columns), dtype=np.float32)
    if factor_bytes:
        sent = b"".join(report[size : size + factor_bytes] for report, size in read)
        factors[ok] = np.frombuffer(sent, dtype=_FACTOR).reshape(-1, layout.rank)
    targets = np.zeros(items.size, dtype=np.int64)
    sent = b"".join(report[size + factor_bytes :] for report, size in read)
    targets[np.repeat(ok, counts)] = np.frombuffer(sent, dtype=_TARGET)
    with np.errstate(invalid="ignore", over="ignore"):
        ok &= np.linalg.norm(factors.astype(np.float64), axis=1) <= layout.norm
    ok &= np.bincount(rows_of(counts)[np.abs(targets) > _LARGEST_TARGET], minlength=filled.size) == 0

    valid = lengths == 0
    valid[filled[ok]] = True
    kept = np.repeat(ok, counts)
    return valid, Contributions(offsets(counts[ok]), items[kept], targets[kept], factors[ok])


def report_bits(layout: StatisticsLayout, ratings: int) -> int:
    """Return the bits of the report of a user with that many chosen items, evenly spread."""
    items = np.linspace(0, layout.n_items - 1, ratings).astype(np.int64)
    bits = int(ItemSets.plan(np.array([0, ratings]), items, layout.n_items).lengths[0])
    numbers = layout.rank * _FACTOR.itemsize + ratings * _TARGET.itemsize
    return -(-bits // 8) * 8 + numbers * 8
