"""Devices of federated models, asked by a server that keeps to no protocol."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.population import Brought, HeldQuestion, write_held_question
from dprec.exchange import RefusalCode
from dprec.federated import AdaptiveClip
from dprec.protocols.federated import FederatedProtocol
from tests.builders import OneNode, populated
from tests.faulty_models import Personal
from tests.make import synthetic, user_budget

USERS, ITEMS, ROUNDS = 5, 8, 3
CHANGED, EARLIER = RefusalCode.CHANGED_REQUEST, RefusalCode.ROUND_ANSWERED
MALFORMED, TOO_MANY = RefusalCode.MALFORMED_REQUEST, RefusalCode.TOO_MANY_ROUNDS
SOME = np.packbits(np.arange(USERS) == 3).tobytes()


def sent(seed: int, clip: float = 1.0) -> bytes:
    parameters = np.random.default_rng(seed).random(ITEMS)
    return np.append(parameters, clip).astype("<f4").tobytes()


class Server(OneNode):
    """Asks for updates."""

    def updates(self, round_index: int, payload: bytes, **more: Any) -> list[bytes] | int:
        return self.told("train.update", round=round_index, factors=payload, **more)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    protocol = FederatedProtocol(
        model=Personal(), rounds=ROUNDS, trust="local", adaptive_clip=AdaptiveClip(), privacy=user_budget()
    )
    populated(tmp_path / "run", synthetic(USERS, ITEMS, 20), protocol, individual_reports=True)
    return Server(tmp_path, {"run": Brought.for_protocol(protocol)})


def test_who_is_asked_again_repeats_what_it_sent_from_what_it_kept_then(server: Server) -> None:
    first = server.updates(1, sent(1))
    assert isinstance(first, list)
    assert len(set(first)) == USERS
    second = server.updates(2, sent(2))
    assert isinstance(second, list)
    for _ in range(2):
        assert server.updates(2, sent(2)) == second
        assert server.updates(2, sent(2), asked=SOME) == [second[3]]
    # What was kept is what one answer leaves, however often it was given.
    assert server.updates(3, sent(3)) != second


def test_a_round_is_answered_for_one_question_and_one_clip(server: Server) -> None:
    assert isinstance(server.updates(2, sent(1)), list)
    assert server.updates(2, sent(2)) == CHANGED
    assert server.updates(2, sent(1, clip=2.0)) == CHANGED
    assert server.updates(2, sent(2), asked=SOME) == CHANGED
    assert server.updates(1, sent(1)) == EARLIER
    assert server.updates(ROUNDS + 1, sent(1)) == TOO_MANY


@pytest.mark.parametrize("clip", [0.0, -1.0, 1e-12, 1e12, np.inf, np.nan])
def test_a_clip_that_no_server_sends_is_refused(server: Server, clip: float) -> None:
    assert server.updates(1, sent(1, clip)) == MALFORMED
    assert isinstance(server.updates(1, sent(1)), list)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_parameters_that_are_not_finite_are_refused(server: Server, number: float) -> None:
    broken = np.frombuffer(sent(1), dtype="<f4").copy()
    broken[2] = number
    for payload in (broken.tobytes(), sent(1)[:-4], sent(1) + bytes(4), b""):
        assert server.updates(1, payload) == MALFORMED


def test_after_an_interruption_no_round_is_answered_from_what_it_left(server: Server, tmp_path: Path) -> None:
    """What was kept before the answer is not known any more: another answer would have the same noise."""
    held = HeldQuestion(1, sent(1), sent(1), (np.full((USERS, 1), 2.0),))
    write_held_question(tmp_path / "run", held)
    assert server.updates(1, sent(1)) == EARLIER
    assert isinstance(server.updates(2, sent(2)), list)


@pytest.mark.parametrize(("rounds", "said"), [(1, "1 round"), (2, "2 rounds")])
def test_a_promise_of_one_round_says_so(rounds: int, said: str) -> None:
    protocol = FederatedProtocol(model=Personal(), rounds=rounds, trust="local", privacy=user_budget())
    assert f"of a user in {said}, which" in protocol.guarantee((USERS, ITEMS)).notes[0]
