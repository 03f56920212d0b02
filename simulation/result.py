"""The result of a run for use from Python: plain mappings, columns, data frames and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from dprec.data_frames import data_frame
from dprec.errors import InputError
from simulation.configuration.strict_yaml import flatten

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dprec.accounting import PrivacyAccountant
    from dprec.reports import DeviceChannel
    from simulation.configuration.models import RunConfig
    from simulation.storage.files import Columns
    from simulation.storage.run_files import RunRecord


@dataclass(frozen=True, eq=False, repr=False)
class RunResult:
    """What a run produced."""

    record: RunRecord
    """The result in typed form."""
    config: RunConfig
    """The configuration that was run."""

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The contents of summary.json."""
        return self.record.summary.as_json()

    @cached_property
    def predictions(self) -> Columns:
        """The columns of predictions.csv.gz."""
        from simulation.storage.files import whole

        return whole(self.record.predictions)

    @property
    def lists(self) -> Columns | None:
        """The columns of lists.csv.gz; None unless `evaluation.lists` asks for them."""
        return self.record.lists

    @property
    def traffic(self) -> Columns:
        """The columns of traffic.csv; a number that does not apply is NaN or infinite."""
        return self.record.traffic

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        """The lines of rounds.jsonl."""
        from simulation.storage.run_files import line_of

        return [line_of(record) for record in self.record.rounds]

    @property
    def channel(self) -> DeviceChannel | None:
        """The channel that the devices applied to their ratings; None if it adds no noise."""
        return self.record.channel

    @property
    def privacy(self) -> PrivacyAccountant:
        """What was released about users and what they lost, round by round."""
        return self.record.privacy

    def to_pandas(
        self, table: Literal["predictions", "lists", "traffic", "rounds"] = "predictions"
    ) -> pd.DataFrame:
        """Return a table of the run as a data frame.

        Parameters
        ----------
        table : {"predictions", "lists", "traffic", "rounds"}
            A line per test rating, per item of a list, per user or per round.

        Raises
        ------
        ModuleNotFoundError
            When pandas is not installed.
        InputError
            When there is no such table.
        """
        tables: dict[str, Any] = {
            "predictions": self.predictions,
            "traffic": self.traffic,
            "rounds": [flatten(line) for line in self.rounds],
            **({} if self.lists is None else {"lists": self.lists}),
        }
        if table not in tables:
            without = "" if self.lists is not None else "; lists with evaluation.lists"
            raise InputError("table", repr(table), ", ".join(tables) + without)
        return data_frame(tables[table], "the result's predictions, traffic and rounds")

    def __repr__(self) -> str:
        from simulation.analysis.columns import run_lines

        return run_lines(self.summary)

    def _repr_html_(self) -> str:
        from simulation.pages import run_html

        return run_html(self.summary)

    def plot(self) -> Figure:
        """Draw the run's three answers: how accurate, how private, how many bytes per user.

        Returns
        -------
        matplotlib.figure.Figure
            Independent of pyplot; `savefig` writes it.
        """
        from simulation.pages import plot  # matplotlib is loaded only when something is drawn

        return plot(self.record)
