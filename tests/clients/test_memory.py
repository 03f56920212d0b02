"""A round is answered once, whatever is asked and in whatever order."""

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from clients.memory import Memory
from clients.population import HeldFactors
from dprec.wire import BroadcastOptions

ROUNDS = 4
OPTIONS = BroadcastOptions(delta=True)
FACTORS = np.arange(6, dtype="<f4").reshape(3, 2)


@pytest.fixture
def context() -> Context:
    return Context(1, 1, {}, RecordDict(), {})


def test_the_same_broadcast_is_answered_again(context: Context) -> None:
    for _ in range(3):
        Memory(context, "run", ROUNDS).answer_once(1, b"broadcast")


LONG = bytes(range(256)) * 40
"""As long as item factors are."""


@pytest.mark.parametrize(
    ("broadcast", "other"),
    [
        (b"broadcast", b"other"),
        (b"broadcast", b""),
        (b"broadcast", b"broadcast "),
        *((LONG, LONG[:at] + b"\xaa" + LONG[at + 1 :]) for at in (0, 15, 16, 64, 5000, len(LONG) - 1)),
        (LONG, LONG[:-1]),
        (LONG, LONG + LONG),
    ],
)
def test_another_broadcast_for_the_same_round_is_refused(
    context: Context, broadcast: bytes, other: bytes
) -> None:
    memory = Memory(context, "run", ROUNDS)
    memory.answer_once(2, broadcast)
    with pytest.raises(ValueError, match="asked for round 2 again, after round 2 was answered"):
        memory.answer_once(2, other)
    # The refusal has changed nothing.
    memory.answer_once(2, broadcast)


def test_an_earlier_round_is_refused_even_for_the_same_broadcast(context: Context) -> None:
    memory = Memory(context, "run", ROUNDS)
    memory.answer_once(1, b"broadcast")
    memory.answer_once(3, b"broadcast")
    for earlier in (1, 2):
        with pytest.raises(ValueError, match=f"asked for round {earlier} again, after round 3"):
            memory.answer_once(earlier, b"broadcast")
    memory.answer_once(4, b"other")


@pytest.mark.parametrize("round_index", [0, -1, ROUNDS + 1, 2**40])
def test_no_round_beyond_those_that_the_budget_was_divided_by(context: Context, round_index: int) -> None:
    memory = Memory(context, "run", ROUNDS)
    with pytest.raises(ValueError, match=f"asked for round {round_index} of {ROUNDS}"):
        memory.answer_once(round_index, b"broadcast")
    memory.answer_once(1, b"other")


def test_another_run_has_a_memory_of_its_own(context: Context) -> None:
    first, second = Memory(context, "first", ROUNDS), Memory(context, "second", ROUNDS)
    first.answer_once(3, b"broadcast")
    second.answer_once(1, b"other")
    with pytest.raises(ValueError, match="round 1 again, after round 3"):
        first.answer_once(1, b"other")
    first.hold(FACTORS)
    assert second.held(OPTIONS, FACTORS.shape) is None


def test_factors_are_held_until_others_come(context: Context) -> None:
    memory = Memory(context, "run", ROUNDS)
    assert memory.held(OPTIONS, FACTORS.shape) is None
    for factors in (FACTORS, FACTORS + 1):
        memory.hold(factors)
        held = memory.held(OPTIONS, FACTORS.shape)
        assert held is not None
        assert held.tolist() == factors.tolist()


def test_a_resumed_run_is_remembered(context: Context) -> None:
    memory = Memory(context, "run", ROUNDS, HeldFactors(2, FACTORS))
    held = memory.held(OPTIONS, FACTORS.shape)
    assert held is not None
    assert held.tolist() == FACTORS.tolist()
    with pytest.raises(ValueError, match="round 1 again, after round 2"):
        memory.answer_once(1, FACTORS.tobytes())
    with pytest.raises(ValueError, match="round 2 again, after round 2"):
        memory.answer_once(2, (FACTORS + 1).tobytes())
    memory.answer_once(2, FACTORS.tobytes())
    memory.answer_once(3, b"other")
    memory.hold(FACTORS + 1)
    held = memory.held(OPTIONS, FACTORS.shape)
    assert held is not None
    assert held.tolist() == (FACTORS + 1).tolist()
