"""Training rounds as Flower strategies; a caller can also run the rounds one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from strategies.round_record import RoundRecord


class TrainingRounds(Strategy):
    """A Flower `Strategy` that evaluates nothing on the devices.

    `start()` runs it like any other; `run_round` runs one round, for a caller that checkpoints,
    evaluates or stops early.
    """

    @property
    @abstractmethod
    def records(self) -> list[RoundRecord]:
        """One per finished round."""

    @property
    @abstractmethod
    def arrays(self) -> ArrayRecord:
        """What the next round starts from, as `start` passes it from round to round."""

    def run_round(self, grid: Grid) -> RoundRecord:
        """Run the next round: ask, read, account, step."""
        server_round = len(self.records) + 1
        requests = self.configure_train(server_round, self.arrays, ConfigRecord(), grid)
        self.aggregate_train(server_round, grid.send_and_receive(requests))
        return self.records[-1]

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask nobody: devices evaluate nothing that they could send."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return nothing; see `configure_evaluate`."""
        return None


class OwnModelRounds(TrainingRounds):
    """Rounds whose model stays with the strategy: there are no arrays, and devices are sent bytes of it."""

    _records: list[RoundRecord]

    @property
    def records(self) -> list[RoundRecord]:
        """One per finished round."""
        return self._records

    @property
    def arrays(self) -> ArrayRecord:
        """None."""
        return ArrayRecord()

    def refuse_arrays(self, arrays: ArrayRecord) -> None:
        """Check that there are no arrays to start from.

        Raises
        ------
        ValueError
            When there are.
        """
        if len(arrays):
            raise ValueError(f"{len(arrays)} arrays given, but the strategy starts from its own model")
