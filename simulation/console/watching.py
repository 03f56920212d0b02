"""A server on this machine alone that shows a comparison's page while it runs, and stops with it."""

import base64
import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

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
        self.folder = folder
        self.frame = files("simulation.console").joinpath("watch.html").read_bytes()
        self.ended = False
        self.asked = -_QUIET_SECONDS
        """When something was last asked for."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a reader who leaves before the end of an answer."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser on this machine calls it; a name that leads here from outside is another."""
        return tuple(f"{name}:{self.server_port}" for name in (_HOST, "localhost"))


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10
    server_version = "dprec"
    sys_version = ""

    def do_GET(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        self.server.asked = time.monotonic()
        path = unquote(self.path.partition("?")[0]).removeprefix("/")
        if not path:
            self._send(self.server.frame, ".html", policy_of(self.server.frame.decode()))
        elif (content := _content(self.server.folder, path)) is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(content, Path(path).suffix)

    def _send(self, content: bytes, suffix: str, policy: str | None = None) -> None:
        headers = {
            "Content-Type": _TYPES[suffix],
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "SAMEORIGIN",
            "X-Comparison": "ended" if self.server.ended else "running",
            **({} if policy is None else {"Content-Security-Policy": policy}),
        }
        self.send_response(HTTPStatus.OK)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: the terminal shows the comparison."""


def _content(folder: Path, name: str) -> bytes | None:
    """Return a file of a directory that pages link to; None if it is none."""
    try:
        path = (folder / name).resolve()
        inside = path.is_relative_to(folder.resolve()) and path.suffix == Path(name).suffix
        return path.read_bytes() if inside and path.suffix in _TYPES and path.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def policy_of(page: str) -> str:
    """Return the policy of a page with one style sheet and one script, which asks its own server alone."""
    digests = {
        tag: base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        for tag, inside in re.findall(r"<(style|script)>(.*?)</\1>", page, flags=re.DOTALL)
    }
    own = "; ".join(f"{tag}-src 'sha256-{digest}'" for tag, digest in digests.items())
    others = "img-src data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; {own}; {others}"


@contextmanager
def watched(folder: Path) -> Iterator[str]:
    """Serve a comparison's directory, which need not be there yet, until the block ends.

    Yields
    ------
    str
        The address. After the block, a page that is open is given its last state; not after an error.
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
