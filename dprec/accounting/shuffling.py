"""Privacy amplification by shuffling: what reports tell that reach the server in an order that says nothing.

The privacy blanket: whatever its user rated, a report has the symbol z with a probability of at least w(z)
= min over x of Q[x, z]. So it is drawn from the blanket, in proportion to w and without regard to the
rating, with probability gamma, the sum of w (Balle, Bell, Gascon and Nissim [balle2019]). Of all ways to
divide reports into parts that hide and parts that do not, this one gives the least bound (Su, Cheng and
Wang [su2025]).

Clones, for any reports of a known epsilon: a report of another rating is, with some probability, drawn as
if its rating were x or y, whichever x and y are to be told apart: it is a clone of one of them. The number
of clones of x among all reports is then all that the shuffled reports tell (Feldman, McMillan and Talwar
[feldman2021]).
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import permutations

import numpy as np

from dprec.accounting.pld import (
    POINTS,
    PrivacyLossDistribution,
    compose_many,
    log_moments,
    points_up_to,
)
from dprec.arrays import AnyInts, Floats, Ints, Pieces, offsets
from dprec.channel import Channel
from dprec.errors import check_least

_TAIL = 1e-15
"""Share of the expected excess, or nearly, that may lie beyond either end of the window."""

_STEPS_PER_DEVIATION, _FEWEST_POINTS, _DEVIATIONS = 12, 1024, 16
"""Steps of the grid per deviation of a draw at least, and points per so many deviations of the sum."""

_NEGLIGIBLE = -60.0
"""Logarithm of the modulus below which a frequency is left out."""


def expected_excess(values: Floats, probabilities: Floats, count: int) -> float:
    """Return an upper bound on E[max(0, S)], S the sum of ``count`` independent draws.

    ``values``, ``probabilities``, shape (outcomes,): of one draw; ``count``: at least 1.

    The draw is tilted by exp(t X), which moves the mean of the sum to 0: E[max(0, S)] is E[exp(t X)]^count
    times the tilted mean of max(0, S) exp(-t S), so that rounding errors are relative to the result, however
    small it is. The distribution of the sum is found by fast Fourier transform; what the grid, the window and
    rounding take away is added.
    """
    from scipy.fft import next_fast_len

    deviation, largest = math.sqrt(_moments(values, probabilities)[1]), float(values.max())
    if largest <= 0 or deviation <= 1e-12 * largest:  # which is rounding
        return max(0.0, count * largest)
    step = deviation * min(1 / _STEPS_PER_DEVIATION, _DEVIATIONS * math.sqrt(count) / _FEWEST_POINTS)
    # Towards the exponent at which the tilted mean is 0, at least 0; any exponent gives a bound.
    exponent = 0.0
    for _ in range(6):
        mean, variance = _moments(values, _tilted(values, probabilities, exponent))
        exponent = max(0.0, exponent - mean / variance) if variance > 0 else exponent
    if _log_moment(values, probabilities, exponent) > 0:
        exponent = 0.0
    # On the grid each value is divided between its two neighbours. The mean of every value is kept, so that
    # E[f(sum)] does not fall for any convex f.
    lower = np.floor(values / step)
    upper_share = values / step - lower
    values = step * np.concatenate([lower, lower + 1])
    masses = np.concatenate([probabilities * (1 - upper_share), probabilities * upper_share])
    tilted = _tilted(values, masses, exponent)
    bottom, top = _window(values, masses, tilted, exponent, count)
    first = math.floor(bottom / step)
    length = next_fast_len(math.ceil(top / step) - first + 2, real=True)
    sums = step * (first + np.arange(length))
    places = np.rint(values / step).astype(np.int64) % length
    wound: Floats = np.bincount(places, tilted, minlength=length).astype(np.float64)
    of_sums, error = _distribution(wound, count, first)
    above = sums > 0
    weights = sums[above] * np.exp(-exponent * sums[above])
    excess = float(of_sums[above] @ weights) + error * float(np.linalg.norm(weights)) + top * _TAIL
    return math.exp(count * _log_moment(values, masses, exponent)) * excess


def _log_moment(values: Floats, masses: Floats, exponent: float) -> float:
    """Return log E[exp(t X)] of a draw."""
    return float(log_moments(values, masses, np.array([exponent]))[0])


def _tilted(values: Floats, masses: Floats, exponent: float) -> Floats:
    """Return masses in proportion to exp(t X)."""
    powers = exponent * values
    tilted = masses * np.exp(powers - powers.max())
    return np.asarray(tilted / tilted.sum())


def _moments(values: Floats, masses: Floats) -> tuple[float, float]:
    """Return the mean and the variance of a draw."""
    mean = float(masses @ values)
    return mean, float(masses @ (values - mean) ** 2)


def _window(
    values: Floats, masses: Floats, tilted: Floats, exponent: float, count: int
) -> tuple[float, float]:
    """Return ends between which the tilted sum lies, but for what `_TAIL` says.

    For s > 0 and t = exponent + s, the excess of sums beyond x >= 1 / t is at most
    x exp(count log E[exp(t X)] - t x) (Chernoff), and below the window lies `_TAIL` of the tilted mass.
    """
    variance = count * max(_moments(values, tilted)[1], 1e-300)
    # Where Chernoff's bound is tried, as multiples of what suits a normal distribution.
    shifts = np.geomspace(0.25, 4.0, 17) * math.sqrt(-2 * math.log(_TAIL) / variance)
    base, margin = count * _log_moment(values, masses, exponent), -math.log(_TAIL)
    up = exponent + shifts
    above = (count * log_moments(values, masses, up) - base + margin) / up
    top = float(np.min(np.maximum(above, 1 / up)))
    below = (count * log_moments(values, masses, exponent - shifts) - base + margin) / shifts
    return min(-float(np.min(below)), 0.0), min(top, count * max(0.0, float(values.max())))


def _distribution(masses: Floats, count: int, first: int) -> tuple[Floats, float]:
    """Return the distribution of the sum on a circle of points, and the norm of its error.

    What lies beyond the window is wound into it, so that no mass is missing.
    """
    from scipy.fft import irfft, rfft

    length = masses.size
    spectrum = rfft(masses)
    with np.errstate(divide="ignore"):
        logs = count * np.log(spectrum)
    power = np.zeros_like(spectrum)
    # Nearly all of it is too small to count beside the rounding errors.
    large = logs.real > _NEGLIGIBLE
    power[large] = np.exp(logs[large])
    of_sums = np.maximum(0.0, np.roll(irfft(power, length), -(first % length)))
    # Of a Fourier coefficient, for each draw and each level of the transform, and more.
    rounding = 8 * float(np.finfo(np.float64).eps) * count * math.log2(2 * length)
    return of_sums, rounding * float(np.linalg.norm(of_sums)) + math.exp(_NEGLIGIBLE)


_BLANKET_MARGIN = 1 + 1e-8
"""Factor that covers what rounding does to probabilities and gains before they are summed."""

_CLONES_TAIL = 1e-15
"""Probability that the number of clones lies beyond either end of what is summed."""


def clones_delta(epsilon: float, reports: int, local_epsilon: float) -> float:
    """Return a delta with which epsilon holds for one of the shuffled reports, each of a local epsilon.

    A report is a clone of x or y, at even odds, with probability e^-local ([feldman2021], Theorem 3.1 and
    section 4): nothing but the local epsilon needs to be known of the channels, which may differ.
    """
    return _mixture_delta(epsilon, reports, local_epsilon, math.exp(-local_epsilon))


def two_answers_delta(epsilon: float, reports: int, local_epsilon: float, symbols: int) -> float:
    """Return the same for k-ary randomised response, from the probabilities of its symbols.

    A report has x's own symbol with probability q = 1 / (e^local + k - 1) or more, and y's likewise, so that
    it is a clone with probability 2 q. Whoever sent a third symbol is taken to be known. This is the
    reduction of Feldman, McMillan and Talwar [feldman2023] in a form that holds for every k (its erratum is
    about third symbols). The privacy blanket hides a report among third symbols as well.
    """
    lie = 1 / (math.exp(local_epsilon) + symbols - 1)
    one_of_two = lie * (math.exp(local_epsilon) + 1)
    return min(1.0, one_of_two * _mixture_delta(epsilon, reports, local_epsilon, 2 * lie))


def _mixture_delta(epsilon: float, reports: int, local_epsilon: float, clone: float) -> float:
    """Return the divergence of the number of clones of x, by which symbol the report itself has.

    With C ~ Binomial(n - 1, clone), A ~ Binomial(C, 1/2) and D = 1 of probability p = e^local / (e^local + 1)
    it is that of (A + D, C + 1) from (A + 1 - D, C + 1). Given C, a count of a tells more the larger it is.
    """
    if epsilon >= local_epsilon:
        return 0.0
    from scipy.stats import binom  # every start of a process would wait for it

    truth = 1 / (1 + math.exp(-local_epsilon))
    factor = math.exp(epsilon)
    gain, cost = truth - factor * (1 - truth), factor * truth - (1 - truth)
    first, last = (int(binom.ppf(tail, reports - 1, clone)) for tail in (_CLONES_TAIL, 1 - _CLONES_TAIL))
    clones = np.arange(first, last + 1)
    least = np.floor((clones + 1) * (cost / (gain + cost))) + 1
    divergences = gain * binom.sf(least - 2, clones, 0.5) - cost * binom.sf(least - 1, clones, 0.5)
    total = float(binom.pmf(clones, reports - 1, clone) @ np.maximum(0.0, divergences))
    return min(1.0, (1 + 1e-9) * total + 2 * _CLONES_TAIL)  # more than the sum is rounded by


def closed_form_epsilon(reports: int, local_epsilon: float, delta: float) -> float:
    """Return an epsilon in closed form ([feldman2021], Theorem 3.1); the local one for too few reports."""
    check_least("an epsilon", local_epsilon)
    ratio = math.exp(local_epsilon)
    if reports < 16 * ratio * math.log(2 / delta):
        return local_epsilon
    noise = 8 * math.sqrt(ratio * math.log(4 / delta) / reports) + 8 * ratio / reports
    return min(local_epsilon, math.log1p((ratio - 1) / (ratio + 1) * noise))


_RATIO = 1.1
"""Ratio of the numbers of reports for which bounds are computed; between two of them, the lower one holds."""

_CORNERS, _LEAST_DELTA = 33, 1e-13
"""Corners of a curve of divergences, and where it ends but for a straight line."""

_PRECISION = 1e-4
"""Relative precision of an epsilon, which is rounded up."""


def computed_for(reports: Ints) -> Ints:
    """Return the numbers of reports, at most the given ones, for which bounds are computed.

    Fewer reports hide less, so that their bound holds for more.
    """
    largest = int(reports.max(initial=1))
    steps = np.unique((_RATIO ** np.arange(math.ceil(math.log(largest, _RATIO)) + 1)).astype(np.int64))
    return steps[np.searchsorted(steps, reports, side="right") - 1]


def least_epsilon(delta_at: Callable[[float], float], largest: float, delta: float) -> float:
    """Return the least epsilon, but for `_PRECISION`, up to ``largest`` that holds with delta, above 0."""
    from scipy.optimize import brentq

    if delta_at(0.0) <= delta:
        return 0.0

    def excess(epsilon: float) -> float:
        return math.log(max(delta_at(epsilon), delta * 1e-3)) - math.log(delta)

    root = float(brentq(excess, 0.0, largest, xtol=_PRECISION * 1e-4, rtol=_PRECISION / 4))
    return min(largest, root * (1 + _PRECISION))


@dataclass(frozen=True, eq=False)
class ShuffledChannel:
    """A channel whose reports are shuffled, none of them linked to another, and its privacy blanket."""

    channel: Channel
    """With a finite epsilon above 0."""
    _epsilons: dict[tuple[int, float], float] = field(default_factory=dict, init=False)
    _losses: dict[tuple[int, float], PrivacyLossDistribution] = field(default_factory=dict, init=False)

    @classmethod
    def known(cls, channel: Channel) -> "ShuffledChannel":
        """Return the one that was computed for such a channel before in this process, if any."""
        key = repr(channel.weights.shape).encode() + channel.weights.tobytes()
        if key not in _KNOWN:
            if len(_KNOWN) >= 64:
                _KNOWN.clear()
            _KNOWN[key] = cls(channel)
        return _KNOWN[key]

    @cached_property
    def _blanket(self) -> tuple[Floats, list[tuple[Floats, Floats]]]:
        """Probabilities w of the symbols that occur, whatever was rated, and pairs of rows relative to them.

        Pairs that are the same but for rounding count once.
        """
        rows = self.channel.probabilities[:, self.channel.weights.max(axis=0) > 0]
        masses: Floats = rows.min(axis=0)
        pairs: dict[bytes, tuple[Floats, Floats]] = {}
        for one, other in permutations(rows / masses, 2):
            # More digits would be noise of the weights.
            columns = np.round(np.log(np.stack([one, other, masses])), 12)
            if (columns[0] != columns[1]).any():
                pairs.setdefault(columns[:, np.lexsort(columns)].tobytes(), (one, other))
        return masses, list(pairs.values())

    def delta(self, epsilon: float, reports: int) -> float:
        """Return a delta with which epsilon holds for one of the shuffled reports.

        For a report of x or of y and n reports in all it is, at most,

            E[max(0, sum of G_j over j <= n)] / n,   G_j = (Q[x, Z_j] - e^epsilon Q[y, Z_j]) / w(Z_j)

        with Z_j = z of probability w(z), and G_j = 0 otherwise ([balle2019], Lemma 5.3, with both
        expectations in one). With n = 1 it is the channel's own. It falls with n: anybody can add what hides
        in a further report. With more than 90 different pairs of rows, clones of any two rows are computed.

        ``epsilon``: at least 0. ``reports``: n, the report itself included; the others are through the
        channel, of any ratings.
        """
        if epsilon >= self.channel.epsilon:
            return 0.0
        masses, pairs = self._blanket
        gains = [one - math.exp(epsilon) * other for one, other in pairs]
        unshuffled = max((float(masses @ np.maximum(0.0, gain)) for gain in gains), default=0.0)
        unshuffled = min(1.0, _BLANKET_MARGIN * unshuffled)
        if len(pairs) > 90:
            return min(clones_delta(epsilon, reports, self.channel.epsilon), unshuffled)
        masses = np.append(masses, max(0.0, 1 - float(masses.sum())))
        masses /= masses.sum()
        excesses = (expected_excess(np.append(gain, 0.0), masses, reports) for gain in gains)
        return min(max((_BLANKET_MARGIN * excess / reports for excess in excesses), default=0.0), unshuffled)

    def epsilon(self, reports: int, delta: float) -> float:
        """Return an epsilon that holds with delta for one of the shuffled reports, at most the channel's."""
        if (reports, delta) not in self._epsilons:
            self._epsilons[reports, delta] = least_epsilon(
                lambda epsilon: self.delta(epsilon, reports), self.channel.epsilon, delta
            )
        return self._epsilons[reports, delta]

    def losses(self, reports: int, step: float) -> PrivacyLossDistribution:
        """Return the privacy losses of a pair that dominates one of the shuffled reports.

        The divergences of a pair are convex in a = e^epsilon, so that straight lines between some of them,
        the last one down to 0 at the channel's epsilon, are not below them.
        """
        if (reports, step) not in self._losses:
            points = points_up_to(self.channel.epsilon, step)
            end = min(points, points_up_to(self.epsilon(reports, _LEAST_DELTA), step))
            corners = np.unique(np.rint(np.linspace(0, end, _CORNERS)).astype(np.int64))
            deltas = [self.delta(step * corner, reports) for corner in corners.tolist()]
            if end < points:
                corners, deltas = np.append(corners, points), [*deltas, 0.0]
            deltas[-1] = 0.0
            ratios = np.exp(step * np.arange(points + 1))
            self._losses[reports, step] = PrivacyLossDistribution.with_divergences(
                step, np.interp(ratios, ratios[corners], deltas)
            )
        return self._losses[reports, step]


