"""The server that shows a comparison while it runs: this machine, this directory, and nothing else."""

import http.client
import os
from pathlib import Path

import pytest

from simulation.console import progress as watching
from simulation.console.progress import policy_of, watched


def asked(
    address: str, path: str, *, host: str | None = None, method: str = "GET"
) -> tuple[int, bytes, http.client.HTTPMessage]:
    """Ask the server at an address, in whatever words."""
    place = address.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(place, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", place if host is None else host)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop without waiting for pages that are open."""
    monkeypatch.setattr(watching, "_QUIET_SECONDS", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.csv").write_text("secret")
    inside = tmp_path / "out"
    (inside / "cells" / "a").mkdir(parents=True)
    (inside / "report.html").write_text("<p>first")
    (inside / "comparison.csv").write_text("a,b")
    (inside / "cells" / "a" / "report.html").write_text("<p>run")
    (inside / "cells" / "a" / "entropy.hex").write_text("secret")
    (inside / "cells" / "a" / "config.yaml").write_text("secret")
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    os.mkfifo(inside / "pipe.csv")
    return inside


@pytest.mark.usefixtures("hurried")
def test_pages_and_tables_of_the_directory_are_served(folder: Path) -> None:
    with watched(folder) as address:
        assert address.startswith("http://127.0.0.1:")
        status, page, headers = asked(address, "/")
        assert (status, headers["Content-Security-Policy"]) == (200, policy_of(page.decode()))
        for path, content in (
            ("/report.html", b"<p>first"),
            ("/report.html?x=1", b"<p>first"),
            ("/comparison.csv", b"a,b"),
            ("/cells/%61/report.html", b"<p>run"),
        ):
            status, body, headers = asked(address, path)
            assert (status, body, headers["Cache-Control"]) == (200, content, "no-store")
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["X-Comparison"] == "running"
        assert asked(address, "/", host=address[7:-1].replace("127.0.0.1", "localhost"))[0] == 200


@pytest.mark.usefixtures("hurried")
def test_nothing_else_is(folder: Path) -> None:
    others = [
        *(
            "/../secret.csv",
            "/%2e%2e/secret.csv",
            "//etc/passwd",
            "/link.csv",
            "/pipe.csv",
            "//[",
            "/none.csv",
        ),
        *("/cells/a/entropy.hex", "/cells/a/config.yaml", "/cells/", "/cells", "/%00.csv", "/%ff.csv"),
        f"/{'a' * 5000}.csv",
    ]
    with watched(folder) as address:
        for path in others:
            status, body, _ = asked(address, path)
            assert status == 404, path
            assert b"secret" not in body


@pytest.mark.usefixtures("hurried")
def test_a_name_that_leads_here_from_outside_is_refused(folder: Path) -> None:
    with watched(folder) as address:
        port = address.rsplit(":", 1)[1].rstrip("/")
        for host in (
            "",
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1",
            f"127.0.0.1.evil.example:{port}",
        ):
            assert asked(address, "/report.html", host=host)[0] == 403
