"""What epsilon allows an attack that is told nothing else of those whom it compares, and what chance adds.

A bound is printed where it is proved for every attack and all data, and nowhere else. Data are taken as they
are, and reports as random. No loss bounds what an attacker knows without the reports it covers: who else
rated an item, or that a user's cells go along with each other, may tell any of them. So there is no bound of
a figure into which such knowledge goes: of levels and signs, of cells ranked by popularity too, of who took
part and which item is in a sum, where runs are too few to say what chance does.

**What is allowed of two.** Let any two users' messages be told apart with true positives of at most R(x) at
x false ones (Dong, Roth and Su [dong2022], section 2): R is `Roc.allowed_by`, of the replacement of one
profile by any other. Users have the same mechanism, and the attack knows of two of them, u and v, what they
sent and nothing else: were their messages exchanged, so would be its scores.

*Pairs.* If users draw their noise by themselves, u scores above v with probability p = the area under R at
most, equal scores counted half; and u_i above v_i for all of m pairs of different users with p^m at most.
For the attack guesses which way round each pair is, and with all 2^m ways equally likely it is right as often
as in the true one. What devices send follows from m independent pairs of draws from the two distributions
that R belongs to, even where the server chooses what it asks by what it was sent (Vadhan and Zhang
[vadhan2023]), and of these each is guessed with p. What is the same whoever of two holds which profile, as a
sum over both or a shuffled batch, adds nothing.

*Yes or no.* With c the probability of a yes about either if u, too, had the profile of v, a yes about u has
the probability R(c) at most, and a no about v R(1 - c), whatever else is compared: of shares a and 1 - a of
these, the largest a R(c) + (1 - a) R(1 - c) are right (`Roc.right_of`). Of m pairs, all answers about one of
each are right with that to the power of m at most, as above, where the first is asked about with probability
a.

*One among n.* The report with the highest of n scores is that of a given user with probability
integral of (1 - x)^(n - 1) dR(x) at most: where it scores as high as in a share R(x) of cases, each of the
n - 1 others scores as high with probability x at least. Of randomised response this is attained.

**What chance adds.** Of k decisions, of which any m are all right with probability p^m at most, a share above
t is right with probability exp(-k KL(t, p)) at most (Hoeffding [hoeffding1963], Theorem 1, whose proof
needs no more); and of all pairs of k and more of one kind with those of another as well (section 5, on
U-statistics). A mean of shares of other decisions, whatever depends on whom, has the largest of their bounds,
as exp is convex. All figures with a bound exceed it with a probability of one in a million at most.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprec.accounting import PrivacyAccountant
from dprec.arrays import AnyArray, Bools, Floats
from dprec.attacks.base import Figure, Game
from dprec.auditing import proportion_above, proportion_below

FAILURE = 1e-6
"""How likely a measured figure exceeds its bound, at most."""

_LARGEST = 700.0
"""Epsilon from which on nothing is excluded that floating point can tell."""


def above_by_chance(mean: float, decisions: float, failure: float = FAILURE) -> float:
    """Return what a share of right decisions exceeds with probability ``failure`` at most.

    ``mean``: how likely each of so many is right, at most; see the module. Nothing is added to 0.
    """
    return _bisected(mean, lambda share: decisions * _divergence(share, mean) < math.log(1 / failure))


def mean_above(share: float, decisions: float, failure: float = FAILURE) -> float:
    """Return the mean from which on so small a share has probability ``failure`` at most."""
    return _bisected(share, lambda mean: decisions * _divergence(share, mean) < math.log(1 / failure))


def _divergence(share: float, mean: float) -> float:
    return float(scipy.special.rel_entr(share, mean) + scipy.special.rel_entr(1 - share, 1 - mean))


def _bisected(low: float, likely: Callable[[float], bool]) -> float:
    """Return from where on, up to 1, something is no longer likely; rounded up."""
    high = 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if likely(middle) else (low, middle)
    return high


def between_users(game: Game) -> "Roc | None":
    """Return what is allowed of any two users' messages; see the module.

    None where nothing is proved of whole profiles, the server is given them, or users lose differently, so
    that their mechanisms are not the same.
    """
    if game.transcript.trusted or not game.hides_item_sets:
        return None
    losses = game.accountant.between_profiles(game.delta)
    curve = Roc.allowed_by(game.accountant)
    return curve if curve.auc < 1 and (losses == losses[:1]).all() else None


def on_bounds(means: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Say of some bounds what they are without chance, and with it; nothing of none."""
    bounds = (f"{name} above {mean:.4g} ({bound:.4g})" for name, (mean, bound) in means.items())
    if not means:
        return ()
    return (
        f"In the mean over the noise, no attack has {', '.join(bounds)}; in parentheses, what one run "
        "exceeds by chance once in a million, as in the column of what epsilon allows.",
    )


