"""One-bit completion and X-Map at the sizes of the published data, on generated ratings.

    python benchmarks/published_sizes.py

A run of `one-bit-clear` at the size of MovieLens 100K, against the target of 30 seconds for a fit, or of 2
minutes with entries held within alpha; and `nx-map`, `x-map` and their baselines at the size of Douban's
books and music, against 3 minutes for all of them together; two cores. X-Map is compared with NX-Map, which
draws nothing and adds no noise.
"""

from __future__ import annotations

import sys

from simulation import run

MOVIELENS = "dataset={kind: synthetic, users: 943, items: 1682, ratings: 100000}"
DOUBAN = "dataset={kind: synthetic-domains, users: 2216, items: 12344, ratings: 166000, straddling: 0.95}"
COLD = "split={kind: cold-start, test_fraction: 0.2}"
ONE_BIT_SECONDS, BOUNDED_SECONDS, X_MAP_SECONDS = 30, 120, 180


def seconds(preset: str, *overrides: str) -> float:
    result = run(preset, overrides=[*overrides, "simulation.backend=local"])
    return result.record.summary.time.total_s


def main() -> int:
    fit = seconds("one-bit-clear", MOVIELENS)
    print(f"one-bit-clear: {fit:.1f} s of {ONE_BIT_SECONDS} s")
    bounded = seconds("one-bit-clear", MOVIELENS, "protocol.completion.bounded=true")
    print(f"one-bit-clear, bounded: {bounded:.1f} s of {BOUNDED_SECONDS} s")
    taken = {
        name: seconds(name, DOUBAN, COLD) for name in ("item-average", "user-average", "nx-map", "x-map")
    }
    for name, spent in taken.items():
        print(f"{name}: {spent:.1f} s, {spent / taken['nx-map']:.2f} times nx-map")
    whole = sum(taken.values())
    print(f"all of them: {whole:.1f} s of {X_MAP_SECONDS} s")
    return int(fit > ONE_BIT_SECONDS or bounded > BOUNDED_SECONDS or whole > X_MAP_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
