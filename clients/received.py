"""What devices receive for their predictions."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dprec.personalization import OrdinalProcess


class Received(Protocol):
    """What the devices of a cohort have received, from which they predict."""

    def predictions(self, process: OrdinalProcess) -> NDArray[np.float64]:
        """Predict every item of the catalogue, shape (users, items); NaN for items that nothing is known of.

        Parameters
        ----------
        process : OrdinalProcess
            What devices assume about tastes, if it is they who have to.
        """
