"""Variational MoG-MF on generated ratings of the size of LibimSeTi: time and peak memory of ten steps.

    python benchmarks/mog_mf_libimseti.py [--scale 1.0] [--steps 10]

135,359 users, 168,791 items and 17.4 million ratings on 1 to 10 (Neera et al., Table 2), rank 10,
three components, noise that is a mixture. The target is 5 minutes and 12 GB on two cores.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from dprec.completion import Observations, VariationalMogMatrixFactorization, inner_products
from dprec.randomness import generator
from dprec.ratings import RatingScale

USERS, ITEMS, RATINGS, RANK = 135_359, 168_791, 17_359_346, 10
TARGET_SECONDS, TARGET_GIGABYTES = 300, 12
SIGMAS, SHARES = (0.5, 1.5, 4.0), (0.5, 0.3, 0.2)


def population(scale: float) -> Observations:
    random = generator(0, "benchmark")
    users, items = round(USERS * scale), round(ITEMS * scale)
    draws = round(RATINGS * scale)
    # A tenth of the items draws most of the ratings, as in a real catalogue.
    popular = (random.random(draws) ** 2 * items).astype(np.int64)
    cells = np.unique(random.integers(0, users, draws) * items + popular)
    missing = draws - cells.size
    if missing:
        cells = np.unique(np.concatenate([cells, random.integers(0, users * items, missing)]))
    rows, columns = (part.astype(np.int32) for part in np.divmod(cells, items))
    left = random.normal(0, 0.7, (users, RANK))
    right = random.normal(0, 0.7, (items, RANK))
    component = random.choice(len(SHARES), cells.size, p=SHARES)
    values = inner_products(left, right, rows, columns) + 5.5
    values += np.array(SIGMAS)[component] * random.standard_normal(cells.size)
    return Observations.of(rows, columns, values, (users, items), RatingScale.evenly(1, 10, 1))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=1.0, help="share of users, items and ratings")
    arguments.add_argument("--steps", type=int, default=10)
    chosen = arguments.parse_args()
    observations = population(chosen.scale)
    print(f"{observations.shape[0]} users, {observations.shape[1]} items, {observations.values.size} ratings")
    start, start_cpu = time.perf_counter(), time.process_time()

    def report(stage: str, step: int, steps: int) -> None:
        print(f"{stage}, step {step} of {steps}: {time.perf_counter() - start:.1f} s", flush=True)

    completion = VariationalMogMatrixFactorization(rank=RANK, iterations=chosen.steps, tolerance=0.0)
    completed = completion.fit(observations, 0, report)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    mixture = completed.mixture
    assert mixture is not None, "a completion without a mixture"
    print("pi   ", " ".join(f"{share:.3f}" for share in mixture.pi), "planted", *SHARES)
    print("sigma", " ".join(f"{sigma:.3f}" for sigma in mixture.sigma), "planted", *SIGMAS)
    print(f"{seconds:.1f} s of {TARGET_SECONDS} s ({cpu_seconds:.1f} s of processor time)")
    print(f"peak {gigabytes:.1f} GB of {TARGET_GIGABYTES} GB, the generated ratings included")
    return int(seconds > TARGET_SECONDS or gigabytes > TARGET_GIGABYTES)


if __name__ == "__main__":
    sys.exit(main())
