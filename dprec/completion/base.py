"""What a completion method is given and what it returns."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.accounting import NoisySum, gaussian_epsilon, largest_mu
from dprec.arrays import offsets
from dprec.catalogue import Catalogue
from dprec.components import Options, is_ours, naming, option, reference_of
from dprec.errors import InputError
from dprec.mechanisms.noisy_counts import NoisyCounts
from dprec.mechanisms.symbol_reports import ProfileReports, ResidualReports, SymbolReports
from dprec.predictions import checked_predictions
from dprec.progress import Progress, silent
from dprec.ratings import RatingScale

LEAST_RATERS = 5
"""By default; benchmarks/choose_least_raters.py holds it against others."""

_BETWEEN_PROFILES = float(np.sqrt(2))
"""How much further two profiles are apart than one is from none."""


_BETWEEN_PROFILES = float(np.sqrt(2))
"""How much further two profiles are apart than one is from none."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingRelease(Options):
    """From how many raters on items have embeddings that everybody is sent, and with what noise."""

    least_raters: int = option(
        "Raters without whom an item has no embedding. Whether it has one shows in the table.",
        LEAST_RATERS,
        ge=1,
    )
    epsilon: float | None = option(
        "Budget of a user's item set against all who are sent the table, for embeddings and popularity; by "
        "default they have no noise. The server sees the sets in any case.",
        None,
        gt=0,
        le=1000,
    )
    delta: float = option("Delta with which it holds.", 1e-6, gt=1e-12, lt=1)

    @property
    def distance(self) -> float:
        """How many standard deviations a profile moves what is released, at most; 0 without noise."""
        return 0.0 if self.epsilon is None else largest_mu(self.epsilon, self.delta)

    @property
    def epsilon_between_profiles(self) -> float:
        """What the releases cost, with the same delta, between any two profiles of a user."""
        return gaussian_epsilon(_BETWEEN_PROFILES * self.distance, self.delta)

    @property
    def released(self) -> NoisySum:
        """What is released to everybody, for an accountant."""
        return NoisySum(self.distance, between_profiles=_BETWEEN_PROFILES)


AS_THEY_ARE = EmbeddingRelease(least_raters=1)
"""Where only the server reads the embeddings."""


@dataclass(frozen=True, eq=False)
class RatedSets:
    """Every user's item set, where that is known apart from the values."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    """By user, items ascending within a user; shape (cells,)."""
    n_users: int


@dataclass(frozen=True, eq=False)
class Observations:
    """The cells that the server saw as rated, by user, items ascending within a user."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    """Shape (cells,)."""
    values: NDArray[np.float64]
    """The ratings that the published decoder reads from the reports; may lie outside the scale;
    shape (cells,).
    """
    shape: tuple[int, int]
    """Users and items of the whole catalogue, observed or not."""
    scale: RatingScale
    """The scale of the true ratings."""
    noise_variance: float | None = None
    """Mean variance of a value given the true rating, due to the mechanism alone, in squared rating units;
    None if the server does not know the mechanism.
    """
    likelihood: NDArray[np.float64] | None = None
    """Probability of what was received given each level of the scale, for completions that ask for it
    (`Completion.needs_likelihood`); shape (cells, levels).
    """
    symbols: SymbolReports | None = None
    """The symbols themselves and the channels that they came through, for completions that ask for them
    (`Completion.needs_symbols`).
    """
    residuals: ResidualReports | None = None
    """Answers about residuals, instead of symbols, from mechanisms that compare a user's ratings."""
    catalogue: Catalogue | None = None
    """Public data about the items, if the data set has any."""
    counts: NoisyCounts | None = None
    """How many ratings of some cells reach a level; the symbols of these cells say nothing."""
    profiles: ProfileReports | None = None
    """Answers about whole profiles, instead of cells."""
    rated: RatedSets | None = None
    """Who rated which items, where the reports cannot be linked and this is known apart from them."""
    embedding_release: EmbeddingRelease = AS_THEY_ARE
    """What completions may read from the item sets as a whole, where all devices are sent what they learn."""

    @property
    def mean(self) -> float:
        """Mean observed value; the middle of the scale when nothing was observed."""
        return float(self.values.mean()) if self.values.size else (self.scale.low + self.scale.high) / 2

    def unlinked(self, *, with_sets: bool) -> Observations:
        """Return what arrives if every cell is a message of its own, in an order that says nothing.

        Every report is that of a user of its own. They come by item, and of one item by their symbols, or by
        their values where nothing is known of the symbols.

        Parameters
        ----------
        with_sets : bool
            Whether users say apart from that which items they rated.
        """
        reported = self.values if self.symbols is None else self.symbols.symbols
        order = np.lexsort((reported, self.items))
        symbols = self.symbols
        if symbols is not None:
            of_cell = symbols.symbols[order], symbols.channel_of[order]
            symbols = replace(symbols, symbols=of_cell[0], channel_of=of_cell[1])
        return replace(
            self,
            users=np.arange(order.size, dtype=np.int32),
            items=self.items[order],
            values=self.values[order],
            shape=(order.size, self.shape[1]),
            likelihood=None if self.likelihood is None else self.likelihood[order],
            symbols=symbols,
            rated=RatedSets(self.users, self.items, self.shape[0]) if with_sets else None,
        )

    @cached_property
    def by_user(self) -> sp.csr_array:
        """Pattern of the observed cells, users x items, with the position of each cell as data."""
        indptr = offsets(np.bincount(self.users, minlength=self.shape[0]))
        return sp.csr_array((np.arange(self.items.size), self.items, indptr), shape=self.shape)

    @cached_property
    def by_item(self) -> sp.csr_array:
        """The same by item: items x users."""
        return self.by_user.T.tocsr()


