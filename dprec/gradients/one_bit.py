"""Gradients in single private bits: about one coordinate, a random projection, or several coordinates.

Shin et al. [shin2018], Algorithm 1: a coordinate x is answered by a bit T with
Pr(T = 1) = (x (e - 1) + e + 1) / (2 (e + 1)), e = exp(epsilon); (2 T - 1) (e + 1) / (e - 1) is an
unbiased estimate of x. Probabilities are integers of draws out of 2**60, monotone in x, so the
exact loss follows from the two extremes; that of these is rounded so that it keeps to epsilon.

A report is k coordinates, drawn independently and whatever was rated, each with one such bit. Every bit costs
an even share of the report's budget, whatever the others are, so that all k cost at most the budget even when
they are known to be one user's. The paper forwards them one by one through an anonymising proxy, which strips
who sent them: that makes users harder to trace and is no part of epsilon, which holds against a server that
sees whose they are. Feedback is implicit in the paper, as in `SampledSignsOfSets`; in `SampledSigns` the
gradient is that of ratings, as in other kinds of report.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Bools, Floats, Ints, Uint64s, all_between, find
from dprec.completion import Profiles, confident_user_factors
from dprec.components import option
from dprec.errors import SettingError
from dprec.gradients.base import Aggregate, FittedProfiles, GradientAnswers, GradientReport, RoundDraws
from dprec.randomness import DRAWS, coins, even_share, fewest_draws, generator, loss_of_draws, uniform_below
from dprec.wire import FixedFields

_HALF = DRAWS // 2


def randomize(coordinates: Floats, epsilon: float, random_words: Uint64s) -> Bools:
    """Answer each coordinate, clipped to [-1, 1], with one bit.

    NaN counts as 0: whatever a device computes from hostile item factors, its answer stays within the budget.
    """
    inside = np.clip(np.where(np.isnan(coordinates), 0.0, coordinates), -1.0, 1.0)
    return coins(_thresholds(inside, epsilon), random_words)


def unbiased_scale(epsilon: float) -> float:
    """Return (e + 1) / (e - 1): the sign of a bit times this is an unbiased estimate."""
    return 1.0 / math.tanh(epsilon / 2)


def exact_epsilon(epsilon: float) -> float:
    """Return the exact loss of the bit, from the draws of the two extreme coordinates, rounded up."""
    heads = int(_thresholds(np.ones(1), epsilon)[0])
    return loss_of_draws(heads, DRAWS - heads)


def _thresholds(coordinates: Floats, epsilon: float) -> Uint64s:
    # (x (e - 1) + e + 1) / (2 (e + 1)) is one half and x times the largest distance from it.
    largest = _HALF - fewest_draws(epsilon)
    # In floating point, the product with 1 can exceed the integer.
    distances = np.minimum(np.floor(np.abs(coordinates) * largest).astype(np.int64), largest)
    return (_HALF + np.where(coordinates < 0, -distances, distances)).astype(np.uint64)


def _places_of(profiles: Profiles, items: Ints) -> tuple[Ints, Bools]:
    """Return where each user's rating of an item of its own is, and whether there is one, (users,) each."""
    cells = profiles.users * profiles.n_items + profiles.items
    return find(cells, np.arange(profiles.n_users) * profiles.n_items + items)


