"""Tracking for TensorBoard: event files in the run directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from simulation.tracking.trackers import Scalar, required

FOLDER = "tensorboard"


class TensorboardTracker:
    """Writes figures as scalars, whose step is the round, and settings as a text.

    Parameters
    ----------
    name : str
        Of the run.
    directory : Path
        Events go to its folder tensorboard/.

    Raises
    ------
    InputError
        When tensorboardX, which writes the files, is not installed.
    """

    def __init__(self, name: str, directory: Path) -> None:
        writers = required("tensorboard")
        self._writer = writers.SummaryWriter(str(directory / FOLDER / name))

    def settings(self, values: Mapping[str, Scalar]) -> None:
        """Write the settings, a line for each."""
        text = "\n".join(f"    {key}: {value}" for key, value in values.items())
        self._writer.add_text("settings", text)

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        """Write scalars; those of the whole run under final/."""
        for figure, value in values.items():
            if round_index is None:
                self._writer.add_scalar(f"final/{figure}", value)
            else:
                self._writer.add_scalar(f"rounds/{figure}", value, round_index)
        self._writer.flush()

    def close(self, failure: str | None) -> None:
        """Close the file."""
        self._writer.close()
