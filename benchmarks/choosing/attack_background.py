"""Chooses how much an attacker believes a user's other reports when it guesses the level of a rating.

Prints, for train ratings of MovieLens 100K (u2, every other user), the share of levels that are recovered
from reports at several epsilons, for several weights of the other reports. Fails if another weight
recovers more than 0.005 more in the mean over all reports than that of dprec.
"""

from collections.abc import Iterator

import numpy as np
from validation import asked, decide, stands

from dprec.arrays import Floats
from dprec.attacks.background import TOLD_BY_OTHERS, Background
from dprec.channel import Channel
from dprec.datasets import MovieLens100K
from dprec.mechanisms import BoundedLaplace, RandomizedResponse, ThresholdBit
from dprec.randomness import words
from dprec.ratings import Ratings

WEIGHTS, EPSILONS, SEEDS, TOLERANCE = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0), (1.0, 3.0), (1, 2, 3), 0.005


def recovered(train: Ratings, background: Background, channel: Channel, seed: int) -> Floats:
    """Return the share of levels that are recovered at each weight."""
    symbols = channel.sample(train.levels, words(seed, "reports of a choice", 0, train.count))
    shares = background.of_ratings(train.items, train.levels)
    likelihoods = channel.probabilities[:, symbols].T
    told = [
        background.given_others(shares, likelihoods, train.counts, weight) * likelihoods for weight in WEIGHTS
    ]
    return np.array([np.mean(each.argmax(axis=1) + 1 == train.levels) for each in told])


def judged(path: str) -> Iterator[bool]:
    train, _ = MovieLens100K(path=path).load_fold("u2")
    train = train.of_users(np.arange(0, train.n_users, 2), np.arange((train.n_users + 1) // 2))
    background, rows = Background.of(train), []
    print("weights", WEIGHTS)
    for mechanism in (ThresholdBit(), BoundedLaplace(), RandomizedResponse()):
        for epsilon in EPSILONS:
            channel = mechanism.channel(train.scale, epsilon)
            rows.append(np.mean([recovered(train, background, channel, seed) for seed in SEEDS], axis=0))
            print(mechanism.kind, epsilon, np.round(rows[-1], 4), flush=True)
    means = np.mean(rows, axis=0)
    yield stands("mean", means.max() - means[WEIGHTS.index(TOLD_BY_OTHERS)], TOLERANCE)


if __name__ == "__main__":
    decide(judged(asked(__doc__).path))
