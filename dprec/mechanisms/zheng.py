"""Zheng's mechanisms: noisy ratings or randomised response, with "not rated" as one more answer."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit

from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.laplace import (
    cell_probabilities,
    modified_laplace_bound,
    randomized_response_bound,
    wide_grid,
)
from dprec.ratings import RatingScale
from dprec.reports import HiddenRowFamily, ReportFamily
from dprec.reports.hidden_rows import RATING_NOISE


@dataclass(frozen=True, kw_only=True)
class ZhengLaplace(Mechanism):
    """Laplace noise that also drops ratings and makes them up (Zheng [zheng2016], Definition 2)."""

    kind: Literal["zheng-laplace"] = "zheng-laplace"
    papers: ClassVar[tuple[str, ...]] = ("zheng2016",)
    report_family: ClassVar[type[ReportFamily]] = HiddenRowFamily
    symbols: int = option(
        'The symbol "?" and the cells of the grid on which noisy ratings are sent.', 256, ge=4, le=65536
    )

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of Definition 2: the first input is "not rated", the first symbol "?".

        With x the rating on [-1, 1], xi ~ Laplace(0, 2 / epsilon) and zeta = 1 with probability
        e^(epsilon / 2) / (e^(epsilon / 2) + 1): a rated cell sends x + xi if zeta, else "?"; a cell
        that is not rated sends "?" if zeta, else xi. Symbols read as x (u - l) / 2 + (u + l) / 2, in
        rating units, in which the noise has scale (u - l) / epsilon and a made-up rating is centred on
        the middle of the scale. The cells outside [l, u] make the realised epsilon equal to the
        requested one.
        """
        b = (scale.high - scale.low) / epsilon
        edges, values = wide_grid(scale.low, scale.high, b, self.symbols - 1)
        centres = np.concatenate([[(scale.low + scale.high) / 2], scale.values])
        honest, turned = expit(epsilon / 2), expit(-epsilon / 2)
        shown = np.concatenate([[turned], np.full(scale.levels, honest)])
        hidden = np.concatenate([[honest], np.full(scale.levels, turned)])
        noisy = cell_probabilities(edges, centres, b) * shown[:, None]
        return Channel.from_probabilities(
            np.column_stack([hidden, noisy]),
            np.concatenate([[np.nan], scale.values]),
            np.concatenate([[np.nan], values]),
            epsilon,
        )

    def distance_bound(
        self, users: int, items: int, ratings: int, scale: RatingScale, epsilon: float, tolerance: float
    ) -> float:
        """Return the bound of Theorem 3; see `Mechanism.distance_bound`."""
        bound = modified_laplace_bound(users, items, ratings, epsilon, tolerance, RATING_NOISE)
        return bound * (scale.high - scale.low) / 2


@dataclass(frozen=True, kw_only=True)
class ZhengRandomizedResponse(Mechanism):
    """Randomized response over "not rated" and the levels (Zheng [zheng2016], Definition 3)."""

    kind: Literal["zheng-randomized-response"] = "zheng-randomized-response"
    papers: ClassVar[tuple[str, ...]] = ("zheng2016",)
    report_family: ClassVar[type[ReportFamily]] = HiddenRowFamily

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return Q[i, j] = e^(epsilon [i = j]) / (e^epsilon + d) over {0 = not rated, 1, ..., d}."""
        symbols = np.concatenate([[np.nan], scale.values])
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(np.eye(symbols.size) > 0, 1.0, np.exp(-epsilon))
        return Channel.from_probabilities(weights, symbols, symbols, epsilon)

    def distance_bound(
        self, users: int, items: int, ratings: int, scale: RatingScale, epsilon: float, tolerance: float
    ) -> float:
        """Return the bound of Theorem 3; see `Mechanism.distance_bound`."""
        # Of the levels, the proof uses only the distance between the outer two.
        levels = randomized_response_bound(
            users, items, ratings, scale.levels, epsilon, tolerance, RATING_NOISE
        )
        return levels * (scale.high - scale.low) / (scale.levels - 1)
