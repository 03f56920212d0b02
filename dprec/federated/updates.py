"""Models that are learned from clipped updates of single users, with Gaussian noise.

A model says what a device computes from parameters and its own ratings, how the server moves the parameters,
and how predictions follow; it may use any framework, as long as arrays go in and come out. Clipping, rounding
and noise are done here, whatever a model computes, so that the loss follows from them alone (Abadi et al.
[abadi2016], Algorithm 1, with everybody in every round).
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Bools, Floats, Ints
from dprec.completion import Profiles
from dprec.components import Options
from dprec.gradients import Aggregate, RoundDraws
from dprec.predictions import Predict
from dprec.randomness import ReleaseDraws, fine_deviates, normal_steps
from dprec.ratings import RatingScale

Parameters = tuple[Floats, ...]
"""The arrays of a model."""

STEPS = 1 << 14
"""Steps of the longest update; the numbers of an update are rounded to them."""

_NUMBER = np.dtype("<f4")
_PLAIN, _NOISY = np.dtype("<i2"), np.dtype("<i4")

_HALVES = 6
"""Half deviations on either side of 0 that an audit tells apart."""


@dataclass(frozen=True, kw_only=True)
class FederatedModel(Options):
    """Base of the models: what devices compute, how the server learns, and how predictions follow.

    Methods are given whole partitions, for speed; what they return of a user may depend on that user's
    ratings alone, as it does on a device. Clipping bounds what a user moves only then: a sample of rows is
    held to it (`dprec.federated.alone`).
    """

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = None
    predicted: ClassVar[Literal["ratings", "lists"]] = "ratings"
    """What predictions are: of ratings, or scores that order lists, from sets of items."""

    @abstractmethod
    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return the parameters before the first round."""

    @abstractmethod
    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        """Return every user's update, such as a gradient: for each parameter, its shape, by users first.

        Zeros are sent instead for who holds nothing; see `of_holders`.
        """

    @abstractmethod
    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        """Return the parameters after a round, given the noisy mean of clipped updates."""

    def steps(self) -> Callable[[Parameters, Parameters, int], Parameters]:
        """Return what takes the steps of one run: by default `step`, which remembers nothing."""
        return self.step

    @abstractmethod
    def predictor(self, parameters: Parameters, profiles: Profiles) -> Predict:
        """Return what predicts for some users, from arrays of users and items to ratings."""


