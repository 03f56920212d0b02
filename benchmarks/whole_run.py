"""Runs of blp-mf with item averages on generated ratings, end to end, and processor seconds of their parts.

A data set is loaded and split, devices report and are sent lists (protocol), predictions are judged, the
directory is written, from five million predictions on as Parquet, and its page is drawn. Parts leave out
imports and the loading of compiled loops.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import CPU, ELAPSED, MEMORY, Figures, Line, dprec_run, job, main
from process_memory import processor_seconds

RATINGS_PER_USER, PARTS = 20, ("load", "split", "protocol", "judging", "writing", "page", "else")


def parts(settings: list[str]) -> Figures:
    from dprec.datasets import Synthetic
    from dprec.kernels.compilation import prepare
    from dprec.splits import RandomSplit
    from dprec.start import return_memory
    from simulation import execution, run, verbs
    from simulation.evaluation import Evaluator
    from simulation.storage.run_directory import RunDirectory

    seconds = dict.fromkeys(PARTS, 0.0)

    def timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            within, started = sum(seconds.values()), processor_seconds(os.getpid())
            try:
                return function(*arguments, **named)
            finally:
                spent = processor_seconds(os.getpid()) - started
                seconds[part] += spent - (sum(seconds.values()) - within)

        return call

    return_memory()
    prepare()
    owners = (Synthetic, "load"), (RandomSplit, "split"), (execution, "run_protocol")
    others = (Evaluator, "judged"), (Evaluator, "nothing_sent"), (RunDirectory, "write"), (verbs, "_draw")
    named = "load", "split", "protocol", "judging", "judging", "writing", "page"
    for (owner, name), part in zip((*owners, *others), named, strict=True):
        setattr(owner, name, timed(getattr(owner, name), part))
    with tempfile.TemporaryDirectory() as folder:
        timed(run, "else")("blp-mf", Path(folder) / "run", overrides=settings)
    return {f"{CPU}, {part}": spent for part, spent in seconds.items()}


def settings(users: int) -> tuple[str, ...]:
    data = f"dataset={{kind: synthetic, users: {users}, ratings: {users * RATINGS_PER_USER}}}"
    return data, "protocol.completion.kind=item-average"


SIZES = (1_000_000, 10_000_000)
OF_PARTS = (*(f"{CPU}, {part}" for part in PARTS), MEMORY)
LINES = (
    *(Line(f"{n:,} users", dprec_run("blp-mf", *settings(n)), units=(ELAPSED, CPU, MEMORY)) for n in SIZES),
    Line(f"parts, {SIZES[-1]:,} users", job(__file__, "parts", settings(SIZES[-1])), (), units=OF_PARTS),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {"parts": parts})
