"""Reports that repeat: a device answers about each rating for good, and reports on its answer anew.

Permanent and instantaneous randomised response are those of RAPPOR [erlingsson2014]. What T reports say of a
rating is a channel of its own: how often each symbol was reported, in whatever order, is all that they say,
since they are independent given the answer. However many there are, they say no more than the answer does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import ClassVar, Protocol, Self

import numpy as np

from dprec.accounting import PrivacyUnit
from dprec.arrays import Floats, Ints, Uint16s
from dprec.channel import Channel
from dprec.errors import within
from dprec.observations import Observations, SymbolReports
from dprec.ratings import RatingScale
from dprec.reports.base import REPORT_ROUND, DrawsFor, HasChannel, ProfileLevels
from dprec.reports.cells import CellFamily

PERMANENT = "report"
"""Purpose of the words by which answers are drawn for good."""


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
    def of_buckets(cls, buckets: Ints, asked_buckets: Ints, epsilon: float) -> Self:
        """Answer for each of some buckets whether the rating is in it, for good: dBitFlipPM [ding2017].

        An answer is true with probability e^(epsilon / 2) / (e^(epsilon / 2) + 1), and is repeated as it is.
        Two levels differ in two buckets, or in one if the other is not asked about.

        Parameters
        ----------
        buckets : ndarray of int64, shape (levels,)
            The bucket of each level.
        asked_buckets : ndarray of int64, shape (asked,)
            Those that are asked about, drawn whatever the rating is.
        """
        bits = np.array(list(product((False, True), repeat=asked_buckets.size)), dtype=np.bool_)
        right = (buckets[:, None, None] == asked_buckets) == bits
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
        return np.array([np.bincount(sequence, minlength=symbols) for sequence in sent], dtype=np.int64)

    def repeated(self, reports: int) -> Floats:
        """Return Pr(saying | level) of so many reports, in the order of `said`; shape (levels, sayings)."""
        from scipy.special import gammaln, logsumexp, xlogy

        counts = self.said(reports)
        orders = gammaln(reports + 1) - gammaln(counts + 1).sum(axis=1)
        # The log probability of reports in some order, given each level; shape (sayings, levels).
        of_answers = xlogy(counts[:, None, :], self.instantaneous).sum(axis=2)
        with np.errstate(divide="ignore"):
            permanent = np.log(self.permanent)
        log_likelihoods = logsumexp(permanent + of_answers[:, None, :], axis=2)
        rows = np.exp(log_likelihoods + orders[:, None]).T
        return rows / rows.sum(axis=1, keepdims=True)


class HasLayers(HasChannel, Protocol):
    """A mechanism of which each answer is permanent, of one of several pairs of channels."""

    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return the pairs, of which a device draws one for each rating, all equally likely."""


@dataclass(frozen=True, eq=False)
class LayeredFamily(CellFamily):
    """A symbol for each rated item: which channels were drawn for it, and a report on its answer.

    The permanent answer and its channels are drawn by the words of the purpose "report", which repeat where
    devices have a memory, and the report on it by words of its own. What any number of reports loses is what
    the answer loses, and that is charged for each of them.
    """

    mechanism: HasLayers
    one_channel: ClassVar[bool] = True
    composes: ClassVar[bool] = False
    units: ClassVar[tuple[PrivacyUnit, ...]] = ("rating",)
    units_reason: ClassVar[str] = "an answer is permanent, however many ratings its user will have"

    @cached_property
    def layers(self) -> Sequence[Layers]:
        """The pairs of channels; all of them have as many answers, and as many symbols."""
        assert self.budget is not None
        with within("mechanism"):
            return self.mechanism.layers(self.scale, self.budget.epsilon)

    @cached_property
    def instantaneous(self) -> Channel:
        """The channel of a report on an answer, which loses what it may: the answer is protected."""
        rows = self.layers[0].instantaneous
        return Channel.from_probabilities(rows, np.arange(len(rows)), np.arange(rows.shape[1]), np.inf)

    @cached_property
    def reference_channel(self) -> Channel:
        """The channel of a report by itself, with the values that are best, in the mean, for all levels."""
        first = np.hstack([pair.permanent @ pair.instantaneous for pair in self.layers]) / len(self.layers)
        values = np.linalg.pinv(first) @ self.scale.values
        return Channel.from_probabilities(first, self.scale.values, values, np.inf)

    def drawn(self, profiles: ProfileLevels, draws: DrawsFor) -> Uint16s:
        """Return reports on the answers about the rated items, shape (ratings,)."""
        counts, items, answers = profiles.counts, profiles.items, self.layers[0].permanent.shape[1]
        lasting = draws("report").per_cell(counts, items, REPORT_ROUND)
        anew = draws("report on an answer").per_cell(counts, items, REPORT_ROUND)
        pairs, answer = np.divmod(self.channel(1).sample(profiles.levels, lasting), np.uint16(answers))
        reported = self.instantaneous.sample(answer + np.uint16(1), anew)
        return pairs * np.uint16(self.instantaneous.symbols) + reported

    def together(self, collected: Observations) -> Observations:
        """Return what reports about the same ratings say together: a cell for each rating.

        They are read as reports on one answer, the last one that can be told from others: those before it
        were of a rating that has changed.

        Parameters
        ----------
        collected : Observations
            By user, items ascending, a cell for each report.
        """
        reports = collected.symbols
        assert reports is not None
        symbols, (begins, times) = self.instantaneous.symbols, collected.repeats
        last = begins + times - 1
        pair, of_cell = reports.symbols[last] // symbols, np.repeat(np.arange(begins.size), times)
        counted = np.flatnonzero(reports.symbols // symbols == pair[of_cell])
        if np.array_equal(self.layers[0].instantaneous, np.eye(symbols)):
            counted = last  # A report is the answer itself, so that the next one says nothing more.
        symbol_counts = np.zeros((begins.size, symbols), dtype=np.int64)
        np.add.at(symbol_counts, (of_cell[counted], reports.symbols[counted] % symbols), 1)
        return collected.merged(self._told(symbol_counts, pair), collected.noise_variance)

    def _told(self, symbol_counts: Ints, pair: Ints) -> SymbolReports:
        """Return what is said of each cell as a symbol of a channel of several reports."""
        reports = symbol_counts.sum(axis=1)
        kinds, channel_of = np.unique(np.column_stack([pair, reports]), axis=0, return_inverse=True)
        channels, sayings = [], np.zeros(reports.size, dtype=np.int64)
        for number, (pair_number, times) in enumerate(kinds.tolist()):
            layers, which = self.layers[pair_number], channel_of == number
            channels.append(layers.repeated(times))
            codes = _coded(layers.said(times))
            order = np.argsort(codes)
            sayings[which] = order[np.searchsorted(codes[order], _coded(symbol_counts[which]))]
        return SymbolReports(tuple(channels), sayings, channel_of)


def _coded(counts: Ints) -> Ints:
    """Return a number for each row of counts, which differ if the rows do; their sums are all the same."""
    base = int(counts[:1].sum()) + 1
    return counts @ base ** np.arange(counts.shape[1], dtype=np.int64)
