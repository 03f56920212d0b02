"""A mechanism and its family of reports as somebody outside would write them: bits about a few residuals.

It says what `residual-bits` says, in a format of its own: the set of rated items, and for each of them a word
for no answer, below or above.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dprec.arrays import offsets, places_of, rows_of
from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms import Mechanism
from dprec.observations import Observations, ResidualReports
from dprec.randomness import shuffled_within
from dprec.ratings import RatingScale
from dprec.reports import IndependentDraws, ReportFamily, ReportReader, ReportSize
from dprec.wire import ReportCodec
from tests import make

_NOTHING, _ROUND = 0, 1


@dataclass(frozen=True, eq=False)
class OwnFamily(IndependentDraws):
    """One answer about each of a few ratings: whether it is above its user's mean."""

    by_cell: ClassVar[bool] = False
    evidence: ClassVar[type] = ResidualReports
    units: ClassVar[tuple[str, ...]] = ("user",)
    units_reason: ClassVar[str] = "every answer depends on all ratings"

    def check(self):
        _ = self.codec

    @property
    def most(self):
        return min(self.mechanism.bits, self.n_items)

    def cells(self, counts):
        return np.minimum(counts, self.most)

    def channel(self, cells):
        return super().channel(min(cells, self.most))

    @cached_property
    def codec(self):
        words = np.tile([0.9, 0.05, 0.05], (self.scale.levels, 1))
        return ReportCodec(
            Channel.from_probabilities(words, self.scale.values, np.ones(3), np.inf), self.n_items
        )

    def encode(self, profiles, draws):
        counts, levels = profiles.counts, profiles.levels
        of_cell = [draws(use).per_cell(counts, profiles.items, _ROUND) for use in ("which", "answers")]
        chosen = np.zeros(levels.size, dtype=bool)
        chosen[shuffled_within(rows_of(counts), of_cell[0])[places_of(counts) < self.most]] = True
        ratings, users = self.scale.values[levels - 1], rows_of(counts)
        above = ratings * counts[users] > np.bincount(users, ratings, counts.size)[users]
        sides = np.where(above, self.scale.levels, 1).astype(np.uint8)
        words = np.full(levels.size, _NOTHING, dtype=np.uint16)
        for size in np.unique(self.cells(counts)).tolist():
            own = chosen & (self.cells(counts)[users] == size)
            if own.any():
                words[own] = 1 + self.channel(size).sample(sides[own], of_cell[1][own])
        return self.codec.encode(offsets(counts), profiles.items, words)

    def reader(self, n_users, wanted):
        return OwnReader(self, n_users)

    def losses(self, counts, asked=None):
        per_answer, per_user = super().losses(counts)
        return np.where(np.isnan(per_answer), np.nan, per_user), per_user

    def size(self, ratings):
        cells = int(self.cells(np.array([ratings]))[0])
        bits = self.codec.expected_bits(ratings)
        return ReportSize(2, cells, bits, self.channel(cells).epsilon, "user")

    def answers_about(self, entries):
        return int(self.cells(np.array([entries]))[0])

    def audited_symbols(self, exchange, reports, items):
        decoded = self.codec.decode(reports)
        words = np.zeros((len(reports), self.n_items), dtype=np.int64)
        words[rows_of(np.diff(decoded.indptr)), decoded.items] = decoded.symbols
        return words


class OwnReader(ReportReader):
    """The answers, and the items that were rated."""

    def __init__(self, family: OwnFamily, n_users: int) -> None:
        self.family, self.n_users = family, n_users
        self.users, self.items, self.words = [], [], []

    def take(self, users: np.ndarray, reports: Sequence[bytes]) -> np.ndarray:
        decoded = self.family.codec.decode(reports)
        self.users.append(np.repeat(users, np.diff(decoded.indptr)))
        self.items.append(decoded.items)
        self.words.append(decoded.symbols)
        return decoded.valid

    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        family = self.family
        users = np.concatenate(self.users).astype(np.int32)
        items, words = np.concatenate(self.items).astype(np.int32), np.concatenate(self.words)
        counts = np.bincount(users, minlength=self.n_users)
        sizes = np.maximum(family.cells(counts), 1)
        lies = np.array([family.channel(int(size)).probabilities[0, 1] for size in sizes])
        answered = np.flatnonzero(words != _NOTHING)
        middle = (family.scale.low + family.scale.high) / 2
        return make.observations(
            users,
            items,
            np.full(items.size, middle),
            (self.n_users, family.n_items),
            family.scale,
            evidence=ResidualReports(answered, words[answered] == 2, lies[users[answered]]),
            catalogue=catalogue,
        )


@dataclass(frozen=True, kw_only=True)
class OwnBits(Mechanism):
    """Whether a few ratings are above the mean of their user's."""

    report_family: ClassVar[type[ReportFamily]] = OwnFamily
    bits: int = option("Ratings that are answered about.", 1, ge=1)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        truth = np.where(scale.values > (scale.low + scale.high) / 2, 1, 0)
        honest = np.exp(epsilon) / (1 + np.exp(epsilon))
        rows = np.where(truth[:, None] == np.arange(2), honest, 1 - honest)
        return Channel.from_probabilities(rows, scale.values, [scale.low, scale.high], epsilon)


class Longer(OwnFamily):
    """A family whose report is a byte longer if the user's first rating is above the middle."""

    def encode(self, profiles, draws):
        reports = super().encode(profiles, draws)
        firsts = offsets(profiles.counts)[:-1][profiles.counts > 0]
        above = np.zeros(profiles.counts.size, dtype=bool)
        above[profiles.counts > 0] = 2 * profiles.levels[firsts] > self.scale.levels + 1
        return [report + bytes(more) for report, more in zip(reports, above.tolist(), strict=True)]

    def reader(self, n_users, wanted):
        return LongerReader(self, n_users)

    def read(self, reports):
        """Return the reports without the byte."""
        valid = self.codec.decode(reports).valid.tolist()
        return [
            report if fits or report[-1:] != b"\0" else report[:-1]
            for report, fits in zip(reports, valid, strict=True)
        ]

    def audited_symbols(self, exchange, reports, items):
        return super().audited_symbols(exchange, self.read(reports), items)


class LongerReader(OwnReader):
    """What reads them."""

    def take(self, users, reports):
        return super().take(users, self.family.read(reports))


@dataclass(frozen=True, kw_only=True)
class LongerBits(OwnBits):
    """Whether a rating is above the mean of its user's, and the first one above the middle."""

    report_family: ClassVar[type[ReportFamily]] = Longer
