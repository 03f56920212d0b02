"""The server of the rounds: who is asked, what is believed, what is charged."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord
from flwr.common.serde import message_to_proto

from clients.faults import ABSENT, DAMAGED, PUNCTUAL, FaultOptions, fates
from dprec.accounting import PrivacyBudget
from dprec.arrays import AnyArray
from dprec.completion import StepOptions
from dprec.exchange import Reports
from dprec.gradients import Aggregate, FullGradient, GradientReport, OneBitGradient, ReducedOneBitGradient
from dprec.protocols.base import Public
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.rounds import SamplingOptions
from dprec.randomness import RunKeys
from dprec.wire import BroadcastOptions
from strategies.roster import Roster, identify
from strategies.rounds import message_size
from strategies.training import BroadcastRounds
from tests.builders import RecordingGrid, Tamper, populated
from tests.make import synthetic
from tests.strategies.test_report_collection import entries, failing, sent

USERS, ITEMS, RANK, ROUNDS, GROUP, SEED = 30, 20, 2, 5, "00000001", 8
KEYS = RunKeys.derive(SEED).installed
EPSILON = 0.5
GRADIENTS: list[GradientReport] = [OneBitGradient(), ReducedOneBitGradient(dimensions=6), FullGradient()]
FAULTS = FaultOptions(dropout=0.2, straggle=0.1, corrupt=0.2)
DELTA = BroadcastOptions(dtype="float16", delta=True)


class Watched(BroadcastRounds):
    """A strategy that keeps what it took its steps from."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.aggregates: list[Aggregate] = []
        learn = self.server.learn

        def watched(round_index: int, total: Aggregate) -> Any:
            self.aggregates.append(total)
            return learn(round_index, total)

        self.server.learn = watched  # type: ignore[method-assign]


RATINGS = synthetic(USERS, ITEMS, 250, without=(3,))