@dataclass(frozen=True)
class UpdateCode:
    """How updates become reports, sums and means."""

    shapes: tuple[tuple[int, ...], ...]
    """Of the parameters."""
    clip: float
    """Largest norm of an update."""
    deviation: float
    """Of the noise that a device adds to each number, in clips; 0 if it adds none."""

    @property
    def size(self) -> int:
        """Numbers of an update."""
        return sum(map(math.prod, self.shapes))

    @property
    def report_bytes(self) -> int:
        """Bytes of every report."""
        return self.size * self._number.itemsize

    @property
    def _number(self) -> np.dtype[np.signedinteger]:
        return _NOISY if self.deviation else _PLAIN

    @property
    def _largest(self) -> int:
        # No deviate of `fine_deviates` is larger than 12.5.
        return STEPS + math.ceil(12.5 * self.deviation * STEPS)

    def pack(self, parameters: Parameters) -> bytes:
        """Return parameters as they are broadcast, in single precision."""
        return b"".join(np.ascontiguousarray(each, dtype=_NUMBER).tobytes() for each in parameters)

    def unpack(self, data: bytes) -> Parameters:
        """Read a broadcast; raises ValueError when it is malformed."""
        if len(data) != self.size * _NUMBER.itemsize:
            raise ValueError(f"parameters of {len(data)} bytes")
        numbers = np.frombuffer(data, dtype=_NUMBER).astype(np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError("parameters that are not finite")
        return self._cut(numbers)

    def encode(self, updates: Parameters, draws: RoundDraws) -> list[bytes]:
        """Return every user's update, clipped, in whole steps, with the device's own noise if it adds any."""
        steps = self._steps(updates)
        if self.deviation:
            counts, places = np.full(len(steps), self.size), np.tile(np.arange(self.size), len(steps))
            own = draws.devices, draws.devices.asked(b"further bits of noise")
            words = (each.per_cell(counts, places, draws.round_index) for each in own)
            deviates = fine_deviates(*words).reshape(steps.shape)
            steps += np.rint(deviates * (self.deviation * STEPS))
        data, width = steps.astype(self._number).tobytes(), self.report_bytes
        return [data[at * width : (at + 1) * width] for at in range(len(steps))]

    def clipped(self, updates: Parameters) -> Floats:
        """Return every user's update in clips, as it is before any noise, shape (users, size)."""
        return self._steps(updates) / STEPS

    def scaled(self, updates: Parameters, unit: float = 1.0) -> Floats:
        """Return every user's update, clipped, where a clip is so many units, shape (users, size)."""
        rows = np.concatenate([each.reshape(len(each), -1) for each in updates], axis=1)
        rows = np.where(np.isfinite(rows).all(axis=1)[:, None], rows, 0.0)
        longest = np.maximum(np.linalg.norm(rows, axis=1), self.clip)
        return rows * (unit / longest)[:, None]

    def _steps(self, updates: Parameters) -> Floats:
        # Rounded towards 0, no update becomes longer; nor by scaling in floating point.
        return np.trunc(self.scaled(updates, (1 - 1e-9) * STEPS))

    def decode(self, reports: Sequence[bytes]) -> tuple[Bools, Aggregate]:
        """Validate and add up reports; see `dprec.gradients.GradientReport.decode`."""
        valid, rows = self._read(reports)
        return valid, Aggregate(rows.sum(axis=0), None, len(rows))

    def numbers(self, reports: Sequence[bytes]) -> tuple[Bools, Floats]:
        """Return which reports are valid, and the numbers of these in clips, shape (valid, size)."""
        valid, rows = self._read(reports)
        return valid, rows / STEPS

    def _read(self, reports: Sequence[bytes]) -> tuple[Bools, Ints]:
        whole = np.array([len(report) == self.report_bytes for report in reports], dtype=np.bool_)
        data = b"".join(report for report, right in zip(reports, whole.tolist(), strict=True) if right)
        rows = np.frombuffer(data, dtype=self._number).reshape(-1, self.size).astype(np.int64)
        fits = (np.abs(rows) <= self._largest).all(axis=1)
        if not self.deviation:
            fits &= np.linalg.norm(rows.astype(np.float64), axis=1) <= STEPS
        valid = whole.copy()
        valid[whole] = fits
        return valid, rows[fits]

    def classes(self, reports: Sequence[bytes]) -> Ints:
        """Return the numbers of noisy reports in classes of half a deviation, from 1, shape (users, size)."""
        rows = np.frombuffer(b"".join(reports), dtype=self._number).reshape(-1, self.size)
        halves = np.floor(rows * (2 / (self.deviation * STEPS))).astype(np.int64)
        return np.clip(halves, -_HALVES, _HALVES) + _HALVES + 1

    def possible(self, aggregate: Aggregate) -> bool:
        """Return whether valid reports can have a sum that somebody else added up."""
        return bool((np.abs(aggregate.total) <= aggregate.users * self._largest).all())

    def released(self, total: Ints, users: int, deviation: float, draws: ReleaseDraws) -> Parameters:
        """Return the mean update of all users, whose number is public, whether or not a report of each came.

        ``deviation``: of the noise that the server adds to each number of the sum, in clips; rounded, as that
        hides the last bits of a deviate.
        """
        if deviation:
            random = draws.generator("noise of updates", total)
            total = total + normal_steps(random, deviation * STEPS, total.shape)
        return self._cut(total.astype(np.float64) * (self.clip / (STEPS * users)))

    def _cut(self, numbers: Floats) -> Parameters:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(numbers, ends[:-1])
        return tuple(part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True))


def of_holders(updates: Parameters, profiles: Profiles) -> Parameters:
    """Return updates with zeros for users who hold nothing, with which epsilon compares a profile."""
    holds = np.diff(profiles.indptr) > 0
    return tuple(np.where(holds.reshape(-1, *(1,) * (each.ndim - 1)), each, 0.0) for each in updates)


def code_of(
    model: FederatedModel, n_items: int, scale: RatingScale, clip: float, deviation: float
) -> UpdateCode:
    """Return how the updates of a model for a catalogue are sent; see `UpdateCode`."""
    # What a model starts with is drawn, but its shapes are not.
    parameters = model.start(n_items, scale, np.random.Generator(np.random.PCG64(0)))
    return UpdateCode(tuple(each.shape for each in parameters), clip, deviation)