_KNOWN: dict[bytes, ShuffledChannel] = {}
"""What was computed, by the channels' draws: runs that differ in their seed ask for the same."""


_USERS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class ShuffledReports:
    """Reports through one channel, each a message that cannot be linked to another."""

    channel: Channel
    """With a finite epsilon above 0."""
    users: AnyInts
    """Who sent each report, ascending; shape (reports,)."""
    mixed: Ints
    """Among how many reports each is shuffled, itself included; shape (reports,)."""
    n_users: int

    def of_user(self, user: int) -> "ShuffledReports":
        """Return the reports of one user, each among as many."""
        bounds = np.searchsorted(self.users, [user, user + 1])
        return ShuffledReports(
            self.channel, np.zeros(bounds[1] - bounds[0], dtype=np.int64), self.mixed[slice(*bounds)], 1
        )

    @cached_property
    def _sizes(self) -> tuple[Ints, Ints]:
        """Numbers of reports for which bounds are computed, and the place of every report's among them."""
        sizes, places = np.unique(computed_for(self.mixed), return_inverse=True)
        return sizes, places

    def per_report(self, delta: float) -> Floats:
        """Return an epsilon for the rating of each report that holds with delta, shape (reports,)."""
        sizes, places = self._sizes
        shuffled = ShuffledChannel.known(self.channel)
        return np.array([shuffled.epsilon(size, delta) for size in sizes.tolist()])[places]

    def per_user(self, delta: float) -> Floats:
        """Return an epsilon for all that a user reports that holds with delta, shape (users,).

        The mixes are independent of each other, so that their losses add up. Infinite for users without an
        accepted report.
        """
        sizes, places = self._sizes
        composed = np.full(self.n_users, np.inf)
        if not places.size:
            return composed
        amplified = self.per_report(delta)
        typical = float((amplified**2).sum() / amplified.sum()) if amplified.any() else self.channel.epsilon
        # 80 points up to the epsilon of a report, averaged with those that tell most weighing most.
        finer = max(0, math.ceil(math.log2(self.channel.epsilon / POINTS * 80 / typical)))
        step = self.channel.epsilon / POINTS / 2**finer
        shuffled = ShuffledChannel.known(self.channel)
        kinds = [shuffled.losses(size, step) for size in sizes.tolist()]
        ends = np.searchsorted(self.users, np.arange(self.n_users + 1))
        for start in range(0, self.n_users, _USERS_AT_ONCE):
            stop = min(start + _USERS_AT_ONCE, self.n_users)
            reports = slice(ends[start], ends[stop])
            cells = (self.users[reports] - start) * sizes.size + places[reports]
            times = np.bincount(cells, minlength=(stop - start) * sizes.size).reshape(stop - start, -1)
            epsilons = compose_many(kinds, times, delta)
            composed[start:stop] = np.where(times.any(axis=1), epsilons, np.inf)
        return composed


