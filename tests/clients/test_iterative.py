"""What a device gives away, whatever a server asks of it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from numpy.typing import NDArray
from scipy.stats import binomtest

from clients.iterative import answers
from clients.population import HeldQuestion, Partition, open_population, write_held_question
from clients.shards import ShardedRatings, write_shards
from dprec.accounting import PrivacyBudget
from dprec.exchange import GradientRequest, RefusalCode
from dprec.gradients import OneBitGradient
from dprec.protocols.iterative import IterativeProtocol
from dprec.ratings import Ratings
from dprec.wire import BroadcastOptions, encode_broadcast
from tests.builders import OneNode, populated
from tests.make import rated, synthetic

ITEMS, RANK, USERS, ROUNDS = 12, 2, 10, 4
RUNS = ("run-a", "run-b")
DOWNLINK = BroadcastOptions(delta=True)


def install(folder: Path, ratings: Ratings) -> None:
    protocol = IterativeProtocol(
        gradient=OneBitGradient(),
        downlink=DOWNLINK,
        rank=RANK,
        rounds=ROUNDS,
        privacy=PrivacyBudget(epsilon=0.4 * ROUNDS, per="user"),
    )
    for key in RUNS:
        populated(folder / key, ratings, protocol, USERS, individual_reports=True)


def factors(seed: int) -> NDArray[Any]:
    return DOWNLINK.rounded(np.random.default_rng(seed).normal(1.0, 0.5, (ITEMS, RANK)))


def whole(seed: int) -> bytes:
    return encode_broadcast(factors(seed))


class Server(OneNode):
    """Asks for gradients."""

    def gradients(self, round_index: Any, payload: bytes, **more: Any) -> list[bytes] | int:
        return self.told("train", more.pop("run", RUNS[0]), round=round_index, factors=payload, **more)


RATINGS = synthetic(USERS, ITEMS, 60)
FOURTH = np.packbits(np.arange(USERS) == 3).tobytes()
CHANGED, EARLIER = RefusalCode.CHANGED_REQUEST, RefusalCode.ROUND_ANSWERED
MALFORMED = RefusalCode.MALFORMED_REQUEST


@pytest.fixture
def server(tmp_path: Path) -> Server:
    install(tmp_path, RATINGS)
    return Server(tmp_path)


def test_a_round_is_answered_for_one_broadcast_only(server: Server) -> None:
    first = server.gradients(1, whole(1))
    assert isinstance(first, list)
    assert len(first) == USERS
    for payload in (whole(1), encode_broadcast(factors(1), factors(1))):
        assert server.gradients(1, payload) == first
    assert server.gradients(1, whole(1), asked=FOURTH) == [first[3]]
    # Settings in a request change nothing.
    assert server.gradients(1, whole(1), epsilon=1e9, epsilon_per_round=1e9, rounds=10**6, seed=0) == first
    assert server.gradients(1, whole(2)) == CHANGED
    # Not even a user who was not asked the first time: its node answers a round for one broadcast.
    assert server.gradients(2, whole(1), asked=FOURTH) != first
    assert server.gradients(2, whole(2)) == CHANGED
    assert server.gradients(1, whole(1)) == EARLIER


@pytest.mark.parametrize("round_index", [0, ROUNDS + 1, 2**40, True, 1.0, "1", b"1"])
def test_rounds_that_the_budget_was_not_divided_by_are_refused(server: Server, round_index: Any) -> None:
    assert isinstance(server.gradients(round_index, whole(1)), int)
    assert isinstance(server.gradients(1, whole(1)), list)


def test_a_run_goes_by_one_name_and_has_a_memory_of_its_own(server: Server) -> None:
    first = server.gradients(2, whole(1))
    for alias in ("./run-a", "run-b/../run-a", "run-a/", "../run-a", "", ".", ".."):
        assert isinstance(server.gradients(2, whole(2), run=alias), int)
    assert isinstance(server.gradients(1, whole(2), run=RUNS[1]), list)
    assert server.gradients(2, whole(1)) == first
    # What one run broadcast last is no base for the changes of the other.
    assert server.gradients(2, encode_broadcast(factors(1), factors(1)), run=RUNS[1]) == MALFORMED


def test_other_questions_bring_no_reports(server: Server) -> None:
    assert isinstance(server.gradients(1, whole(1)), list)
    for kind, answer in (
        ("query.deliver", []),
        ("query.report", RefusalCode.NOT_SET_UP),
        ("evaluate", MALFORMED),
    ):
        assert server.told(kind, RUNS[0], round=1, factors=whole(1)) == answer
    # A delivery is no round.
    assert isinstance(server.gradients(2, whole(2)), list)


@pytest.mark.parametrize("kind", ["train", "query.deliver"])
def test_malformed_factors_are_refused_and_change_nothing(server: Server, kind: str) -> None:
    good, hostile = whole(1), factors(1).copy()
    hostile[0, 0] = np.nan
    for payload in (b"", good[:-1], good + b"\0", b"\x02" + good[1:], encode_broadcast(hostile)):
        assert server.told(kind, RUNS[0], round=1, factors=payload) == MALFORMED
    assert isinstance(server.gradients(1, good), list)


def test_who_fails_at_hostile_factors_does_not_depend_on_the_ratings(tmp_path: Path) -> None:
    """Two equal factors of 1e30 make the system of those who rated the item singular."""
    payload = factors(1).copy()
    payload[3] = 1e30
    for name, held in (("with", RATINGS), ("without", RATINGS.select(RATINGS.items != 3))):
        install(tmp_path / name, held)
        reports = Server(tmp_path / name).gradients(1, encode_broadcast(payload))
        assert isinstance(reports, list)
        assert len({len(report) for report in reports}) == 1


def test_devices_of_a_resumed_run_remember(tmp_path: Path, server: Server) -> None:
    before = server.gradients(2, whole(1))
    other = tmp_path / "resumed"
    install(other, RATINGS)
    write_held_question(other / RUNS[0], HeldQuestion(2, whole(1), factors(1).tobytes()))
    resumed = Server(other)
    assert resumed.gradients(1, whole(1)) == EARLIER
    assert resumed.gradients(2, whole(2)) == CHANGED
    assert resumed.gradients(2, whole(1)) == before
    assert isinstance(resumed.gradients(3, encode_broadcast(factors(1), factors(1))), list)


def test_answers_have_the_odds_of_a_rounds_share_and_are_drawn_anew_in_every_round(tmp_path: Path) -> None:
    """Eight exact binomial tests at 1e-7 each; the seed is fixed.

    Every coordinate of those who gave 5 to every item is far below -1, and 0 of those who rated nothing.
    """
    each = 3_000
    install(tmp_path, RATINGS)
    population = open_population(str(tmp_path / RUNS[0]))
    people = rated(np.tile(np.arange(2 * each)[:, None] < each, ITEMS), 5.0, population.scale)
    folder = tmp_path / "many"
    population = replace(population, ratings=ShardedRatings(folder, write_shards(folder, people)))
    broadcast = encode_broadcast(DOWNLINK.rounded(np.full((ITEMS, RANK), 0.1)))
    context = Context(1, 1, {}, RecordDict(), {})
    yes = []
    for round_index in (1, 2):
        request = GradientRequest(round_index, broadcast)
        reports = answers(Partition(population, 0, 2 * each), request, context).reports()
        said = OneBitGradient().answers(reports, (ITEMS, RANK), 1.0)
        coordinates = said.coordinates
        yes.append(said.answers > 0)
    for own, share in ((slice(0, each), 1 / (1 + math.exp(0.4))), (slice(each, None), 0.5)):
        for said_yes, expected in (
            (yes[0], share),
            (yes[1], share),
            (yes[0] & yes[1], share**2),
            (yes[1] & (coordinates < ITEMS * RANK // 2), share / 2),
        ):
            assert binomtest(int(said_yes[own].sum()), each, expected).pvalue > 1e-7
