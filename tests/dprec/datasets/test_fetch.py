"""Downloads, from a server on this machine."""

import hashlib
import http.server
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dprec.datasets import MovieLens100K, Source
from dprec.datasets import fetch as fetch_module
from dprec.datasets.fetch import fetch
from dprec.errors import InputError, RunError
from tests.refusals import refused_at

KIND = "movielens-100k"
ROWS = "".join(f"{user}\t{item}\t3\t0\n" for user in range(1, 5) for item in range(1, 4))


def zipped(*members: tuple[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


GOOD = zipped(("ml-100k/", ""), ("ml-100k/u.data", ROWS), ("__MACOSX/ml-100k/deep/u.data", "junk"))


class Server:
    """Serves `body` at any path except /missing; `claimed` is the length it announces."""

    def __init__(self) -> None:
        self.body, self.claimed, self.requests = GOOD, -1, 0
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests += 1
                if self.path == "/missing":
                    self.send_error(404)
                    return
                self.send_response(200)
                if server.claimed:
                    length = len(server.body) if server.claimed < 0 else server.claimed
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(server.body)

            def log_message(self, *args: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/ml-100k.zip"

    def offer(self, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        self.body = body
        checksum = hashlib.md5(body).hexdigest()
        monkeypatch.setattr(MovieLens100K, "distribution", Source(self.url, "u.data", md5=checksum))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    served = Server()
    served.offer(GOOD, monkeypatch)
    thread = threading.Thread(target=served.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.http.shutdown()
    thread.join()
    served.http.server_close()


def failed(cache: Path, error: type[Exception] = RunError, url: str | None = None) -> str:
    with pytest.raises(error) as caught:
        fetch(KIND, cache, url=url)
    assert not cache.exists() or not list(cache.iterdir())
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_downloads_once_and_the_data_set_loads_it(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"
    place = fetch(KIND, cache)
    assert place == cache / KIND / "ml-100k"
    ratings = MovieLens100K(path=str(place)).load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (4, 3, 12)
    assert fetch(KIND, str(cache)) == place
    assert server.requests == 1
    assert [path.name for path in cache.iterdir()] == [KIND]


def test_what_is_not_received_whole_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.body = b"not the archive"
    assert "MD5" in failed(tmp_path)
    server.body = GOOD
    assert "404" in failed(tmp_path, url=server.url.replace("ml-100k.zip", "missing"))
    server.claimed = len(GOOD) + 10
    assert f"after {len(GOOD)} of {len(GOOD) + 10} bytes" in failed(tmp_path)
    monkeypatch.setattr(fetch_module, "_MOST_DOWNLOADED", 100)
    assert "more than 100 bytes" in failed(tmp_path)
    server.http.socket.close()
    assert "could not be downloaded" in failed(tmp_path)


def torn(archive: bytes) -> bytes:
    # A byte of the compressed data, which the archive's own checksum covers.
    place = archive.index(b"u.data") + 12
    return archive[:place] + bytes([archive[place] ^ 0xFF]) + archive[place + 1 :]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (lambda: b"<html>moved</html>", "not a zip archive"),
        (lambda: GOOD[:-30], "not a zip archive"),
        (lambda: torn(GOOD), "not a zip archive"),
        (lambda: zipped(("x", "a file"), ("x/u.data", ROWS)), "not a zip archive"),
        (lambda: zipped(("ml-100k/other.data", ROWS)), "holds no file u.data"),
        (lambda: zipped(("ml-100k/u.data", "0" * 5_000_000)), "unpacks to more than"),
    ],
)
def test_archives_that_are_refused(
    body: Callable[[], bytes], found: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "_MOST_UNPACKED", 1_000_000)
    server.offer(body(), monkeypatch)
    assert found in failed(tmp_path / "cache")
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize("name", ["../../u.data", "/tmp/ml-100k/u.data", "a/../../../u.data"])
def test_nothing_is_unpacked_outside_the_cache(
    name: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.offer(zipped((name, ROWS)), monkeypatch)
    assert fetch(KIND, tmp_path / "cache").is_relative_to(tmp_path / "cache" / KIND)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_what_cannot_be_asked_for(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'csv', which is not offered for download; accepted: movielens-1"):
        fetch("csv", tmp_path)
    with refused_at("dataset") as caught:
        fetch("movielens", tmp_path)
    assert "csv" not in caught.value.accepted
    assert "http or https" in failed(tmp_path, InputError, "file:///etc/passwd")
    (tmp_path / "cache").write_text("in the way")
    with refused_at("cache"):
        fetch(KIND, tmp_path / "cache")
    assert server.requests == 0
