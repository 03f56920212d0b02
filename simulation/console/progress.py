"""Progress on standard error, and on a page that a server on this machine alone shows meanwhile."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import unquote

import typer

from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console

_SECONDS_BETWEEN_LINES = 2.0
_LINES_PER_STAGE = 10

Clock = Callable[[], float]


class _Pace:
    """How fast a stage goes, once its first step is finished.

    That one says little: until then workers start, and load what was compiled.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.stage = ""
        self._began = self._reported = clock()
        self._done = self._planned = 0
        self._first: tuple[int, float] | None = None
        """The steps that were done with the first that this program finished, and when."""

    def report(self, stage: str, done: int, planned: int) -> None:
        """Take the state of a stage; a stage with another name, or that goes back, begins anew."""
        now = self._clock()
        if stage != self.stage or done < self._done:
            # What was done before, as in an interrupted comparison, says nothing of how fast it goes.
            self.stage, self._began, self._first = stage, now, None
        elif self._first is None and done > self._done:
            self._first = done, now
        self._done, self._planned, self._reported = done, planned, now

    @property
    def left(self) -> str:
        """The time that is left, in words; empty while it is not known.

        Steps that were begun together end together: they say how fast it goes once as much time has passed
        as before the first of them.
        """
        if self._first is None or self._done >= self._planned:
            return ""
        first, since = self._first
        steps, passed = self._done - first, self._reported - since
        if steps == 0 or passed < since - self._began:
            return ""
        seconds = max(passed * (self._planned - self._done) / steps - (self._clock() - self._reported), 1.0)
        minutes = round(seconds / 60)
        long = f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
        return f"about {f'{seconds:.0f} s' if seconds < 60 else long} left"


class Lines:
    """Progress as lines: one per step or tenth of a stage, whichever are fewer, and none in quick succession.

    ``write``: takes a line.
    ``clock``: returns seconds.
    """

    def __init__(self, write: Callable[[str], object], clock: Clock = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._pace = _Pace(clock)
        self._written_at = clock()
        self._written = ("", 0)

    def __call__(self, stage: str, done: int, planned: int) -> None:
        """Take the state of a stage."""
        self._pace.report(stage, done, planned)
        last_stage, last_done = self._written
        further = (done - last_done) * _LINES_PER_STAGE >= max(planned, 1)
        now = self._clock()
        if now - self._written_at < _SECONDS_BETWEEN_LINES or (stage == last_stage and not further):
            return
        steps = f": {done:,} of {planned:,}" if planned > 1 else ""
        self._write(", ".join(part for part in (f"{stage}{steps}", self._pace.left) if part))
        self._written, self._written_at = (stage, done), now


@contextmanager
def progress_bar(quiet: bool, first: str = "reading the configuration") -> Iterator[Progress]:
    """Yield a callable that takes the stage, the steps done and the steps planned.

    ``quiet``: whether nothing is shown.
    ``first``: the stage that is shown at once.
    """
    from simulation.console.terminal import console

    terminal = console(stderr=True)
    if quiet:
        yield silent
    elif terminal.is_terminal and not terminal.is_dumb_terminal:
        with bar(terminal) as progress:
            progress(first, 0, 0)
            yield progress
    else:
        yield Lines(lambda line: typer.echo(f"dprec: {line}", err=True))


@contextmanager
def bar(console: Console, clock: Clock = time.monotonic) -> Iterator[Progress]:
    """Yield progress that is shown as a bar, which disappears at the end.

    ``clock``: returns seconds.
    """
    from rich import progress
    from rich.table import Column

    pace = _Pace(clock)

    class Left(progress.ProgressColumn):
        def render(self, task: progress.Task) -> str:
            return pace.left

    display = progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=None, table_column=Column(ratio=1, max_width=40)),
        progress.TextColumn("{task.fields[steps]}"),
        progress.TimeElapsedColumn(),
        Left(),
        console=console,
        transient=True,
        expand=True,
    )
    task = display.add_task("", total=None, steps="")

    def report(stage: str, done: int, planned: int) -> None:
        another = stage != pace.stage
        pace.report(stage, done, planned)
        # A single step, or an unknown number of them, has no fraction to show.
        countable = planned > 1
        display.update(
            task,
            description=stage,
            completed=done,
            total=planned if countable else None,
            steps=f"{done:,}/{planned:,}" if countable else "",
            refresh=another,  # at once: imports may keep the thread that redraws the bar waiting
        )

    with display:
        yield report


_HOST = "127.0.0.1"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""What is served: pages and what they link to, and nothing else that a run keeps."""

_QUIET_SECONDS, _MOST_SECONDS = 3.0, 10.0
"""At the end a page that is open asks once more, a little later than it did before."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__((_HOST, 0), _Handler)
        self.folder, self.ended = folder, False
        self.asked = -_QUIET_SECONDS
        """When something was last asked for."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a reader who leaves before the end of an answer."""

    def content(self, name: str) -> bytes | None:
        """Return a file of the directory that pages link to; None if it is none."""
        try:
            path = (self.folder / name).resolve()
            inside = path.is_relative_to(self.folder.resolve()) and path.suffix == Path(name).suffix
            return path.read_bytes() if inside and path.suffix in _TYPES and path.is_file() else None
        except (OSError, ValueError):  # a name that no file can have
            return None


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10
    server_version, sys_version = "dprec", ""

    def do_GET(self) -> None:
        # What a browser on this machine calls it; a name that leads here from outside is another.
        own_hosts = [f"{name}:{self.server.server_port}" for name in (_HOST, "localhost")]
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in own_hosts:
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        self.server.asked = time.monotonic()
        path = unquote(self.path.partition("?")[0]).removeprefix("/")
        frame = files("simulation.console").joinpath("watch.html").read_bytes()
        content = self.server.content(path) if path else frame
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        for name, value in (
            ("Content-Type", _TYPES[Path(path or "frame.html").suffix]),
            ("Content-Length", str(len(content))),
            ("Cache-Control", "no-store"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "SAMEORIGIN"),
            ("X-Comparison", "ended" if self.server.ended else "running"),
            *(() if path else (("Content-Security-Policy", policy_of(frame.decode())),)),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: the terminal shows the comparison."""


def policy_of(page: str) -> str:
    """Return the policy of a page with one style sheet and one script, which asks its own server alone."""
    digests = {
        tag: base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        for tag, inside in re.findall(r"<(style|script)>(.*?)</\1>", page, flags=re.DOTALL)
    }
    sources = "; ".join(f"{tag}-src 'sha256-{digest}'" for tag, digest in digests.items())
    others = "img-src data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; {sources}; {others}"


@contextmanager
def watched(folder: Path) -> Iterator[str]:
    """Serve a comparison's directory, which need not be there yet, until the block ends.

    Yields the address. After the block, a page that is open is given its last state; not after an error.
    """
    with _Server(folder) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield f"http://{_HOST}:{server.server_port}/"
            server.ended = True
            stop = time.monotonic() + _MOST_SECONDS
            while time.monotonic() < min(stop, server.asked + _QUIET_SECONDS):
                time.sleep(0.1)
        finally:
            server.shutdown()
            thread.join()
