"""Gradients in single private bits: about one coordinate, a random projection, or several coordinates.

Shin et al. [shin2018], Algorithm 1: a coordinate x is answered by a bit T with
Pr(T = 1) = (x (e - 1) + e + 1) / (2 (e + 1)), e = exp(epsilon); (2 T - 1) (e + 1) / (e - 1) is an
unbiased estimate of x. Probabilities are integers of draws out of 2**60, monotone in x, so the
exact loss follows from the two extremes; that of these is rounded so that it keeps to epsilon.

A report is k coordinates, drawn independently and whatever was rated, each with one bit by the randomiser of
`dprec.gradients.one_bit`. Every bit costs an even share of the report's budget, whatever the others are,
so that all k cost at most the budget even when they are known to be one user's. The paper forwards them one
by one through an anonymising proxy, which strips who sent them: that makes users harder to trace and is
no part of epsilon, which holds against a server that sees whose they are. Feedback is implicit in the paper,
as in `SampledSignsOfSets`; in `SampledSigns` the gradient is that of ratings, as in other kinds of report.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Bools, Floats, Ints, Uint64s, find
from dprec.completion import Profiles, confident_user_factors
from dprec.components import option
from dprec.errors import SettingError
from dprec.gradients.base import Aggregate, GradientAnswers, GradientReport, RoundDraws
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


def pack_answers(coordinates: Ints, answers: Bools, n_coordinates: int) -> list[bytes]:
    """Encode the coordinate that each user drew and the answer: ceil(log2(coordinates)) + 1 bits."""
    size = _report_bytes(n_coordinates)
    fields = (coordinates << 1 | answers) << (size * 8 - report_bits(n_coordinates))
    packed = fields.astype(">u8").tobytes()
    return [packed[end - size : end] for end in range(8, len(packed) + 1, 8)]


def unpack_answers(reports: Sequence[bytes], n_coordinates: int) -> tuple[Bools, Ints, Bools]:
    """Return which reports of `pack_answers` are valid, their coordinates and answers, (users,) each."""
    size = _report_bytes(n_coordinates)
    sound = np.fromiter((len(report) == size for report in reports), dtype=np.bool_, count=len(reports))
    blank = bytes(size)
    whole = b"".join(
        bytes(8 - size) + (report if ok else blank)
        for report, ok in zip(reports, sound.tolist(), strict=True)
    )
    fields = np.frombuffer(whole, dtype=">u8").astype(np.int64)
    padding = size * 8 - report_bits(n_coordinates)
    coordinates = fields >> (padding + 1)
    valid = sound & (coordinates < n_coordinates) & (fields & ((1 << padding) - 1) == 0)
    return valid, coordinates, (fields >> padding & 1).astype(np.bool_)


def report_bits(n_coordinates: int) -> int:
    """Return the bits of a report: those of the coordinate, and the answer."""
    return max(1, (n_coordinates - 1).bit_length()) + 1


def _report_bytes(n_coordinates: int) -> int:
    return -(-report_bits(n_coordinates) // 8)


_COORDINATE, _ANSWER = 0, 1
"""Indices of a user's words in a round."""