@dataclass(frozen=True, eq=False)
class Roc:
    """False and true positives of an attack that says yes to whatever scores above a threshold."""

    false_positives: Floats
    true_positives: Floats
    """The corners of the curve, both ascending from 0 to 1, between which it is straight; shape (corners,).
    """

    @classmethod
    def of_scores(cls, scores: Floats, members: AnyArray, others: AnyArray) -> Self:
        """Return the curve of a ranking; equal scores are ordered by chance.

        Parameters
        ----------
        scores : ndarray of float64, shape (kinds,)
        members, others : ndarray, shape (kinds,)
            How many of those with each score are members, and how many are not: numbers, weights, or whether
            one is. Neither may be 0 for all.
        """
        _, places = np.unique(scores, return_inverse=True)
        sides = [
            np.bincount(places, weights=side.astype(np.float64))[::-1].cumsum() for side in (others, members)
        ]
        false, true = (np.concatenate([[0.0], side / side[-1]]) for side in sides)
        return cls(false, true)

    @classmethod
    def allowed(cls, epsilon: float, delta: float = 0.0) -> Self:
        """Return the curve that nothing exceeds which is told of one of two inputs."""
        lies = (1 - delta) * float(scipy.special.expit(-epsilon))
        corners = np.array([0.0, 0.0, lies, 1 - delta, 1.0])
        return cls(corners, 1 - corners[::-1])

    @classmethod
    def allowed_by(cls, accountant: PrivacyAccountant) -> Self:
        """Return the curve that nothing exceeds which is told of any two profiles of who loses most.

        The accountant's epsilon of a replacement, at every delta and by basic composition, is a bound by
        itself; the curve is the least of all.
        """
        lines = [(0.0, 1.0)]
        # Each delta makes two lines that the trade-off is not above.
        for delta in (0.0, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.07, 0.15, 0.25, 0.4):
            losses = accountant.get_epsilon(delta, "user", "replace-one")
            epsilon = float(np.max(losses, initial=0.0))
            if epsilon < _LARGEST:
                ratio, inverse = math.exp(epsilon), math.exp(-epsilon)
                lines += [(ratio, delta), (inverse, 1 - (1 - delta) * inverse)]
        slopes, heights = np.array(lines).T
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = np.subtract.outer(heights, heights) / np.subtract.outer(slopes, slopes).T
        corners = np.unique(np.concatenate([[0.0, 1.0], meet[(meet > 0) & (meet < 1)]]))
        least = (slopes * corners[:, None] + heights).min(axis=1)
        return cls(np.append(0.0, corners), np.append(0.0, least))

    def at(self, false_positives: ArrayLike) -> Floats:
        """Return the true positives at shares of false positives, 0 to 1; where it jumps, after the jump."""
        shares = np.asarray(false_positives, dtype=np.float64)
        after = np.searchsorted(self.false_positives, shares, side="right")
        before, after = after - 1, np.minimum(after, self.false_positives.size - 1)
        width = self.false_positives[after] - self.false_positives[before]
        way = np.divide(
            shares - self.false_positives[before], width, out=np.zeros_like(shares), where=width > 0
        )
        rise = self.true_positives[after] - self.true_positives[before]
        return np.asarray(self.true_positives[before] + way * rise)

    @property
    def auc(self) -> float:
        """The area below: how likely a member is to score above another, half of equal scores counted."""
        return float(np.trapezoid(self.true_positives, self.false_positives))

    def found_among(self, users: int) -> float:
        """Return how likely a user's report is found among those of so many; "one among n" in the module."""
        width, remaining = np.diff(self.false_positives), 1 - self.false_positives[:-1]
        share = np.divide(width, remaining, out=np.zeros_like(width), where=remaining > 0)
        with np.errstate(divide="ignore"):
            of_all = -np.expm1(users * np.log1p(-share))
        # Of those whose scores end between two corners, the mean share that is above all others.
        above = np.divide(of_all, users * share, out=np.ones_like(width), where=share > 0)
        return float(np.diff(self.true_positives) @ (remaining ** (users - 1) * above))

    def right_of(self, share: float) -> float:
        """Return the largest share of right guesses at who has something that a share of users has.

        "Yes or no" in the module; it is reached at a corner of one of two terms, as both are concave.
        """
        yes = np.concatenate([self.false_positives, 1 - self.false_positives])
        return float((share * self.at(yes) + (1 - share) * self.at(1 - yes)).max())


