"""The server that shows a comparison while it runs: this machine, this directory, and nothing else."""

import http.client
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from simulation.console import progress as watching
from simulation.console.command_line import main
from simulation.console.progress import policy_of, watched
from tests.simulation.pages.browser import CHROMIUM, DRIVER, chromium


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


@pytest.mark.usefixtures("hurried")
def test_only_what_asks_is_answered(folder: Path) -> None:
    with watched(folder) as address:
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "CONNECT"):
            assert asked(address, "/report.html", method=method)[0] == 501


def test_it_stops_with_the_block_and_waits_for_nobody(folder: Path) -> None:
    began = time.monotonic()
    with watched(folder / "not-there-yet") as address:
        pass
    assert time.monotonic() - began < 2.5
    with pytest.raises(ConnectionRefusedError):
        asked(address, "/")


def test_a_page_that_is_open_is_given_the_last_state(folder: Path) -> None:
    seen: list[str | None] = []

    def reader(address: str) -> None:
        while not seen or seen[-1] == "running":
            seen.append(asked(address, "/report.html")[2]["X-Comparison"])
            time.sleep(0.5)

    with watched(folder) as address:
        thread = threading.Thread(target=reader, args=(address,))
        thread.start()
        while not seen:
            time.sleep(0.05)
    thread.join()
    assert seen[-1] == "ended"


@pytest.mark.usefixtures("hurried")
def test_a_silent_client_holds_nobody_up(folder: Path) -> None:
    with watched(folder) as address:
        port = int(address.rsplit(":", 1)[1].rstrip("/"))
        with socket.create_connection(("127.0.0.1", port)):
            assert asked(address, "/report.html")[0] == 200


def test_no_page_cannot_be_watched(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["compare", "compare-quick", "--watch", "--no-page"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("dprec: --watch: --no-page; ")


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver")
def test_a_browser_follows_the_page_and_keeps_what_is_unfolded(folder: Path, tmp_path: Path) -> None:
    inner = "document.querySelector('iframe').contentDocument"
    (folder / "report.html").unlink()
    with chromium(tmp_path / "profile") as browser:

        def until(expression: str, wanted: object) -> None:
            for _ in range(100):
                if browser.evaluate(expression) == wanted:
                    return
                time.sleep(0.1)
            assert browser.evaluate(expression) == wanted

        with watched(folder) as address:
            browser.call("/url", {"url": address})
            until("document.querySelector('iframe').hidden", True)
            for each in ("one", "two"):
                (folder / "report.html").write_text(f"<details><summary>s</summary>{each}</details>")
                until(f"{inner}.querySelector('details')?.textContent", f"s{each}")
                if each == "one":
                    browser.evaluate(f"{inner}.querySelector('details').open = true")
            until(f"{inner}.querySelector('details').open", True)
        until("document.querySelector('p').textContent", "The comparison has ended.")
        # There is no page at first.
        errors = [entry["message"] for entry in browser.log("browser") if "404" not in entry["message"]]
        assert errors == []
