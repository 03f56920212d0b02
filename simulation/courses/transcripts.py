"""What was said in the runs of protocols with rounds: what their servers keep of it, as attacks read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from dprec.arrays import AnyInts, Floats, offsets
from dprec.attacks import Transcript
from dprec.completion import Profiles
from dprec.observations import Observations
from dprec.predictions import Predict
from dprec.protocols.sums import SummedDevice
from dprec.randomness import words
from dprec.sums import UNIT, Aggregation, Layout
from simulation.courses.task import ServerTask

if TYPE_CHECKING:
    from strategies.training import Received


def transcript_of(task: ServerTask, *, trusted: bool = False, **contents: Any) -> Transcript:
    """Return a transcript of a task; by default, nothing was said."""
    return Transcript(
        n_users=task.n_users, n_items=task.n_items, scale=task.scale, trusted=trusted, **contents
    )


def transcript_of_reports(
    task: ServerTask, observed: Observations, *, trusted: bool, **contents: Any
) -> Transcript | None:
    """Return the reports of one collection, if a run is attacked."""
    return transcript_of(task, trusted=trusted, reports=(observed,), **contents) if task.attacked else None


def of_newcomers(predict: Predict) -> Callable[[AnyInts], Floats]:
    """Return what is predicted of items for the first of some users, none of whom holds a rating."""
    return lambda items: predict(np.zeros_like(items), items)


def said_alone(
    n_users: int,
    received: Sequence[Received],
    aggregation: Aggregation,
    requests: Sequence[tuple[Layout, float]],
) -> scipy.sparse.csr_array | None:
    """Return what each report says by itself, where it is protected by itself; the rounds side by side."""
    if not aggregation.by_itself:
        return None
    rounds = []
    for arrivals, (layout, multiplier) in zip(received, requests, strict=True):
        size = int(np.prod(aggregation.sum_shape(layout)))
        matrix = scipy.sparse.csr_array((n_users, size))
        for users, reports in arrivals.parts:
            places, numbers = aggregation.told(reports, layout, multiplier)
            picks = scipy.sparse.csr_array(
                (np.ones(places.size), (users[places], np.arange(places.size))), shape=(n_users, places.size)
            )
            matrix = matrix + picks @ scipy.sparse.csr_array(
                np.pad(numbers, ((0, 0), (0, size - numbers.shape[1])))
            )
        rounds.append(matrix)
    return scipy.sparse.csr_array(scipy.sparse.hstack(rounds)) if rounds else None


def parts_of(
    device: SummedDevice, layout: Layout, round_index: int, seed: int, profiles: Profiles
) -> scipy.sparse.csr_array:
    """Return what devices add to a sum, in contributions of a norm of 1, shape (users, entries).

    Where a device chooses among its user's ratings at random, others are chosen here.
    """
    chosen = words(seed, "choices that an attack supposes", 0, profiles.items.size, round_index=round_index)
    vectors = device.contributions(profiles, layout, chosen).vectors(layout)
    width, counts = layout.width, np.diff(vectors.indptr)
    entries = (vectors.rows.astype(np.int64)[:, None] * width + np.arange(width)).ravel()
    shape = profiles.n_users, layout.n_rows * width
    return scipy.sparse.csr_array(
        (vectors.numbers.ravel() * UNIT, entries, offsets(counts * width)), shape=shape
    )
