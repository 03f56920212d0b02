"""The privacy blanket: what hides a report among others that went through the same channel.

Whatever its user rated, a report has the symbol z with a probability of at least w(z) = min over x of
Q[x, z]. So it is drawn from the blanket, in proportion to w and without regard to the rating, with
probability gamma, the sum of w (Balle, Bell, Gascon and Nissim [balle2019]). Of all ways to divide reports
into parts that hide and parts that do not, this one gives the least bound (Su, Cheng and Wang [su2025]).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from dprec.accounting.expected_excess import expected_excess
from dprec.channel import Channel

_MARGIN = 1 + 1e-8
"""Factor that covers what rounding does to probabilities and gains before they are summed."""

_DIGITS = 12
"""Decimals of the logarithms in which pairs of rows are compared: more would be noise of the weights."""


@dataclass(frozen=True, eq=False)
class PrivacyBlanket:
    """The blanket of a channel."""

    channel: Channel
    """With a finite epsilon."""

    @cached_property
    def masses(self) -> NDArray[np.float64]:
        """Probability w of every symbol that occurs, whatever was rated, shape (symbols,)."""
        return np.asarray(self._rows.min(axis=0))

    @property
    def share(self) -> float:
        """Probability gamma that a report says nothing of its rating."""
        return float(self.masses.sum())

    @cached_property
    def _rows(self) -> NDArray[np.float64]:
        return self.channel.probabilities[:, self.channel.weights.max(axis=0) > 0]

    @cached_property
    def pairs(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Pairs of rows relative to the blanket's masses; those that are the same but for rounding once."""
        known: dict[bytes, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
        for one, other in permutations(self._rows / self.masses, 2):
            columns = np.round(np.log(np.stack([one, other, self.masses])), _DIGITS)
            if (columns[0] != columns[1]).any():
                known.setdefault(columns[:, np.lexsort(columns)].tobytes(), (one, other))
        return list(known.values())

    def delta(self, epsilon: float, reports: int) -> float:
        """Return a delta with which epsilon holds for one of the shuffled reports.

        For a report of x or of y and n reports in all it is, at most,

            E[max(0, sum of G_j over j <= n)] / n,   G_j = (Q[x, Z_j] - e^epsilon Q[y, Z_j]) / w(Z_j)

        with Z_j = z of probability w(z), and G_j = 0 otherwise ([balle2019], Lemma 5.3, with both
        expectations in one). With n = 1 it is the channel's own. It falls with n: anybody can add what hides
        in a further report.

        Parameters
        ----------
        epsilon : float
            At least 0.
        reports : int
            n, the report itself included; the others are through the channel, of any ratings.
        """
        if epsilon >= self.channel.epsilon:
            return 0.0
        return min(
            max((self._delta(*pair, epsilon, reports) for pair in self.pairs), default=0.0),
            self.alone(epsilon),
        )

    def alone(self, epsilon: float) -> float:
        """Return the delta with which epsilon holds for a report that is not shuffled."""
        factor = math.exp(epsilon)
        gains = (self.masses @ np.maximum(0.0, one - factor * other) for one, other in self.pairs)
        return min(1.0, _MARGIN * max(map(float, gains), default=0.0))

    def _delta(
        self, one: NDArray[np.float64], other: NDArray[np.float64], epsilon: float, reports: int
    ) -> float:
        values = np.append(one - math.exp(epsilon) * other, 0.0)
        masses = np.append(self.masses, max(0.0, 1 - self.share))
        return _MARGIN * expected_excess(values, masses / masses.sum(), reports) / reports
