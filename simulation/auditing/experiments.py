"""What an audit compares, small profiles that must be hard to distinguish, and the result: its findings."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from dprec import formats
from dprec.arrays import offsets
from dprec.protocols.findings import Finding
from dprec.ratings import Ratings, RatingScale

Profile = tuple[int, ...]
"""What one person rated: the level of each item of the catalogue; 0 is "not rated"."""


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
        levels = np.tile(np.array(self.profiles, dtype=np.uint8), (people, 1))
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
    spread = np.linspace(1, levels, min(levels, 8)).round().astype(int).tolist()
    rated = sorted({*spread, *(level for level in worst if level)})
    pairs = tuple(combinations(range(len(rated)), 2))
    questions = [Question("value of one rating", 1, pairs)] if pairs else []
    if hides:
        with_none = tuple((place, len(rated)) for place in range(len(rated)))
        questions.append(Question("one item rated or not", 1, with_none))
        rated.append(0)
    return Experiment(tuple((level,) for level in rated), tuple(questions))


def of_profiles(worst: tuple[int, int]) -> Experiment:
    """Compare profiles of three ratings that differ in one of them, and in all, by two levels."""
    low, high = worst
    profiles = ((low, high, low), (high, high, low), (high, low, high))
    questions = (
        Question("one of three ratings", 1, ((0, 1),)),
        Question("all of three ratings", 3, ((0, 2),)),
    )
    return Experiment(profiles, questions)


def of_item_sets(level: int) -> Experiment:
    """Compare sets of rated items: none with one, and two with two others of a catalogue of four."""
    sets: Iterable[tuple[int, ...]] = ((), (0,), (0, 1), (2, 3))
    profiles = tuple(tuple(level * (item in chosen) for item in range(4)) for chosen in sets)
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
    return Experiment(profiles, questions, separating=True)


def of_canaries(low: int, high: int) -> Experiment:
    """Compare profiles of three of six items, in whole runs of protocols with rounds."""
    profiles = (
        (high, low, high, 0, 0, 0),
        (low, high, low, 0, 0, 0),
        (0, 0, 0, high, low, high),
    )
    questions = (Question("three ratings of six items, through all rounds", 6, ((0, 1), (0, 2))),)
    return Experiment(profiles, questions)


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

    name: str
    protocol: str
    mechanism: str
    trials: int
    """Number of people per profile."""
    confidence: float
    """Probability with which all lower bounds hold together."""
    findings: tuple[Finding, ...]
    declared_by: dict[str, str] = field(default_factory=dict)
    """A digest of the code of each class from outside dprec on whose word the promise rests."""

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against any of the promises."""
        return all(finding.holds for finding in self.findings)

    @property
    def worst(self) -> Finding:
        """The finding that contradicts the promise most, or the samples that come nearest to it."""
        eligible = [each for each in self.findings if not each.holds] or [
            each for each in self.findings if each.promised and not each.exact
        ]
        return max(eligible, key=lambda each: each.at_least / max(each.promised, 1e-9))

    @property
    def promised(self) -> float:
        """Epsilon that is promised where the audit found most."""
        return self.worst.promised

    @property
    def lower_bound(self) -> float:
        """Lower bound on epsilon where the audit found most."""
        return self.worst.at_least

    @property
    def power(self) -> float:
        """Largest probability with which one of the tests would have detected a leak of twice the promise."""
        return max((each.power for each in self.findings if each.promised and not each.exact), default=0.0)

    @property
    def verdict(self) -> str:
        """What the audit says of the promise, in words."""
        worst = self.worst
        if worst.defect:
            budget = f"epsilon = {worst.promised:.4g} per {worst.unit}"
            return f"{worst.test}: {budget} is promised, but {worst.defect}"
        partly = "".join(f"; {each.test}: {each.strength}" for each in self.findings if each.covers)
        seen = f"a twofold leak would be seen with probability {self.power:.2f} or more"
        return f"no evidence against it; {seen}{partly}"

    def values(self) -> dict[str, Any]:
        """Return the contents of audit.json."""
        findings = [
            {**asdict(each), "holds": each.holds, "defect": each.defect, "strength": each.strength}
            for each in self.findings
        ]
        for each in findings:
            del each["covers"]  # its strength has it
        conclusion = {name: getattr(self, name) for name in _CONCLUSION}
        return {**formats.STAMP, **asdict(self), "findings": findings, **conclusion}

    def to_json(self) -> str:
        """Return audit.json."""
        return json.dumps(self.values(), indent=2) + "\n"


_CONCLUSION = ("holds", "promised", "lower_bound", "power", "verdict")
