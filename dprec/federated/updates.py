"""How updates become reports, sums and means: clipped, rounded, with Gaussian noise.

All of it is done here, whatever a model computes, so that the loss follows from it alone (Abadi et al.
[abadi2016], Algorithm 1). Where the clip adapts (Andrew et al. [andrew2021], Algorithm 1), a report has one
number more: by its sign whether the update was no longer than the clip. Its size is a share of a clip such
that the same noise suits it, and a report is then no longer than `UpdateCode.reach` clips.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dprec.arrays import Bools, Floats, Int32s, Ints, Pieces, all_between
from dprec.federated.model import FederatedModel, Parameters, Shapes, arrays_of, shapes_of
from dprec.gradients import Aggregate, RoundDraws
from dprec.randomness import ReleaseDraws, fine_deviates, normal_steps
from dprec.ratings import RatingScale

STEPS = 1 << 14
"""Steps of the longest update; the numbers of an update are rounded to them."""

LEAST_CLIP, LARGEST_CLIP = 1e-9, 1e9
"""Clips that devices accept; each is as private as any other."""

_NUMBER = np.dtype("<f4")
_PLAIN, _NOISY = np.dtype("<i2"), np.dtype("<i4")

_HALVES = 6
"""Half deviations on either side of 0 that an audit tells apart."""


@dataclass(frozen=True)
class UpdateCode:
    """How updates become reports, sums and means."""

    shapes: Shapes
    """Of an update."""
    clip: float
    """Largest norm of an update."""
    deviation: float
    """Of the noise that a device adds to each number, in clips; 0 if it adds none."""
    bit: float = 0.0
    """Size of the number that says whether an update was short, in clips, up to 1; 0 where none says it."""
    received: Shapes | None = None
    """Of the parameters; None if they have the shapes of an update."""

    @property
    def size(self) -> int:
        """Numbers of an update."""
        return _size(self.shapes)

    @property
    def width(self) -> int:
        """Numbers of a report."""
        return self.size + (self.bit > 0)

    @property
    def reach(self) -> float:
        """Largest norm of a report without noise, in clips."""
        return math.hypot(1.0, self.bit)

    @property
    def report_bytes(self) -> int:
        """Bytes of every report."""
        return self.width * self._number.itemsize

    @property
    def _number(self) -> np.dtype[np.signedinteger]:
        return _NOISY if self.deviation else _PLAIN

    @property
    def _largest(self) -> int:
        # No deviate of `fine_deviates` is larger than 12.5.
        return STEPS + math.ceil(12.5 * self.deviation * STEPS)

    @property
    def _bit_steps(self) -> int:
        return math.floor(self.bit * STEPS)

    def pack(self, parameters: Parameters) -> bytes:
        """Return parameters as they are broadcast, in single precision, and the clip if it adapts."""
        sent = (*parameters, np.array(self.clip)) if self.bit else parameters
        return b"".join(np.ascontiguousarray(array, dtype=_NUMBER).tobytes() for array in sent)

    def unpack(self, data: bytes) -> tuple[Self, Parameters]:
        """Read a broadcast, with the code for its clip; raises ValueError when it is malformed."""
        shapes = self.shapes if self.received is None else self.received
        if len(data) != (_size(shapes) + (self.bit > 0)) * _NUMBER.itemsize:
            raise ValueError(f"parameters of {len(data)} bytes")
        numbers = np.frombuffer(data, dtype=_NUMBER).astype(np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError("parameters that are not finite")
        clip = float(numbers[-1]) if self.bit else self.clip
        # In single precision, the least clip is a little below itself.
        if not np.float32(LEAST_CLIP) <= clip <= LARGEST_CLIP:
            raise ValueError(f"a clip of {clip:g}")
        return replace(self, clip=clip), _cut(numbers, shapes)

    def reports(self, steps: Int32s, draws: RoundDraws, senders: Bools | None = None) -> Pieces:
        """Return reports of what `steps` returned, with the device's own noise if it adds any.

        ``senders``, shape (users,): whose updates these are, of all that draw; by default everybody's.
        """
        if self.deviation:
            sending = np.ones(len(steps), dtype=np.bool_) if senders is None else senders
            counts, places = sending * self.width, np.tile(np.arange(self.width), len(steps))
            streams = draws.devices, draws.devices.asked(b"further bits of noise")
            words = (stream.per_cell(counts, places, draws.round_index) for stream in streams)
            deviates = fine_deviates(*words).reshape(steps.shape)
            steps = (steps + np.rint(deviates * (self.deviation * STEPS))).astype(np.int32)
        return Pieces(steps.astype(self._number).tobytes(), self.report_bytes * np.arange(len(steps) + 1))

    def clipped(self, updates: Parameters, holds: Bools | None = None) -> Floats:
        """Return every user's report in clips, as it is before any noise, shape (users, width)."""
        return self.steps(updates, holds)[0] / STEPS

    def norms(self, updates: Parameters) -> Floats:
        """Return the norms of updates before clipping; see `steps`."""
        return self.steps(updates)[1]

    def scaled(self, updates: Parameters) -> Floats:
        """Return every user's update in clips, clipped and not rounded, shape (users, size)."""
        rows = _rows(updates)
        finite = np.asarray(np.isfinite(rows).all(axis=1, keepdims=True))
        rows = np.where(finite, rows, 0.0)
        return rows / np.maximum(np.linalg.norm(rows, axis=1), self.clip)[:, None]

    def mean(self, updates: Parameters) -> Parameters:
        """Return the mean of clipped updates, of users who all take part, without noise."""
        return _cut(self.scaled(updates).mean(axis=0) * self.clip, self.shapes)

    def steps(self, updates: Parameters, holds: Bools | None = None) -> tuple[Int32s, Floats]:
        """Return clipped updates in whole steps, shape (users, width), and their norms before clipping.

        Norms are infinite of updates that are not finite, whose steps are 0. ``holds``, shape (users,): who
        holds anything; the others' steps are 0, with which epsilon compares a profile. By default everybody.
        """
        from dprec.kernels.updates import clip

        rows = _rows(updates)
        steps, norms = np.empty((len(rows), self.width), dtype=np.int32), np.empty(len(rows))
        # Rounded towards 0, no update becomes longer; nor by scaling in floating point.
        clip(steps, norms, rows, self.clip, (1 - 1e-9) * STEPS)
        if self.bit:
            steps[:, -1] = np.where(norms <= self.clip, self._bit_steps, -self._bit_steps)
        if holds is not None:
            steps[~holds] = 0
        return steps, norms

    def decode(self, reports: Sequence[bytes]) -> tuple[Bools, Aggregate]:
        """Validate and add up reports; see `dprec.gradients.GradientReport.decode`."""
        valid, total, *_ = self._read(reports)
        return valid, Aggregate(total, None, int(valid.sum()))

    def numbers(self, reports: Sequence[bytes]) -> tuple[Bools, Floats]:
        """Return which reports are valid, and the numbers of these in clips, shape (valid, width)."""
        valid, _, rows, fits = self._read(reports)
        return valid, rows[fits] / STEPS

    def _read(self, reports: Sequence[bytes]) -> tuple[Bools, Ints, Int32s, Bools]:
        """Return which reports are valid, their sum, the numbers of whole ones, and which of these are."""
        from dprec.kernels.updates import add_up

        pieces = Pieces.of(reports)
        valid = pieces.sizes == self.report_bytes
        data = pieces.chosen(np.flatnonzero(valid)).data
        rows = np.frombuffer(data, dtype=self._number).reshape(-1, self.width).astype(np.int32)
        total, fits = np.zeros(self.width, dtype=np.int64), np.empty(len(rows), dtype=np.bool_)
        longest = 0 if self.deviation else STEPS
        add_up(total, fits, rows, self.size, longest, self._largest, self._bit_steps)
        valid[valid] = fits
        return valid, total, rows, fits

    def classes(self, reports: Sequence[bytes]) -> Ints:
        """Return noisy numbers in classes of half a deviation, from 1, shape (users, width)."""
        rows = np.frombuffer(b"".join(reports), dtype=self._number).reshape(-1, self.width)
        halves = np.floor(rows * (2 / (self.deviation * STEPS))).astype(np.int64)
        return np.clip(halves, -_HALVES, _HALVES) + _HALVES + 1

    def possible(self, aggregate: Aggregate) -> bool:
        """Return whether valid reports can have a sum that somebody else added up."""
        bound = aggregate.users * self._largest
        return all_between(aggregate.total, -bound, bound)

    def released(
        self, total: Ints, users: float, deviation: float, draws: ReleaseDraws
    ) -> tuple[Parameters, float]:
        """Return the mean update, and which share of updates was no longer than the clip.

        ``users``: the public number by which the sum is divided, whether or not a report of each came.
        ``deviation``: of the noise that the server adds to each number of the sum, in clips; rounded, as that
        hides the last bits of a deviate. The share is NaN where no report says it.
        """
        if deviation:
            random = draws.generator("noise of updates", total)
            total = total + normal_steps(random, deviation * STEPS, total.shape)
        mean = _cut(total.astype(np.float64) * (self.clip / (STEPS * users)), self.shapes)
        if not self.bit:
            return mean, math.nan
        return mean, min(max(0.5 + float(total[-1]) / (2 * self._bit_steps * users), 0.0), 1.0)


def _size(shapes: Shapes) -> int:
    return sum(map(math.prod, shapes))


def _cut(numbers: Floats, shapes: Shapes) -> Parameters:
    """Return arrays of some shapes from their numbers, one array after the other; further ones are left."""
    parts = np.split(numbers, np.cumsum([math.prod(shape) for shape in shapes]))
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=False))


def _rows(updates: Parameters) -> Floats:
    """Return updates as rows of doubles, shape (users, size)."""
    rows = [update.reshape(len(update), -1) for update in updates]
    joined = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
    return np.ascontiguousarray(joined, dtype=np.float64)


def code_of(
    model: FederatedModel, n_items: int, scale: RatingScale, clip: float, deviation: float, bit: float = 0.0
) -> UpdateCode:
    """Return how the updates of a model for a catalogue are sent; see `UpdateCode`."""
    # What a model starts with is drawn, but its shapes are not.
    parameters = model.start(n_items, scale, np.random.Generator(np.random.PCG64(0)))
    received = shapes_of(arrays_of(model, "start returned", parameters))
    return UpdateCode(model.sends(received), clip, deviation, bit, received)
