"""channel.npz: the exact channel that the devices of a run used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.errors import InputError
from dprec.randomness import DRAW_BITS, DRAWS
from dprec.reports import DeviceChannel
from simulation.storage.directories import CHANNEL
from simulation.storage.files import read_archive, write_archive
from simulation.storage.summary import FileSummary

_ACCEPTED = "the channel that `dprec run` wrote"


def write_channel(directory: Path, device: DeviceChannel) -> FileSummary:
    """Write channel.npz: the arrays of the channel, and what it is calibrated to."""
    channel = device.channel
    arrays = {
        "weights": channel.weights,
        "inputs": channel.inputs,
        "values": channel.values,
        "cells": np.array(device.cells, dtype=np.int64),
        "per_user": np.array(device.per_user),
    }
    return write_archive(directory / CHANNEL, arrays)


def read_channel(directory: Path) -> DeviceChannel:
    """Read channel.npz.

    Raises
    ------
    InputError
        When the file cannot be read or holds no channel.
    """
    path = directory / CHANNEL
    arrays = _arrays(path)
    weights, inputs, values = arrays["weights"], arrays["inputs"], arrays["values"]
    cells = int(arrays["cells"])
    if weights.shape != (inputs.size, values.size) or inputs.size < 2 or values.size < 1:
        raise InputError(f"{path}: weights", f"shape {weights.shape}", f"({inputs.size}, {values.size})")
    ratings = inputs[1:] if np.isnan(inputs[0]) else inputs
    if not (np.isfinite(ratings).all() and (np.diff(ratings) > 0).all()):
        raise InputError(
            f"{path}: inputs", str(inputs.tolist()), "ascending ratings, after NaN for not rated"
        )
    if np.isinf(values).any():
        raise InputError(f"{path}: values", "an infinite value", "numbers, or NaN for not rated")
    # Each weight is checked on its own first, so that the sum of a row cannot overflow unnoticed.
    total = np.uint64(DRAWS)
    if (weights > total).any() or (weights.astype(object).sum(axis=1) != int(total)).any():
        raise InputError(f"{path}: weights", "a row with another sum", f"rows that sum to 2**{DRAW_BITS}")
    if cells < 1:
        raise InputError(f"{path}: cells", str(cells), "at least 1")
    return DeviceChannel(Channel(weights, inputs, values), cells, bool(arrays["per_user"]))


_STORED = {
    "weights": (np.dtype(np.uint64), 2),
    "inputs": (np.dtype(np.float64), 1),
    "values": (np.dtype(np.float64), 1),
    "cells": (np.dtype(np.int64), 0),
    "per_user": (np.dtype(np.bool_), 0),
}
"""Type and number of dimensions of every array of the file."""


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    arrays = read_archive(path, _ACCEPTED)
    for name, (dtype, dimensions) in _STORED.items():
        array = arrays.get(name)
        if array is None or array.dtype != dtype or array.ndim != dimensions:
            stored = "nothing" if array is None else f"{array.dtype} in {array.ndim} dimensions"
            raise InputError(f"{path}: {name}", stored, f"{dtype} in {dimensions} dimensions")
    return arrays
