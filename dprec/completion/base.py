"""What a completion method is given and what it returns."""

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from dprec.arrays import AnyInts, Floats, Int32s, offsets
from dprec.catalogue import Catalogue
from dprec.components import Options, is_ours, naming, reference_of
from dprec.errors import InputError, SettingError
from dprec.observations import Evidence, Observations
from dprec.predictions import Predict, checked_predictions
from dprec.progress import Progress, silent
from dprec.ratings import Ratings, RatingScale


@dataclass(frozen=True)
class FittedMixture:
    """The noise of ratings as a mixture of Gaussians around 0, components by ascending sigma."""

    pi: Annotated[tuple[float, ...], Field(description="Shares of the components.")]
    sigma: Annotated[tuple[float, ...], Field(description="Standard deviations, in rating units.")]
    log_likelihood: Annotated[tuple[float, ...], Field(description="After every step.")]


@dataclass(frozen=True, eq=False)
class Completed(ABC):
    """A completed rating matrix."""

    diagnostics: dict[str, Any] = field(kw_only=True, default_factory=dict)
    """What the method learned and how it ended, for the run's summary; JSON values only. They are shown as
    they are: what anything else reads has a field.
    """
    mixture: FittedMixture | None = field(kw_only=True, default=None)
    """The mixture that the method took the noise for, if it did."""
    notes: tuple[str, ...] = field(kw_only=True, default=())
    """Sentences that a reader of the results must not miss."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Have the predictions of a user-defined class checked, and the class named if they are none."""
        super().__init_subclass__(**options)
        if "predict" not in cls.__dict__ or is_ours(cls):
            return
        predict = cls.predict

        @functools.wraps(predict)
        def checked(self: Completed, users: AnyInts, items: AnyInts) -> Floats:
            with naming(self, "one finite number for each cell"):
                predictions = predict(self, users, items)
            return checked_predictions(predictions, users.shape, reference_of(type(self)))

        cls.predict = checked  # type: ignore[method-assign]

    @property
    def public_data(self) -> Catalogue | None:
        """Public data about the items on which predictions rest; None if on none."""
        return None

    @property
    def hidden_entries(self) -> Predict | None:
        """From cells to entries of the hidden matrix behind the ratings; None if none is modelled."""
        return None

    def cautions(self, observations: Observations, most: int, preferences: float = 0.0) -> Floats:
        """Return by how much items are lowered in lists if so many users may lie, shape (items,).

        Only of completions that `Completion.check_guard` accepts.

        Parameters
        ----------
        observations : Observations
            What the model was fitted to.
        most : int
            How many users may lie.
        preferences : float
            Variance of what devices add to the model's predictions by the embeddings of items.
        """
        raise NotImplementedError

    def lowered(self, cautions: Floats) -> Self:
        """Return a model by which lists are ranked, whose items are worth less by `cautions`."""
        raise NotImplementedError

    @abstractmethod
    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict the ratings of the given cells, shape (cells,); not clipped to the scale."""

    def predict_rows(self, users: AnyInts, n_items: int) -> Floats:
        """Predict the ratings of all items by some users, shape (users, items)."""
        rows, items = np.repeat(users, n_items), np.tile(np.arange(n_items), users.size)
        return self.predict(rows, items).reshape(users.size, n_items)


def check_rank(rank: int, shape: tuple[int, int]) -> None:
    """Refuse a rank that is too large for a catalogue of ``shape`` users x items, or one without factors."""
    if min(shape) < 2:
        found = f"users x items = {shape[0]} x {shape[1]}"
        raise InputError("ratings", found, "at least 2 of each, for a completion with factors")
    if rank >= min(shape):
        accepted = f"less than {min(shape)}, the smaller of the numbers of users and items"
        raise SettingError("rank", str(rank), accepted)


@dataclass(frozen=True, kw_only=True)
class Completion(Options):
    """Base of the completion methods.

    `needs_likelihood` and `needs_symbols` state whether the method uses these parts of `Observations`,
    `works_unlinked` that it needs not know which reports are of one user, `knows_items` that what it learns
    of the items is what devices need, so that nothing has to be derived from its predictions, and
    `has_factors` that a catalogue has to be larger than its `rank`.
    """

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = None
    needs_likelihood: ClassVar[bool] = False
    needs_symbols: ClassVar[bool] = False
    works_unlinked: ClassVar[bool] = False
    knows_items: ClassVar[bool] = False
    has_factors: ClassVar[bool] = False

    @property
    def reads_item_sets(self) -> bool:
        """Whether predictions rest on which items were rated, too."""
        return False

    @property
    def knows_shares(self) -> bool:
        """Whether latent ratings have mean 0 over everybody's ratings, by public shares of the levels."""
        return False

    @property
    def shared_fit(self) -> Self | None:
        """What is fitted to ratings as they are, without a draw; see `Protocol.shared_fit`."""
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        """Have a user-defined class named if it returns no completed matrix, or raises."""
        super().__init_subclass__(**options)
        if "fit" not in cls.__dict__ or is_ours(cls):
            return
        fit, accepted = cls.fit, "a completed matrix, of a class derived from dprec.completion.Completed"

        @functools.wraps(fit)
        def checked(self: Completion, *arguments: Any, **keywords: Any) -> Completed:
            with naming(self, accepted):
                completed = fit(self, *arguments, **keywords)
            if not isinstance(completed, Completed):
                found = f"its fit returned {type(completed).__name__}"
                raise InputError(reference_of(type(self)), found, accepted)
            return completed

        cls.fit = checked  # type: ignore[method-assign]

    def check_scale(self, scale: RatingScale) -> None:
        """Refuse a scale that the method cannot work on.

        Raises InputError naming what to configure.
        """

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse settings that do not suit a catalogue of ``shape`` users x items.

        Raises InputError naming the setting and what it may be.
        """
        if self.has_factors:
            check_rank(getattr(self, "rank", None) or 1, shape)

    def model_bytes(self, users: int, items: int) -> float:
        """Return the memory of the arrays that have a size of their own; see `Protocol.model_bytes`."""
        return 0.0

    def check_reports(self, evidence: type[Evidence], sender: str, *, of_values: bool) -> None:
        """Refuse a kind of reports from which the method cannot learn.

        Parameters
        ----------
        evidence : type
            What they say; see `dprec.observations.Evidence`.
        sender : str
            Kind of the mechanism that sends them, for the error.
        of_values : bool
            Whether anything that is sent depends on how an item was rated.

        Raises
        ------
        SettingError
            Naming the setting and what it may be.
        """
        if not evidence.has_values:
            found = f"{self.kind!r}, with mechanism {sender}"
            raise SettingError("kind", found, "'calibrated', which reads answers about profiles")

    def check_guard(self, evidence: type[Evidence], sender: str) -> None:
        """Refuse to guard lists from malicious users, where it is not known how; see `check_reports`.

        Raises SettingError naming the setting and what it may be.
        """
        found = f"completion {self.kind}, with mechanism {sender}"
        accepted = "'calibrated' or 'item-biases', with a mechanism that reports on each rating or item"
        raise SettingError("guard", found, accepted)

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


@dataclass(frozen=True, eq=False)
class Averages(Completed):
    """One number per user or per item."""

    means: Floats
    """Shape (users,) or (items,)."""
    by_item: bool

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict the ratings of the given cells, shape (cells,)."""
        return self.means[items if self.by_item else users]

    def predict_rows(self, users: AnyInts, n_items: int) -> Floats:
        """Predict the ratings of all items by some users, shape (users, items)."""
        means = self.means if self.by_item else self.means[users][:, None]
        return np.broadcast_to(means, (users.size, n_items))


