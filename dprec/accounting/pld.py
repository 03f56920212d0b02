"""Privacy loss distributions (PLDs): of a channel, for the worst of all pairs of its inputs, and composed.

A symbol z that is sent for input x tells log(Q[x, z] / Q[x', z]) against x'; for z drawn given x, this is
the privacy loss (Sommer et al. [sommer2019]). A pair of distributions *dominates* a channel if it is at
least as easy to tell apart as any two rows. Many draws from the channel are then at most as easy to tell
apart as as many draws from the pair, also if each depends on what came before (Zhu, Dong and Wang
[zhu2022], Theorem 10).

Composed, the losses of draws add up. The distribution of the sum is a convolution, found by fast Fourier
transform (Koskela et al. [koskela2020]). All errors are counted as delta, so that epsilon is never below
the truth.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dprec.accounting.calibration import rounded_down
from dprec.arrays import Floats, Ints, Uint64s
from dprec.channel import Channel

POINTS = 128
"""Points of the grid from 0 to epsilon: composed losses are less than 1e-4 above those of a fine grid."""


@dataclass(frozen=True, eq=False)
class PrivacyLossDistribution:
    """Pr(privacy loss = j step) for one draw from a dominating pair."""

    step: float
    """Distance of two points of the grid, above 0, a natural logarithm."""
    masses: Floats
    """The probabilities, for j from -points to points; shape (2 points + 1,)."""
    infinite: float = 0.0
    """The probability of an infinite loss, which is not among them."""

    @classmethod
    def of(cls, channel: Channel, step: float | None = None) -> Self:
        """Return the distribution for one draw from a channel.

        The divergence h(a) = max over x, x' of sum over z of max(0, Q[x, z] - a Q[x', z]) is convex in a, so
        a polygon with its corners on the curve, at a = exp(j step), is never below it. It is the
        divergence of a pair whose losses lie on the grid (Doroshenko et al. [doroshenko2022], section 4).

        ``channel``: with an epsilon above 0 and below infinity; ``step``: by default ``channel.epsilon /
        POINTS``.
        """
        step = step or channel.epsilon / POINTS
        points = points_up_to(channel.epsilon, step)
        # h at a = exp(j step) for j from 0 to points.
        rows = channel.probabilities[:, channel.weights.max(axis=0) > 0]
        logs, inputs, width = np.log(rows), len(rows), points + 2
        ratios = np.exp(step * np.arange(points + 1))
        first = 1 + width * np.arange(inputs)[:, None]
        largest = np.zeros(points + 1)
        for row, log in zip(rows, logs, strict=True):
            # Symbols with a loss below 0 count at none of the points; they are put before the first.
            places = (np.clip(np.floor((log - logs) / step), -1, points).astype(np.int64) + first).ravel()
            under_row, under_other = (
                np.bincount(places, weights=side.ravel(), minlength=inputs * width).reshape(inputs, width)
                for side in (np.broadcast_to(row, rows.shape), rows)
            )
            under_row, under_other = (
                side[:, :0:-1].cumsum(axis=1)[:, ::-1] for side in (under_row, under_other)
            )
            largest = np.maximum(largest, (under_row - ratios * under_other).max(axis=0))
        largest[-1] = 0.0
        return cls.with_divergences(step, largest)

    @classmethod
    def with_divergences(cls, step: float, divergences: Floats) -> Self:
        """Return the distribution of a pair whose divergences are not below those given.

        ``divergences``, shape (points + 1,): bounds on h(a) at a = exp(j step), whichever of the two is the
        first; the last one is 0.
        """
        ratios = np.exp(step * np.arange(divergences.size))
        slopes = np.diff(divergences) / np.diff(ratios)
        # Both orders of every pair count, so -j has under the one the mass that j has under the other.
        under_other = np.maximum(0.0, np.diff(slopes, append=0.0))
        above = ratios[1:] * under_other
        middle = max(0.0, 1.0 - float(above.sum() + under_other.sum()))
        return cls(step, np.concatenate([under_other[::-1], [middle], above]))

    @classmethod
    def of_pair(cls, one: Floats, other: Floats, step: float) -> Self:
        """Return the distribution of log(one / other) under ``one``, for one order of a pair.

        Each loss is divided between its neighbours on the grid such that both distributions keep their sums:
        this, too, is a polygon with its corners on the curve; see `of`.

        ``one``, ``other``, shape (outcomes,): probabilities of the same outcomes. Those that ``one`` lacks to
        a sum of 1 count as infinitely easy to tell apart.
        """
        shared = (one > 0) & (other > 0)
        masses, losses = one[shared], np.log(one[shared] / other[shared])
        points = math.ceil(float(np.abs(losses).max(initial=0.0)) / step) + 1
        lower = np.floor(losses / step)
        upper = np.expm1(lower * step - losses) / np.expm1(-step) * masses
        places = lower.astype(np.int64) + points
        divided: Floats = np.bincount(places, masses - upper, 2 * points + 1).astype(np.float64)
        divided += np.bincount(places + 1, upper, 2 * points + 1)
        return cls(step, divided, max(0.0, 1 - math.fsum(masses)))

    @property
    def points(self) -> int:
        """Largest loss but for infinite ones, in steps."""
        return self.masses.size // 2

    @cached_property
    def losses(self) -> Floats:
        """The points of the grid, shape (2 points + 1,)."""
        return self.step * np.arange(-self.points, self.points + 1, dtype=np.float64)

    @cached_property
    def variance(self) -> float:
        """Variance of the loss."""
        return float(self.masses @ self.losses**2 - (self.masses @ self.losses) ** 2)

    @cached_property
    def _spectra(self) -> dict[int, tuple[Floats, Floats]]:
        return {}

    def spectrum(self, length: int) -> tuple[Floats, Floats]:
        """Return log moduli and angles of the Fourier transform, shape (length // 2 + 1,) each."""
        from scipy.fft import rfft

        if length not in self._spectra:
            places = np.arange(-self.points, self.points + 1) % length
            values = rfft(np.bincount(places, weights=self.masses, minlength=length))
            # Finite, so that it is 0 times it is 0.
            moduli = np.maximum(np.abs(values), math.exp(2 * _NEGLIGIBLE))
            self._spectra[length] = np.log(moduli), np.angle(values)
        return self._spectra[length]

    def log_moments(self, exponents: Floats) -> Floats:
        """Return log E[exp(t loss)] for every exponent t."""
        possible = self.masses > 0
        return log_moments(self.losses[possible], self.masses[possible], exponents)

    def tilted(self, exponent: float, log_moment: float) -> "PrivacyLossDistribution":
        """Return the finite losses with masses times exp(t loss) / E[exp(t loss)], t being the exponent."""
        masses, possible = np.zeros_like(self.masses), self.masses > 0
        masses[possible] = np.exp(
            np.log(self.masses[possible]) + exponent * self.losses[possible] - log_moment
        )
        return PrivacyLossDistribution(self.step, masses)


def log_moments(values: Floats, masses: Floats, exponents: Floats) -> Floats:
    """Return log E[exp(t X)] for every exponent t, of a draw X from some values of some probabilities."""
    powers = np.outer(exponents, values)
    shift = powers.max(axis=1)
    return np.asarray(np.log(np.exp(powers - shift[:, None]) @ masses) + shift)


def points_up_to(epsilon: float, step: float) -> int:
    """Return how many steps reach epsilon, at least 1."""
    return max(1, math.ceil(epsilon / step * (1 - 1e-12)))


def worst_pair(weights: Uint64s) -> tuple[float, tuple[int, int]]:
    """Return the largest loss between two levels, infinite if a symbol is possible for one alone; and these.

    ``weights``, shape (levels, symbols): whole draws that turn each level into each symbol. The rows ascend.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(weights.astype(np.float64))
    losses = np.empty((len(logs), len(logs)))
    for level, row in enumerate(logs):
        possible = np.isfinite(row)
        losses[level] = (row[possible] - logs[:, possible]).max(axis=1)
    one, other = np.unravel_index(int(np.argmax(losses)), losses.shape)
    return float(losses[one, other]), (int(min(one, other)), int(max(one, other)))


_TAIL = 1e-13
"""Mass that may lie beyond either end of the window in which the sum is found."""

_SHARE = 2.0**-14
"""Part of a small delta that errors may be."""

_EXPONENTS = np.geomspace(0.25, 4.0, 33)
"""Where Chernoff's bound is tried, as multiples of what suits a normal distribution."""

_FARTHEST = 700.0
"""What two losses that are weighed against each other differ by at most, so that the weights are finite."""

_NEGLIGIBLE = -60.0
"""Logarithm of the modulus below which a frequency is left out."""


@dataclass(frozen=True, eq=False)
class ComposedLoss:
    """The distribution of a sum of privacy losses."""

    losses: Floats
    masses: Floats
    """Losses, evenly spaced and ascending, and their probabilities; shape (points,)."""
    error: float
    """Most by which the probability of a range of losses, up to infinite ones, can be too small."""
    largest: float
    """Sum of the epsilons, which the loss cannot exceed; infinite if it can be."""

    @classmethod
    def of_transform(
        cls, masses: Floats, step: float, first: int, count: int, points: int, infinite: float = 0.0
    ) -> Self:
        """Return the sum whose distribution was found by a Fourier transform.

        ``masses``, shape (length,): as transformed back: of the losses j step, j modulo the length;
        ``first``: the least j; ``count``, ``points``: losses that were added up, and the most that their sum
        can be, in steps, unless it is infinite, with a probability of at most ``infinite``.
        """
        length = masses.size
        inside: Floats = np.maximum(0.0, np.roll(masses, -(first % length)))
        # The transform of each draw has relative errors of a few units in the last place, which add up.
        rounding = np.finfo(np.float64).eps * count * math.log2(2 * length) * math.sqrt(length)
        error = _TAIL + rounding * math.sqrt(float((inside**2).sum())) + infinite
        largest = math.inf if infinite else step * points
        return cls(step * (first + np.arange(length, dtype=np.float64)), inside, error, largest)

    def delta(self, epsilon: float) -> float:
        """Return a delta with which an epsilon holds: E[max(0, 1 - exp(epsilon - loss))]."""
        if epsilon >= self.largest:
            return 0.0
        above = self.losses > epsilon
        gains = -np.expm1(epsilon - self.losses[above])
        return min(1.0, float(self.masses[above] @ gains) + self.error)

    def epsilon(self, delta: float) -> float:
        """Return an epsilon that holds with a delta above 0: the least, but for `error`."""
        tail_masses = self.masses[::-1].cumsum()[::-1] + self.error
        # A loss of epsilon + 1 or more counts at least 1 - 1/e, so that epsilon is at least as large as this.
        step = self.losses[1] - self.losses[0]
        small = int(np.count_nonzero(tail_masses * -math.expm1(-1) > delta))
        start = max(0.0, self.losses[0] + (small - 1) * step - 1)
        last = min(int(np.searchsorted(-tail_masses, -delta)), tail_masses.size - 1)
        # It is at most the point from which on no more than delta is left, and no further below it than where
        # what is not lost is nothing beside 1: from there on no exponential overflows.
        start = max(start, self.losses[last] - _FARTHEST)
        first = int(np.searchsorted(self.losses, start))
        losses, tail_masses = self.losses[first:], tail_masses[first : max(first, last) + 1]
        # Up to the point j, and from the one before: delta = Pr(loss >= j) - exp(epsilon) other[j].
        scaled = (self.masses[first:] * np.exp(losses[0] - losses))[::-1].cumsum()[::-1]
        holds = (
            tail_masses - np.exp(losses[: tail_masses.size] - losses[0]) * scaled[: tail_masses.size] <= delta
        )
        place = int(np.argmax(holds))
        if not holds[place]:
            return self.largest
        excess = tail_masses[place] - delta
        between = losses[0] + math.log(excess / scaled[place]) if excess > 0 else start
        return float(min(self.largest, max(start, between)))


def compose(draws: Sequence[tuple[PrivacyLossDistribution, int]], exponent: float = math.inf) -> ComposedLoss:
    """Return the distribution of the loss of independent draws, so many of each, on the same grid.

    ``exponent``: from which on Chernoff's bound on the window is tried, above 0; for losses with long tails,
    one over the largest.
    """
    from scipy.fft import irfft, next_fast_len

    step = draws[0][0].step
    points = sum(times * pld.points for pld, times in draws)
    first, last = _window(draws, points, exponent)
    length = next_fast_len(last - first + 1, real=True)
    # The Fourier transform of the sum is the product of those of the draws.
    log_moduli, angles = (
        np.sum([times * pld.spectrum(length)[part] for pld, times in draws], axis=0) for part in (0, 1)
    )
    product = np.zeros(length // 2 + 1, dtype=np.complex128)
    # Nearly all of it is too small to count beside the rounding errors.
    large = log_moduli > _NEGLIGIBLE
    product[large] = np.exp(log_moduli[large] + 1j * angles[large])
    masses = irfft(product, length)
    count = sum(times for _, times in draws)
    return ComposedLoss.of_transform(masses, step, first, count, points, _infinite(draws))


def rare_epsilon(
    draws: Sequence[tuple[PrivacyLossDistribution, int]], delta: float, exponent: float
) -> float:
    """Return an epsilon of independent draws as `compose` does, with errors that are a small part of delta.

    Losses are tilted so that their sum is about epsilon on average. The sum's rounding errors, and what its
    window leaves out, then count exp(-t sum) E[exp(t sum)] times, t being the tilt, which is about delta.

    ``exponent``: as in `compose`.
    """
    times = np.array([count for _, count in draws])
    exponents = _exponents(draws, exponent, 33)
    moments = np.array([pld.log_moments(exponents) for pld, _ in draws])
    # Chernoff's bound on an epsilon.
    bounds = (times @ moments - math.log(delta)) / exponents
    best = int(np.argmin(bounds))
    tilt, moment = float(exponents[best]), float(times @ moments[:, best])
    logs = moments[:, best].tolist()
    total = compose(
        [(pld.tilted(tilt, log), count) for (pld, count), log in zip(draws, logs, strict=True)], exponent
    )
    infinite = _infinite(draws)
    largest = math.inf if infinite else total.largest
    reliable = total.losses >= (moment + math.log(total.error / (delta * _SHARE))) / tilt
    if not reliable.any():
        return largest
    losses = total.losses[reliable]
    masses = total.masses[reliable] * np.exp(moment - tilt * losses)
    epsilon = ComposedLoss(losses, masses, delta * _SHARE + infinite, largest).epsilon(delta)
    if epsilon > losses[0]:
        return epsilon
    # An unreliable loss counts at an epsilon below it, which is only found without a tilt.
    return min(float(losses[0]), compose(draws, exponent).epsilon(delta))


def _infinite(draws: Sequence[tuple[PrivacyLossDistribution, int]]) -> float:
    """Return the probability that one of the losses is infinite."""
    return -math.expm1(sum(times * math.log1p(-pld.infinite) for pld, times in draws))


def _exponents(draws: Sequence[tuple[PrivacyLossDistribution, int]], least: float, count: int) -> Floats:
    """Return where Chernoff's bound is tried, from a number on that is not above what suits normal losses."""
    variance = sum(times * pld.variance for pld, times in draws)
    # A tilt can leave next to nothing of a variance but its rounding errors.
    variance = max(variance, (1e-3 * draws[0][0].step) ** 2)
    normal = _EXPONENTS * math.sqrt(-2 * math.log(_TAIL) / variance)
    return normal if least >= normal[0] else np.geomspace(least, normal[-1], count)


def _window(
    draws: Sequence[tuple[PrivacyLossDistribution, int]], points: int, exponent: float
) -> tuple[int, int]:
    """Return the first and the last point of a window that the sum leaves with `_TAIL` on either side."""
    step = draws[0][0].step
    exponents = _exponents(draws, exponent, 17)
    # Pr(loss >= x) <= E[exp(t loss)] exp(-t x) for every t above 0 (Chernoff).
    ends = [
        np.min(
            (sum(times * pld.log_moments(sign * exponents) for pld, times in draws) - math.log(_TAIL))
            / exponents
        )
        for sign in (-1, 1)
    ]
    return max(-points, math.floor(-ends[0] / step)), min(points, math.ceil(ends[1] / step))


def common_grid(channels: Sequence[Channel]) -> list[PrivacyLossDistribution]:
    """Return the loss distributions of channels on one grid.

    The grid suits the least private of them, and is coarse for those that are more than 32 times as private.
    """
    epsilons = [channel.epsilon for channel in channels]
    step = max(min(epsilons) / POINTS, max(epsilons) / (32 * POINTS))
    return [PrivacyLossDistribution.of(channel, step) for channel in channels]


def compose_many(kinds: Sequence[PrivacyLossDistribution], times: Ints, delta: float) -> Floats:
    """Return an epsilon of every user at delta, as by `compose`, shape (users,).

    ``times``, shape (users, kinds): how often each user draws from each kind, all on the same grid.
    """
    from scipy.fft import irfft

    epsilons = np.zeros(len(times))
    active = np.flatnonzero(times.any(axis=1))
    if not active.size:
        return epsilons
    times = times[active]
    points = times @ np.array([kind.points for kind in kinds])
    first, last = _windows(kinds, times, points)
    lengths = 1 << np.ceil(np.log2(last - first + 1)).astype(np.int64)
    for length in np.unique(lengths).tolist():
        spectra = [kind.spectrum(length) for kind in kinds]
        moduli, angles = (np.array([spectrum[part] for spectrum in spectra]) for part in (0, 1))
        of_length = np.flatnonzero(lengths == length)
        # About a million points of windows at once.
        for block in np.array_split(of_length, -(-of_length.size * length // (1 << 20))):
            # The transform of a user's sum is the product of those of the draws.
            logs = times[block] @ moduli
            turns = np.exp(np.maximum(logs, _NEGLIGIBLE) + 1j * (times[block] @ angles))
            masses = irfft(np.where(logs > _NEGLIGIBLE, turns, 0.0), length)
            for row, user in enumerate(block.tolist()):
                total = ComposedLoss.of_transform(
                    masses[row], kinds[0].step, int(first[user]), int(times[user].sum()), int(points[user])
                )
                epsilons[active[user]] = total.epsilon(delta)
    return epsilons


def _windows(kinds: Sequence[PrivacyLossDistribution], times: Ints, points: Ints) -> tuple[Ints, Ints]:
    """Return the first and the last point of windows that users' sums leave with `_TAIL` on either side."""
    margin, step = -np.log(_TAIL), kinds[0].step
    # Rounding can leave nothing of a variance, or less.
    variances = np.maximum(times @ np.array([kind.variance for kind in kinds]), (1e-3 * step) ** 2)
    scales = np.sqrt(2 * margin / variances)
    least, most = _EXPONENTS[0] * scales.min(), _EXPONENTS[-1] * scales.max()
    ratio = _EXPONENTS[1] / _EXPONENTS[0]
    exponents = least * ratio ** np.arange(np.ceil(np.log(most / least) / np.log(ratio)) + 1)
    ends = []
    for sign in (-1, 1):
        moments = np.array([kind.log_moments(sign * exponents) for kind in kinds])
        # Pr(loss >= x) <= E[exp(t loss)] exp(-t x) for every t above 0 (Chernoff).
        ends.append(((times @ moments + margin) / exponents).min(axis=1) / step)
    first = np.maximum(-points, np.floor(-ends[0]).astype(np.int64))
    return first, np.minimum(points, np.ceil(ends[1]).astype(np.int64))


_UNSPENT = 1e-3
"""Share of the budget that may stay unspent."""


def largest_share(
    channel: Callable[[float], Channel],
    draws: int,
    epsilon: float,
    delta: float,
    *,
    most: float,
    guess: float | None = None,
) -> float:
    """Return the budget of one draw such that all draws together are (epsilon, delta)-private.

    ``channel``: from the budget of one draw to the channel that it is drawn from; less private for larger
    budgets. The result is at least ``epsilon / draws`` and at most ``most``. It depends on nothing but the
    arguments, so that device and server find the same.
    """
    low = least = min(epsilon / draws, most)
    high = math.inf
    # Where the tail of a normal sum begins, in deviations, and the deviation that spends epsilon.
    tail = math.sqrt(-2 * math.log(delta))
    deviation = math.sqrt(tail**2 + 2 * epsilon) - tail
    share = min(max(low, guess or 2 * deviation / math.sqrt(draws)), most)
    log_target = math.log(epsilon * (1 - _UNSPENT / 2))
    previous: tuple[float, float] | None = None
    for _ in range(50):
        candidate = channel(share)
        spent = candidate.epsilon
        if 0 < spent < math.inf:
            composed = compose([(PrivacyLossDistribution.of(candidate), draws)]).epsilon(delta)
            spent = min(composed, draws * spent)
        low, high = (share, high) if spent <= epsilon else (low, share)
        if low == most or high <= low * (1 + _UNSPENT / 10) or 0 <= 1 - spent / epsilon <= _UNSPENT:
            break
        point = math.log(share), math.log(max(spent, epsilon / 100))
        # What is spent grows as a power of the share that lies between 1 and 2, and changes slowly.
        power = (tail + deviation) / (tail + deviation / 2)
        if previous is not None:
            power = min(max((point[1] - previous[1]) / (point[0] - previous[0]), 1.0), 2.0)
        previous = point
        share = min(share * math.exp((log_target - point[1]) / power), most)
        if not low < share < high:
            share = math.sqrt(low * high)
    return low if low == most else max(least, rounded_down(low))
