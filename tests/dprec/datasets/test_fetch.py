"""Downloads, of what a server would send."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

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


class Reply(io.BytesIO):
    """What a server sends: its body, under the length that it announces."""

    def __init__(self, body: bytes, announced: int) -> None:
        super().__init__(body)
        self.headers = {"Content-Length": str(announced)}


Offer = Callable[..., list[str]]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Return a function that offers an archive, and returns the list of what is asked for from then on."""

    def offered(archive: bytes, sent: bytes | Exception | None = None, more: int = 0) -> list[str]:
        asked: list[str] = []

        def urlopen(url: str, timeout: float) -> Reply:
            asked.append(url)
            if isinstance(sent, Exception):
                raise sent
            body = archive if sent is None else sent
            return Reply(body, len(body) + more)

        source = Source("http://a.b/ml-100k.zip", "u.data", md5=hashlib.md5(archive).hexdigest())
        monkeypatch.setattr(MovieLens100K, "distribution", source)
        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        return asked

    return offered


def failed(cache: Path, error: type[Exception] = RunError, url: str | None = None) -> str:
    with pytest.raises(error) as caught:
        fetch(KIND, cache, url=url)
    assert not cache.exists() or not list(cache.iterdir())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_downloads_once_and_the_data_set_loads_it(offer: Offer, tmp_path: Path) -> None:
    cache, asked, steps = tmp_path / "deep" / "cache", offer(GOOD), list[tuple[str, int, int]]()
    place = fetch(KIND, cache, progress=lambda *step: steps.append(step))
    assert place == cache / KIND / "ml-100k"
    assert steps == [("downloading", len(GOOD), len(GOOD))]
    ratings = MovieLens100K(path=str(place)).load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (4, 3, 12)
    assert fetch(KIND, str(cache)) == place
    assert asked == ["http://a.b/ml-100k.zip"]
    assert [path.name for path in cache.iterdir()] == [KIND]


def test_what_is_not_received_whole_is_refused(
    offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(GOOD, b"not the archive")
    assert "MD5" in failed(tmp_path)
    offer(GOOD, HTTPError("http://a.b", 404, "missing", Message(), None))
    assert "404" in failed(tmp_path)
    offer(GOOD, more=10)
    assert f"after {len(GOOD)} of {len(GOOD) + 10} bytes" in failed(tmp_path)
    monkeypatch.setattr(fetch_module, "_MOST_DOWNLOADED", 100)
    assert "more than 100 bytes" in failed(tmp_path)


def torn(archive: bytes) -> bytes:
    # A byte of the compressed data, which the archive's own checksum covers.
    place = archive.index(b"u.data") + 12
    return archive[:place] + bytes([archive[place] ^ 0xFF]) + archive[place + 1 :]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"<html>moved</html>", "not a zip archive"),
        (GOOD[:-30], "not a zip archive"),
        (torn(GOOD), "not a zip archive"),
        (zipped(("x", "a file"), ("x/u.data", ROWS)), "not a zip archive"),
        (zipped(("ml-100k/other.data", ROWS)), "holds no file u.data"),
        (zipped(("ml-100k/u.data", "0" * 5_000_000)), "unpacks to more than"),
    ],
    ids=range(6),
)
def test_archives_that_are_refused(
    body: bytes, found: str, offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "_MOST_UNPACKED", 1_000_000)
    offer(body)
    assert found in failed(tmp_path / "cache")
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize("name", ["../../u.data", "/tmp/ml-100k/u.data", "a/../../../u.data"])
def test_nothing_is_unpacked_outside_the_cache(name: str, offer: Offer, tmp_path: Path) -> None:
    offer(zipped((name, ROWS)))
    assert fetch(KIND, tmp_path / "cache").is_relative_to(tmp_path / "cache" / KIND)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_what_cannot_be_asked_for(offer: Offer, tmp_path: Path) -> None:
    asked = offer(GOOD)
    for kind in ("csv", "movielens"):
        with refused_at("dataset") as caught:
            fetch(kind, tmp_path)
        assert "csv" not in caught.value.accepted
    assert "http or https" in failed(tmp_path, InputError, "file:///etc/passwd")
    (tmp_path / "cache").write_text("in the way")
    with refused_at("cache"):
        fetch(KIND, tmp_path / "cache")
    assert asked == []