@dataclass(frozen=True, kw_only=True)
class PrivateSigns(GradientReport):
    """Base of private signs of a few random coordinates of the gradient, or of what it is mapped to."""

    @property
    def signs(self) -> int:
        """Coordinates k of a report, which share its budget evenly."""
        return 1

    def size(self, shape: tuple[int, int]) -> int:
        """Return how many coordinates there are."""
        return shape[0] * shape[1]

    def _values(self, fitted: FittedProfiles, coordinates: Ints, public_seed: int) -> Floats:
        """Return one coordinate for each user, 0 at an item that it has not rated, shape (users,)."""
        profiles, user_factors, item_factors = fitted
        items, factors = np.divmod(coordinates, item_factors.shape[1])
        places, rated = _places_of(profiles, items)
        ratings = np.zeros(items.size)
        ratings[rated] = profiles.values[places[rated]]
        user_factor = user_factors[np.arange(profiles.n_users), factors]
        errors = ratings - np.einsum("uf,uf->u", user_factors, item_factors[items])
        return np.where(rated, -2.0 * user_factor * errors, 0.0)

    def encode(self, fitted: FittedProfiles, epsilon: float, draws: RoundDraws) -> Sequence[bytes]:
        """Draw coordinates for each user and answer each with one bit; see `GradientReport`."""
        shape = fitted.item_factors.shape
        fields = np.empty((fitted.profiles.n_users, self.signs), dtype=np.int64)
        for place in range(self.signs):
            coordinates = uniform_below(self.size(shape), draws.words(2 * place))
            values = self._values(fitted, coordinates, draws.public_seed)
            bits = randomize(values, self._share(epsilon), draws.words(2 * place + 1))
            fields[:, place] = coordinates << 1 | bits
        return self._codec(shape).encode(fields)

    def crafted(self, fitted: FittedProfiles, draws: RoundDraws, targets: Ints) -> Sequence[bytes]:
        """Return the sides of coordinates of targets, those of the gradient."""
        shape = fitted.item_factors.shape
        fields = np.empty((fitted.profiles.n_users, self.signs), dtype=np.int64)
        for place in range(self.signs):
            picks = uniform_below(targets.size * shape[1], draws.words(2 * place))
            coordinates = targets[picks // shape[1]] * shape[1] + picks % shape[1]
            values = self._values(fitted, coordinates, draws.public_seed)
            fields[:, place] = coordinates << 1 | (values > 0)
        return self._codec(shape).encode(fields)

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[Bools, Aggregate]:
        """Validate the reports and count their bits by coordinate."""
        valid, fields = self._codec(shape).decode(reports)
        votes = np.bincount(fields[valid].ravel(), minlength=2 * self.size(shape))
        return valid, Aggregate(votes[1::2] - votes[::2], None, int(valid.sum()))

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the number of coordinates."""
        return (self.size(shape),)

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether so many signs can have this sum."""
        total, cast = aggregate.total, aggregate.users * self.signs
        # Within these bounds, the sum of the sizes cannot overflow.
        if not all_between(total, -cast, cast):
            return False
        remaining = cast - int(np.abs(total).sum())
        return remaining >= 0 and remaining % 2 == 0

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> Floats:
        """Return the mean of the estimates, each bit scaled up by the number of coordinates."""
        scale = unbiased_scale(self._share(epsilon)) * aggregate.total.size / (aggregate.users * self.signs)
        return (aggregate.total.astype(np.float64) * scale).reshape(-1, shape[1])

    def noise_deviation(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return sqrt(coordinates / k) (e + 1) / (e - 1), e = exp(epsilon / k), where the gradient is 0."""
        return math.sqrt(self.size(shape) / self.signs) * unbiased_scale(self._share(epsilon))

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of all coordinates with their answers; see `GradientReport.report_bits`."""
        codec = self._codec(shape)
        return codec.fields * codec.width

    def influence_of_one(self, shape: tuple[int, int], epsilon: float) -> float | None:
        """Return n (e + 1) / (e - 1), e = exp(epsilon / k): all answers can be about one item."""
        return shape[0] * unbiased_scale(self._share(epsilon))

    def exact_epsilon(self, epsilon: float) -> float:
        """Return the sum of the exact losses of the bits; no coordinate depends on anything private."""
        return self.signs * exact_epsilon(self._share(epsilon))

    def answers(self, reports: Sequence[bytes], shape: tuple[int, int], epsilon: float) -> GradientAnswers:
        """Return the signs of each report."""
        valid, fields = self._codec(shape).decode(reports)
        sign_fields = fields[valid].ravel()
        signs, places = np.where(sign_fields & 1, 1.0, -1.0), np.repeat(np.flatnonzero(valid), self.signs)
        return GradientAnswers(places, sign_fields >> 1, signs, 1 / unbiased_scale(self._share(epsilon)))

    def _share(self, epsilon: float) -> float:
        return even_share(epsilon, self.signs)

    def _codec(self, shape: tuple[int, int]) -> FixedFields:
        """Return the encoder of reports: of each sign, the coordinate and then the bit."""
        return FixedFields(self.signs, 2 * self.size(shape) - 1)


@dataclass(frozen=True, kw_only=True)
class OneBitGradient(PrivateSigns):
    """One private bit about one random coordinate of the gradient (Shin et al. [shin2018], Algorithm 1)."""

    kind: Literal["one-bit"] = "one-bit"
    papers: ClassVar[tuple[str, ...]] = ("shin2018",)


@dataclass(frozen=True, kw_only=True)
class ReducedOneBitGradient(PrivateSigns):
    """One private bit about a random projection of the gradient (Shin et al. [shin2018], Algorithm 2)."""

    kind: Literal["one-bit-reduced"] = "one-bit-reduced"
    papers: ClassVar[tuple[str, ...]] = ("shin2018",)
    dimensions: int = option("Rows q of the projection: dimensions that items are mapped to.", 100, ge=1)

    # Nothing is known of what one coordinate of a projection moves.
    crafted = GradientReport.crafted
    influence_of_one = GradientReport.influence_of_one

    def size(self, shape: tuple[int, int]) -> int:
        """Return the number of coordinates of the projected gradient."""
        return self.dimensions * shape[1]

    def _values(self, fitted: FittedProfiles, coordinates: Ints, public_seed: int) -> Floats:
        profiles, user_factors, item_factors = fitted
        n_items, rank = item_factors.shape
        rows, factors = np.divmod(coordinates, rank)
        user_factor = user_factors[np.arange(profiles.n_users), factors]
        errors = profiles.residuals(user_factors, item_factors)
        users = profiles.users
        weights = projection(public_seed, self.dimensions, n_items)[rows[users], profiles.items]
        sums = np.bincount(users, weights=weights * errors, minlength=profiles.n_users)
        return -2.0 * user_factor * sums

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> Floats:
        """Map the mean projected gradient back with the pseudo-inverse of the projection."""
        reduced = super().gradient(aggregate, shape, epsilon, public_seed)
        return _pseudo_inverse(public_seed, self.dimensions, shape[0]) @ reduced

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a projection to more dimensions than there are items."""
        if self.dimensions > shape[0]:
            raise SettingError("dimensions", str(self.dimensions), f"at most {shape[0]}, the number of items")

    def numbers(self, fitted: FittedProfiles, public_seed: int) -> Floats:
        """Return the projected gradients; see `GradientReport.numbers`."""
        n_items, rank = fitted.item_factors.shape
        gradients = super().numbers(fitted, public_seed)
        mapped = projection(public_seed, self.dimensions, n_items) @ gradients.reshape(-1, n_items, rank)
        return mapped.reshape(fitted.profiles.n_users, -1)


@lru_cache(maxsize=2)
def _pseudo_inverse(seed: int, rows: int, n_items: int) -> Floats:
    return np.linalg.pinv(projection(seed, rows, n_items)).astype(np.float64, copy=False)


@lru_cache(maxsize=2)
def projection(seed: int, rows: int, n_items: int) -> Floats:
    """Return the projection shared by devices and server; its entries are Normal(0, 1 / rows)."""
    return generator(seed, "projection").normal(0.0, rows**-0.5, (rows, n_items))


_MOST = 256
"""Coordinates of a report: far more than a budget is worth dividing by."""


@dataclass(frozen=True, kw_only=True)
class SampledCoordinates(PrivateSigns):
    """Base of private signs of a few random coordinates of the gradient (Minto et al. [minto2021])."""

    papers: ClassVar[tuple[str, ...]] = ("minto2021",)
    coordinates: int = option("Coordinates k of a report, which share its budget evenly.", 4, ge=1, le=_MOST)
    proxy: bool = option(
        "Whether reports come through an anonymising proxy, one coordinate at a time; it changes neither "
        "what devices draw nor epsilon.",
        True,
        published=True,
        source="minto2021, abstract",
    )

    @property
    def signs(self) -> int:
        """Coordinates of a report."""
        return self.coordinates

    @property
    def notes(self) -> tuple[str, ...]:
        """What the proxy adds, which epsilon does not count on."""
        if not self.proxy:
            return ()
        return (
            "A proxy strips senders and times and forwards coordinates one by one: a server that it does not "
            "collude with cannot link what a user sends, within a round or between rounds. Epsilon holds "
            "without it.",
        )

    @property
    def linked(self) -> bool:
        """Whether no proxy strips who sent a report."""
        return not self.proxy

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse more coordinates than the gradient has."""
        if self.coordinates > self.size(shape):
            accepted = f"at most {self.size(shape)}, the coordinates of the gradient"
            raise SettingError("coordinates", str(self.coordinates), accepted)


@dataclass(frozen=True, kw_only=True)
class SampledSigns(SampledCoordinates):
    """Private signs of a few random coordinates of the gradient of ratings (Minto et al. [minto2021])."""

    kind: Literal["sampled-signs"] = "sampled-signs"


@dataclass(frozen=True, kw_only=True)
class SampledSignsOfSets(SampledCoordinates):
    """Private signs of a few random coordinates of the gradient of implicit data (Minto et al. [minto2021]).

    The loss of a user is the sum over all items of c (p - u . v)^2, where p is 1 for its own items, 0 for all
    others, and the confidence c is 1 + alpha and 1 (Hu, Koren and Volinsky [hu2008]).
    """

    kind: Literal["sampled-signs-of-sets"] = "sampled-signs-of-sets"
    predicted: ClassVar[Literal["ratings", "lists"]] = "lists"
    confidence: float = option("alpha: what a user's own item counts more than any other.", 1.0, gt=0)

    def user_factors(self, profiles: Profiles, item_factors: Floats, ridge: float) -> Floats:
        """Return the factors with the least loss; see `GradientReport.user_factors`."""
        return confident_user_factors(profiles, item_factors, self.confidence, ridge)

    def _values(self, fitted: FittedProfiles, coordinates: Ints, public_seed: int) -> Floats:
        profiles, user_factors, item_factors = fitted
        items, factors = np.divmod(coordinates, item_factors.shape[1])
        _, is_rated = _places_of(profiles, items)
        errors = is_rated - np.einsum("uf,uf->u", user_factors, item_factors[items])
        factor = user_factors[np.arange(profiles.n_users), factors]
        return -2.0 * (1 + self.confidence * is_rated) * errors * factor

    def numbers(self, fitted: FittedProfiles, public_seed: int) -> Floats:
        """Return the gradients of the weighted loss of all items; see `GradientReport.numbers`."""
        profiles, user_factors, item_factors = fitted
        errors = -user_factors @ item_factors.T
        errors[profiles.users, profiles.items] += 1
        errors[profiles.users, profiles.items] *= 1 + self.confidence
        gradients = -2.0 * errors[:, :, None] * user_factors[:, None, :]
        return gradients.reshape(profiles.n_users, -1)
