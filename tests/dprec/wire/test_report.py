import math
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.channel import Channel
from dprec.mechanisms import BoundedLaplace, ZhengLaplace, ZhengRandomizedResponse
from dprec.mechanisms.randomized_response import RandomizedResponse, Raw
from dprec.wire import DecodedReports, ReportCodec
from tests.make import STARS

pytestmark = pytest.mark.usefixtures("compiled_or_not")


N_ITEMS = 37


ONE_SHOWN = Channel.from_probabilities([[0.9, 0.1], [0.3, 0.7]], [np.nan, 1], [np.nan, 1], math.inf)
"""Hides the rated items and shows nothing but that there may be one."""

NEVER_SHOWN = Channel.from_probabilities([[0, 1, 0], [0.5, 0, 0.5]], [np.nan, 1], [1, np.nan, 2], math.inf)
"""Hides the rated items so well that no symbol but "not rated" comes from a cell that is not rated."""

CHANNELS = {
    "raw": Raw().channel(STARS, math.inf),
    "randomized response": RandomizedResponse().channel(STARS, 1.0),
    "bounded laplace": BoundedLaplace().channel(STARS, 1.0),
    "two symbols": BoundedLaplace(symbols=2).channel(STARS, 1.0),
    "65536 symbols": BoundedLaplace(symbols=65536).channel(STARS, 1.0),
    "hidden, whole row": ZhengRandomizedResponse().channel(STARS, 0.5),
    "hidden, set": ZhengRandomizedResponse().channel(STARS, 7.0),
    "hidden noise, dense set": ZhengLaplace().channel(STARS, 0.1),
    "hidden noise, set": ZhengLaplace().channel(STARS, 8.0),
    "hidden, one symbol": ONE_SHOWN,
    "hidden, blank in the middle": NEVER_SHOWN,
}
CODECS = {name: ReportCodec(channel, N_ITEMS) for name, channel in CHANNELS.items()}

Profiles = list[dict[int, int]]


def shown_symbols(channel: Channel) -> np.ndarray:
    return np.flatnonzero(~np.isnan(channel.values))


