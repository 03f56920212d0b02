"""ledger.npz: every charge to the privacy of a run's users, round by round."""

from __future__ import annotations

from pathlib import Path

from dprec.errors import InputError
from dprec.privacy.ledger import PrivacyLedger
from dprec.privacy.ledger_arrays import ledger_arrays, ledger_from_arrays
from simulation.storage.directories import LEDGER
from simulation.storage.files import read_archive, write_archive
from simulation.storage.summary import FileSummary

_ACCEPTED = "the privacy ledger that `dprec run` wrote"


def write_ledger(directory: Path, ledger: PrivacyLedger) -> FileSummary:
    """Write ledger.npz: the ledger's history, which determines its sums."""
    return write_archive(directory / LEDGER, ledger_arrays(ledger))


def read_ledger(directory: Path) -> PrivacyLedger:
    """Read ledger.npz.

    Raises
    ------
    InputError
        When the file cannot be read or holds no ledger.
    """
    path = directory / LEDGER
    arrays = read_archive(path, _ACCEPTED)
    try:
        return ledger_from_arrays(arrays)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(str(path), str(error), _ACCEPTED) from None
