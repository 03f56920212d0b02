"""Where Ray pays: runs of generated populations in one process and on Ray with two workers.

Each user has 20 ratings. `RAY_PAYS_FROM` of `simulation/engine/choosing.py`, from which the backend `auto` is
Ray, follows from the elapsed seconds, of which a user sees all but the loading of ratings: have the machine
idle. Processor seconds are those of all of a command. Predictions of blp-mf are item averages, so that what
devices do weighs as much as it can; pg-mf has 20 rounds. Ray stands beside one process as a peer does.
"""

import time

from measuring import CPU, ELAPSED, MEMORY, Figures, Line, Peer, job, main

RATINGS_PER_USER = 20
SETTINGS = {"blp-mf": ["protocol.completion.kind=item-average"], "pg-mf": ["protocol.rounds=20"]}


def timed(preset: str, users: int, backend: str) -> Figures:
    from dprec.kernels.compilation import prepare
    from simulation import load
    from simulation.execution import load_ratings, run_prepared

    data = f"dataset={{kind: synthetic, users: {users}, items: 2000, ratings: {RATINGS_PER_USER * users}}}"
    config = load(preset, [data, f"simulation.backend={backend}", *SETTINGS[preset]])
    train, test = load_ratings(config)
    prepare()
    started = time.perf_counter()
    run_prepared(config, train, test, None)
    return {ELAPSED: time.perf_counter() - started}


def line(preset: str, users: int) -> Line:
    local, ray = (job(__file__, "timed", preset, users, backend) for backend in ("local", "ray"))
    units = ELAPSED, CPU, MEMORY
    return Line(f"`{preset}`, {users:,} users", local, (), Peer("ray", ray, here=True), units=units)


LINES = [line(preset, users) for preset in SETTINGS for users in (30_000, 100_000, 300_000, 1_000_000)]

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {"timed": timed})
