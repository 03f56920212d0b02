"""The result of a run as Python sees it: plain mappings and columns, which can draw themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dprec.privacy.device_channel import DeviceChannel
    from dprec.privacy.ledger import PrivacyLedger
    from simulation.configuration.models import RunConfig
    from simulation.storage.run_record import RunRecord
    from simulation.storage.tables import Columns


@dataclass(frozen=True, eq=False)
class RunResult:
    """What a run produced.

    Parameters
    ----------
    record : RunRecord
        The same, typed.
    """

    record: RunRecord

    @property
    def config(self) -> RunConfig:
        """What was run."""
        return self.record.config

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The contents of summary.json."""
        return self.record.summary.as_json()

    @property
    def predictions(self) -> Columns:
        """The columns of predictions.csv."""
        return self.record.predictions

    @property
    def traffic(self) -> Columns:
        """The columns of traffic.csv; NaN and infinities are numbers that do not apply."""
        return self.record.traffic

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        """The lines of rounds.jsonl."""
        from simulation.storage.round_lines import line_of

        return [line_of(record) for record in self.record.rounds]

    @property
    def channel(self) -> DeviceChannel | None:
        """What the devices applied to their ratings, where that is a channel that adds noise."""
        return self.record.channel

    @property
    def privacy(self) -> PrivacyLedger:
        """Every charge to a user's privacy, round by round."""
        return self.record.privacy

    def plot(self) -> Figure:
        """Draw the run's three answers: how accurate, how private, how many bytes per user.

        Returns
        -------
        matplotlib.figure.Figure
            Of its own, outside pyplot; `savefig` writes it.
        """
        from simulation.pages import plot  # matplotlib is loaded only where something is drawn

        return plot(self.record)
