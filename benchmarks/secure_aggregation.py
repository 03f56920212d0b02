"""CPU seconds and memory of runs by secure aggregation, with one worker and with two.

Populations are copies of the users of MovieLens 100K.
"""

from measuring import ANEW, CPU, DATA, ELAPSED, MEMORY, Line, dprec_run, main

SUMS, EARLIER = "sums-on-device", "best-secret-set"


def line(preset: str, earlier: str, sets: str, copies: int, backend: str) -> Line:
    """Return the line of a preset with so many copies."""
    data = f"dataset={{kind: movielens-100k, path: {DATA / 'ml-100k'}, items: true, copies: {copies}{sets}}}"
    where = {"local": "in one process", "ray": "two workers"}[backend]
    after, before = (dprec_run(name, data, f"simulation.backend={backend}") for name in (preset, earlier))
    return Line(f"`{preset}`, {copies:,} users, {where}", after, before, None, ANEW, (CPU, ELAPSED, MEMORY))


LINES = (
    line("popularity-secagg", "popularity-secagg", ", positive: '>= 4'", 8_000, "local"),
    line(SUMS, EARLIER, "", 8_000, "local"),
    line(SUMS, EARLIER, "", 8_000, "ray"),
    line(SUMS, EARLIER, "", 100_000, "ray"),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES)
