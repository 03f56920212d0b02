"""What a device gives away, whatever a server asks of it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict
from numpy.typing import NDArray
from scipy.stats import binomtest

from clients.app import client_app
from clients.iterative import gradient_reports
from clients.population import HeldFactors, Partition, open_population, write_held_factors
from clients.shards import ShardedRatings, write_shards
from dprec.datasets import Synthetic
from dprec.exchange import GradientRequest, IterativeSetup, Reports
from dprec.gradients import OneBitGradient
from dprec.gradients.one_bit import unpack_answers
from dprec.ratings import Ratings
from dprec.wire import BroadcastOptions, encode_broadcast
from simulation.engine.grids import LocalGrid
from tests.builders import populated

ITEMS, RANK, USERS, ROUNDS = 12, 2, 10, 4
RUNS = ("run-a", "run-b")
DOWNLINK = BroadcastOptions(delta=True)


def install(folder: Path, ratings: Ratings) -> None:
    setup = IterativeSetup(
        gradient=OneBitGradient(),
        broadcast=DOWNLINK,
        rank=RANK,
        ridge=1.0,
        epsilon_per_round=0.4,
        rounds=ROUNDS,
    )
    for key in RUNS:
        populated(folder / key, ratings, setup, USERS, individual_reports=True)


class Server:
    """Asks one node whatever a test wants."""

    def __init__(self, folder: Path) -> None:
        self._grid = LocalGrid(client_app(str(folder)), 1)
        self._node = next(iter(self._grid.get_node_ids()))

    def ask(
        self, round_index: Any, payload: bytes, *, run: str = RUNS[0], kind: str = "train", **more: Any
    ) -> list[bytes] | None:
        """Return the reports, or None when the node refuses."""
        record = ConfigRecord({"round": round_index, "factors": payload, **more})
        question = Message(RecordDict({"request": record}), self._node, kind, group_id=run)
        (reply,) = self._grid.send_and_receive([question])
        if not reply.has_content():
            return None
        answered = reply.content.get("reply")
        assert isinstance(answered, ConfigRecord) or kind != "train"
        return list(Reports.of(answered).reports) if isinstance(answered, ConfigRecord) else []


def factors(seed: int) -> NDArray[Any]:
    return DOWNLINK.rounded(np.random.default_rng(seed).normal(1.0, 0.5, (ITEMS, RANK)))


def whole(seed: int) -> bytes:
    return encode_broadcast(factors(seed))


@pytest.fixture
def server(tmp_path: Path) -> Server:
    install(tmp_path, Synthetic(users=USERS, items=ITEMS, ratings=60).load())
    return Server(tmp_path)


def test_a_round_asked_again_with_the_same_factors_is_answered_alike(server: Server) -> None:
    first = server.ask(1, whole(1))
    assert first is not None
    assert len(first) == USERS
    for payload in (whole(1), encode_broadcast(factors(1), factors(1))):
        assert server.ask(1, payload) == first
    assert server.ask(1, whole(1), asked=np.packbits(np.arange(USERS) == 3).tobytes()) == [first[3]]


def test_a_round_asked_again_with_other_factors_is_refused(server: Server) -> None:
    first = server.ask(1, whole(1))
    assert server.ask(1, whole(2)) is None
    # Not even a user who was not asked the first time: its node answers a round for one broadcast.
    assert server.ask(1, whole(2), asked=np.packbits(np.arange(USERS) == 3).tobytes()) is None
    assert server.ask(1, whole(1)) == first


def test_a_run_goes_by_one_name(server: Server) -> None:
    first = server.ask(2, whole(1))
    assert first is not None
    for alias in ("./run-a", "run-b/../run-a", "run-a/", "../run-a", "", ".", ".."):
        assert server.ask(2, whole(2), run=alias) is None
        assert server.ask(1, whole(2), run=alias) is None


def test_every_run_has_a_memory_of_its_own(server: Server) -> None:
    first = server.ask(1, whole(1))
    assert server.ask(1, whole(2), run=RUNS[1]) is not None
    assert server.ask(1, whole(2)) is None
    assert server.ask(1, whole(1)) == first
    # What one run broadcast last is no base for the changes of the other.
    changes = encode_broadcast(factors(1), factors(1))
    assert server.ask(2, changes, run=RUNS[1]) is None


def test_other_questions_bring_no_reports(server: Server) -> None:
    assert server.ask(1, whole(1), kind="query.deliver") == []
    assert server.ask(1, whole(1), kind="query.report") is None
    assert server.ask(1, whole(1), kind="evaluate") is None
    # A delivery is no round.
    assert server.ask(1, whole(2)) is not None


@pytest.mark.parametrize("kind", ["train", "query.deliver"])
def test_malformed_factors_are_refused_and_change_nothing(server: Server, kind: str) -> None:
    good = whole(1)
    hostile = factors(1).copy()
    hostile[0, 0] = np.nan
    for payload in (b"", good[:-1], good + b"\0", b"\x02" + good[1:], encode_broadcast(hostile)):
        assert server.ask(1, payload, kind=kind) is None
    assert server.ask(1, good) is not None


def test_who_fails_at_hostile_factors_does_not_depend_on_the_ratings(tmp_path: Path) -> None:
    """Two equal factors of 1e30 make the system of those who rated the item singular."""
    ratings = Synthetic(users=USERS, items=ITEMS, ratings=60).load()
    payload = factors(1).copy()
    payload[3] = 1e30
    for name, held in (("with", ratings), ("without", ratings.select(ratings.items != 3))):
        install(tmp_path / name, held)
        reports = Server(tmp_path / name).ask(1, encode_broadcast(payload))
        assert reports is not None
        assert len({len(report) for report in reports}) == 1


def test_devices_of_a_resumed_run_remember(tmp_path: Path) -> None:
    install(tmp_path, Synthetic(users=USERS, items=ITEMS, ratings=60).load())
    before = Server(tmp_path).ask(2, whole(1))
    other = tmp_path / "resumed"
    install(other, Synthetic(users=USERS, items=ITEMS, ratings=60).load())
    write_held_factors(other / RUNS[0], HeldFactors(2, factors(1)))
    server = Server(other)
    assert server.ask(1, whole(1)) is None
    assert server.ask(2, whole(2)) is None
    assert server.ask(2, whole(1)) == before
    assert server.ask(3, encode_broadcast(factors(1), factors(1))) is not None


def test_answers_have_the_odds_of_a_rounds_share_and_are_drawn_anew_in_every_round(tmp_path: Path) -> None:
    """Eight exact binomial tests at 1e-7 each; the seed is fixed.

    Every coordinate of those who gave 5 to every item is far below -1, and 0 of those who rated nothing.
    """
    each = 3_000
    install(tmp_path, Synthetic(users=USERS, items=ITEMS, ratings=60).load())
    population = open_population(str(tmp_path / RUNS[0]))
    people = Ratings(
        indptr=np.minimum(np.arange(2 * each + 1), each) * ITEMS,
        items=np.tile(np.arange(ITEMS, dtype=np.int32), each),
        levels=np.full(each * ITEMS, 5, dtype=np.uint8),
        scale=population.scale,
        user_ids=np.arange(2 * each),
        item_ids=np.arange(ITEMS),
    )
    folder = tmp_path / "many"
    population = replace(population, ratings=ShardedRatings(folder, write_shards(folder, people)))
    broadcast = encode_broadcast(DOWNLINK.rounded(np.full((ITEMS, RANK), 0.1)))
    context = Context(1, 1, {}, RecordDict(), {})
    yes = []
    for round_index in (1, 2):
        request = GradientRequest(round_index, broadcast)
        reports, _ = gradient_reports(Partition(population, 0, 2 * each), request, context)
        _, coordinates, answers = unpack_answers(reports, ITEMS * RANK)
        yes.append(answers)
    for own, share in ((slice(0, each), 1 / (1 + math.exp(0.4))), (slice(each, None), 0.5)):
        for answers, expected in (
            (yes[0], share),
            (yes[1], share),
            (yes[0] & yes[1], share**2),
            (yes[1] & (coordinates < ITEMS * RANK // 2), share / 2),
        ):
            assert binomtest(int(answers[own].sum()), each, expected).pvalue > 1e-7