@dataclass(frozen=True, kw_only=True)
class ItemAverage(Completion):
    """The mean of an item's observed ratings; the overall mean for an item without any."""

    kind: Literal["item-average"] = "item-average"
    works_unlinked: ClassVar[bool] = True

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> Averages:
        """Complete the matrix; see `Completion.fit`."""
        means, unseen = means_of(observations, observations.items, observations.shape[1])
        progress("completing", 1, 1)
        return Averages(means, True, diagnostics={"items_without_ratings": unseen})


@dataclass(frozen=True, kw_only=True)
class UserAverage(Completion):
    """The mean of a user's observed ratings; the overall mean for a user without any."""

    kind: Literal["user-average"] = "user-average"

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> Averages:
        """Complete the matrix; see `Completion.fit`."""
        means, unseen = means_of(observations, observations.users, observations.shape[0])
        progress("completing", 1, 1)
        return Averages(means, False, diagnostics={"users_without_ratings": unseen})


def means_of(observations: Observations, owners: Int32s, size: int) -> tuple[Floats, int]:
    """Return the mean value of every user or item, the overall mean without any, and how many have none."""
    counts, sums, first = np.zeros(size, dtype=np.int64), np.zeros(size), 0
    for values in observations.parts():
        part_owners = owners[first : first + values.size]
        np.add.at(counts, part_owners, 1)
        np.add.at(sums, part_owners, values)
        first += values.size
    means, unseen = sums / np.maximum(counts, 1), counts == 0
    if unseen.any():
        means[unseen] = observations.mean
    return means, int(unseen.sum())


_LEVELS_OF_MEANS = 201
"""Levels of the scale on which means are sent: 8 bits, the middle of the rating scale among them."""


def own_averages(train: Ratings, prior: float, prior_ratings: float) -> Averages:
    """Predict every rating of a user by the mean of the user's own, shrunk towards a public prior.

    For user u with n ratings it is ``(sum of the ratings + w prior) / (n + w)``, w being ``prior_ratings``;
    the prior itself where n + w is 0. ``train`` holds the ratings of both domains where there are two.
    """
    weights = train.counts + prior_ratings
    informed = weights > 0
    means = np.full(train.n_users, prior)
    means[informed] = (train.user_sums() + prior_ratings * prior)[informed] / weights[informed]
    without = int((train.counts == 0).sum())
    return Averages(means, by_item=False, diagnostics={"prior": prior, "users_without_ratings": without})


def scale_of_means(scale: RatingScale) -> RatingScale:
    """Return the continuous scale of the same range with 201 levels: any mechanism can send a mean on it."""
    return RatingScale(np.linspace(scale.low, scale.high, _LEVELS_OF_MEANS), continuous=True)


def one_mean_per_user(train: Ratings) -> Ratings:
    """Return every user's mean as that user's rating of the only item of a catalogue; see `scale_of_means`.

    A user without ratings has no mean.
    """
    scale = scale_of_means(train.scale)
    rated = train.counts > 0
    means = train.user_means()[rated]
    return Ratings(
        indptr=offsets(rated.astype(np.int64)),
        items=np.zeros(means.size, dtype=np.int32),
        levels=scale.level_of(means),
        scale=scale,
        user_ids=train.user_ids,
        item_ids=np.zeros(1, dtype=np.int64),
        exact=means,
    )
