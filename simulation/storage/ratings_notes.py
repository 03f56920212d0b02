"""What a reader must know of somebody's own ratings: how they were understood, and what that gives away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np

from dprec.binarization import is_binary
from dprec.datasets import Dataset
from dprec.ratings import Ratings, RatingScale
from simulation.configuration.models import RunConfig

_SCALE, _SAME = "Scale: ", "All ratings are the same"

_MANY = 0.4
"""Share of ratings of 0 or less, all of them alike, that suggests that they are none."""


def notes_on_own_ratings(config: RunConfig, train: Ratings, test: Ratings) -> Iterator[str]:
    """Yield how somebody's own ratings were understood; nothing of a data set that is public."""
    if not config.dataset.own:
        return
    if config.binarization is None:
        yield _note_on_scale(config.dataset, train.scale)
    yield from _notes_on_values(config.dataset, train, test)
    chosen = [f"{name} {value}" for name, value in asdict(config.split).items() if name != "kind"]
    split = " ".join([config.split.kind, *chosen])
    yield f"To test on: {test.count:,} of {train.count + test.count:,} ratings (split: {split})."


def of_all_protocols(notes: Sequence[str]) -> list[str]:
    """Return the notes of a run that hold of its ratings, so of every protocol of a comparison."""
    return [note for note in notes if note.startswith((_SCALE, _SAME))]


def _note_on_scale(dataset: Dataset, scale: RatingScale) -> str:
    """Say which scale it is, and where the ratings decided on it, what that reveals and how to avoid it."""
    words, found = scale.describe(), dataset.read_off()
    if not found:
        return f"{_SCALE}{words} (as given)."
    levels = scale.values
    step = {} if scale.continuous else {"step": float(levels[-1] - levels[0]) / (levels.size - 1)}
    slider = {"continuous": True} if scale.continuous else {}
    settings = {"low": scale.low, "high": scale.high, **step, **slider}
    public = dataset.written(settings)
    return (
        f"{_SCALE}{words}, read off the private ratings ({', '.join(found)}). No epsilon covers that: a "
        f"single rating can change the scale, which everybody sees. Given, it is public: {public}"
    )


def _notes_on_values(dataset: Dataset, train: Ratings, test: Ratings) -> Iterator[str]:
    """Yield what looks wrong: ratings that do not differ, or mostly stand for none."""
    values, scale = np.concatenate([train.values, test.values]), train.scale
    if not values.size:
        return
    if values.min() == values.max():
        yield (
            f"{_SAME}, {values[0]:g}: there is nothing to predict, and what the figures of accuracy measure "
            "is noise."
        )
    share = float(np.mean(values == scale.low))
    if not is_binary(scale) and scale.low <= 0 and _MANY < share < 1:
        yield (
            f"Of all ratings, {share:.0%} are {scale.low:g}: if that means not rated, "
            f"{dataset.written({'missing': [scale.low]})} leaves them out."
        )
