"""The device's part of gradient perturbation, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from scipy.stats import binomtest

from clients.one_shot import slope_reports
from clients.population import Partition, open_population
from clients.shards import ShardedRatings, write_shards
from dprec.accounting import PrivacyBudget
from dprec.binarization import binary_scale
from dprec.completion import slope_channel
from dprec.exchange import ROW_ENTRY, Refusal, SlopesRequest
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.ratings import Ratings
from tests.builders import populated

SETUP = GradientPerturbationProtocol(rounds=3, privacy=PrivacyBudget(epsilon=6.0))
USERS = [1, 1, 1, 2, 4, 4]
ITEMS = [1, 3, 5, 2, 1, 4]
SIGNS = [1, -1, 1, -1, 1, 1]


def partition_at(folder: Path, start: int = 0, stop: int = 4) -> Partition:
    ratings = Ratings.from_triples(
        USERS, ITEMS, SIGNS, binary_scale(), user_ids=np.arange(1, 5), item_ids=np.arange(1, 7)
    )
    if not (folder / "run").exists():
        populated(folder / "run", ratings, SETUP, 4, seed=5)
    return Partition(open_population(str(folder / "run")), start, stop)


def device() -> Context:
    return Context(1, 1, {}, RecordDict(), {})


def row(*entries: float) -> bytes:
    return np.array(entries, dtype=ROW_ENTRY).tobytes()


def ask(
    partition: Partition, round_index: int, rows: list[bytes], context: Context | None = None
) -> list[bytes]:
    return slope_reports(partition, SlopesRequest(round_index, rows), context or device())


def asked_before(partition: Partition) -> Context:
    """Return the context of a node that has told which items its users have rated."""
    context = device()
    ask(partition, 1, [b""] * partition.size, context)
    return context


KNOWN = [row(0.5, -1.0, 2.0), row(0.1), b"", row(0.0, 3.0)]


def test_a_first_report_tells_the_items_and_a_later_one_does_not(tmp_path: Path) -> None:
    partition = partition_at(tmp_path)
    first_codec, later_codec = SETUP.codecs(6)
    first = ask(partition, 1, [b""] * 4)
    decoded = first_codec.decode(first)
    assert decoded.valid.all()
    assert decoded.items.tolist() == [0, 2, 4, 1, 0, 3]
    assert first[2] == b""
    later = ask(partition, 2, KNOWN, asked_before(partition))
    valid, symbols = later_codec.decode(later, partition.counts)
    assert valid.all()
    assert symbols.size == 6


def test_rows_do_not_tell_how_much_is_rated_before_a_report_has(tmp_path: Path) -> None:
    partition = partition_at(tmp_path, 0, 1)
    for entries in ((0.5, -1.0, 2.0), (0.5,)):
        with pytest.raises(Refusal, match="rows of items that were not reported"):
            ask(partition, 1, [row(*entries)])


def test_a_round_is_answered_for_one_row_only(tmp_path: Path) -> None:
    partition, context = partition_at(tmp_path), device()
    answer = ask(partition, 1, [b""] * 4, context)
    assert ask(partition, 1, [b""] * 4, context) == answer
    with pytest.raises(ValueError, match="asked for round 1 again"):
        ask(partition, 1, KNOWN, context)
    ask(partition, 2, KNOWN, context)
    with pytest.raises(ValueError, match="asked for round 1 again, after round 2"):
        ask(partition, 1, [b""] * 4, context)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([b""] * 3, "rows of another partition"),
        ([row(1.0), *KNOWN[1:]], "a row of 4 bytes for 3 ratings"),
        ([KNOWN[0], KNOWN[1], row(1.0), KNOWN[3]], "a row of 4 bytes for 0 ratings"),
        ([row(1.0, float("nan"), 0.0), *KNOWN[1:]], "not finite"),
        ([row(1.0, float("inf"), 0.0), *KNOWN[1:]], "not finite"),
    ],
)
def test_a_malformed_request_is_refused(tmp_path: Path, rows: list[bytes], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ask(partition_at(tmp_path), 2, rows, asked_before(partition_at(tmp_path)))


def sharded(folder: Path, ratings: Ratings) -> ShardedRatings:
    return ShardedRatings(folder, write_shards(folder, ratings))


def test_slopes_have_the_odds_of_a_rounds_share_and_noise_of_their_own_in_every_round(tmp_path: Path) -> None:
    """Six exact binomial tests at 1e-7 each; the seed is fixed. Where nothing is known, slopes are +-1/2."""
    each = 3_000
    population = partition_at(tmp_path).population
    levels = np.repeat(np.array([1, 2], dtype=np.uint8), each)
    items = np.zeros(levels.size, dtype=np.int32)
    users = np.arange(levels.size)
    people = Ratings(np.arange(levels.size + 1), items, levels, population.scale, users, np.arange(1))
    population = replace(population, ratings=sharded(tmp_path / "many", people))
    partition, channel, context = Partition(population, 0, 2 * each), slope_channel(0.5, 256, 2.0), device()
    positive = []
    for round_index in (1, 2):
        reports = ask(partition, round_index, [b""] * (2 * each), context)
        symbols = SETUP.codecs(1)[0].decode(reports).symbols
        positive.append(channel.values[symbols] > 0)
    # A rating of -1, the lower level, has the slope +1/2.
    for own, level in ((slice(0, each), -1), (slice(each, None), 0)):
        share = float(channel.probabilities[level, channel.values > 0].sum())
        for seen, expected in (
            (positive[0], share),
            (positive[1], share),
            (positive[0] & positive[1], share**2),
        ):
            assert binomtest(int(seen[own].sum()), each, expected).pvalue > 1e-7
