"""CPU seconds and memory of runs by secure aggregation, with one worker and with two; and of one sum.

Populations are copies of the users of MovieLens 100K. A sum is drawn as one where nobody looks at single
reports, and else device by device.
"""

import time
from typing import Any

import numpy as np
from measuring import ANEW, CPU, DATA, ELAPSED, MEMORY, Figures, Line, dprec_run, job, main

SUMS, EARLIER = "sums-on-device", "best-secret-set"
USERS, ITEMS, RATINGS, AT_ONCE = 10_000, 20_000, 60, 500
NANOSECONDS = "ns a user and number"


def summed(way: str) -> Figures:
    """Return what the popularity of all items costs, of devices that each have some of them."""
    from dprec.completion import Profiles
    from dprec.gradients import RoundDraws
    from dprec.protocols.gram import PairTableOptions, SetDevice
    from dprec.randomness import DeviceDraws, ReleaseDraws, words
    from dprec.sums import ProfileContributions, SecureAggregation

    layout = SetDevice.begun(PairTableOptions(items=0), ITEMS).release(1)
    secure = SecureAggregation().among(USERS)

    def part(first: int) -> Any:
        places = np.arange(AT_ONCE)[:, None] + np.arange(RATINGS) * (ITEMS // RATINGS)
        held = np.sort(places % ITEMS, axis=1).ravel().astype(np.int32)
        own = Profiles(np.arange(AT_ONCE + 1) * RATINGS, held, np.full(held.size, np.nan), ITEMS)
        given = ProfileContributions(own, np.zeros(held.size, dtype=np.uint64)), layout, 4.0
        keys = words(1, "devices", 2 * first, 2 * AT_ONCE).reshape(2, AT_ONCE)
        draws = RoundDraws(DeviceDraws(keys), 1, 0)
        if way == "as one":
            return secure.summed(*given, draws, np.ones(AT_ONCE, dtype=np.bool_))[1]
        return secure.decode(secure.encode(*given, draws), layout, 4.0)[1]

    total = part(0)  # which makes ready what is compiled
    started = time.process_time()
    for first in range(AT_ONCE, USERS, AT_ONCE):
        total = total + part(first)
    secure.release(total, layout, 4.0, ReleaseDraws(1, 1))
    return {NANOSECONDS: (time.process_time() - started) / (USERS - AT_ONCE) / ITEMS * 1e9}


def line(preset: str, earlier: str, sets: str, copies: int, backend: str) -> Line:
    """Return the line of a preset with so many copies."""
    data = f"dataset={{kind: movielens-100k, path: {DATA / 'ml-100k'}, items: true, copies: {copies}{sets}}}"
    where = {"local": "in one process", "ray": "two workers"}[backend]
    after, before = (dprec_run(name, data, f"simulation.backend={backend}") for name in (preset, earlier))
    return Line(f"`{preset}`, {copies:,} users, {where}", after, before, None, ANEW, (CPU, ELAPSED, MEMORY))


LINES = (
    *(
        Line(f"a sum of {ITEMS:,} numbers, {way}", job(__file__, "summed", way), (), units=(NANOSECONDS,))
        for way in ("as one", "device by device")
    ),
    line("popularity-secagg", "popularity-secagg", ", positive: '>= 4'", 8_000, "local"),
    line(SUMS, EARLIER, "", 8_000, "local"),
    line(SUMS, EARLIER, "", 8_000, "ray"),
    line(SUMS, EARLIER, "", 100_000, "ray"),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {"summed": summed})
