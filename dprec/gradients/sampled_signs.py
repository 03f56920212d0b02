"""Private signs of a few random coordinates of the gradient (Minto et al. [minto2021]).

A report is k coordinates, drawn independently and whatever was rated, each with one bit by the randomiser of
`dprec.gradients.one_bit`. Every bit costs an even share of the report's budget, whatever the others are,
so that all k cost at most the budget even when they are known to be one user's. The paper forwards them one
by one through an anonymising proxy, which strips who sent them: that makes users harder to trace and is
no part of epsilon, which holds against a server that sees whose they are. Feedback is implicit in the paper;
here the gradient is that of the ratings, as in the other kinds of report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.completion import Profiles
from dprec.components import option
from dprec.errors import SettingError
from dprec.gradients import randomizer
from dprec.gradients.base import Aggregate, GradientReport, RoundDraws
from dprec.gradients.one_bit import gradient_at
from dprec.randomness import even_share, uniform_below
from dprec.wire import FixedFields

_MOST = 256
"""Coordinates of a report: far more than a budget is worth dividing by."""


@dataclass(frozen=True, kw_only=True)
class SampledSigns(GradientReport):
    """Private signs of a few random coordinates of the gradient (Minto et al. [minto2021])."""

    kind: Literal["sampled-signs"] = "sampled-signs"
    papers: ClassVar[tuple[str, ...]] = ("minto2021",)
    coordinates: int = option("Coordinates k of a report, which share its budget evenly.", 4, ge=1, le=_MOST)
    proxy: bool = option(
        "Whether reports come through an anonymising proxy, one coordinate at a time; it changes neither "
        "what devices draw nor epsilon.",
        True,
        published=True,
        source="minto2021, abstract",
    )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the proxy adds, which epsilon does not count on."""
        if not self.proxy:
            return ()
        return (
            "A proxy strips senders and times and forwards coordinates one by one: a server that it does not "
            "collude with cannot link what a user sends, within a round or between rounds. Epsilon holds "
            "without it.",
        )

    def encode(
        self,
        profiles: Profiles,
        user_factors: NDArray[np.float64],
        item_factors: NDArray[np.float64],
        epsilon: float,
        draws: RoundDraws,
    ) -> list[bytes]:
        """Draw coordinates for each user and answer each with one bit; see `GradientReport`."""
        fields = np.empty((profiles.n_users, self.coordinates), dtype=np.int64)
        for place in range(self.coordinates):
            coordinates = uniform_below(item_factors.size, draws.words(2 * place))
            values = gradient_at(profiles, user_factors, item_factors, coordinates)
            bits = randomizer.randomize(values, self._share(epsilon), draws.words(2 * place + 1))
            fields[:, place] = coordinates << 1 | bits
        return self._codec(item_factors.size).encode(fields)

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[NDArray[np.bool_], Aggregate]:
        """Validate the reports and count their bits by coordinate."""
        n_coordinates = shape[0] * shape[1]
        valid, fields = self._codec(n_coordinates).decode(reports)
        votes = np.bincount(fields[valid].ravel(), minlength=2 * n_coordinates)
        return valid, Aggregate(votes[1::2] - votes[::2], None, int(valid.sum()))

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the number of coordinates."""
        return (shape[0] * shape[1],)

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether so many signs can have this sum."""
        total, cast = aggregate.total, aggregate.users * self.coordinates
        # Within these bounds, the sum of the sizes cannot overflow.
        if not ((total >= -cast) & (total <= cast)).all():
            return False
        left = cast - int(np.abs(total).sum())
        return left >= 0 and left % 2 == 0

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> NDArray[np.float64]:
        """Return the mean of the estimates, each bit scaled up by the number of coordinates."""
        bits = aggregate.users * self.coordinates
        scale = randomizer.unbiased_scale(self._share(epsilon)) * aggregate.total.size / bits
        return (aggregate.total.astype(np.float64) * scale).reshape(shape)

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse more coordinates than the gradient has."""
        if self.coordinates > shape[0] * shape[1]:
            accepted = f"at most {shape[0] * shape[1]}, the coordinates of the gradient"
            raise SettingError("coordinates", str(self.coordinates), accepted)

    def noise_deviation(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return sqrt(n d / k) (e + 1) / (e - 1), e = exp(epsilon / k), where the gradient is 0."""
        scale = randomizer.unbiased_scale(self._share(epsilon))
        return math.sqrt(shape[0] * shape[1] / self.coordinates) * scale

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of all coordinates with their answers; see `GradientReport.report_bits`."""
        codec = self._codec(shape[0] * shape[1])
        return codec.fields * codec.width

    def exact_epsilon(self, epsilon: float) -> float:
        """Return the sum of the exact losses of the bits; no coordinate depends on anything private."""
        return self.coordinates * randomizer.exact_epsilon(self._share(epsilon))

    def _share(self, epsilon: float) -> float:
        return even_share(epsilon, self.coordinates)

    def _codec(self, n_coordinates: int) -> FixedFields:
        return FixedFields(self.coordinates, 2 * n_coordinates - 1)
