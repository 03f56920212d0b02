"""Whether one user took part, from what everybody was sent: an attack by shadow models.

The protocol is run many times with half of the users, the others holding nothing, in pairs of runs: who took
part in the one did not in the other. From a release and a user's profile follow some statistics. Over the
runs with a user, and over those without, these are taken as normal, with means and a covariance of the user's
own; the log likelihood ratio in a pair of runs that is held out is the evidence (Carlini et al.
[carlini2022], Algorithm 1, with several statistics in place of one loss).

The adversary knows the profile of the user in question. How profiles are distributed it knows from those of
the other users, which is the worst case.

There is no bound. A pair of runs is one decision about noise, however many users it is asked about, and of
ten pairs chance leaves nothing to say; and who is in one run of a pair is out of the other, so that both tell
of it.

**Traces.** Statistics of a release that are larger, or smaller, where a user took part: what one profile
leaves in it.

They follow the score test: the direction in which a profile moves a release, in units of what noise and the
other users move it.

    columns     the sum over a user's items of what a rating does to a number of the item, as learned from
                other runs for ratings of the same level of items that are rated about as often,
    embeddings  x^T E E^T x without its diagonal, for a user's items x: items of one user are drawn together,
    weights     the same of a matrix of weights between items,
    sums        the inner product of a user's contribution and what a sum exceeds its expectation by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
import scipy

from dprec.arrays import Bools, Floats, Ints
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import ranked
from dprec.attacks.transcript import Transcript
from dprec.completion import Profiles
from dprec.components import option
from dprec.randomness import generator, integer_weights, words
from dprec.ratings import Ratings

_LEAST_REST = 0.05
"""Least share of a number's variance that counts as noise, however well one rating explains it."""

_STEPS, _LEAST_CHANGE = 30, 1e-3
"""Of conjugate gradients; where they are too few, the guess is as good but for directions that say little."""

_NOTHING = 1e-9
"""A spread below which there is nothing but rounding."""


def held(ratings: Ratings) -> Profiles:
    """Return profiles as devices hold them, of sets as ones."""
    values = np.ones(ratings.count) if ratings.scale.implicit else ratings.values
    return Profiles(ratings.indptr, ratings.items, values, ratings.n_items)


