"""Whether one user took part, from what everybody was sent: an attack by shadow models.

The protocol is run many times with half of the users, the others holding nothing, in pairs of runs: who took
part in the one did not in the other. From a release and a user's profile follow some statistics
(`dprec.attacks.traces`). Over the runs with a user, and over those without, these are taken as normal, with
means and a covariance of the user's own; the log likelihood ratio in a pair of runs that is held out is the
evidence (Carlini et al. [carlini2022], Algorithm 1, with several statistics in place of one loss).

The adversary knows the profile of the user in question. How profiles are distributed it knows from those of
the other users, which is the worst case.

There is no bound. A pair of runs is one decision about noise, however many users it is asked about, and of
ten pairs chance leaves nothing to say; and who is in one run of a pair is out of the other, so that both tell
of it.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Bools, Floats
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import ranked
from dprec.attacks.traces import Targets
from dprec.components import option
from dprec.randomness import integer_weights, words

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
        own = present[:, targets.users]
        evidence = log_likelihood_ratios(statistics, own)
        figures, measured = ranked(evidence.ravel(), own.ravel(), "shadow_auc", _FALSE_POSITIVES)
        notes = [measured]
        if not game.hides_item_sets:
            seen = "the server is shown item sets, and what is released rests on them."
            notes.append(f"No epsilon covers who took part: {seen}")
        return Attacked(figures, tuple(notes))


def halves(users: int, pairs: int, seed: int) -> Bools:
    """Return who takes part in each run, shape (2 pairs, users): each user in one run of every pair."""
    drawn = integer_weights(words(seed, "who takes part in shadow models", 0, pairs * users)) % 2 == 0
    first = drawn.reshape(pairs, users)
    return np.stack([first, ~first], axis=1).reshape(2 * pairs, users)


def observed(game: Game, targets: Targets, present: Bools) -> Floats:
    """Run the protocol with those present, and return the statistics, shape (statistics, runs, users)."""
    traces, columns = [], []
    for number, there in enumerate(present, start=1):
        transcript = game.again(there, number)
        traces.append(targets.traces(transcript))
        said = transcript.of_items
        columns.append(np.zeros((0, game.truth.n_items)) if said is None else said.columns.T)
    own = present[:, targets.users]
    of_columns = [targets.of_columns(each, own) for each in np.array(columns).swapaxes(0, 1)]
    return np.concatenate([np.array(traces).swapaxes(0, 1), np.array(of_columns).reshape(-1, *own.shape)])


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
        rest = np.arange(len(within)) != pair
        sides, pairs = (within[rest], without[rest]), len(within) - 1
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