_FAILURE, _DEVIATIONS = 0.025, 1.96
"""How likely each end of an interval fails, and how many deviations that is."""


@dataclass(frozen=True)
class Estimate:
    """A figure, and its interval of 95 % confidence were all decisions independent."""

    measured: float
    low: float
    high: float

    @classmethod
    def of_true_positives(cls, roc: Roc, false_positives: float, members: int, others: int) -> Self:
        """Return an estimate of the true positives at a share of false positives [clopper1934].

        Each end rests on a threshold at which the share of false positives is surely below what is asked
        for, or above, and on the true positives there: two events, each of which fails half as often.
        """
        failure, counts = _FAILURE / 2, np.arange(others + 1)
        surely_below = counts[proportion_above(counts, others, failure) <= false_positives]
        surely_above = counts[proportion_below(counts, others, failure) >= false_positives]
        fewest = surely_below[-1] / others if surely_below.size else -1.0
        most = surely_above[0] / others if surely_above.size else 1.0
        least = 0 if fewest < 0 else round(float(roc.at(fewest)) * members)
        low = proportion_below(least, members, failure)
        high = proportion_above(round(float(roc.at(most)) * members), members, failure)
        return cls(float(roc.at(false_positives)), float(low), float(high))

    @classmethod
    def of_area(cls, auc: float, members: int, others: int) -> Self:
        """Return an estimate of an area under an ROC curve; it varies as that of scores that tell nothing."""
        half = _DEVIATIONS * float(np.sqrt((members + others + 1) / (12 * members * others)))
        return cls(auc, max(0.0, auc - half), min(1.0, auc + half))

    def in_words(self, name: str) -> str:
        """Say what was measured, and how well."""
        return f"{name} was measured as {self.measured:.4f} ({self.low:.4f} to {self.high:.4f})"


def ranked(
    evidence: Floats, members: Bools, area: str, positives: Mapping[str, float]
) -> tuple[dict[str, Figure], str]:
    """Return what a ranking reaches beside chance, and say how well that is known.

    Parameters
    ----------
    evidence, members : ndarray, shape (decisions,)
        Scores, and which decisions are about members.
    area : str
        Name of the area under the curve.
    positives : mapping
        The share of false positives of each figure of true positives, by name.
    """
    roc, sides = Roc.of_scores(evidence, members, ~members), (int(members.sum()), int((~members).sum()))
    estimates = {area: Estimate.of_area(roc.auc, *sides)}
    for name, share in positives.items():
        estimates[name] = Estimate.of_true_positives(roc, share, *sides)
    by_chance = {area: 0.5, **positives}
    figures = {name: Figure(estimate.measured, by_chance[name]) for name, estimate in estimates.items()}
    measured = ", ".join(estimate.in_words(name) for name, estimate in estimates.items())
    confidence = f"95 % confidence, were {members.size:,} decisions independent"
    return figures, f"{measured}. In parentheses: {confidence}."
