"""The result of a run as Python sees it: its record, which can draw itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulation.storage.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class RunResult(RunRecord):
    """What a run produced; see `RunRecord` for its parts."""

    def plot(self) -> Figure:
        """Draw the run's three answers: how accurate, how private, how many bytes per user.

        Returns
        -------
        matplotlib.figure.Figure
            Of its own, outside pyplot; `savefig` writes it.
        """
        from simulation.pages import plot  # matplotlib is loaded only where something is drawn

        return plot(self)