@dataclass(frozen=True, kw_only=True)
class OneBitGradient(GradientReport):
    """One private bit about one random coordinate of the gradient (Shin et al. [shin2018], Algorithm 1)."""

    kind: Literal["one-bit"] = "one-bit"
    papers: ClassVar[tuple[str, ...]] = ("shin2018",)

    def encode(
        self,
        profiles: Profiles,
        user_factors: Floats,
        item_factors: Floats,
        epsilon: float,
        draws: RoundDraws,
    ) -> list[bytes]:
        """Draw an item and a factor for each user and answer with one bit; see `GradientReport`."""
        coordinates = _draw_coordinates(item_factors.size, draws)
        values = _gradient_at(profiles, user_factors, item_factors, coordinates)
        answers = randomize(values, epsilon, answer_words(draws))
        return pack_answers(coordinates, answers, item_factors.size)

    def crafted(
        self,
        profiles: Profiles,
        user_factors: Floats,
        item_factors: Floats,
        draws: RoundDraws,
        targets: Ints,
    ) -> list[bytes]:
        """Return the side of a coordinate of a target, that of the gradient."""
        coordinates = _coordinates_of(targets, item_factors.shape[1], draws.words(_COORDINATE))
        values = _gradient_at(profiles, user_factors, item_factors, coordinates)
        return pack_answers(coordinates, values > 0, item_factors.size)

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[Bools, Aggregate]:
        """Validate the reports and count their bits by coordinate."""
        return add_up(reports, shape[0] * shape[1])

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the number of coordinates."""
        return (shape[0] * shape[1],)

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether so many signs can have this sum."""
        return _possible_votes(aggregate)

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> Floats:
        """Return the mean of the estimates n d (2 T - 1) (e + 1) / (e - 1), e = exp(epsilon)."""
        return _mean_estimate(aggregate, epsilon).reshape(shape)

    def noise_deviation(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return sqrt(n d) (e + 1) / (e - 1), e = exp(epsilon), attained where the gradient is 0."""
        return math.sqrt(shape[0] * shape[1]) * unbiased_scale(epsilon)

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of the coordinate and its answer; see `GradientReport.report_bits`."""
        return report_bits(shape[0] * shape[1])

    def influence_of_one(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return n (e + 1) / (e - 1), e = exp(epsilon): who draws a coordinate draws one of n d."""
        return shape[0] * unbiased_scale(epsilon)

    def exact_epsilon(self, epsilon: float) -> float:
        """Return the exact loss of the bit; the choice of the coordinate depends on nothing private."""
        return exact_epsilon(epsilon)

    def answers(self, reports: Sequence[bytes], shape: tuple[int, int], epsilon: float) -> GradientAnswers:
        """Return the sign of each report."""
        return _signs(reports, shape[0] * shape[1], epsilon)


def _gradient_at(profiles: Profiles, user_factors: Floats, item_factors: Floats, coordinates: Ints) -> Floats:
    """Return one coordinate of each user's gradient, 0 at an item that it has not rated, shape (users,)."""
    items, factors = np.divmod(coordinates, item_factors.shape[1])
    places, rated = _places_of(profiles, items)
    ratings = np.zeros(items.size)
    ratings[rated] = profiles.values[places[rated]]
    own = user_factors[np.arange(profiles.n_users), factors]
    errors = ratings - np.einsum("uf,uf->u", user_factors, item_factors[items])
    return np.where(rated, -2.0 * own * errors, 0.0)


def _draw_coordinates(n_coordinates: int, draws: RoundDraws) -> Ints:
    """Return the coordinate that each user of a partition draws, uniformly."""
    return uniform_below(n_coordinates, draws.words(_COORDINATE))


def _coordinates_of(targets: Ints, rank: int, random_words: Uint64s) -> Ints:
    """Return a coordinate of one of the targets for each user, drawn uniformly."""
    places, factors = np.divmod(uniform_below(targets.size * rank, random_words), rank)
    return targets[places] * rank + factors


def answer_words(draws: RoundDraws) -> Uint64s:
    """Return the random word that decides each user's bit."""
    return draws.words(_ANSWER)


def add_up(reports: Sequence[bytes], n_coordinates: int) -> tuple[Bools, Aggregate]:
    """Validate one-bit reports and sum their signs by coordinate."""
    valid, coordinates, answers = unpack_answers(reports, n_coordinates)
    votes = np.bincount(coordinates[valid] * 2 + answers[valid], minlength=2 * n_coordinates)
    return valid, Aggregate(votes[1::2] - votes[::2], None, int(valid.sum()))


def _signs(reports: Sequence[bytes], n_coordinates: int, epsilon: float) -> GradientAnswers:
    """Return what reports of `pack_answers` say."""
    valid, coordinates, answers = unpack_answers(reports, n_coordinates)
    places = np.flatnonzero(valid)
    signs = np.where(answers[places], 1.0, -1.0)
    return GradientAnswers(places, coordinates[places], signs, 1 / unbiased_scale(epsilon))


def _possible_votes(aggregate: Aggregate) -> bool:
    """Return whether ``users`` signs, of any coordinates, can add up to an aggregate."""
    total, users = aggregate.total, aggregate.users
    # Within these bounds, the sum of the sizes cannot overflow.
    if not ((total >= -users) & (total <= users)).all():
        return False
    cast = int(np.abs(total).sum())
    return cast <= users and (users - cast) % 2 == 0


def _mean_estimate(aggregate: Aggregate, epsilon: float) -> Floats:
    """Return an unbiased estimate of the mean over users, for every coordinate.

    A report is about one coordinate, so it is scaled up by the number of coordinates.
    """
    scale = unbiased_scale(epsilon) * aggregate.total.size / aggregate.users
    return aggregate.total.astype(np.float64) * scale


def _places_of(profiles: Profiles, items: Ints) -> tuple[Ints, Bools]:
    """Return where each user's rating of an item of its own is, and whether there is one, (users,) each."""
    cells = profiles.users * profiles.n_items + profiles.items
    return find(cells, np.arange(profiles.n_users) * profiles.n_items + items)


@dataclass(frozen=True, kw_only=True)
class ReducedOneBitGradient(GradientReport):
    """One private bit about a random projection of the gradient (Shin et al. [shin2018], Algorithm 2)."""

    kind: Literal["one-bit-reduced"] = "one-bit-reduced"
    papers: ClassVar[tuple[str, ...]] = ("shin2018",)
    dimensions: int = option("Rows q of the projection: dimensions that items are mapped to.", 100, ge=1)

    def encode(
        self,
        profiles: Profiles,
        user_factors: Floats,
        item_factors: Floats,
        epsilon: float,
        draws: RoundDraws,
    ) -> list[bytes]:
        """Project the gradient, draw one coordinate of it and answer with one bit."""
        n_items, rank = item_factors.shape
        n_users = profiles.n_users
        n_coordinates = self.dimensions * rank
        coordinates = _draw_coordinates(n_coordinates, draws)
        rows, factors = np.divmod(coordinates, rank)
        own = user_factors[np.arange(n_users), factors]
        errors = profiles.residuals(user_factors, item_factors)
        users = profiles.users
        weights = projection(draws.public_seed, self.dimensions, n_items)[rows[users], profiles.items]
        sums = np.bincount(users, weights=weights * errors, minlength=n_users)
        answers = randomize(-2.0 * own * sums, epsilon, answer_words(draws))
        return pack_answers(coordinates, answers, n_coordinates)

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[Bools, Aggregate]:
        """Validate the reports and count their bits by coordinate of the projected gradient."""
        return add_up(reports, self.dimensions * shape[1])

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the number of coordinates of the projected gradient."""
        return (self.dimensions * shape[1],)

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether so many signs can have this sum."""
        return _possible_votes(aggregate)

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> Floats:
        """Map the mean projected gradient back with the pseudo-inverse of the projection."""
        rows = self.dimensions
        reduced = _mean_estimate(aggregate, epsilon).reshape(rows, shape[1])
        return _pseudo_inverse(public_seed, rows, shape[0]) @ reduced

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a projection to more dimensions than there are items."""
        if self.dimensions > shape[0]:
            raise SettingError("dimensions", str(self.dimensions), f"at most {shape[0]}, the number of items")

    def noise_deviation(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return sqrt(q d) (e + 1) / (e - 1), e = exp(epsilon), for a projected coordinate at 0."""
        return math.sqrt(self.dimensions * shape[1]) * unbiased_scale(epsilon)

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of the projected coordinate and its answer; see `GradientReport.report_bits`."""
        return report_bits(self.dimensions * shape[1])

    def exact_epsilon(self, epsilon: float) -> float:
        """Return the exact loss of the bit."""
        return exact_epsilon(epsilon)

    def answers(self, reports: Sequence[bytes], shape: tuple[int, int], epsilon: float) -> GradientAnswers:
        """Return the sign of each report."""
        return _signs(reports, self.dimensions * shape[1], epsilon)

    def numbers(
        self, profiles: Profiles, user_factors: Floats, item_factors: Floats, public_seed: int
    ) -> Floats:
        """Return the projected gradients; see `GradientReport.numbers`."""
        n_items, rank = item_factors.shape
        gradients = super().numbers(profiles, user_factors, item_factors, public_seed)
        mapped = projection(public_seed, self.dimensions, n_items) @ gradients.reshape(-1, n_items, rank)
        return mapped.reshape(profiles.n_users, -1)


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
class SampledCoordinates(GradientReport):
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
    def notes(self) -> tuple[str, ...]:
        """What the proxy adds, which epsilon does not count on."""
        if not self.proxy:
            return ()
        return (
            "A proxy strips senders and times and forwards coordinates one by one: a server that it does not "
            "collude with cannot link what a user sends, within a round or between rounds. Epsilon holds "
            "without it.",
        )

    def encode(
        self,
        profiles: Profiles,
        user_factors: Floats,
        item_factors: Floats,
        epsilon: float,
        draws: RoundDraws,
    ) -> Sequence[bytes]:
        """Draw coordinates for each user and answer each with one bit; see `GradientReport`."""
        fields = np.empty((profiles.n_users, self.coordinates), dtype=np.int64)
        for place in range(self.coordinates):
            coordinates = uniform_below(item_factors.size, draws.words(2 * place))
            values = self._values(profiles, user_factors, item_factors, coordinates)
            bits = randomize(values, self._share(epsilon), draws.words(2 * place + 1))
            fields[:, place] = coordinates << 1 | bits
        return self._codec(item_factors.size).encode(fields)

    def crafted(
        self,
        profiles: Profiles,
        user_factors: Floats,
        item_factors: Floats,
        draws: RoundDraws,
        targets: Ints,
    ) -> Sequence[bytes]:
        """Return the sides of coordinates of targets, those of the gradient."""
        fields = np.empty((profiles.n_users, self.coordinates), dtype=np.int64)
        for place in range(self.coordinates):
            coordinates = _coordinates_of(targets, item_factors.shape[1], draws.words(2 * place))
            values = self._values(profiles, user_factors, item_factors, coordinates)
            fields[:, place] = coordinates << 1 | (values > 0)
        return self._codec(item_factors.size).encode(fields)

    @abstractmethod
    def _values(
        self, profiles: Profiles, user_factors: Floats, item_factors: Floats, coordinates: Ints
    ) -> Floats:
        """Return one coordinate of each user's gradient, shape (users,)."""

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[Bools, Aggregate]:
        """Validate the reports and count their bits by coordinate."""
        n_coordinates = shape[0] * shape[1]
        valid, fields = self._codec(n_coordinates).decode(reports)
        votes = np.bincount(fields[valid].ravel(), minlength=2 * n_coordinates)
        return valid, Aggregate(votes[1::2] - votes[::2], None, int(valid.sum()))

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the number of coordinates."""
        return (shape[0] * shape[1],)

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether so many signs can have this sum."""
        total, cast = aggregate.total, aggregate.users * self.coordinates
        # Within these bounds, the sum of the sizes cannot overflow.
        if not ((total >= -cast) & (total <= cast)).all():
            return False
        left = cast - int(np.abs(total).sum())
        return left >= 0 and left % 2 == 0

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> Floats:
        """Return the mean of the estimates, each bit scaled up by the number of coordinates."""
        bits = aggregate.users * self.coordinates
        scale = unbiased_scale(self._share(epsilon)) * aggregate.total.size / bits
        return (aggregate.total.astype(np.float64) * scale).reshape(shape)

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse more coordinates than the gradient has."""
        if self.coordinates > shape[0] * shape[1]:
            accepted = f"at most {shape[0] * shape[1]}, the coordinates of the gradient"
            raise SettingError("coordinates", str(self.coordinates), accepted)

    def noise_deviation(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return sqrt(n d / k) (e + 1) / (e - 1), e = exp(epsilon / k), where the gradient is 0."""
        scale = unbiased_scale(self._share(epsilon))
        return math.sqrt(shape[0] * shape[1] / self.coordinates) * scale

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of all coordinates with their answers; see `GradientReport.report_bits`."""
        codec = self._codec(shape[0] * shape[1])
        return codec.fields * codec.width

    def influence_of_one(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return n (e + 1) / (e - 1), e = exp(epsilon / k): all answers can be about one item."""
        return shape[0] * unbiased_scale(self._share(epsilon))

    def exact_epsilon(self, epsilon: float) -> float:
        """Return the sum of the exact losses of the bits; no coordinate depends on anything private."""
        return self.coordinates * exact_epsilon(self._share(epsilon))

    @property
    def linked(self) -> bool:
        """Whether no proxy strips who sent a report."""
        return not self.proxy

    def answers(self, reports: Sequence[bytes], shape: tuple[int, int], epsilon: float) -> GradientAnswers:
        """Return the signs of each report."""
        valid, fields = self._codec(shape[0] * shape[1]).decode(reports)
        said = fields[valid].ravel()
        signs, places = np.where(said & 1, 1.0, -1.0), np.repeat(np.flatnonzero(valid), self.coordinates)
        return GradientAnswers(places, said >> 1, signs, 1 / unbiased_scale(self._share(epsilon)))

    def _share(self, epsilon: float) -> float:
        return even_share(epsilon, self.coordinates)

    def _codec(self, n_coordinates: int) -> FixedFields:
        return FixedFields(self.coordinates, 2 * n_coordinates - 1)


@dataclass(frozen=True, kw_only=True)
class SampledSigns(SampledCoordinates):
    """Private signs of a few random coordinates of the gradient of ratings (Minto et al. [minto2021])."""

    kind: Literal["sampled-signs"] = "sampled-signs"

    def _values(
        self, profiles: Profiles, user_factors: Floats, item_factors: Floats, coordinates: Ints
    ) -> Floats:
        return _gradient_at(profiles, user_factors, item_factors, coordinates)


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

    def _values(
        self, profiles: Profiles, user_factors: Floats, item_factors: Floats, coordinates: Ints
    ) -> Floats:
        items, factors = np.divmod(coordinates, item_factors.shape[1])
        _, own = _places_of(profiles, items)
        errors = own - np.einsum("uf,uf->u", user_factors, item_factors[items])
        factor = user_factors[np.arange(profiles.n_users), factors]
        return -2.0 * (1 + self.confidence * own) * errors * factor

    def numbers(
        self, profiles: Profiles, user_factors: Floats, item_factors: Floats, public_seed: int
    ) -> Floats:
        """Return the gradients of the weighted loss of all items; see `GradientReport.numbers`."""
        errors = -user_factors @ item_factors.T
        errors[profiles.users, profiles.items] += 1
        errors[profiles.users, profiles.items] *= 1 + self.confidence
        gradients = -2.0 * errors[:, :, None] * user_factors[:, None, :]
        return gradients.reshape(profiles.n_users, -1)