@st.composite
def partitions(draw: st.DrawFn) -> tuple[str, Profiles]:
    """Draw users as mappings from items to indices of shown symbols."""
    name = draw(st.sampled_from(sorted(CODECS)))
    symbols = shown_symbols(CHANNELS[name])
    cell = st.tuples(st.integers(0, N_ITEMS - 1), st.sampled_from([0, symbols.size // 2, symbols.size - 1]))
    users = st.lists(cell, max_size=N_ITEMS).map(lambda cells: {i: int(symbols[s]) for i, s in cells})
    return name, draw(st.lists(users, max_size=5))


def encode(codec: ReportCodec, profiles: Profiles) -> list[bytes]:
    cells = [sorted(profile.items()) for profile in profiles]
    indptr = np.concatenate([[0], np.cumsum([len(own) for own in cells])]).astype(np.int64)
    items = np.array([item for own in cells for item, _ in own], dtype=np.int32)
    symbols = np.array([symbol for own in cells for _, symbol in own], dtype=np.uint16)
    return list(codec.encode(indptr, items, symbols))


def profiles_of(decoded: DecodedReports) -> Profiles:
    bounds = decoded.indptr.tolist()
    return [
        dict(zip(decoded.items[a:b].tolist(), decoded.symbols[a:b].tolist(), strict=True))
        for a, b in pairwise(bounds)
    ]


def check_sound(decoded: DecodedReports, reports: list[bytes], channel: Channel, n_items: int) -> None:
    """Hold what every decoding promises, whatever the bytes were."""
    assert decoded.valid.shape == (len(reports),)
    assert decoded.indptr.shape == (len(reports) + 1,)
    assert decoded.indptr[0] == 0
    assert decoded.indptr[-1] == decoded.items.size == decoded.symbols.size
    counts = np.diff(decoded.indptr)
    assert np.all(counts >= 0)
    assert np.all(counts[~decoded.valid] == 0)
    for own in np.split(decoded.items, decoded.indptr[1:-1]):
        assert np.all(np.diff(own) > 0)
    assert np.all((decoded.items >= 0) & (decoded.items < n_items))
    assert not np.isnan(channel.values[decoded.symbols]).any()


@given(partitions())
@settings(deadline=None)
def test_round_trip(partition: tuple[str, Profiles]) -> None:
    name, profiles = partition
    codec = CODECS[name]
    reports = encode(codec, profiles)
    decoded = codec.decode(reports)
    check_sound(decoded, reports, CHANNELS[name], N_ITEMS)
    assert decoded.valid.all()
    assert profiles_of(decoded) == profiles
    # A report does not depend on the partition.
    assert reports == [encode(codec, [profile])[0] for profile in profiles]


@given(partitions(), st.data())
@settings(deadline=None)
def test_mutated_reports_decode_or_are_rejected_without_disturbing_the_others(
    partition: tuple[str, Profiles], data: st.DataObject
) -> None:
    name, profiles = partition
    codec = CODECS[name]
    reports = encode(codec, profiles)
    for victim in data.draw(st.sets(st.integers(0, len(reports) - 1), max_size=2)) if reports else ():
        reports[victim] = data.draw(mutations(reports[victim]))
    decoded = codec.decode(reports)
    check_sound(decoded, reports, CHANNELS[name], N_ITEMS)
    alone = [codec.decode([report]) for report in reports]
    assert decoded.valid.tolist() == [bool(one.valid[0]) for one in alone]
    assert profiles_of(decoded) == [profiles_of(one)[0] for one in alone]


def mutations(report: bytes) -> st.SearchStrategy[bytes]:
    number, last = int.from_bytes(report, "big"), max(8 * len(report) - 1, 0)
    flipped = st.integers(0, last).map(lambda bit: (number ^ 1 << bit).to_bytes(len(report) or 1, "big"))
    cut = st.integers(0, len(report)).map(lambda length: report[:length])
    longer = st.binary(min_size=1, max_size=3).map(lambda tail: report + tail)
    return st.one_of(flipped, cut, longer, st.binary(max_size=60), st.just(b"\xff" * 5000))


@pytest.mark.parametrize("name", sorted(CODECS))
def test_what_is_cut_prolonged_or_giant_is_rejected_without_being_read(name: str) -> None:
    codec, giant = CODECS[name], b"\xff" * 5_000_000
    (report,) = encode(codec, [dict.fromkeys(range(0, N_ITEMS, 3), int(shown_symbols(CHANNELS[name])[-1]))])
    spoilt = [*(report[:length] for length in range(1, len(report))), report + b"\0", report + report]
    assert not codec.decode(spoilt).valid.any()
    tracemalloc.start()
    assert not codec.decode([giant]).valid.any()
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < len(giant) / 10  # a byte for every bit of it would be 80 times this


def test_a_claim_of_many_symbols_without_any_reads_none() -> None:
    n_items = 1 << 14
    codec = ReportCodec(CHANNELS["randomized response"], n_items)
    tracemalloc.start()
    assert not codec.decode([b"\xff" * (-(-(5 + n_items) // 8))]).valid.any()
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < n_items  # an item of every bit would take four times as much


@pytest.mark.parametrize("n_items", [1, 2])
@pytest.mark.parametrize("name", sorted(CHANNELS))
def test_tiny_catalogues(name: str, n_items: int) -> None:
    codec = ReportCodec(CHANNELS[name], n_items)
    symbol = int(shown_symbols(CHANNELS[name])[-1])
    profiles: Profiles = [{}, {0: symbol}, dict.fromkeys(range(n_items), symbol)]
    assert profiles_of(codec.decode(encode(codec, profiles))) == profiles
    check = [bytes([first, second]) for first in range(256) for second in (0, 255)]
    check_sound(codec.decode(check), check, CHANNELS[name], n_items)


@pytest.mark.parametrize("ratings", [1, 5, 16])
def test_the_expected_size_is_that_of_a_report_with_evenly_spread_items(ratings: int) -> None:
    """Four equally likely symbols take two bits each, whatever they are."""
    codec = ReportCodec(Channel.from_probabilities(np.ones((4, 4)), np.arange(4), np.arange(4), 1.0), 16)
    items = np.linspace(0, 15, ratings).astype(np.int64)
    (report,) = codec.encode(np.array([0, ratings]), items, np.arange(ratings) % 4)
    assert len(report) == -(-codec.expected_bits(ratings) // 8)
