"""A page in headless Chromium, through the WebDriver protocol."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
ENTER, TAB = "\ue007", "\ue004"
in_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver on this machine"
)


class Browser:
    """A page in headless Chromium.

    Parameters
    ----------
    session : str
        Address of the WebDriver session.
    """

    def __init__(self, session: str) -> None:
        self.session = session

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.session + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script: str) -> Any:
        return self.call("/execute/sync", {"script": script, "args": []})

    def evaluate(self, expression: str) -> Any:
        """Return what an expression evaluates to, past the page's own policy on scripts."""
        answer = self.devtools(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        strokes = [{"type": stroke, "value": key} for stroke in ("keyDown", "keyUp")]
        self.call("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def open(self, page: Path, width: int, *, dark: bool = False) -> None:
        """Open a page, and wait until it has been laid out and drawn: before that, keys are lost."""
        self.log("browser"), self.log("performance")
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=844, deviceScaleFactor=1, mobile=width < 640,
        )  # fmt: skip
        self.scheme(dark=dark)
        self.call("/url", {"url": page.absolute().as_uri()})
        # A picture is of a drawn page, also where scripts are off; a busy machine may fail to take one.
        dot = {"x": 0, "y": 0, "width": 1, "height": 1, "scale": 1}
        for _ in range(100):
            with suppress(urllib.error.HTTPError):
                self.devtools("Page.captureScreenshot", clip=dot)
                return
            time.sleep(0.1)
        raise TimeoutError(f"{page} was not drawn")

    def scheme(self, *, dark: bool) -> None:
        """Show the page in a colour scheme."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", media="", features=[scheme])

    def log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.call("/se/log", {"type": kind})
        return entries

    def requests(self) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, file: Path) -> None:
        size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1})
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start Chromium with a profile of its own; the test is skipped if it does not start here."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert DRIVER is not None
    driver = subprocess.Popen(
        [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    arguments = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={profile}",
    ]  # fmt: skip
    capabilities = {
        "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments},
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
    }
    try:
        root = f"http://127.0.0.1:{port}/session"
        started = Browser(root)
        for _ in range(100):
            try:
                answer = started.call("", {"capabilities": {"alwaysMatch": capabilities}})
                break
            except urllib.error.HTTPError as error:
                pytest.skip(f"Chromium does not start here: {error.read()[:200]!r}")
            except urllib.error.URLError:
                time.sleep(0.1)
        else:
            pytest.skip("chromedriver does not answer")
        opened = Browser(f"{root}/{answer['sessionId']}")
        yield opened
        urllib.request.urlopen(urllib.request.Request(opened.session, method="DELETE"), timeout=30)
    finally:
        driver.terminate()
        driver.wait(timeout=10)