def begin(
    folder: Path,
    size: int,
    gradient: GradientReport,
    *,
    sampling: SamplingOptions | None = None,
    broadcast: BroadcastOptions | None = None,
    faults: FaultOptions | None = None,
    individual_reports: bool = False,
) -> tuple[RecordingGrid, Watched]:
    protocol = IterativeProtocol(
        gradient=gradient,
        downlink=broadcast or BroadcastOptions(),
        rank=RANK,
        rounds=ROUNDS,
        step=StepOptions(size=0.05, momentum=0.5),
        sampling=sampling or SamplingOptions(),
        privacy=PrivacyBudget(epsilon=ROUNDS * EPSILON, per="user") if gradient.private else None,
    )
    populated(
        folder / GROUP,
        RATINGS,
        protocol,
        size,
        seed=SEED,
        faults=faults or FaultOptions(),
        individual_reports=individual_reports,
    )
    grid = RecordingGrid(folder, -(-USERS // size))
    strategy = Watched(
        protocol=protocol,
        public=Public.of(RATINGS),
        seed=SEED,
        public_seed=KEYS.public_seed,
        group=GROUP,
        roster=Roster(identify(grid), USERS, size, believed=True),
        rated=RATINGS.counts > 0,
    )
    grid.sent, grid.received = [], []
    return grid, strategy


def run(folder: Path, size: int, gradient: GradientReport, **options: Any) -> Watched:
    grid, strategy = begin(folder, size, gradient, **options)
    for _ in range(ROUNDS):
        strategy.run_round(grid)
    return strategy


def arrays_of(strategy: Watched) -> Mapping[str, AnyArray]:
    arrays = strategy.server.arrays
    assert arrays is not None
    return arrays


def state_of(strategy: Watched) -> dict[str, Any]:
    return {
        **{name: array.tobytes() for name, array in arrays_of(strategy).items()},
        **{name: column.tolist() for name, column in strategy.traffic.columns.items()},
        **{name: column.tobytes() for name, column in strategy.accountant.to_arrays().items()},
        "rounds": [{**vars(record), "seconds": None} for record in strategy.records],
    }


def test_flower_runs_it_like_any_strategy(tmp_path: Path) -> None:
    grid, strategy = begin(tmp_path / "start", 7, FullGradient())
    result = strategy.start(grid, ArrayRecord(), num_rounds=ROUNDS)
    own = run(tmp_path / "own", 7, FullGradient())
    assert state_of(strategy) == state_of(own)
    replies = [metrics["replies"] for metrics in result.train_metrics_clientapp.values()]
    assert replies == [USERS] * ROUNDS


def asked_in(grid: RecordingGrid, strategy: Watched) -> list[list[int]]:
    """Return who was asked in each round, read off the messages of one node per user."""
    rounds: list[list[int]] = [[] for _ in range(ROUNDS)]
    for message in grid.sent:
        record = message.content["request"]
        user = strategy.roster.node_ids.index(message.metadata.dst_node_id)
        rounds[int(record["round"]) - 1].append(user)  # type: ignore[index, arg-type]
    return rounds


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (SamplingOptions(fraction=0.4), 12),
        (SamplingOptions(count=7), 7),
        (SamplingOptions(count=1), 1),
        (SamplingOptions(fraction=1.0), USERS),
    ],
)
def test_a_sample_is_drawn_from_the_seed_and_charged_for_its_rounds_alone(
    tmp_path: Path, sampling: SamplingOptions, expected: int
) -> None:
    grid, strategy = begin(tmp_path / "one", 1, OneBitGradient(), sampling=sampling)
    for _ in range(ROUNDS):
        strategy.run_round(grid)
    rounds = asked_in(grid, strategy)
    assert [len(users) for users in rounds] == [expected] * ROUNDS
    if expected < USERS:
        assert len({tuple(users) for users in rounds}) == ROUNDS
    taken = np.bincount([user for users in rounds for user in users], minlength=USERS)
    loss = OneBitGradient().exact_epsilon(EPSILON)
    accountant, traffic = strategy.accountant, strategy.traffic
    np.testing.assert_allclose(accountant.get_epsilon(), taken * loss, rtol=1e-15)
    assert (accountant.get_epsilon() <= ROUNDS * EPSILON).all()
    assert (traffic.messages == 2 * taken).all()
    assert ((traffic.uplink_payload > 0) == (taken > 0)).all()
    assert np.isnan(accountant.get_epsilon(per="rating")[(taken == 0) | (RATINGS.counts == 0)]).all()
    charged = (taken > 0) & (RATINGS.counts > 0)
    np.testing.assert_allclose(
        accountant.get_epsilon(per="rating")[charged], taken[charged] * loss, rtol=1e-15
    )
    # The same seed chooses the same users, however they are hosted.
    again = run(tmp_path / "two", 7, OneBitGradient(), sampling=sampling)
    assert again.accountant.get_epsilon().tolist() == accountant.get_epsilon().tolist()
    assert [event.round_index for event in accountant.history] == list(range(1, ROUNDS + 1))
    for users, event in zip(rounds, accountant.history, strict=True):
        assert np.flatnonzero(event.took_part(USERS)).tolist() == sorted(users)


@pytest.mark.parametrize("size", [1, 7, USERS])
@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda gradient: gradient.kind)
def test_faults_are_charged_when_sent_and_used_when_sound_and_in_time(
    tmp_path: Path, gradient: GradientReport, size: int
) -> None:
    grid, strategy = begin(tmp_path / "faulty", size, gradient, faults=FAULTS)
    honest, other = begin(tmp_path / "honest", USERS, gradient, individual_reports=True)
    record = strategy.run_round(grid)
    other.run_round(honest)
    (reply,) = honest.received
    reports = list(Reports.of(reply.content["reply"]).reports)  # type: ignore[arg-type]
    fate = fates(FAULTS, KEYS.network_seed, 1, 0, USERS)
    assert len(set(fate.tolist())) == 4
    used = fate == PUNCTUAL
    _, expected = gradient.decode([reports[user] for user in np.flatnonzero(used)], (ITEMS, RANK))
    (aggregate,) = strategy.aggregates
    assert aggregate.users == expected.users == used.sum() == record.replies
    assert aggregate.total.tolist() == expected.total.tolist()
    assert record.failures == USERS - used.sum()
    sent = fate != ABSENT
    lengths = np.array([len(report) for report in reports]) + (fate == DAMAGED)
    assert strategy.traffic.uplink_payload.tolist() == np.where(sent, lengths, 0).tolist()
    assert strategy.traffic.messages.tolist() == (1 + sent).tolist()
    assert (strategy.accountant.get_epsilon() > 0).tolist() == sent.tolist()
    # Normalised by what arrived.
    if isinstance(gradient, FullGradient):
        mean = gradient.gradient(aggregate, (ITEMS, RANK), math.inf, KEYS.public_seed)
        np.testing.assert_allclose(mean * used.sum(), aggregate.total * 2.0**-24)


