"""Bits that keep to a budget by composition, beside bits that keep to it by their sum: what the noise is.

    python benchmarks/composed_rounds.py [--users 1000 10000 100000 1000000]

The protocol is pg-mf-composed: fifty rounds at (1, 1e-6) per user, on 20 ratings of each user of 100 items.
Theory: the noise on the mean gradient is in proportion to (e + 1) / (e - 1), e = exp(loss of a bit); so is,
as long as steps are linear in the gradient, the error of the item factors. Measured, with equal ratings and
start: the root mean square error of the mean gradient over some draws, and, up to 100,000 users, of the item
factors after all rounds, against rounds in which devices send the clipped gradients as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dprec.completion import Profiles, initial_item_factors, solve_user_factors, step_item_factors
from dprec.datasets import Synthetic
from dprec.gradients import RoundDraws
from dprec.gradients.one_bit import unbiased_scale
from dprec.randomness import DeviceDraws
from dprec.ratings import Ratings
from simulation import load

ITEMS, RATINGS_PER_USER, DRAWS, MOST_FOR_FACTORS, AT_ONCE = 100, 20, 5, 100_000, 50_000
PROTOCOL: Any = load("pg-mf-composed").protocol
ADDED: Any = load("pg-mf-composed", ["protocol.privacy.composition=sum"]).protocol
SHAPE = (ITEMS, PROTOCOL.rank)

Factors = NDArray[np.float64]


def partitions(ratings: Ratings) -> Iterator[tuple[int, Profiles]]:
    """Yield the first user and the profiles of partitions."""
    for start in range(0, ratings.n_users, AT_ONCE):
        indptr = ratings.indptr[start : start + AT_ONCE + 1]
        cells = slice(indptr[0], indptr[-1])
        yield start, Profiles(indptr - indptr[0], ratings.items[cells], ratings.values[cells], ITEMS)


def clean(ratings: Ratings, factors: Factors) -> Factors:
    """Return the mean of the users' clipped gradients."""
    total = np.zeros(SHAPE)
    for _, profiles in partitions(ratings):
        own = solve_user_factors(profiles, factors, PROTOCOL.ridge)
        errors = profiles.residuals(own, factors)
        cells = np.clip(-2.0 * own[profiles.users] * errors[:, None], -1.0, 1.0)
        for factor in range(SHAPE[1]):
            total[:, factor] += np.bincount(profiles.items, weights=cells[:, factor], minlength=ITEMS)
    return total / ratings.n_users


def estimated(ratings: Ratings, factors: Factors, epsilon: float, round_index: int) -> Factors:
    """Return what the server makes of everybody's bits at a loss each."""
    gradient, aggregate = PROTOCOL.gradient, None
    for start, profiles in partitions(ratings):
        own = solve_user_factors(profiles, factors, PROTOCOL.ridge)
        devices = DeviceDraws.of(
            bytes(16), start, profiles.indptr, profiles.items, profiles.values, f"composed rounds {epsilon}"
        )
        draws = RoundDraws(devices, round_index, 0)
        _, part = gradient.decode(gradient.encode(profiles, own, factors, epsilon, draws), SHAPE)
        aggregate = part if aggregate is None else aggregate + part
    mean: Factors = gradient.gradient(aggregate, SHAPE, epsilon, 0)
    return mean


def learned(ratings: Ratings, epsilon: float | None) -> Factors:
    """Return the item factors after all rounds; with clean gradients without a loss."""
    factors, velocity = initial_item_factors(*SHAPE, 1, PROTOCOL.step.start), np.zeros(SHAPE)
    for number in range(1, PROTOCOL.rounds + 1):
        mean = estimated(ratings, factors, epsilon, number) if epsilon else clean(ratings, factors)
        factors, velocity = step_item_factors(factors, velocity, mean, None, number, PROTOCOL.step)
    return factors


def root_mean_square(errors: NDArray[np.float64]) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--users", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    chosen = arguments.parse_args()
    shares = [ADDED.epsilon_per_round, PROTOCOL.epsilon_per_round]
    theory = unbiased_scale(shares[1]) / unbiased_scale(shares[0])
    print(f"{PROTOCOL.rounds} rounds; a bit may lose {shares[0]:.5f} by the sum, {shares[1]:.5f} composed")
    print(f"noise composed / noise by the sum, in theory: {theory:.3f}")
    print(f"{'users':>9} {'gradient: sum':>14} {'composed':>9} {'ratio':>6} {'factors: ratio':>15}")
    with threadpool_limits(limits=1):
        for users in chosen.users:
            ratings = Synthetic(users=users, items=ITEMS, ratings=users * RATINGS_PER_USER).load()
            start = initial_item_factors(*SHAPE, 1, PROTOCOL.step.start)
            true = clean(ratings, start)
            errors = [
                root_mean_square(
                    np.stack([estimated(ratings, start, loss, draw) - true for draw in range(1, DRAWS + 1)])
                )
                for loss in shares
            ]
            line = f"{users:9,} {errors[0]:14.4f} {errors[1]:9.4f} {errors[1] / errors[0]:6.3f}"
            if users <= MOST_FOR_FACTORS:
                aim = learned(ratings, None)
                far = [root_mean_square(learned(ratings, loss) - aim) for loss in shares]
                line += f" {far[1] / far[0]:15.3f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
