"""From the budget in a configuration to the channel that each user's device applies.

A budget per rating or per cell gives one channel for everybody. A budget per user is divided evenly
among the cells that the user reports, by their sum or by what they cost when composed, so users with
different numbers of ratings apply different channels of the same family; the server sees how many cells a
user reports anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.errors import InputError, SettingError, within
from dprec.exact_loss import even_share
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.symbol_reports import HiddenSets, SymbolReports
from dprec.options import Options, option
from dprec.privacy.composed_budget import largest_share
from dprec.privacy.units import PrivacyUnit
from dprec.ratings import RatingScale
from dprec.wire.report import ReportCodec

LARGEST_CELL_EPSILON = 20.0
"""Largest loss of one cell for which whole draws out of 2**60 preserve the ratios that epsilon requires."""

DELTA = 1e-6
"""Default: less than one in the number of users of any data set here."""

SMALLEST_DELTA, LARGEST_DELTA = 1e-9, 0.1
"""Range of delta: what floating-point numbers can tell from 0, and what is still small."""

_SMALLEST_CELL_EPSILON = 1e-9


@dataclass(frozen=True, kw_only=True)
class PrivacyBudget(Options):
    """What is guaranteed: epsilon, and for what; see `dprec.privacy.units`."""

    epsilon: float = option("Privacy loss, in natural logarithms.", gt=0)
    per: PrivacyUnit = option("What the loss is guaranteed for.", "rating")
    composition: Literal["sum", "pld"] = option(
        "How the draws about a user share a budget per user: by the sum of their losses, or by their privacy "
        "loss distributions, so that (epsilon, delta) holds.",
        "sum",
    )
    delta: float = option(
        "Probability beyond which composed losses hold; sums hold without.",
        DELTA,
        ge=SMALLEST_DELTA,
        le=LARGEST_DELTA,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.composition == "pld" and self.per != "user":
            accepted = "'sum', or per: user, which is what draws are composed for"
            raise SettingError("composition", f"'pld' per {self.per}", accepted)

    def share(
        self,
        channel: Callable[[float], Channel],
        draws: int,
        *,
        most: float = math.inf,
        guess: float | None = None,
    ) -> float:
        """Return the budget of each of a user's draws, at most ``most``; see `largest_share`."""
        if self.composition == "sum":
            return min(even_share(self.epsilon, draws), most)
        return largest_share(channel, draws, self.epsilon, self.delta, most=most, guess=guess)


