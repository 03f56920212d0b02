"""Checkpoints of iterative runs: the whole state in one file, which is never written in part."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError
from dprec.privacy.ledger import PrivacyLedger
from dprec.privacy.ledger_arrays import ledger_arrays, ledger_from_arrays
from simulation.storage.files import write_atomically
from strategies.round_record import RoundRecord

if TYPE_CHECKING:
    from strategies.iterative import State

CHECKPOINT = "checkpoint.npz"

_TRAFFIC = (
    *("uplink_payload", "uplink_message", "downlink_payload", "downlink_message"),
    *("messages", "requests", "uplink_objects", "downlink_objects"),
)
_LEDGER = "privacy_"
"""Prefix of the names of the privacy ledger's arrays."""

_VALUES = "values"
"""Name of the array that holds, as JSON, whatever is not an array."""

_DIGEST_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Checkpoints:
    """Where the state of a run is kept between rounds."""

    path: Path
    """The file: a NumPy archive, followed by its SHA-256."""
    depends: dict[str, Any]
    """What the run depends on, by dotted key; a checkpoint is refused if any of it differs."""

    def save(self, state: State) -> None:
        """Write the state after a round."""
        ledger = {f"{_LEDGER}{name}": array for name, array in ledger_arrays(state.privacy).items()}
        arrays = {**self._places(state), **ledger}
        if state.broadcast is not None:
            arrays["broadcast"] = state.broadcast
        records = [vars(record) for record in state.records]
        best = {"best_error": state.best_error, "best_round": state.best_round}
        values = {"depends": self.depends, "records": records, **best}
        arrays[_VALUES] = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        archive = buffer.getvalue()
        write_atomically(self.path, archive + hashlib.sha256(archive).digest())

    def load(self, fresh: State) -> State:
        """Return the state to continue from: the fresh one if no round has ended.

        Parameters
        ----------
        fresh : State
            The state before the first round; the checkpoint must have the same shapes.

        Raises
        ------
        InputError
            When the file is truncated, damaged or from another run; the error names what differs.
        """
        if not self.path.exists():
            return fresh
        arrays = self._read()
        values = json.loads(arrays.pop(_VALUES).tobytes())
        for key in sorted({**values["depends"], **self.depends}):
            before, now = values["depends"].get(key), self.depends.get(key)
            if before != now:
                differing = f"{before!r} there and {now!r} now"
                raise InputError(f"{self.path}: {key}", differing, "the configuration and data it began with")
        for name, place in self._places(fresh).items():
            if name not in arrays:
                accepted = "a checkpoint of this version; delete it to start over"
                raise InputError(f"{self.path}: {name}", "missing", accepted)
            array = arrays[name]
            if array.shape != place.shape or array.dtype != place.dtype:
                shape = f"{array.dtype} of shape {array.shape}"
                raise InputError(f"{self.path}: {name}", shape, f"{place.dtype} of shape {place.shape}")
            place[...] = array
        fresh.privacy = self._ledger(arrays)
        fresh.broadcast = arrays.get("broadcast")
        fresh.records = [RoundRecord(**record) for record in values["records"]]
        fresh.best_error, fresh.best_round = values["best_error"], values["best_round"]
        return fresh

    def _read(self) -> dict[str, NDArray[Any]]:
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise InputError(str(self.path), f"cannot be read ({error.strerror})", "a checkpoint") from None
        archive, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        if hashlib.sha256(archive).digest() != digest:
            raise InputError(
                str(self.path), "truncated or damaged", "a whole checkpoint; delete it to start over"
            )
        with np.load(io.BytesIO(archive), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    def _ledger(self, arrays: dict[str, NDArray[Any]]) -> PrivacyLedger:
        try:
            return ledger_from_arrays(
                {key.removeprefix(_LEDGER): array for key, array in arrays.items() if key.startswith(_LEDGER)}
            )
        except (KeyError, IndexError, TypeError, ValueError) as error:
            accepted = "a checkpoint of this version; delete it to start over"
            raise InputError(f"{self.path}: privacy ledger", str(error), accepted) from None

    def _places(self, state: State) -> dict[str, NDArray[Any]]:
        return {
            "factors": state.factors,
            "velocity": state.velocity,
            "best_factors": state.best_factors,
            "holders": state.holders,
            **{f"traffic_{name}": getattr(state.traffic, name) for name in _TRAFFIC},
        }
