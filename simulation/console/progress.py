"""Progress bars: only on a terminal, and only for what takes longer than two seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from dprec.progress import Progress, silent

_PATIENCE_SECONDS = 2.0


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress]:
    """Yield a callable that takes the stage, the steps done and the steps planned."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield silent
        return
    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("", total=None)
    started = time.monotonic()

    def report(stage: str, done: int, planned: int) -> None:
        if not bar.live.is_started and time.monotonic() - started > _PATIENCE_SECONDS:
            bar.start()
        bar.update(task, description=stage, completed=done, total=planned)

    try:
        yield report
    finally:
        bar.stop()
