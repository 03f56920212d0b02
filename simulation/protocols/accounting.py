"""What every protocol accounts for in the same way: the losses that a mechanism costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.ledger import PrivacyLedger


def mechanism_ledger(
    calibrated: CalibratedMechanism, counts: NDArray[np.int64], sent: NDArray[np.bool_]
) -> PrivacyLedger:
    """Charge one round to everybody whose report arrived, whether or not it could be used.

    Parameters
    ----------
    calibrated : CalibratedMechanism
        What was applied to the reports.
    counts : ndarray of int64, shape (users,)
        Ratings of each user.
    sent : ndarray of bool, shape (users,)
        Whose report arrived.
    """
    ledger = PrivacyLedger(rated=calibrated.cells(counts) > 0)
    ledger.charge(1, sent, *calibrated.losses(counts))
    return ledger