@dataclass(frozen=True, eq=False)
class Completed(ABC):
    """A completed rating matrix."""

    diagnostics: dict[str, Any] = field(kw_only=True, default_factory=dict)
    """What the method learned and how it ended, for the run's summary; JSON values only."""
    notes: tuple[str, ...] = field(kw_only=True, default=())
    """Sentences that a reader of the results must not miss."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Have the predictions of a user-defined class checked, and the class named if they are none."""
        super().__init_subclass__(**options)
        if "predict" in cls.__dict__ and not is_ours(cls):
            cls.predict = _checked_predict(cls.predict)  # type: ignore[method-assign]

    @abstractmethod
    def predict(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Predict the ratings of the given cells, shape (cells,); not clipped to the scale."""

    def predict_rows(self, users: NDArray[np.integer], n_items: int) -> NDArray[np.float64]:
        """Predict the ratings of all items by some users, shape (users, items).

        A model that computes rows in fewer steps than cells overrides it; the last bits may then differ.
        """
        rows, items = np.repeat(users, n_items), np.tile(np.arange(n_items), users.size)
        return self.predict(rows, items).reshape(users.size, n_items)


@dataclass(frozen=True, kw_only=True)
class Completion(Options):
    """Base of the completion methods.

    `needs_likelihood` and `needs_symbols` state whether the method uses these parts of `Observations`, and
    `works_unlinked` that it needs not know which reports are of one user.
    """

    kind: str = ""
    needs_likelihood: ClassVar[bool] = False
    needs_symbols: ClassVar[bool] = False
    works_unlinked: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Have a user-defined class named if it returns no completed matrix, or raises."""
        super().__init_subclass__(**options)
        if "fit" in cls.__dict__ and not is_ours(cls):
            cls.fit = _checked_fit(cls.fit)  # type: ignore[method-assign]

    def check_scale(self, scale: RatingScale) -> None:
        """Refuse a scale that the method cannot work on.

        Raises
        ------
        InputError
            Naming what to configure.
        """

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse settings that do not suit a catalogue of ``shape`` users x items.

        Raises
        ------
        InputError
            Naming the setting and what it may be.
        """

    @abstractmethod
    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> Completed:
        """Complete the matrix.

        Parameters
        ----------
        seed : int
            Seed of the initial factors and of randomised algebra.

        Raises
        ------
        RunError
            When the iteration diverges or meets a singular system; NaN is never returned.
        """


def _checked_predict(predict: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(predict)
    def checked(
        self: Completed, users: NDArray[np.integer], items: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        with naming(self, "one finite number for each cell"):
            predictions = predict(self, users, items)
        return checked_predictions(predictions, users.shape, reference_of(type(self)))

    return checked


def _checked_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    accepted = "a completed matrix, of a class derived from dprec.completion.Completed"

    @functools.wraps(fit)
    def checked(self: Completion, *given: Any, **named: Any) -> Completed:
        with naming(self, accepted):
            completed = fit(self, *given, **named)
        if not isinstance(completed, Completed):
            found = f"its fit returned {type(completed).__name__}"
            raise InputError(reference_of(type(self)), found, accepted)
        return completed

    return checked