HOSTILE: dict[str, Tamper] = {
    "longer": entries(reports=lambda reports: sent([report + b"\0" for report in reports])),
    "huge": entries(reports=lambda reports: sent([bytes(200_000)] * len(reports))),
    "ones": entries(reports=lambda reports: sent([b"\xff" * max(1, len(report)) for report in reports])),
    "text": entries(reports=["x"] * 7),
    "an error": failing,
}
"""More are tried on reports that are collected once, which are read by the same code."""


@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda gradient: gradient.kind)
@pytest.mark.parametrize("tamper", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_replies_enter_nothing(tmp_path: Path, gradient: GradientReport, tamper: Tamper) -> None:
    grid, strategy = begin(tmp_path / "hostile", 7, gradient, individual_reports=True)
    silent, expected = begin(tmp_path / "silent", 7, gradient)
    grid.tamper, silent.tamper = tamper, lambda reply: None
    grid.victim, silent.victim = (list(each.get_node_ids())[2] for each in (grid, silent))
    record = strategy.run_round(grid)
    expected.run_round(silent)
    assert (record.replies, record.failures) == (USERS - 7, 7)
    assert arrays_of(strategy)["factors"].tolist() == arrays_of(expected)["factors"].tolist()


@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda gradient: gradient.kind)
def test_a_sum_is_as_good_as_the_reports(tmp_path: Path, gradient: GradientReport) -> None:
    options = {"sampling": SamplingOptions(fraction=0.7), "faults": FAULTS}
    sums, one = begin(tmp_path / "sums", 7, gradient, **options)
    reports, other = begin(tmp_path / "reports", 7, gradient, individual_reports=True, **options)
    for _ in range(2):
        one.run_round(sums)
        other.run_round(reports)
    assert state_of(one) == state_of(other)
    assert {"reports" in reply.content["reply"] for reply in sums.received} == {False}
    assert {"reports" in reply.content["reply"] for reply in reports.received} == {True}


@pytest.mark.parametrize("broadcast", [BroadcastOptions(), DELTA], ids=["float32", "float16 delta"])
@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda gradient: gradient.kind)
def test_accounted_bytes_are_those_of_the_messages(
    tmp_path: Path, gradient: GradientReport, broadcast: BroadcastOptions
) -> None:
    sampling = SamplingOptions(fraction=0.7)
    options = {"sampling": sampling, "broadcast": broadcast, "individual_reports": True}
    grid, strategy = begin(tmp_path, 1, gradient, **options)
    for _ in range(ROUNDS):
        strategy.run_round(grid)
    strategy.deliver(grid)
    down, up, payload = np.zeros((3, USERS), dtype=np.int64)
    users = {node: user for user, node in enumerate(strategy.roster.node_ids)}
    for message in grid.sent:
        user = users[message.metadata.dst_node_id]
        down[user] += message_size(message)
        payload[user] += len(message.content["request"]["factors"])  # type: ignore[index, arg-type]
    for message in grid.received:
        up[users[message.metadata.src_node_id]] += message_size(message)
    traffic = strategy.traffic
    assert traffic.downlink_message.tolist() == down.tolist()
    assert traffic.downlink_payload.tolist() == payload.tolist()
    assert traffic.uplink_message.tolist() == up.tolist()
    assert traffic.messages.sum() == len(grid.sent) + len(grid.received)
    # Replacing the random ids by wide ones can only add the bytes of a few varints.
    for message in grid.sent + grid.received:
        assert 0 <= message_size(message) - message_to_proto(message).ByteSize() <= 2 * 10
    records = strategy.records
    assert sum(record.downlink_message_bytes for record in records) == down.sum()
    assert sum(record.uplink_message_bytes for record in records) == up.sum()
