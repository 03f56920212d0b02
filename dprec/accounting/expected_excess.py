"""By how much a sum of independent draws is expected to exceed 0: a bound that is nearly exact."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from dprec.arrays import Floats

_TAIL = 1e-15
"""Share of the expected excess, or nearly, that may lie beyond either end of the window."""

_EXPONENTS = np.geomspace(0.25, 4.0, 17)
"""Where Chernoff's bound is tried, as multiples of what suits a normal distribution."""

_STEPS_PER_DEVIATION, _FEWEST_POINTS, _DEVIATIONS = 12, 1024, 16
"""Steps of the grid per deviation of a draw at least, and points per so many deviations of the sum."""

_NEWTON_STEPS = 6
"""Steps towards the best exponent; any exponent gives a bound."""

_NOISE = 1e-12
"""Relative size below which a deviation is rounding."""

_NEGLIGIBLE = -60.0
"""Logarithm of the modulus below which a frequency is left out."""

_ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Relative error of a Fourier coefficient, for each draw and each level of the transform, and more."""


@dataclass(frozen=True, eq=False)
class _Draw:
    """Values of one draw and their probabilities, shape (outcomes,) each."""

    values: Floats
    masses: Floats

    def log_moments(self, exponents: Floats) -> Floats:
        """Return log E[exp(t X)] for every exponent t."""
        powers = np.outer(exponents, self.values)
        shift = powers.max(axis=1)
        return np.asarray(np.log(np.exp(powers - shift[:, None]) @ self.masses) + shift)

    def log_moment(self, exponent: float) -> float:
        """Return log E[exp(t X)] for one exponent."""
        return float(self.log_moments(np.array([exponent]))[0])

    def tilted(self, exponent: float) -> _Draw:
        """Return the draw with masses in proportion to exp(t X)."""
        powers = exponent * self.values
        masses = self.masses * np.exp(powers - powers.max())
        return _Draw(self.values, masses / masses.sum())

    @property
    def mean(self) -> float:
        """Mean of a draw."""
        return float(self.masses @ self.values)

    @property
    def variance(self) -> float:
        """Variance of a draw."""
        return float(self.masses @ (self.values - self.mean) ** 2)

    def balance(self) -> float:
        """Return an exponent of at least 0 at which the tilted mean is nearly 0, or 0 if there is none."""
        exponent = 0.0
        for _ in range(_NEWTON_STEPS):
            tilted = self.tilted(exponent)
            variance = tilted.variance
            exponent = max(0.0, exponent - tilted.mean / variance) if variance > 0 else exponent
        return exponent if self.log_moment(exponent) <= 0 else 0.0

    def on_grid(self, step: float) -> _Draw:
        """Return a draw on the multiples of ``step``, each value divided between its two neighbours.

        The mean of every value is kept, so that E[f(sum)] does not fall for any convex f.
        """
        lower = np.floor(self.values / step)
        upper_share = self.values / step - lower
        return _Draw(
            step * np.concatenate([lower, lower + 1]),
            np.concatenate([self.masses * (1 - upper_share), self.masses * upper_share]),
        )


def expected_excess(values: Floats, probabilities: Floats, count: int) -> float:
    """Return an upper bound on E[max(0, S)], S the sum of ``count`` independent draws.

    ``values``, ``probabilities``, shape (outcomes,): of one draw; ``count``: at least 1.

    The draw is tilted by exp(t X), which moves the mean of the sum to 0: E[max(0, S)] is E[exp(t X)]^count
    times the tilted mean of max(0, S) exp(-t S), so that rounding errors are relative to the result, however
    small it is. The distribution of the sum is found by fast Fourier transform; what the grid, the window and
    rounding take away is added.
    """
    draw = _Draw(values, probabilities)
    deviation = math.sqrt(draw.variance)
    largest = float(values.max())
    if largest <= 0 or deviation <= _NOISE * largest:
        return max(0.0, count * largest)
    step = deviation * min(1 / _STEPS_PER_DEVIATION, _DEVIATIONS * math.sqrt(count) / _FEWEST_POINTS)
    exponent = draw.balance()
    draw = draw.on_grid(step)
    bottom, top = _window(draw, exponent, count)
    scale = math.exp(count * draw.log_moment(exponent))
    first = math.floor(bottom / step)
    length = next_fast_len(math.ceil(top / step) - first + 2, real=True)
    sums = step * (first + np.arange(length))
    masses, error = _distribution(draw.tilted(exponent), count, step, first, length)
    above = sums > 0
    weights = sums[above] * np.exp(-exponent * sums[above])
    excess = float(masses[above] @ weights) + error * float(np.linalg.norm(weights)) + top * _TAIL
    return scale * excess


def _window(draw: _Draw, exponent: float, count: int) -> tuple[float, float]:
    """Return ends between which the tilted sum lies, but for what `_TAIL` says.

    For s > 0 and t = exponent + s, the excess of sums beyond x >= 1 / t is at most
    x exp(count log E[exp(t X)] - t x) (Chernoff), and below the window lies `_TAIL` of the tilted mass.
    """
    variance = count * max(draw.tilted(exponent).variance, 1e-300)
    further = _EXPONENTS * math.sqrt(-2 * math.log(_TAIL) / variance)
    base = count * draw.log_moment(exponent)
    margin = -math.log(_TAIL)
    up = exponent + further
    above = (count * draw.log_moments(up) - base + margin) / up
    top = float(np.min(np.maximum(above, 1 / up)))
    below = (count * draw.log_moments(exponent - further) - base + margin) / further
    return min(-float(np.min(below)), 0.0), min(top, count * max(0.0, float(draw.values.max())))


def _distribution(draw: _Draw, count: int, step: float, first: int, length: int) -> tuple[Floats, float]:
    """Return the distribution of the sum on a circle of ``length`` points, and the norm of its error.

    What lies beyond the window is wound into it, so that no mass is missing.
    """
    places = np.rint(draw.values / step).astype(np.int64) % length
    spectrum = rfft(np.bincount(places, draw.masses, minlength=length))
    with np.errstate(divide="ignore"):
        logs = count * np.log(spectrum)
    power = np.zeros_like(spectrum)
    # Nearly all of it is too small to count beside the rounding errors.
    seen = logs.real > _NEGLIGIBLE
    power[seen] = np.exp(logs[seen])
    masses = np.maximum(0.0, np.roll(irfft(power, length), -(first % length)))
    rounding = _ROUNDING * count * math.log2(2 * length)
    return masses, rounding * float(np.linalg.norm(masses)) + math.exp(_NEGLIGIBLE)
