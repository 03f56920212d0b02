"""Reports that repeat: a permanent answer about a rating, drawn once, and reports on it, drawn every time.

Permanent and instantaneous randomised response are those of RAPPOR [erlingsson2014]. What T reports say of a
rating is a channel of its own: how often each symbol was reported, in whatever order, is all that they say,
since they are independent given the answer. However many there are, they say no more than the answer does.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product
from typing import ClassVar, Literal, Self

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.channel import Channel
from dprec.components import option
from dprec.errors import SettingError
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.thresholds import fixed_threshold
from dprec.randomness import generator
from dprec.ratings import RatingScale
from dprec.reports import LayeredFamily, ReportFamily

_MOST_SYMBOLS = 4096
"""Of what reports can say together."""


def response(epsilon: float, answers: int) -> Floats:
    """Return randomised response over some answers: e^(epsilon [x = z]) / (e^epsilon + answers - 1)."""
    # Scaled by e^-epsilon, so that a large budget does not overflow.
    weights = np.where(np.eye(answers) > 0, 1.0, math.exp(-epsilon))
    return weights / weights.sum(axis=1, keepdims=True)


def instantaneous_epsilon(epsilon: float, first: float) -> float:
    """Return the budget of a report on an answer at epsilon with which the first report loses ``first``.

    (e^(epsilon + first) - 1) / (e^epsilon - e^first), as in L-GRR [arcolezi2022] and LOLOHA
    [arcolezi2023]. Of two answers that is exact; of more, the first report loses less than they say. Raises
    ValueError unless 0 < first < epsilon.
    """
    if not 0 < first < epsilon:
        raise ValueError(f"a first report at {first:g} on an answer at {epsilon:g}")
    return math.log((math.exp(first) - math.exp(-epsilon)) / -math.expm1(first - epsilon))


@dataclass(frozen=True, eq=False)
class Layers:
    """The two channels of reports about one rating that does not change."""

    permanent: Floats
    """Pr(answer | level); shape (levels, answers)."""
    instantaneous: Floats
    """Pr(symbol | answer); shape (answers, symbols)."""

    @classmethod
    def of_classes(cls, classes: Ints, answers: int, epsilon: float, first: float) -> Self:
        """Answer to which class a level belongs, at epsilon for good and at ``first`` in one report.

        Two classes on both sides of a threshold are RAPPOR's response about one bit [erlingsson2014], a class
        for every level is L-GRR [arcolezi2022], and classes that a public hash function has drawn for this
        rating are LOLOHA [arcolezi2023].

        Parameters
        ----------
        classes : ndarray of int64, shape (levels,)
            From 0 to ``answers`` - 1.
        """
        instantaneous = response(instantaneous_epsilon(epsilon, first), answers)
        return cls(response(epsilon, answers)[classes], instantaneous)

    @classmethod
    def of_buckets(cls, buckets: Ints, asked: Ints, epsilon: float) -> Self:
        """Answer for each of some buckets whether the rating is in it, for good: dBitFlipPM [ding2017].

        An answer is true with probability e^(epsilon / 2) / (e^(epsilon / 2) + 1), and is repeated as it is.
        Two levels differ in two buckets, or in one if the other is not asked about.

        Parameters
        ----------
        buckets : ndarray of int64, shape (levels,)
            The bucket of each level.
        asked : ndarray of int64, shape (asked,)
            Those that are asked about, drawn whatever the rating is.
        """
        bits = np.array(list(product((False, True), repeat=asked.size)), dtype=np.bool_)
        right = (buckets[:, None, None] == asked) == bits
        permanent = np.where(right, 1.0, math.exp(-epsilon / 2)).prod(axis=2)
        return cls(permanent / permanent.sum(axis=1, keepdims=True), np.eye(len(bits)))

    @property
    def first(self) -> Floats:
        """Pr(symbol | level) of a report by itself; shape (levels, symbols)."""
        return self.permanent @ self.instantaneous

    def said(self, reports: int) -> Ints:
        """Return what so many reports can say: how often each symbol was sent, shape (sayings, symbols).

        Raises ValueError for so many that they cannot be listed.
        """
        symbols = self.instantaneous.shape[1]
        if math.comb(reports + symbols - 1, symbols - 1) > _MOST_SYMBOLS:
            raise ValueError(f"{reports} reports of {symbols} symbols")
        sent = combinations_with_replacement(range(symbols), reports)
        return np.array([np.bincount(each, minlength=symbols) for each in sent], dtype=np.int64)

    def repeated(self, reports: int) -> Floats:
        """Return Pr(saying | level) of so many reports, in the order of `said`; shape (levels, sayings)."""
        from scipy.special import gammaln, logsumexp, xlogy

        counts = self.said(reports)
        orders = gammaln(reports + 1) - gammaln(counts + 1).sum(axis=1)
        # The log probability of reports in some order, given each level; shape (sayings, levels).
        of_answers = xlogy(counts[:, None, :], self.instantaneous).sum(axis=2)
        with np.errstate(divide="ignore"):
            permanent = np.log(self.permanent)
        given = logsumexp(permanent + of_answers[:, None, :], axis=2)
        rows = np.exp(given + orders[:, None]).T
        return rows / rows.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class LayeredMechanism(Mechanism):
    """Base of the mechanisms whose devices answer for good, and report on the answer whenever they are asked.

    The budget is that of the answer, and so of all reports on a rating that does not change.
    """

    report_family: ClassVar[type[ReportFamily]] = LayeredFamily

    @abstractmethod
    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return pairs of channels, of which a device draws one for each rating, all equally likely."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of the pair that is drawn and of the permanent answer."""
        answers = np.hstack([each.permanent for each in self.layers(scale, epsilon)])
        values = np.linalg.pinv(answers / answers.sum(axis=1, keepdims=True)) @ scale.values
        return Channel.from_probabilities(answers, scale.values, values, epsilon)


