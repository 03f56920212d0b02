"""What a device remembers of a run: the last round it answered, and the item factors it holds.

A device answers each round for one broadcast only, and never a round before the last one it answered. It
draws the same random numbers whenever it computes the report of a round, so when asked again with the
same broadcast it repeats what it sent; with another broadcast, the two answers together would reveal more
than the round's share of the budget. Nor does it answer more rounds than its budget was divided by.

The memory is kept in Flower's context, separately for each run: several runs may share a node, and each
has its own budget. A node that loses its context must not take part in the same run again. In a
simulation, a node remembers for all users of its partition what each of them would remember.
"""

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np
from flwr.app import ConfigRecord, Context

from clients.population import HeldQuestion, Population
from dprec.arrays import AnyArray
from dprec.exchange import Refusal, RefusalCode, Told

_HELD = "held-factors"


@dataclass(frozen=True)
class Memory:
    """The memory of a node for one run."""

    context: Context
    """Of the node; its state is read and written."""
    run: str
    """Run key."""
    rounds: int
    """Rounds that the budget was divided by."""
    resumed: HeldQuestion | None = None
    """The memory from before the run was interrupted."""

    @classmethod
    def of(cls, population: Population, rounds: int, context: Context) -> Self:
        """Return the memory of a node for the run of a population."""
        return cls(context, population.key, rounds, population.held)

    def answer_once(self, round_index: int, broadcast: bytes) -> None:
        """Record that a round is answered for a broadcast: all that the answer depends on but the protocol.

        Raises Refusal when the budget was divided by fewer rounds, the round has been answered for another
        broadcast, or a later one has been answered.
        """
        self.check_round(round_index)
        last, last_digest = self.last_answer()
        digest = hashlib.sha256(broadcast).digest()
        if round_index < last or (round_index == last and digest != last_digest):
            code = RefusalCode.ROUND_ANSWERED if round_index < last else RefusalCode.CHANGED_REQUEST
            raise Refusal(code, f"asked for round {round_index} again, after round {last} was answered")
        self.context.state[self._answers] = ConfigRecord({"round": round_index, "broadcast": digest})

    def check_round(self, round_index: int) -> None:
        """Raise Refusal for a round that the budget was not divided by."""
        if not 1 <= round_index <= self.rounds:
            code = RefusalCode.TOO_MANY_ROUNDS if round_index > 0 else RefusalCode.MALFORMED_REQUEST
            raise Refusal(code, f"asked for round {round_index} of {self.rounds}")

    def hold(self, sent: bytes) -> None:
        """Keep what was sent, whole, of which later broadcasts may contain only the changes."""
        # For one run at a time: factors are large, and a node's context should stay small.
        self.context.state[_HELD] = ConfigRecord({"run": self.run, "factors": sent})

    def held(self) -> bytes | None:
        """Return the bytes of what the node holds, or None if it holds nothing of this run."""
        record = self.context.state.get(_HELD)
        if isinstance(record, ConfigRecord) and record["run"] == self.run:
            factors = record["factors"]
            assert isinstance(factors, bytes)
            return factors
        return self.resumed.sent if self.resumed is not None else None

    def keep(self, told: Told, before: tuple[AnyArray, ...]) -> None:
        """Keep what devices keep after a round, and kept before it."""
        self.context.state[f"told-{self.run}"] = ConfigRecord(told.entries())
        nothing = np.zeros(0)
        earlier = Told(told.round_index, before, nothing, nothing)
        self.context.state[f"before-{self.run}"] = ConfigRecord(earlier.entries())

    def told(self, *, before: bool = False) -> Told | None:
        """Return what devices keep and computed last, or kept ``before`` it; None if they have not."""
        record = self.context.state.get(f"{'before' if before else 'told'}-{self.run}")
        return Told.of(record) if isinstance(record, ConfigRecord) else None

    def kept(self, users: slice, *, again: bool) -> tuple[AnyArray, ...] | None:
        """Return what some users keep, or kept before their last answer; None before the first.

        Raises Refusal where an interruption has left only what they kept after it.
        """
        if (told := self.told(before=again)) is not None:
            return told.kept
        if self.resumed is None or self.resumed.kept is None:
            return None
        if again:
            reason = f"asked for round {self.resumed.round_index} again, of a run that goes on after it"
            raise Refusal(RefusalCode.ROUND_ANSWERED, reason)
        return tuple(array[users] for array in self.resumed.kept)

    @property
    def _answers(self) -> str:
        return f"answered-{self.run}"

    def last_answer(self) -> tuple[int, object]:
        """Return the last round answered, 0 if there is none, and the digest of its broadcast."""
        record = self.context.state.get(self._answers)
        if isinstance(record, ConfigRecord):
            last = record["round"]
            assert isinstance(last, int)
            return last, record["broadcast"]
        if self.resumed is not None:
            return self.resumed.round_index, hashlib.sha256(self.resumed.question).digest()
        return 0, b""
