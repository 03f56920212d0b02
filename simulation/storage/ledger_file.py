"""ledger.npz: every event of a run's privacy accountant, round by round."""

from __future__ import annotations

from pathlib import Path

from dprec.accounting import PrivacyAccountant
from dprec.errors import InputError
from simulation.storage.directories import LEDGER
from simulation.storage.files import read_archive, write_archive
from simulation.storage.summary import FileSummary

_ACCEPTED = "the privacy ledger that `dprec run` wrote"


def write_ledger(directory: Path, accountant: PrivacyAccountant) -> FileSummary:
    """Write ledger.npz: the accountant's history, which determines its sums."""
    return write_archive(directory / LEDGER, accountant.to_arrays())


def read_ledger(directory: Path) -> PrivacyAccountant:
    """Read ledger.npz.

    Raises
    ------
    InputError
        When the file cannot be read or holds no ledger.
    """
    path = directory / LEDGER
    arrays = read_archive(path, _ACCEPTED)
    try:
        return PrivacyAccountant.from_arrays(arrays)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(str(path), str(error), _ACCEPTED) from None