@dataclass(frozen=True, kw_only=True)
class TwoLayers(LayeredMechanism):
    """Whether a rating reaches a threshold, by the two responses of RAPPOR [erlingsson2014] about one bit."""

    kind: Literal["two-layers"] = "two-layers"
    papers: ClassVar[tuple[str, ...]] = ("erlingsson2014", "warner1965")
    threshold: float | Literal["middle"] = option(
        "Least rating whose bit is 1; or middle, for the first level above the middle of the scale.", "middle"
    )
    first: float = option("What the first report loses, as a share of epsilon.", 0.5, gt=0, lt=1)

    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return the one pair."""
        bits = (scale.values >= fixed_threshold(scale, self.threshold)).astype(np.int64)
        return (Layers.of_classes(bits, 2, epsilon, self.first * epsilon),)


_FUNCTIONS, _MOST_ANSWERS = 16, 3
"""Hash functions that there are, and answers to which they map; more make likelihoods too large."""


@dataclass(frozen=True, kw_only=True)
class LocalHashing(LayeredMechanism):
    """To which number a hash function maps the level, twice by randomised response: LOLOHA [arcolezi2023].

    The function is one of a few that are public; a device draws it for each rating and sends which it is.
    """

    kind: Literal["local-hashing"] = "local-hashing"
    papers: ClassVar[tuple[str, ...]] = ("arcolezi2023",)
    answers: int | None = option(
        "Numbers to which levels are mapped, g in the paper; 2 is BiLOLOHA, and by default the paper's "
        "optimum, up to 3.",
        None,
        ge=2,
        le=_MOST_ANSWERS,
    )
    first: float = option("What the first report loses, as a share of epsilon: alpha.", 0.5, gt=0, lt=1)

    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return a pair for each hash function.

        By default, levels are hashed to as many answers as have the least variance of counts, at least 2, for
        frequencies of a large domain; 2 is BiLOLOHA.
        """
        first = self.first * epsilon
        a, b = math.exp(epsilon), math.exp(first)
        root = math.sqrt(a**4 - 14 * a**2 - 12 * (a * b) ** 2 + 12 * a * b + 12 * a**3 * b + 1)
        best = max(2, round((root - a**2 + 6 * a - 6 * b + 1) / (6 * (a - b))))
        answers = self.answers or min(best, _MOST_ANSWERS)
        drawn = generator(0, "hash functions of levels").integers(answers, size=(_FUNCTIONS, scale.levels))
        return [Layers.of_classes(classes, answers, epsilon, first) for classes in drawn]


@dataclass(frozen=True, kw_only=True)
class BucketBits(LayeredMechanism):
    """Whether a rating is in each of some buckets, drawn for it, for good: dBitFlipPM [ding2017]."""

    kind: Literal["bucket-bits"] = "bucket-bits"
    papers: ClassVar[tuple[str, ...]] = ("ding2017",)
    buckets: int = option("Buckets into which the scale is cut, of as many levels each: b.", 2, ge=2, le=8)
    bits: int = option("Buckets that are asked about: d.", 1, ge=1, le=4)

    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return a pair for each choice of buckets."""
        if self.buckets > scale.levels:
            raise SettingError(
                "buckets", f"{self.buckets}", f"at most {scale.levels}, the levels of the scale"
            )
        if self.bits > self.buckets:
            raise SettingError("bits", f"{self.bits}", f"at most {self.buckets}, the buckets")
        own = np.arange(scale.levels) * self.buckets // scale.levels
        choices = combinations(range(self.buckets), self.bits)
        return [Layers.of_buckets(own, np.array(asked), epsilon) for asked in choices]
