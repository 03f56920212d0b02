"""Reports on permanent answers: a device answers about each rating for good, and reports on it anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from dprec.accounting import PrivacyUnit
from dprec.arrays import Floats, Ints, Uint16s
from dprec.channel import Channel
from dprec.errors import within
from dprec.observations import Observations, SymbolReports
from dprec.ratings import RatingScale
from dprec.reports.base import REPORT_ROUND, DrawsFor, HasChannel, Profiles
from dprec.reports.cells import CellFamily

PERMANENT = "report"
"""Purpose of the words by which answers are drawn for good."""


class Layered(Protocol):
    """The channels of a report about one rating; see `dprec.mechanisms.layers.Layers`."""

    permanent: Floats
    instantaneous: Floats

    def said(self, reports: int) -> Ints:
        """Return what so many reports can say, shape (sayings, symbols)."""

    def repeated(self, reports: int) -> Floats:
        """Return the channel of so many reports, shape (levels, sayings)."""


class HasLayers(HasChannel, Protocol):
    """A mechanism of which each answer is permanent, of one of several pairs of channels."""

    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layered]:
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
    def layers(self) -> Sequence[Layered]:
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
        first = np.hstack([each.permanent @ each.instantaneous for each in self.layers]) / len(self.layers)
        values = np.linalg.pinv(first) @ self.scale.values
        return Channel.from_probabilities(first, self.scale.values, values, np.inf)

    def drawn(self, profiles: Profiles, draws: DrawsFor) -> Uint16s:
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
        said = np.zeros((begins.size, symbols), dtype=np.int64)
        np.add.at(said, (of_cell[counted], reports.symbols[counted] % symbols), 1)
        return collected.merged(self._told(said, pair), collected.noise_variance)

    def _told(self, said: Ints, pair: Ints) -> SymbolReports:
        """Return what is said of each cell as a symbol of a channel of several reports."""
        reports = said.sum(axis=1)
        kinds, channel_of = np.unique(np.column_stack([pair, reports]), axis=0, return_inverse=True)
        channels, sayings = [], np.zeros(reports.size, dtype=np.int64)
        for number, (own, times) in enumerate(kinds.tolist()):
            layers, which = self.layers[own], channel_of == number
            channels.append(layers.repeated(times))
            codes = _coded(layers.said(times))
            order = np.argsort(codes)
            sayings[which] = order[np.searchsorted(codes[order], _coded(said[which]))]
        return SymbolReports(tuple(channels), sayings, channel_of)


def _coded(said: Ints) -> Ints:
    """Return a number for each row of counts, which differ if the rows do; their sums are all the same."""
    base = int(said[:1].sum()) + 1
    return said @ base ** np.arange(said.shape[1], dtype=np.int64)
