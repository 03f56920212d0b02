"""What an audit compares, small profiles that must be hard to distinguish, and the result: its findings."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from dprec import formats
from dprec.accounting import PrivacyUnit
from dprec.arrays import offsets
from dprec.auditing import Sent, measured
from dprec.protocols.findings import Finding
from dprec.ratings import Ratings, RatingScale

NOTHING_SEEN = 0.005
"""Tests are not worth a word that would see a twofold leak with a smaller probability."""

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


def of_profiles(low: int, high: int) -> Experiment:
    """Compare profiles of three ratings that differ in one of them, and in all, by two levels."""
    questions = (
        Question("one of three ratings", 1, ((0, 1),)),
        Question("all of three ratings", 3, ((0, 2),)),
    )
    return Experiment(((low, high, low), (high, high, low), (high, low, high)), questions)


def planned(levels: int, worst: Callable[[int], tuple[int, int]], *, hides: bool) -> list[Experiment]:
    """Return what is compared of devices that report once.

    These are all levels of one rating, or a few of many, and no rating if that is hidden; profiles of three
    ratings; and, where they are hidden, sets of rated items, none with one, and two with two others.

    Parameters
    ----------
    worst : callable
        From entries of a profile to the two levels that the mechanism's matrix separates most, 0 for none.
    """
    spread = np.linspace(1, levels, min(levels, 8)).round().astype(int).tolist()
    rated = sorted({*spread, *(level for level in worst(1) if level)})
    pairs = tuple(combinations(range(len(rated)), 2))
    questions = [Question("value of one rating", 1, pairs)] if pairs else []
    if not hides:
        of_one = Experiment(tuple((level,) for level in rated), tuple(questions))
        return [of_one, of_profiles(*worst(3))]
    with_none = tuple((place, len(rated)) for place in range(len(rated)))
    questions.append(Question("one item rated or not", 1, with_none))
    of_sets = (
        Question("one rated item more, of four", 1, ((0, 1),)),
        Question("two rated items or the two others, of four", 4, ((2, 3),)),
    )
    sets = (0, 0, 0, 0), (levels, 0, 0, 0), (levels, levels, 0, 0), (0, 0, levels, levels)
    return [
        Experiment(tuple((level,) for level in (*rated, 0)), tuple(questions)),
        of_profiles(*worst(3)),
        Experiment(sets, of_sets),
    ]


def planned_for_rounds(low: int, high: int) -> list[Experiment]:
    """Return what is compared of devices that answer about a model's parameters in rounds.

    These are profiles of a catalogue of two items, for gradients of the items' factors, and profiles of three
    of six items, in whole runs.
    """
    of_two = (high, 0), (low, 0), (0, 0), (high, low), (low, high), (high, high), (low, low)
    about_two = (
        Question("value of one rating", 1, ((0, 1),)),
        Question("one item rated or not", 1, ((0, 2), (1, 2))),
        Question("all ratings, through all rounds", 2, ((3, 4), (5, 6), (2, 5))),
    )
    of_six = (high, low, high, 0, 0, 0), (low, high, low, 0, 0, 0), (0, 0, 0, high, low, high)
    about_six = Question("three ratings of six items, through all rounds", 6, ((0, 1), (0, 2)))
    return [Experiment(of_two, about_two, separating=True), Experiment(of_six, (about_six,))]


def exact(test: str, unit: PrivacyUnit, promised: float, loss: float, **further: Any) -> Finding:
    """Return a finding of a loss that is known."""
    return Finding(test, unit, promised, loss, **{"charged": None, "exact": True, "power": 1.0, **further})


def sampled(
    test: str,
    unit: PrivacyUnit,
    promised: float,
    pairs: Sequence[tuple[Sent, Sent]],
    failure: float,
    delta: float = 0.0,
    charged: float | None = None,
) -> Finding:
    """Return how well samples tell the best of some pairs of profiles apart; see `measured`."""
    result = measured(pairs, failure, delta)
    power = result.power(promised)
    return Finding(test, unit, promised, result.at_least, charged, exact=False, power=power)


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
        eligible = [finding for finding in self.findings if not finding.holds] or self.sampled
        return max(eligible, key=lambda finding: finding.at_least / max(finding.promised, 1e-9))

    @property
    def sampled(self) -> list[Finding]:
        """The findings that hold a promise against samples."""
        return [finding for finding in self.findings if finding.promised and not finding.exact]

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
        return max((finding.power for finding in self.sampled), default=0.0)

    @property
    def verdict(self) -> str:
        """What the audit says of the promise, in words."""
        worst = self.worst
        if worst.defect:
            budget = f"epsilon = {worst.promised:.4g} per {worst.unit}"
            return f"{worst.test}: {budget} is promised, but {worst.defect}"
        partly = "".join(
            f"; {finding.test}: {finding.strength}" for finding in self.findings if finding.covers
        )
        likely = f"a twofold leak would be seen with probability {self.power:.2f} or more"
        strength = likely if self.power >= NOTHING_SEEN else "a twofold leak could not be seen"
        return f"no evidence against it; {strength}{partly}"

    def values(self) -> dict[str, Any]:
        """Return the contents of audit.json."""
        findings = [
            {
                **asdict(finding),
                "holds": finding.holds,
                "defect": finding.defect,
                "strength": finding.strength,
            }
            for finding in self.findings
        ]
        for fields in findings:
            del fields["covers"]  # its strength has it
        conclusion = {name: getattr(self, name) for name in _CONCLUSION}
        return {**formats.STAMP, **asdict(self), "findings": findings, **conclusion}

    def to_json(self) -> str:
        """Return audit.json."""
        return json.dumps(self.values(), indent=2) + "\n"


_CONCLUSION = ("holds", "promised", "lower_bound", "power", "verdict")