@dataclass(frozen=True, eq=False)
class Targets:
    """Users of whom it is asked whether they took part, as the adversary knows them."""

    users: Ints
    """Ascending."""
    profiles: Ratings
    raters: Ints
    """How often each item is rated by all users, which is public; shape (items,)."""
    share: float
    """Of all users who have rated something."""

    @classmethod
    def drawn(cls, truth: Ratings, max_users: int, seed: int) -> Self:
        """Return at most so many users who have rated something."""
        everybody = np.flatnonzero(truth.counts)
        order = generator(seed, "targets of shadow models").permutation(everybody)
        users = np.sort(order[:max_users])
        raters = np.bincount(truth.items, minlength=truth.n_items)
        profiles = truth.of_users(users, truth.user_ids[users])
        return cls(users, profiles, raters, users.size / max(everybody.size, 1))

    def traces(self, transcript: Transcript) -> Floats:
        """Return the statistics of one run that need no other, shape (statistics, users)."""
        statistics, released, sets = [], transcript.of_items, self.profiles.to_sets()
        if transcript.parted_sums:
            # What sums say of who contributed to them, of whom half are expected.
            of_sums, profiles = [], held(self.profiles)
            for summed in transcript.parted_sums:
                assert summed.added is not None
                moves = summed.added(profiles) / 2
                expected = moves.sum(axis=0) / self.share
                variances = np.full(expected.size, max(summed.deviation, _NOTHING) ** 2)
                of_sums.append(self._likely(moves, summed.released - expected, variances))
            statistics.append(np.sum(of_sums, axis=0))
        for embeddings in () if released is None else released.embeddings:
            if embeddings.size:
                # How close the items of each user are, in dimensions of equal spread over the ratings.
                spreads = np.sqrt(self.raters @ embeddings**2 / max(int(self.raters.sum()), 1))
                scaled = embeddings / np.where(spreads > _NOTHING, spreads, np.inf)
                statistics.append(((sets @ scaled) ** 2).sum(axis=1) - sets @ (scaled**2).sum(axis=1))
        for weights, items in () if released is None else released.weights:
            # What the items of each user say of each other.
            item_sets = scipy.sparse.csr_array(sets[:, items])
            statistics.append(
                item_sets.multiply(item_sets @ weights).sum(axis=1) - item_sets @ np.diag(weights)
            )
        return np.array(statistics).reshape(-1, self.users.size)

    def _likely(self, moves: scipy.sparse.csr_array, numbers: Floats, variances: Floats) -> Floats:
        """Return the best linear guess at who is present, as 1, and who is not, as -1; shape (users,).

        Numbers are the sum of noise and of the users' moves, each with its sign. Who is no target counts as
        noise.

        ``moves``, shape (users, numbers); ``variances``: of the noise on each number.
        """
        from scipy.sparse.linalg import LinearOperator, cg

        other_variances = moves.power(2).sum(axis=0) * (1 / self.share - 1)
        scaled = scipy.sparse.csr_array(moves @ scipy.sparse.diags_array(1 / (variances + other_variances)))
        transposed, users = scipy.sparse.csr_array(moves.T), self.users.size
        system = LinearOperator(
            (users, users), lambda vector: vector + scaled @ (transposed @ vector), dtype=np.float64
        )
        return cg(system, scaled @ numbers, rtol=_LEAST_CHANGE, maxiter=_STEPS)[0]

    def of_columns(self, numbers: Floats, present: Bools) -> Floats:
        """Return the statistic of one number of each item, shape (runs, users).

        What a rating does is learned from all runs but the pair that a run belongs to.

        ``numbers``, shape (runs, items); ``present``, shape (runs, users): who took part, in pairs of runs.
        """
        spreads = numbers.std(axis=0)
        units = np.where(spreads > _NOTHING, spreads, np.inf)
        standard, profiles = (numbers - numbers.mean(axis=0)) / units, self.profiles
        sides, alike = np.where(present, 1.0, -1.0), np.maximum(np.bincount(self._kinds), 1)
        correlations = [
            np.bincount(self._kinds, standard[run, profiles.items] * sides[run, profiles.users], alike.size)
            for run in range(len(numbers))
        ]
        of_pairs = np.array(correlations).reshape(-1, 2, alike.size).sum(axis=1)
        other_pairs = (of_pairs.sum(axis=0) - of_pairs) / (alike * max(len(numbers) - 2, 1))
        guesses, shape = [], (self.users.size, standard.shape[1])
        for run, numbers_of_run in enumerate(standard):
            # What standardised numbers of items say, given what correlates with ratings of each kind.
            data = other_pairs[run // 2][self._kinds]
            moves = scipy.sparse.csr_array((data, profiles.items, profiles.indptr), shape=shape)
            variances = np.maximum(1 - moves.power(2).sum(axis=0) / self.share, _LEAST_REST)
            guesses.append(self._likely(moves, numbers_of_run, variances))
        return np.array(guesses)

    @cached_property
    def _kinds(self) -> Ints:
        """The kind of each rating: its level, and how often its item is rated; shape (ratings,)."""
        doublings = np.floor(np.log2(np.maximum(self.raters, 1))).astype(np.int64)
        levels = self.profiles.levels.astype(np.int64)
        return levels * (doublings.max(initial=0) + 1) + doublings[self.profiles.items]


_FALSE_POSITIVES = {"shadow_tpr": 0.001, "shadow_tpr_at_1_percent": 0.01}
"""Shares of the users who took no part at which true positives are counted."""

PRIOR_RUNS = 20.0
"""Runs that the mean covariance of all users counts for beside one user's own."""

_RIDGE = 1e-3
"""Share of the statistics' variance that is added to each, so that two can be the same."""

_FEWEST = 20
"""Users from which on no run is likely to be without any: 20 coins fall alike in one of 500,000 throws."""


@dataclass(frozen=True, kw_only=True)
class ShadowModels(Attack):
    """Whether a user took part, from what everybody was sent and runs with other users."""

    kind: Literal["shadow"] = "shadow"
    papers: ClassVar[tuple[str, ...]] = ("carlini2022",)
    named: ClassVar[tuple[str, ...]] = ("shadow_auc", *_FALSE_POSITIVES)
    pairs: int = option("Pairs of runs, each with half of the users and with the other half.", 10, ge=4)
    users: int = option("Users of whom it is asked, at most.", 1000, ge=2)

    def perform(self, game: Game) -> Attacked:
        """Run the protocol again, and judge the evidence; see `Attack.perform`."""
        targets = Targets.drawn(game.truth, self.users, game.seed)
        nothing = {name: Figure(None) for name in self.figures()}
        if game.transcript.of_items is None and not game.transcript.parted_sums:
            return Attacked(nothing, ("Nothing that depends on other users is sent to everybody.",))
        if np.count_nonzero(game.truth.counts) < _FEWEST:
            return Attacked(nothing, (f"With fewer than {_FEWEST} users, half of them may be nobody.",))
        present = halves(game.truth.n_users, self.pairs, game.seed)
        statistics = observed(game, targets, present)
        target_present = present[:, targets.users]
        evidence = log_likelihood_ratios(statistics, target_present)
        figures, measured = ranked(evidence.ravel(), target_present.ravel(), "shadow_auc", _FALSE_POSITIVES)
        notes = [measured]
        if not game.hides_item_sets:
            reason = "the server is shown item sets, and what is released rests on them."
            notes.append(f"No epsilon covers who took part: {reason}")
        return Attacked(figures, tuple(notes))


def halves(users: int, pairs: int, seed: int) -> Bools:
    """Return who takes part in each run, shape (2 pairs, users): each user in one run of every pair."""
    coins = integer_weights(words(seed, "who takes part in shadow models", 0, pairs * users)) % 2 == 0
    first = coins.reshape(pairs, users)
    return np.stack([first, ~first], axis=1).reshape(2 * pairs, users)


def observed(game: Game, targets: Targets, present: Bools) -> Floats:
    """Run the protocol with those present, and return the statistics, shape (statistics, runs, users)."""
    traces, columns = [], []
    for number, present_users in enumerate(present, start=1):
        transcript = game.again(present_users, number)
        traces.append(targets.traces(transcript))
        released = transcript.of_items
        columns.append(np.zeros((0, game.truth.n_items)) if released is None else released.columns.T)
    target_present = present[:, targets.users]
    of_columns = [targets.of_columns(numbers, target_present) for numbers in np.array(columns).swapaxes(0, 1)]
    return np.concatenate(
        [np.array(traces).swapaxes(0, 1), np.array(of_columns).reshape(-1, *target_present.shape)]
    )


def log_likelihood_ratios(statistics: Floats, present: Bools) -> Floats:
    """Return the evidence that users were present in runs, each judged by the other pairs of runs.

    As few runs say little of one user, covariances are shrunk to the mean of all, and so are differences of
    means, by empirical Bayes.

    Parameters
    ----------
    statistics : ndarray of float64, shape (statistics, runs, users)
    present : ndarray of bool, shape (runs, users)
        In pairs of runs.

    Returns
    -------
    ndarray of float64, shape (runs, users)
    """
    deviations = statistics.std(axis=1, keepdims=True)
    units = np.where(deviations > 0, deviations, np.inf)
    standard = np.moveaxis((statistics - statistics.mean(axis=1, keepdims=True)) / units, 0, -1)
    first = present[::2, :, None]
    # Of every user and pair: the run with the user, and the one without.
    within, without = (np.where(side, standard[::2], standard[1::2]) for side in (first, ~first))
    evidence = np.empty(present.shape)
    for pair in range(len(within)):
        other_pairs = np.arange(len(within)) != pair
        sides, pairs = (within[other_pairs], without[other_pairs]), int(other_pairs.sum())
        means = [side.mean(axis=0) for side in sides]
        residuals = np.concatenate([side - mean for side, mean in zip(sides, means, strict=True)])
        squares, degrees = np.einsum("ruk,rul->ukl", residuals, residuals), 2 * pairs - 2
        covariances = (squares + PRIOR_RUNS / degrees * squares.mean(axis=0)) / (degrees + PRIOR_RUNS)
        covariances += _RIDGE * np.eye(within.shape[2])
        differences = means[0] - means[1]
        of_all = differences.mean(axis=0)
        chance = 2 / pairs * np.einsum("ukk->uk", covariances).mean(axis=0)
        spread = np.maximum(differences.var(axis=0) - chance, 0.0)
        differences = of_all + spread / (spread + chance) * (differences - of_all)
        weights = np.linalg.solve(covariances, differences[:, :, None])[:, :, 0]
        # Where each user's log likelihood ratio is 0, and how it grows.
        runs, middle = slice(2 * pair, 2 * pair + 2), (means[0] + means[1]) / 2
        evidence[runs] = ((standard[runs] - middle) * weights).sum(axis=2)
    return evidence
