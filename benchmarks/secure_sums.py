"""CPU seconds and memory of a secure sum in a simulation: drawn as one, and device by device.

    python benchmarks/secure_sums.py [--users 10000] [--items 20000] [--ratings 60]

Everybody adds a popularity vector of norm 1. Sums are drawn as one where nobody looks at single reports; with
faults, each device draws its noise, and its report is packed, read and added up. Each way is a process of its
own, whose compiled loops are ready before.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from dprec.completion import Profiles
from dprec.gradients import Aggregate, RoundDraws
from dprec.protocols.gram import PairTableOptions, SetDevice
from dprec.randomness import DeviceDraws, ReleaseDraws, words
from dprec.sums import ProfileContributions, SecureAggregation

AT_ONCE = 500


def summed(way: str, users: int, items: int, ratings: int) -> Aggregate:
    """Return the sum, of some users at a time, of who has every so many-th item."""
    layout = SetDevice.begun(PairTableOptions(items=0), items).release(1)
    secure, total = SecureAggregation().among(users), None
    for first in range(0, users, AT_ONCE):
        count = min(AT_ONCE, users - first)
        held = np.sort((np.arange(count)[:, None] + np.arange(ratings) * (items // ratings)) % items, axis=1)
        bounds = np.arange(count + 1) * ratings
        own = Profiles(bounds, held.ravel().astype(np.int32), np.full(held.size, np.nan), items)
        given = ProfileContributions(own, np.zeros(held.size, dtype=np.uint64)), layout, 4.0
        keys = words(1, "devices", 2 * first, 2 * count).reshape(2, count)
        draws = RoundDraws(DeviceDraws(keys), 1, 0)
        if way == "as one":
            _, part = secure.summed(*given, draws, np.ones(count, dtype=np.bool_))
        else:
            _, part = secure.decode(secure.encode(*given, draws), layout, 4.0)
        total = part if total is None else total + part
    assert total is not None
    secure.release(total, layout, 4.0, ReleaseDraws(1, 1))
    return total


def measure(way: str, users: int, items: int, ratings: int) -> None:
    """Print what one way costs."""
    summed(way, 100, items, ratings)
    began = time.process_time()
    summed(way, users, items, ratings)
    spent, most = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    each = spent / users / items * 1e9
    print(
        f"{way:>16} {spent:8.2f} CPU s {each:8.2f} ns per user and number {most / 1024:8.0f} MB", flush=True
    )


def main() -> None:
    """Measure both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, usual in (("users", 10_000), ("items", 20_000), ("ratings", 60)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--way", choices=["as one", "device by device"])
    given = parser.parse_args()
    sizes = given.users, given.items, given.ratings
    if given.way:
        measure(given.way, *sizes)
        return
    for way in ("as one", "device by device"):
        asked = [f"--{name}={size}" for name, size in zip(("users", "items", "ratings"), sizes, strict=True)]
        subprocess.run([sys.executable, __file__, f"--way={way}", *asked], check=True)


if __name__ == "__main__":
    main()
