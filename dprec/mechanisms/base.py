"""What every mechanism is: a recipe for a channel, given a rating scale and a privacy budget."""

import functools
import math
from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats, Uint8s
from dprec.channel import Channel
from dprec.components import Options, is_ours, naming, reference_of
from dprec.errors import InputError, shown
from dprec.randomness import DRAWS
from dprec.ratings import RatingScale
from dprec.reports import CellFamily, MixedFamily, ReportFamily, SampledRatingsFamily

_STARS = RatingScale.evenly(1, 5, 1)


@dataclass(frozen=True, kw_only=True)
class Mechanism(Options):
    """Base of the local mechanisms.

    A subclass sets `private` to False when it takes no budget, `sends_values` to False when nothing that is
    sent depends on how an item was rated, and `report_family` to what its reports are, if they are not one
    symbol for each rated item: see `dprec.reports`.
    """

    kind: str = ""
    private: ClassVar[bool] = True
    sends_values: ClassVar[bool] = True
    report_family: ClassVar[type[ReportFamily]] = CellFamily
    # A loss is that of the matrix, whoever made it, and what is drawn from it is checked to be the same.
    without_loss: ClassVar[frozenset[str] | None] = frozenset(
        {"papers", "private", "channel", "report_family", "distance_bound", "noise_between"}
    )

    def __init_subclass__(cls, **options: Any) -> None:
        """Have every budget checked, and what a class from outside returns for a channel."""
        super().__init_subclass__(**options)
        if "channel" not in cls.__dict__:
            return
        channel, ours = cls.channel, is_ours(cls)
        accepted = "rows that are distributions and together lose at most epsilon"

        @functools.wraps(channel)
        def checked(self: Mechanism, scale: RatingScale, epsilon: float) -> Channel:
            if not epsilon > 0:  # a formula may divide by it, or ignore its sign
                raise InputError("epsilon", f"{epsilon:g}", "a number above 0")
            with naming(self, accepted):
                try:
                    made_channel = channel(self, scale, epsilon)
                    again = made_channel if ours else channel(self, scale, epsilon)
                except InputError:
                    raise
                except ValueError as error:
                    found = f"no channel at epsilon {epsilon:g}: {error}"
                    raise InputError(self.kind, found, accepted) from error
            if not ours:
                _check_channel(self, made_channel, scale)
                if type(again) is not Channel or not np.array_equal(made_channel.weights, again.weights):
                    found = "its channel is another whenever it is asked for"
                    raise InputError(reference_of(type(self)), found, "one channel for a scale and a budget")
            return made_channel

        cls.channel = checked  # type: ignore[method-assign]

    @classmethod
    def declares_loss(cls) -> bool:
        """Return whether the loss is the word of a class from outside, and not that of a channel."""
        family = cls.report_family
        return super().declares_loss() or not (is_ours(family) and family.loss_of_channel)

    def family(self, budget: PrivacyBudget | None, scale: RatingScale, n_items: int) -> ReportFamily:
        """Return what this mechanism sends at a budget, for a scale and a catalogue.

        Raises SettingError when mechanism and budget are incompatible; the keys begin with "mechanism" and
        "privacy".
        """
        family = self.report_family
        if budget is not None and budget.own:
            family = MixedFamily if budget.sampled_at is None else SampledRatingsFamily
        return family(self, budget, scale, n_items)

    def distance_bound(
        self, users: int, items: int, ratings: int, scale: RatingScale, epsilon: float, tolerance: float
    ) -> float | None:
        """Return a bound on the Frobenius distance of reports and ratings; None if no paper gives one.

        Parameters
        ----------
        users, items, ratings : int
            Of those who report: how many there are, and how many cells they have rated.
        epsilon : float
            Exact loss of a cell.
        tolerance : float
            Probability with which the bound may fail.

        Returns
        -------
        float or None
            In rating units.
        """
        return None

    def noise_between(
        self, edges: Floats, scale: RatingScale, shares: Floats, epsilon: float
    ) -> Floats | None:
        """Return the probability of noise between neighbouring edges by a paper's density, if it has one.

        Parameters
        ----------
        edges : ndarray, shape (intervals + 1,)
            In rating units.
        shares : ndarray, shape (levels,)
            How often each level occurs.
        epsilon : float
            Exact loss of a rating.

        Returns
        -------
        ndarray of shape (intervals,), or None
        """
        return None

    @abstractmethod
    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel for one rating (or one cell) at a budget.

        Parameters
        ----------
        scale : RatingScale
            The levels that are the channel's inputs.
        epsilon : float
            Budget per rating, above 0; infinite for a mechanism that is not private.

        Raises
        ------
        InputError
            When the budget is not above 0.
        """

    def perturb(
        self,
        ratings: ArrayLike,
        epsilon: float | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        scale: RatingScale = _STARS,
    ) -> Floats:
        """Send ratings through the mechanism, as devices would, and read what arrives.

        Parameters
        ----------
        ratings : array_like
            True ratings, of any shape. NaN is "not rated": it stays NaN, unless the mechanism hides which
            items were rated, which perturbs it too.
        epsilon : float, optional
            Budget per rating, or per cell if the mechanism hides which items were rated; above 0. None for
            a mechanism that is not private.
        rng : Generator or int, optional
            A generator or its seed; by default the noise is different each time.
        scale : RatingScale
            The public scale of the ratings, by default 1 to 5 in steps of 1. It is never taken from the
            ratings, which it would reveal. On a continuous scale, ratings are rounded to its levels first.

        Returns
        -------
        ndarray of float64, shape of `ratings`
            For each rating, the number that the published decoder reads from the symbol sent: it may lie
            outside the scale or be NaN ("not rated"), and its mean is the true rating plus
            ``channel(scale, epsilon).bias()``.

        Raises
        ------
        InputError
            When a private mechanism has no budget above 0, or another has one, a rating is not on the scale,
            a report depends on a user's other ratings, or rng is neither a generator nor a seed.
        """
        if not self.report_family.by_cell:
            found = f"{self.kind}, whose reports depend on a user's other ratings"
            raise InputError("perturb", found, "a mechanism that reports each rating alone")
        budget = self.checked_budget(epsilon)
        channel, values = self.channel(scale, budget), _numbers(ratings)
        levels = _levels(values, scale)
        sent = (levels > 0) | channel.hides_rated_items
        words = _generator(rng).integers(2**64, size=int(sent.sum()), dtype=np.uint64)
        read = np.full(values.shape, np.nan)
        read[sent] = channel.values[channel.sample(levels[sent], words)]
        return read

    def checked_budget(self, epsilon: float | None) -> float:
        """Return the budget of a rating, infinite without privacy; raises InputError for another."""
        if isinstance(epsilon, bool | np.bool_) or not isinstance(epsilon, Real | None):
            raise InputError("epsilon", f"a value of type {type(epsilon).__name__}", "a number above 0")
        if not self.private and epsilon is not None:
            found = f"{epsilon:g}, with mechanism {self.kind}, which adds no noise"
            raise InputError("epsilon", found, "an epsilon beside a private mechanism, or none")
        if self.private and (epsilon is None or not 0 < epsilon < math.inf):
            found = "none" if epsilon is None else f"{epsilon:g}"
            raise InputError("epsilon", f"{found}, with mechanism {self.kind}", "a number above 0")
        return math.inf if epsilon is None else epsilon


def _numbers(ratings: ArrayLike) -> Floats:
    accepted = "numbers, with NaN for what is not rated"
    try:
        values = np.asarray(ratings, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("ratings", f"what is no array of numbers ({error})", accepted) from None
    if ratings is None:  # which NumPy takes for NaN
        raise InputError("ratings", "none", accepted)
    return values


def _generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        accepted = "a Generator of NumPy, an integer from 0 on, or none"
        raise InputError("rng", shown(repr(rng)), accepted) from None


def _levels(ratings: Floats, scale: RatingScale) -> Uint8s:
    rated = ~np.isnan(ratings)
    wrong = ratings[rated][~scale.accepts(ratings[rated])]
    if wrong.size:
        accepted = f"{scale.describe()}, or another scale, as scale=RatingScale.evenly(LOW, HIGH, STEP)"
        raise InputError("ratings", f"{wrong[0]:g}", accepted)
    levels = np.zeros(ratings.shape, dtype=np.uint8)
    levels[rated] = scale.level_of(ratings[rated])
    return levels


def _check_channel(mechanism: Mechanism, channel: Any, scale: RatingScale) -> None:
    """Refuse what a class from outside returned in place of a channel for the scale."""
    name, accepted = reference_of(type(mechanism)), "a Channel, as Channel.from_probabilities returns it"
    # The loss of a class derived from Channel, which may sample otherwise, follows from nothing.
    if type(channel) is not Channel:
        raise InputError(name, f"its channel is a value of type {type(channel).__name__}", accepted)
    inputs = mechanism.report_family.channel_inputs(scale)
    rows, hides = inputs.size, bool(np.isnan(inputs[0]))
    if channel.inputs.shape != (rows,) or channel.hides_rated_items is not hides:
        first = ', the first for "not rated" (NaN)' if hides else ""
        found = f"its channel has the inputs {channel.inputs.tolist()}"
        raise InputError(name, shown(found), f"{rows} rows, one for each level of the scale{first}")
    weights = channel.weights
    integer_rows = weights.dtype == np.uint64 and weights.shape == (rows, channel.symbols)
    if not (integer_rows and (weights.sum(axis=1) == DRAWS).all()):
        raise InputError(name, "its channel has rows that are no distributions", accepted)
    if not mechanism.sends_values and (weights != weights[0]).any():
        found = "its channel has rows that differ, and it says that it sends no values"
        raise InputError(name, found, "equal rows, or sends_values = True and a budget")
