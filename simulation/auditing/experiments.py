"""What an audit compares: small profiles, and which of them must be hard to distinguish."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dprec.arrays import Uint8s, offsets
from dprec.ratings import Ratings, RatingScale

_MOST_LEVELS = 8


@dataclass(frozen=True)
class Profile:
    """What one person rated."""

    levels: tuple[int, ...]
    """Level of each item of the catalogue; 0 is "not rated"."""


@dataclass(frozen=True)
class Question:
    """Which profiles must be hard to distinguish."""

    test: str
    """How the profiles differ, in words."""
    entries: int
    """Number of entries in which they differ."""
    pairs: tuple[tuple[int, int], ...]
    """Indices of profiles of the experiment."""


@dataclass(frozen=True)
class Experiment:
    """Profiles whose people take part in one run, and the questions that their reports answer."""

    profiles: tuple[Profile, ...]
    """Of one catalogue."""
    questions: tuple[Question, ...]
    separating: bool = False
    """Whether parameters start where devices tell these profiles apart best: they keep their promise whatever
    they are asked.
    """

    def population(self, people: int, scale: RatingScale, fewest_items: int = 1) -> Ratings:
        """Return so many people of each profile; the profiles take turns."""
        levels = np.array([profile.levels for profile in self.profiles], dtype=np.uint8)
        return _population(np.tile(levels, (people, 1)), scale, fewest_items)


def _population(levels: Uint8s, scale: RatingScale, fewest_items: int) -> Ratings:
    rated = levels > 0
    return Ratings(
        indptr=offsets(rated.sum(axis=1, dtype=np.int64)),
        items=np.nonzero(rated)[1].astype(np.int32),
        levels=levels[rated],
        scale=scale,
        user_ids=np.arange(len(levels)),
        item_ids=np.arange(max(levels.shape[1], fewest_items)),
    )


def of_one_rating(levels: int, worst: tuple[int, int], *, hides: bool) -> Experiment:
    """Compare all levels of one rating, and no rating if that is hidden.

    Of many levels, a few are compared, with the pair that the mechanism's matrix separates most.
    """
    spread = np.linspace(1, levels, min(levels, _MOST_LEVELS)).round().astype(int).tolist()
    rated = sorted({*spread, *(level for level in worst if level)})
    pairs = tuple(combinations(range(len(rated)), 2))
    questions = [Question("value of one rating", 1, pairs)]
    if hides:
        with_none = tuple((place, len(rated)) for place in range(len(rated)))
        questions.append(Question("one item rated or not", 1, with_none))
        rated.append(0)
    return Experiment(tuple(Profile((level,)) for level in rated), tuple(questions))


def of_profiles(worst: tuple[int, int]) -> Experiment:
    """Compare profiles of three ratings that differ in one of them, and in all, by two levels."""
    low, high = worst
    profiles = (Profile((low, high, low)), Profile((high, high, low)), Profile((high, low, high)))
    questions = (
        Question("one of three ratings", 1, ((0, 1),)),
        Question("all of three ratings", 3, ((0, 2),)),
    )
    return Experiment(profiles, questions)


def of_item_sets(level: int) -> Experiment:
    """Compare sets of rated items: none with one, and two with two others of a catalogue of four."""
    sets: Iterable[tuple[int, ...]] = ((), (0,), (0, 1), (2, 3))
    profiles = tuple(Profile(tuple(level * (item in chosen) for item in range(4))) for chosen in sets)
    questions = (
        Question("one rated item more, of four", 1, ((0, 1),)),
        Question("two rated items or the two others, of four", 4, ((2, 3),)),
    )
    return Experiment(profiles, questions)


def of_factors(low: int, high: int) -> Experiment:
    """Compare profiles of a catalogue of two items, for gradients of the items' factors."""
    profiles = ((high, 0), (low, 0), (0, 0), (high, low), (low, high), (high, high), (low, low))
    questions = (
        Question("value of one rating", 1, ((0, 1),)),
        Question("one item rated or not", 1, ((0, 2), (1, 2))),
        Question("all ratings, through all rounds", 2, ((3, 4), (5, 6), (2, 5))),
    )
    return Experiment(tuple(map(Profile, profiles)), questions, separating=True)


def of_canaries(low: int, high: int) -> Experiment:
    """Compare profiles of three of six items, in whole runs of protocols with rounds."""
    profiles = (
        (high, low, high, 0, 0, 0),
        (low, high, low, 0, 0, 0),
        (0, 0, 0, high, low, high),
    )
    questions = (Question("three ratings of six items, through all rounds", 6, ((0, 1), (0, 2))),)
    return Experiment(tuple(map(Profile, profiles)), questions)