def with_the_same_items(counts: Ints, items: AnyInts) -> Ints:
    """Return how many users report on exactly the items of each user, itself included, shape (users,).

    ``counts``, shape (users,): items of each user; ``items``, shape (sum of counts,): by user, ascending.
    """
    ordered = np.ascontiguousarray(items)
    sets = list(Pieces(ordered.tobytes(), offsets(counts) * ordered.itemsize))
    alike = Counter(sets)
    return np.array([alike[item_set] for item_set in sets], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ShuffledProfiles:
    """Messages with all reports of a user, of which only those that show the same items hide each other."""

    losses: Floats
    """What each message loses if it is not shuffled, without a delta; shape (users,)."""
    mixed: Ints
    """Among how many messages each is hidden, itself included; 0 for users without an accepted report;
    shape (users,).
    """

    def of_user(self, user: int) -> "ShuffledProfiles":
        """Return the message of one user, among as many."""
        return ShuffledProfiles(self.losses[[user]], self.mixed[[user]])

    def per_user(self, delta: float) -> Floats:
        """Return an epsilon for all that a user reports that holds with delta, shape (users,).

        Users with the same items send through the same channels, and their messages hide each other as those
        of any randomiser with their losses do. Infinite for users without an accepted report.
        """
        cases = np.column_stack([self.losses, self.mixed.astype(np.float64)])
        distinct, of_user = np.unique(cases, axis=0, return_inverse=True)
        bounds = []
        for loss, mixed in distinct.tolist():
            bound = loss if mixed else math.inf
            # Where no clone is to be expected, nothing is gained.
            if mixed and 0 < loss <= math.log(mixed):
                bound = least_epsilon(
                    partial(clones_delta, reports=int(mixed), local_epsilon=loss), loss, delta
                )
            bounds.append(bound)
        return np.array(bounds)[of_user.ravel()]

    def per_report(self, delta: float) -> None:
        """Return None: a message holds all reports of its user."""