@dataclass(frozen=True, eq=False)
class CalibratedMechanism:
    """A mechanism at a budget, for one scale and one catalogue.

    Parameters
    ----------
    mechanism : Mechanism
    budget : PrivacyBudget or None
        None for a mechanism that is not private.
    scale : RatingScale
    n_items : int

    Raises
    ------
    SettingError
        When mechanism and budget are incompatible; the keys begin with "mechanism" and "privacy".
    """

    mechanism: Mechanism
    budget: PrivacyBudget | None
    scale: RatingScale
    n_items: int
    compares_ratings: ClassVar[bool] = False
    _channels: dict[int, Channel] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        name = self.mechanism.kind
        if self.mechanism.compares_ratings and not self.compares_ratings:
            accepted = "a mechanism that treats each rating by itself, or protocol one-shot"
            raise SettingError("mechanism", name, accepted)
        if self.mechanism.private and self.budget is None:
            raise SettingError("privacy", f"none, with mechanism {name}", "an epsilon")
        if not self.mechanism.private and self.budget is not None:
            raise SettingError(
                "privacy",
                f"an epsilon, with mechanism {name}",
                "no privacy key: this mechanism protects nothing",
            )
        if self.budget and self.budget.per == "cell" and not self.mechanism.hides_rated_items:
            raise SettingError(
                "privacy.per",
                f"'cell', with mechanism {name}",
                "'rating' or 'user': this mechanism reveals the rated items",
            )
        if self.budget and self.budget.per != "user" and self.budget.epsilon > LARGEST_CELL_EPSILON:
            raise SettingError(
                "privacy.epsilon",
                f"{self.budget.epsilon:g} per {self.budget.per}",
                f"at most {LARGEST_CELL_EPSILON:g}; beyond it there is practically no noise",
            )

    def _check_per_user(self, reason: str) -> None:
        """Refuse a budget that is not per user, with the reason why it has to be."""
        if self.budget is not None and self.budget.per != "user":
            found = f"{self.budget.per!r}, with mechanism {self.mechanism.kind}"
            raise SettingError("privacy.per", found, f"'user': {reason}")

    def cells(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many cells users report who have ``counts`` ratings, shape (users,)."""
        return np.full_like(counts, self.n_items) if self.mechanism.hides_rated_items else counts

    def channel(self, cells: int) -> Channel:
        """Return the channel of a user who reports ``cells`` cells."""
        key = cells if self.budget and self.budget.per == "user" else 1
        if key not in self._channels:
            self._channels[key] = self._built(key)
        return self._channels[key]

    def _built(self, cells: int) -> Channel:
        """Return the channel of one of ``cells`` cells, after checking that it keeps to its budget."""
        if self.budget is None:
            with within("mechanism"):
                return self.mechanism.channel(self.scale, math.inf)
        # Users with few cells may have more budget than a channel can spend; the rest stays unspent.
        epsilon = self._share(self.budget, cells)
        channel = self._within(epsilon)
        if channel is None:
            shares = f"{self.budget.epsilon:g} leaves {epsilon:g} per cell"
            raise SettingError(
                "privacy.epsilon",
                f"{shares}, which {self.mechanism.kind} cannot keep",
                "a larger epsilon, or fewer symbols",
            )
        return channel

    def _within(self, epsilon: float) -> Channel | None:
        """Return the mechanism's channel at epsilon; None if whole draws are too coarse, or it costs more."""
        if epsilon < _SMALLEST_CELL_EPSILON:
            return None
        try:
            with within("mechanism"):
                channel = self._at(epsilon)
        except InputError:
            raise
        except ValueError:
            return None
        return channel if channel.epsilon <= epsilon else None

    def _at(self, epsilon: float) -> Channel:
        """Return the mechanism's channel at the budget of one cell."""
        return self.mechanism.channel(self.scale, epsilon)

    def _share(self, budget: PrivacyBudget, cells: int) -> float:
        """Return the budget of one of ``cells`` cells."""
        even = even_share(budget.epsilon, cells)
        if even < _SMALLEST_CELL_EPSILON:
            return even
        try:
            with within("mechanism"):
                return budget.share(
                    self._at,
                    cells,
                    most=LARGEST_CELL_EPSILON,
                    guess=self._guess(budget, cells),
                )
        except InputError:
            raise
        except ValueError:
            # Whole draws are too coarse for a share that was tried.
            return even

    def _guess(self, budget: PrivacyBudget, cells: int) -> float | None:
        """Return where to look for a composed share: near that of the power of two below the cells."""
        power = 1 << (cells.bit_length() - 1)
        if budget.composition == "sum" or power == cells:
            return None
        return self.channel(power).epsilon * math.sqrt(power / cells)

    @property
    def reference_channel(self) -> Channel:
        """The channel for which the codec is built; with a budget per user, that of the longest report."""
        return self.channel(self.n_items)

    def codec(self) -> ReportCodec:
        """Return the encoder and decoder of the reports, with words for the symbols of any user's channel."""
        return ReportCodec(self.reference_channel, self.n_items, self.channel(1).symbols)

    def perturb(
        self, cells: NDArray[np.int64], levels: NDArray[np.uint8], random_words: NDArray[np.uint64]
    ) -> NDArray[np.uint16]:
        """Send the cells of a cohort through each user's channel.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells that each user reports.
        levels : ndarray of uint8, shape (sum of cells,)
            By user; 0 is "not rated".
        random_words : ndarray of uint64, shape (sum of cells,)

        Returns
        -------
        ndarray of uint16, shape (sum of cells,)
        """
        symbols = np.empty(levels.size, dtype=np.uint16)
        for channel, which in self._by_channel(cells):
            symbols[which] = channel.sample(levels[which], random_words[which])
        return symbols

    def read(self, cells: NDArray[np.int64], symbols: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the value that each symbol stands for, undoing the encoding of `perturb`, not its noise.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells with a symbol, by user.
        symbols : ndarray of uint16, shape (sum of cells,)
        """
        if self.mechanism.hides_rated_items:
            return self.reference_channel.values[symbols]
        values = np.empty(symbols.size)
        for channel, which in self._by_channel(cells):
            values[which] = channel.values[symbols[which]]
        return values

    def likelihood(self, cells: NDArray[np.int64], symbols: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the probability of each symbol given each level of the scale, shape (cells, levels).

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells with a symbol, by user.
        symbols : ndarray of uint16, shape (sum of cells,)
        """
        if self.mechanism.hides_rated_items:
            return self.reference_channel.probabilities[1:, symbols].T
        given = np.empty((symbols.size, self.scale.levels))
        for channel, which in self._by_channel(cells) if symbols.size else ():
            given[which] = channel.probabilities[:, symbols[which]].T
        return given

    def symbol_reports(
        self,
        cells: NDArray[np.int64],
        symbols: NDArray[np.uint16],
        reported: NDArray[np.bool_] | None = None,
    ) -> SymbolReports:
        """Return symbols with the channels through which they were sent.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells with a symbol, by user.
        symbols : ndarray of uint16, shape (sum of cells,)
        reported : ndarray of bool, shape (users,), optional
            Whose report was accepted; by default everybody's.
        """
        of_cell = np.zeros(symbols.size, dtype=np.int64)
        if self.mechanism.hides_rated_items:
            channel, everybody = self.reference_channel, np.ones(cells.size, dtype=np.bool_)
            unrated, unsent = channel.probabilities[0], np.isnan(channel.values)
            hidden = HiddenSets(unrated, unsent, everybody if reported is None else reported)
            return SymbolReports((channel.probabilities[1:],), symbols.astype(np.int64), of_cell, hidden)
        channels = []
        for number, (channel, which) in enumerate(self._by_channel(cells)) if symbols.size else ():
            channels.append(channel.probabilities)
            of_cell[which] = number
        channels = channels or [self.reference_channel.probabilities]
        return SymbolReports(tuple(channels), symbols.astype(np.int64), of_cell)

    def noise_variance(self, cells: NDArray[np.int64]) -> float | None:
        """Return the mean variance of the value read for a rating, over the levels and the users' reports.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells that each user's report shows as rated.

        Returns
        -------
        float or None
            None if nothing is reported, or no noise is added to the ratings.
        """
        if self.budget is None or not cells.any():
            return None
        if self.mechanism.hides_rated_items:
            return _mean_variance(self.reference_channel)
        sizes, users = np.unique(cells[cells > 0], return_counts=True)
        variances = [_mean_variance(self.channel(size)) for size in sizes.tolist()]
        return float(np.average(variances, weights=sizes * users))

    def losses(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the exact losses, per rating and per user, of users with ``counts`` ratings.

        Returns
        -------
        per_rating, per_user : ndarray of float64, shape (users,)
            The cells of a report are perturbed independently, so a whole profile costs their sum.
            If the rated items are revealed, profiles are compared on the same items, and a user
            without ratings has spent nothing and has no loss per rating (NaN).
        """
        cells = self.cells(counts)
        sizes, of_user = np.unique(cells, return_inverse=True)
        per_cell = np.array([self.channel(size).epsilon if size else np.nan for size in sizes.tolist()])
        per_rating = per_cell[of_user]
        return per_rating, np.where(cells > 0, per_rating * np.maximum(cells, 1), 0.0)

    def _by_channel(self, cells: NDArray[np.int64]) -> Iterator[tuple[Channel, NDArray[np.int64] | slice]]:
        sizes = np.unique(cells[cells > 0]).tolist()
        if len({id(self.channel(size)) for size in sizes}) == 1:
            yield self.channel(sizes[0]), slice(None)
            return
        size_of_cell = np.repeat(cells, cells)
        for size in sizes:
            yield self.channel(size), np.flatnonzero(size_of_cell == size)


def _mean_variance(channel: Channel) -> float:
    """Return the variance of the value read for a rating, averaged over the levels."""
    return float(channel.variance()[~np.isnan(channel.inputs)].mean())
