"""What was said in the runs of protocols with rounds: what their servers keep of it, as attacks read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dprec.arrays import AnyInts, Floats, offsets
from dprec.attacks import Transcript
from dprec.attacks.transcript import Answered, Upload, of_normal_noise, of_signs
from dprec.completion import Profiles
from dprec.federated import FederatedModel, UpdateCode, of_holders
from dprec.gradients import FittedProfiles, GradientReport
from dprec.observations import Observations
from dprec.predictions import Predict
from dprec.protocols.sums import SummedDevice
from dprec.randomness import words
from dprec.sums import UNIT, Aggregation, Layout
from simulation.protocols.task import ServerTask

if TYPE_CHECKING:
    from strategies.rounds import Received


def transcript_of(task: ServerTask, *, trusted: bool = False, **said: Any) -> Transcript:
    """Return a transcript of a task; by default, nothing was said."""
    return Transcript(n_users=task.n_users, n_items=task.n_items, scale=task.scale, trusted=trusted, **said)


def told(task: ServerTask, observed: Observations, *, trusted: bool, **said: Any) -> Transcript | None:
    """Return the reports of one collection, if a run is attacked."""
    return transcript_of(task, trusted=trusted, reports=(observed,), **said) if task.attacked else None


def of_newcomers(predict: Predict) -> Callable[[AnyInts], Floats]:
    """Return what is predicted of items for the first of some users, none of whom holds a rating."""
    return lambda items: predict(np.zeros_like(items), items)


@dataclass(frozen=True, eq=False)
class GradientRounds:
    """Reads what users sent about their gradients."""

    gradient: GradientReport
    ridge: float
    """As for `IterativeProtocol`."""
    epsilon: float
    """Budget of one report."""
    shape: tuple[int, int]
    """Items and rank."""
    public_seed: int

    def uploads(self, n_users: int, received: Sequence[Received]) -> tuple[Upload, ...]:
        """Return what was said in each round, if this kind of report can be read."""
        each = (self._upload(n_users, one) for one in received if one.parts)
        return tuple(upload for upload in each if upload is not None)

    def _upload(self, n_users: int, received: Received) -> Upload | None:
        first = self.gradient.answers(received.parts[0][1], self.shape, self.epsilon)
        if first is None:
            return None
        item_factors = received.model.astype(np.float64)
        likelihood = of_normal_noise(0.0) if first.scale is None else of_signs(first.scale)
        numbers = self.gradient.sum_shape(self.shape)
        whole = int(np.prod(numbers))
        return Upload(
            n_users=n_users,
            n_numbers=whole,
            per_item=self.shape[1] if whole == self.shape[0] * self.shape[1] else None,
            read=partial(self._read, received),
            compute=partial(self._compute, item_factors, np.inf if first.scale is None else 1.0),
            likelihood=likelihood,
            shows_items=not self.gradient.hides_rated_items,
        )

    def _read(self, received: Received) -> Iterator[Answered]:
        for users, reports in received.parts:
            said = self.gradient.answers(reports, self.shape, self.epsilon)
            if said is not None:
                yield Answered(users[said.reports], said.coordinates, said.answers)

    def _compute(self, item_factors: Floats, largest: float, profiles: Profiles) -> Floats:
        own = self.gradient.user_factors(profiles, item_factors, self.ridge)
        fitted = FittedProfiles(profiles, own, item_factors)
        numbers = self.gradient.numbers(fitted, self.public_seed)
        return np.clip(numbers, -largest, largest)


@dataclass(frozen=True, eq=False)
class UpdateRounds:
    """Reads clipped updates of a model, with the noise of each device."""

    model: FederatedModel
    code: UpdateCode
    n_items: int

    def uploads(self, n_users: int, received: Sequence[Received]) -> tuple[Upload, ...]:
        """Return what was said in each round."""
        widths = {shape[1:] for shape in self.code.shapes if shape[:1] == (self.n_items,)}
        rows = len(self.code.shapes) == 1 and len(widths) == 1
        return tuple(
            Upload(
                n_users=n_users,
                n_numbers=self.code.size,
                per_item=self.code.size // self.n_items if rows else None,
                read=partial(self._read, one),
                compute=partial(self._compute, one.model),
                likelihood=of_normal_noise(self.code.deviation),
            )
            for one in received
        )

    def _read(self, received: Received) -> Iterator[Answered]:
        numbers = np.arange(self.code.size)
        for users, reports in received.parts:
            valid, rows = self.code.numbers(reports)
            yield Answered(np.repeat(users[valid], numbers.size), np.tile(numbers, len(rows)), rows.ravel())

    def _compute(self, model: bytes, profiles: Profiles) -> Floats:
        updates = self.model.updates(self.code.unpack(model), profiles)
        return self.code.clipped(of_holders(updates, profiles))


def said_alone(
    n_users: int,
    received: Sequence[Received],
    aggregation: Aggregation,
    asked: Sequence[tuple[Layout, float]],
) -> sp.csr_array | None:
    """Return what each report says by itself, where it is protected by itself; the rounds side by side."""
    rounds = []
    for one, (layout, multiplier) in zip(received, asked, strict=True):
        size = int(np.prod(aggregation.sum_shape(layout)))
        whole = sp.csr_array((n_users, size))
        for users, reports in one.parts:
            told = aggregation.told(reports, layout, multiplier)
            if told is None:
                return None
            places, numbers = told
            picks = sp.csr_array(
                (np.ones(places.size), (users[places], np.arange(places.size))), shape=(n_users, places.size)
            )
            whole = whole + picks @ sp.csr_array(np.pad(numbers, ((0, 0), (0, size - numbers.shape[1]))))
        rounds.append(whole)
    return sp.csr_array(sp.hstack(rounds)) if rounds else None


def parts_of(
    device: SummedDevice, layout: Layout, round_index: int, seed: int, profiles: Profiles
) -> sp.csr_array:
    """Return what devices add to a sum, in contributions of a norm of 1, shape (users, entries).

    Where a device chooses among its user's ratings at random, others are chosen here.
    """
    chosen = words(seed, "choices that an attack supposes", 0, profiles.items.size, round_index=round_index)
    vectors = device.contributions(profiles, layout, chosen).vectors(layout)
    width, counts = layout.width, np.diff(vectors.indptr)
    entries = (vectors.rows.astype(np.int64)[:, None] * width + np.arange(width)).ravel()
    shape = profiles.n_users, layout.n_rows * width
    return sp.csr_array((vectors.numbers.ravel() * UNIT, entries, offsets(counts * width)), shape=shape)
