"""What a tracker does, and how one that is not installed is refused."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Mapping
from typing import Any

from dprec.errors import InputError

Scalar = bool | int | float | str


class Tracker(typing.Protocol):
    """Keeps the figures of one run, in the order in which they come."""

    def settings(self, values: Mapping[str, Scalar]) -> None:
        """Keep the settings of the run, by dotted key; called once, first."""

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        """Keep figures of a round, counted from 1, or with None those of the whole run, at its end."""

    def close(self, failure: str | None) -> None:
        """End the record, and say why if the run failed."""


PACKAGES = {
    "mlflow": ("mlflow", "MLflow"),
    "tensorboard": ("tensorboardX", "tensorboardX"),
    "wandb": ("wandb", "wandb"),
}
"""The module that a tracker needs, and the package that holds it, by the extra of dprec that installs it."""


def required(extra: str) -> Any:
    """Import the module of a tracker.

    Parameters
    ----------
    extra : str
        The extra of dprec that installs it, and the name of the tracker.

    Raises
    ------
    InputError
    """
    module, package = PACKAGES[extra]
    try:
        return importlib.import_module(module)
    except ImportError:
        accepted = f"csv, which needs nothing, or: pip install 'dprec[{extra}]'"
        raise InputError("track", f"{extra}, but {package} is not installed", accepted) from None
