"""Amplification by sampling: noisy sums over some of the users, drawn anew for each, and composed.

A sum over those who are asked has Gaussian noise. Whoever sees it does not see who was asked. In units of the
noise, with x from N(0, 1) or N(mu, 1), a user who is asked with probability q moves a sum from N(0, 1) to the
mixture (1 - q) N(0, 1) + q N(mu, 1); the loss at x is

    l(x) = log(1 - q + q exp(mu x - mu^2 / 2)),   which grows with x and is above log(1 - q).

*Poisson sampling, a profile and none.* Everybody is asked with probability q, independently. Given who else
was asked, the mixture and N(0, 1), mu the largest norm of an update, are at least as easy to tell apart as
what is released with and without the user, and N(0, 1) and the mixture what is released without and with it
(Zhu, Dong and Wang [zhu2022], Theorem 11). The two orders are two pairs, neither of which dominates the
other. Each is composed by itself, and the larger epsilon counts.

*Any two profiles.* m of n users are asked, all sets being as likely, q = m / n. For the sums U and V with
two updates of a user, and W with that of another user instead, it is to tell (1 - q) W + q U from
(1 - q) W + q V. For a = exp(epsilon) >= 1, a' = 1 + (a - 1) / q and b = a / a',

    (1 - q) W + q U - a ((1 - q) W + q V) = q (U - a' ((1 - b) W + b V)),

so that the divergence h(a) of the two is q times that of U from (1 - b) W + b V at a', which is convex in the
latter. As any of U, V, W are at most mu = twice the largest norm apart,

    h(a) <= q H(N(mu, 1), N(0, 1); a') = H(mixture, N(0, 1); a)   for a >= 1,

and for a < 1, as the order of U and V does not matter, h(a) <= 1 - a + a h(1 / a) with the same bound. The
curve of these bounds is convex: it belongs to a pair, which dominates every round, whichever way round its
worst profiles are. Its losses above 0 are those of the mixture against N(0, 1), its losses below 0 those of
N(0, 1) against the mixture, and the rest of the mass is at 0. No two profiles may be as bad in both orders:
one order alone, which would cost less, dominates a single round at one side of a = 1, and not the sum of
several (Lebeda et al. [lebeda2025]). The same bound holds for Poisson sampling, where W is the sum without
the user, and for a profile beside none where m of n are asked, none being a profile of zeros.

Pairs that dominate each round dominate all rounds, each chosen from what came before (Zhu, Dong and Wang
[zhu2022], Theorem 10). What is lost is never more than without sampling, as the divergences are convex.
Moments and Renyi divergences bound the same losses from further above (Abadi et al. [abadi2016], McMahan et
al. [mcmahan2018], Bu et al. [bu2020]).

What a device remembers of earlier rounds is covered by Poisson sampling, where nobody else's memory depends
on whether the user was asked. With a fixed number, somebody is asked instead: updates must then follow from
what was released and from a profile alone, since the memories of others could tell who was not asked.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, Self

import numpy as np

from dprec.accounting.calibration import rounded_down
from dprec.accounting.events import Adjacency, EventMechanism, gaussian_epsilon, largest_mu
from dprec.accounting.pld import PrivacyLossDistribution, rare_epsilon
from dprec.arrays import Bools, Floats
from dprec.errors import SettingError, check_least

_FINENESS = 1 / 32
"""Step of the grid in deviations of a loss: composed, it is less than 1e-4 above that of a fine grid."""

_POINTS = 1 << 15
"""Most points of the grid from 0 to the largest loss."""

_LARGEST = 100.0
"""A loss above it counts as infinite."""

_TAIL = 2.0**-14
"""Share of delta for losses that count as infinite because they are beyond the grid."""

_PRECISION = 1e-4
"""Relative precision of a calibrated distance, which is rounded down."""

_MOST, _STRIDE = 1e6, 0.25
"""The largest distance that is sought, and the strides in which it is, of the logarithm."""

Order = Literal["with", "without", "either"]
"""Which of a pair comes first: the mixture, N(0, 1), or whichever of the two tells more."""


@dataclass(frozen=True)
class ClientSampling(ABC):
    """How it is drawn who is asked in a round, anew for each, where it stays hidden who is."""

    compares: ClassVar[Adjacency]
    """What the rounds are composed for, and the noise calibrated."""
    in_words: ClassVar[str]
    """How clients are drawn, as a clause."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """Probability that a user is asked, above 0 and at most 1."""

    @abstractmethod
    def orders(self, adjacency: Adjacency) -> tuple[float, tuple[Order, ...]]:
        """Return how many times its norm an update can move a sum, and the orders that are composed."""

    def check(self, adjacency: Adjacency) -> None:
        """Raise SettingError unless the adjacency is the one that this sampling is composed for."""
        if adjacency != self.compares:
            raise SettingError("adjacency", repr(adjacency), f"{self.compares!r}, where {self.in_words}")


@dataclass(frozen=True)
class Poisson(ClientSampling):
    """Each user is asked with the same probability, whoever else is."""

    compares: ClassVar[Adjacency] = "add-or-remove-one"
    in_words: ClassVar[str] = "each user is asked by a rate"
    probability: float
    """Above 0 and at most 1."""

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise ValueError(f"a probability of {self.probability}; accepted: above 0 and at most 1")

    @property
    def rate(self) -> float:
        """The probability."""
        return self.probability

    def orders(self, adjacency: Adjacency) -> tuple[float, tuple[Order, ...]]:
        """Return both orders of a profile and none, or the bound for any two profiles."""
        return (1.0, ("with", "without")) if adjacency == self.compares else (2.0, ("either",))


@dataclass(frozen=True)
class FixedSize(ClientSampling):
    """The same number of users is asked in every round, each set of so many being as likely.

    Of updates that do not depend on what devices remember of earlier rounds; see the module.
    """

    compares: ClassVar[Adjacency] = "replace-one"
    in_words: ClassVar[str] = "a number of clients is asked"
    clients: int
    """From 1 to the number of users."""
    users: int

    def __post_init__(self) -> None:
        if not 1 <= self.clients <= self.users:
            raise ValueError(f"{self.clients} clients of {self.users} users; accepted: from 1 to all")

    @property
    def rate(self) -> float:
        """The share of users who are asked."""
        return self.clients / self.users

    def orders(self, adjacency: Adjacency) -> tuple[float, tuple[Order, ...]]:
        """Return the bound for any two profiles: those who are not asked are asked instead of others."""
        return 2.0, ("either",)


@dataclass(frozen=True)
class MixtureCells:
    """The line of x, cut where the loss is on the grid.

    Below the first cut, losses count as those at the cut or, of the other sign, as infinite; beyond the last
    cut, the other way round.
    """

    mixed: Floats
    normal: Floats
    """Probabilities of the cells under the mixture and under N(0, 1); shape (cuts + 1,)."""
    first: int
    """Loss at the first cut, in steps, at most 0."""

    @classmethod
    def of(cls, mu: float, rate: float, step: float, tail: float) -> "MixtureCells":
        """Cut the line such that about ``tail`` of either distribution is beyond either end."""
        lowest, highest = _range(mu, rate, tail)
        first = math.floor(lowest / step)
        losses = step * np.arange(first, math.ceil(highest / step) + 1)
        with np.errstate(divide="ignore"):
            # Where no x has the loss, it is below all of them.
            powers = np.log(np.maximum(0.0, np.expm1(losses) + rate) / rate)
        cuts = np.concatenate([[-np.inf], powers / mu + mu / 2, [np.inf]])
        normal = _between(cuts)
        return cls((1 - rate) * normal + rate * _between(cuts - mu), normal, first)

    def pair(self, order: Order, step: float) -> PrivacyLossDistribution:
        """Return the privacy losses of the pair in an order."""
        last = self.first + self.normal.size - 2
        with_user, without = self.normal.copy(), self.mixed.copy()
        with_user[0], with_user[-1] = self.mixed[0] * math.exp(-step * self.first), 0.0
        without[0], without[-1] = 0.0, self.normal[-1] * math.exp(step * last)
        if order == "with":
            return PrivacyLossDistribution.of_pair(self.mixed, with_user, step)
        if order == "without":
            return PrivacyLossDistribution.of_pair(self.normal, without, step)
        above = slice(1 - self.first, None)
        middle = [max(0.0, 1 - float(self.mixed[above].sum() + self.normal[above].sum()))]
        one = np.concatenate([self.mixed[above], self.normal[above], middle])
        other = np.concatenate([with_user[above], without[above], middle])
        return PrivacyLossDistribution.of_pair(one, other, step)


def _losses(mu: float, rate: float, x: Floats) -> Floats:
    """Return l(x)."""
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log1p(-rate), np.log(rate) + mu * x - mu**2 / 2)


def _range(mu: float, rate: float, tail: float) -> tuple[float, float]:
    """Return losses that are left by about ``tail`` of either distribution on either side."""
    from scipy.special import ndtri

    low = float(ndtri(tail))
    high = max(-low, mu - float(ndtri(min(0.5, tail / rate))))
    lowest, highest = _losses(mu, rate, np.array([low, high])).tolist()
    return max(lowest, -_LARGEST), min(highest, _LARGEST)


def _between(cuts: Floats) -> Floats:
    """Return the probabilities of N(0, 1) between ascending cuts, each as precise as a number can be."""
    from scipy.special import ndtr

    return np.where(cuts[1:] <= 0, np.diff(ndtr(cuts)), -np.diff(ndtr(-cuts)))


def _step(mus: Sequence[float], rates: Sequence[float], counts: Sequence[int]) -> float:
    """Return the step of a grid that suits the sum of so many losses of each kind.

    The variance of a loss is about how far apart its means under the two distributions are.
    """
    x = np.linspace(-10.0, 10.0, 2048)
    weights = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    total = 0.0
    for mu, rate, times in zip(mus, rates, counts, strict=True):
        total += times * rate * float(weights @ (_losses(mu, rate, x + mu) - _losses(mu, rate, x)))
    return _FINENESS * math.sqrt(total / sum(counts))


Sums = tuple[tuple[float, ClientSampling, int], ...]
"""Kinds of sums: how far an update of the largest norm moves one, in deviations of its noise, how it is drawn
who is asked, and how many sums of the kind there are.
"""


@lru_cache(maxsize=4096)
def _epsilon(sums: Sums, delta: float, adjacency: Adjacency) -> float:
    """Return an epsilon of all sums together; infinite if one of them has no noise."""
    kinds = [(distance, sampling, times) for distance, sampling, times in sums if distance > 0 and times > 0]
    if not kinds:
        return 0.0
    factors, orders = zip(*(sampling.orders(adjacency) for _, sampling, _ in kinds), strict=True)
    mus = [scale * distance for scale, (distance, _, _) in zip(factors, kinds, strict=True)]
    rates, counts = [sampling.rate for _, sampling, _ in kinds], [times for *_, times in kinds]
    squared = math.fsum(times * mu**2 for mu, times in zip(mus, counts, strict=True))
    unsampled = gaussian_epsilon(math.sqrt(squared), delta)
    if not 0 < unsampled < math.inf or min(rates) == 1:
        return unsampled
    if math.fsum(times * rate for times, rate in zip(counts, rates, strict=True)) <= delta:
        return 0.0  # nobody is drawn but with that probability
    tail = delta * _TAIL / sum(counts)
    largest = max(_range(mu, rate, tail)[1] for mu, rate in zip(mus, rates, strict=True))
    step = max(_step(mus, rates, counts), largest / _POINTS)
    cells = [MixtureCells.of(mu, rate, step, tail) for mu, rate in zip(mus, rates, strict=True)]
    epsilons = []
    for turn in range(max(map(len, orders))):
        pairs = (
            cell.pair(cell_orders[turn % len(cell_orders)], step)
            for cell, cell_orders in zip(cells, orders, strict=True)
        )
        with np.errstate(over="ignore", invalid="ignore"):  # beyond any epsilon of use
            epsilons.append(rare_epsilon(list(zip(pairs, counts, strict=True)), delta, 1 / largest))
    return min(unsampled, max(epsilons))


def sampled_gaussian_epsilon(distance: float, sampling: ClientSampling, rounds: int, delta: float) -> float:
    """Return the epsilon of rounds in each of which some of the users are drawn anew, and asked.

    Parameters
    ----------
    distance : float
        The largest norm of an update (the clip) over the standard deviation of the noise of a round's sum:
        1 / noise multiplier. That a replaced update moves the sum by twice its norm is counted.
    sampling : ClientSampling
        How it is drawn who is asked; epsilon is for what it `compares`.
    rounds : int
        At least 0.
    delta : float
        Above 0.

    Returns
    -------
    float
        At most what the same sums cost if everybody is asked, as by `gaussian_epsilon`.
    """
    check_least("a distance", distance)
    check_least("a number of rounds", rounds)
    return _epsilon(((distance, sampling, rounds),), delta, sampling.compares)


@lru_cache(maxsize=256)
def largest_sampled_distance(epsilon: float, delta: float, sampling: ClientSampling, rounds: int) -> float:
    """Return the largest distance, at most 1e6, with which all rounds cost at most epsilon.

    It is 1 / the least noise multiplier, rounded down by at most 3e-4; see `sampled_gaussian_epsilon`.

    ``epsilon``, ``delta``: above 0; ``rounds``: at least 1.
    """
    from scipy.optimize import brentq

    def excess(log_distance: float) -> float:
        epsilon_spent = sampled_gaussian_epsilon(math.exp(log_distance), sampling, rounds, delta)
        return math.log(max(epsilon_spent, epsilon / 1e3) / epsilon)

    factor, _ = sampling.orders(sampling.compares)
    mu = largest_mu(epsilon, delta) / math.sqrt(rounds)
    if sampling.rate == 1:
        return mu / factor
    # Many rounds cost as much as one with the distance rate * sqrt(rounds * (exp(mu^2) - 1)); and without
    # sampling, more than epsilon from mu on.
    least = math.log(mu / factor) - _PRECISION
    guess = math.sqrt(math.log1p(min(mu / sampling.rate, 1e150) ** 2)) / factor
    low = high = max(least, math.log(guess))
    while excess(high) <= 0:
        if high > math.log(_MOST):
            return _MOST
        low, high = high, high + _STRIDE
    while low == high or excess(low) > 0:
        low, high = max(least, low - _STRIDE), low
    distance = math.exp(brentq(excess, low, high, xtol=_PRECISION / 4))
    while sampled_gaussian_epsilon(distance, sampling, rounds, delta) > epsilon:
        distance *= 1 - _PRECISION / 4
    return rounded_down(distance)


@dataclass(frozen=True)
class SubsampledGaussian(EventMechanism):
    """A sum over those who were asked, with Gaussian noise, of which nobody sees whom it is over.

    It costs the same whoever was asked: all who could have been take part in the event.
    """

    distance: float
    """How far an update of the largest norm moves the sum, in standard deviations of the noise."""
    sampling: ClientSampling
    """How it was drawn who was asked."""
    rounds: int = 1
    """How many such sums there were."""
    needs_delta: ClassVar[bool] = True
    weight: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_least("a distance", self.distance)
        check_least("a number of rounds", self.rounds)

    def repeated(self, user: int, times: int) -> Self:
        """Return so many times the sums."""
        return replace(self, rounds=times * self.rounds)

    @classmethod
    def composed(cls, events: Sequence[tuple[Self, Bools]], delta: float, adjacency: Adjacency) -> Floats:
        """Return what the sums cost that could have been over a user, in either adjacency."""
        kinds = list(dict.fromkeys(mechanism for mechanism, _ in events))
        times = np.zeros((events[0][1].size, len(kinds)), dtype=np.int64)
        for mechanism, users in events:
            times[:, kinds.index(mechanism)] += users
        distinct, of_user = np.unique(times, axis=0, return_inverse=True)
        losses = [
            _epsilon(
                tuple(
                    (mechanism.distance, mechanism.sampling, n * mechanism.rounds)
                    for mechanism, n in zip(kinds, row, strict=True)
                    if n
                ),
                delta,
                adjacency,
            )
            for row in distinct.tolist()
        ]
        return np.array(losses)[of_user.ravel()]
