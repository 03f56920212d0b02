"""Progress on standard error: on a terminal a bar with the time left, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console

_SECONDS_BETWEEN_LINES = 2.0
_LINES_PER_STAGE = 10

Clock = Callable[[], float]


class _Pace:
    """How fast a stage goes, from its own beginning."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.stage = ""
        self._began = self._reported = clock()
        self._first = self._done = self._planned = 0

    def report(self, stage: str, done: int, planned: int) -> None:
        """Take the state of a stage; a stage with another name, or that goes back, begins anew."""
        now = self._clock()
        if stage != self.stage or done < self._done:
            # What was done before, as in an interrupted comparison, says nothing of how fast it goes.
            self.stage, self._began, self._first = stage, now, done
        self._done, self._planned, self._reported = done, planned, now

    @property
    def left(self) -> str:
        """The time that is left, in words; empty while it is not known."""
        steps, remaining = self._done - self._first, self._planned - self._done
        if steps <= 0 or remaining <= 0:
            return ""
        expected = (self._reported - self._began) * remaining / steps
        return f"about {_duration(max(expected - (self._clock() - self._reported), 1.0))} left"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Lines:
    """Progress as lines: one per step or tenth of a stage, whichever are fewer, and none in quick succession.

    Parameters
    ----------
    write : callable
        Takes a line.
    clock : callable, optional
        Returns seconds.
    """

    def __init__(self, write: Callable[[str], object], clock: Clock = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._pace = _Pace(clock)
        self._written_at = clock()
        self._written = ("", 0)

    def __call__(self, stage: str, done: int, planned: int) -> None:
        """Take the state of a stage."""
        self._pace.report(stage, done, planned)
        shown, before = self._written
        further = (done - before) * _LINES_PER_STAGE >= max(planned, 1)
        now = self._clock()
        if now - self._written_at < _SECONDS_BETWEEN_LINES or (stage == shown and not further):
            return
        steps = f": {done:,} of {planned:,}" if planned > 1 else ""
        self._write(", ".join(part for part in (f"{stage}{steps}", self._pace.left) if part))
        self._written, self._written_at = (stage, done), now


@contextmanager
def progress_bar(quiet: bool, first: str = "reading the configuration") -> Iterator[Progress]:
    """Yield a callable that takes the stage, the steps done and the steps planned.

    Parameters
    ----------
    quiet : bool
        Whether nothing is shown.
    first : str
        The stage that is shown at once.
    """
    from simulation.console.terminal import console

    shown = console(stderr=True)
    if quiet:
        yield silent
    elif shown.is_terminal and not shown.is_dumb_terminal:
        with bar(shown) as progress:
            progress(first, 0, 0)
            yield progress
    else:
        yield Lines(lambda line: typer.echo(f"dprec: {line}", err=True))


@contextmanager
def bar(console: Console, clock: Clock = time.monotonic) -> Iterator[Progress]:
    """Yield progress that is shown as a bar, which disappears at the end.

    Parameters
    ----------
    clock : callable, optional
        Returns seconds.
    """
    from rich import progress
    from rich.table import Column

    pace = _Pace(clock)

    class Left(progress.ProgressColumn):
        def render(self, task: progress.Task) -> str:
            return pace.left

    shown = progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=None, table_column=Column(ratio=1, max_width=40)),
        progress.TextColumn("{task.fields[steps]}"),
        progress.TimeElapsedColumn(),
        Left(),
        console=console,
        transient=True,
        expand=True,
    )
    task = shown.add_task("", total=None, steps="")

    def report(stage: str, done: int, planned: int) -> None:
        another = stage != pace.stage
        pace.report(stage, done, planned)
        # A single step, or an unknown number of them, has no fraction to show.
        known = planned > 1
        shown.update(
            task,
            description=stage,
            completed=done,
            total=planned if known else None,
            steps=f"{done:,}/{planned:,}" if known else "",
            refresh=another,  # at once: imports may keep the thread that redraws the bar waiting
        )

    with shown:
        yield report
