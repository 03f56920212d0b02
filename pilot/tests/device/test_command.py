"""dprec-pilot device: what it accepts, how it ends, and what it imports."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dprec.errors import InputError, RunError
from dprec_pilot import console
from dprec_pilot.device import service

NEEDED = ["--superlink", "server.test:443", "--ca", "ca.crt"]
JOIN = ["join", "invitation.json", "mine.csv", "me", "--user", "3"]


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        console.main(list(arguments))
    return int(exit_.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["device", "u0"], "--superlink"),
        (["device", *NEEDED], "DIR"),
        (["device", "u0", *NEEDED, "--interval", "0.01"], "0.01; accepted: seconds from 0.05 to 1800"),
        (["device", "u0", *NEEDED, "--interval", "nan"], "nan; accepted: seconds"),
        (["device", "u0", *NEEDED, "--answer-after", "soon"], "'soon'"),
        (["device", "u0", *NEEDED, "--answer-after", "0"], "0; accepted: seconds from 0.01 to 600"),
        (["device", "u0", "--superlink", "server.test", "--ca", "ca.crt"], "accepted: HOST:PORT"),
        (["device", "u0", "--superlink", f"a:{'1' * 5000}", "--ca", "ca.crt"], "accepted: HOST:PORT"),
        (["device", "nowhere", *NEEDED], "no device.json"),
        (["rotate", "nowhere"], "device.json"),
        (JOIN, "invitation.json"),
        (JOIN[:-2], "--user"),
        ([*JOIN[:-1], "-1"], "--user"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    arguments: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    # Of this process, which has other tests to run.
    monkeypatch.setattr(service, "_log_to_standard_error", lambda: None)
    monkeypatch.setattr(service.signal, "signal", lambda *_: None)
    assert ended(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("dprec-pilot: ")
    assert line in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (None, 0),
        (RunError("1 of 2 devices were not served"), 1),
        (OSError("no entropy"), 1),
        (InputError("ca.crt", "nothing", "PEM"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_how_it_ends(
    raised: BaseException | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def serve(*_: object, **__: object) -> None:
        if raised is not None:
            raise raised

    monkeypatch.setattr(service, "serve", serve)
    assert ended("device", "u0", *NEEDED) == code
    assert capsys.readouterr().err.count("\n") == (raised is not None)


def test_termination_waits_for_no_lock_of_the_thread_that_it_interrupts() -> None:
    class Stopped(threading.Event):
        def set(self) -> None:
            by.append(threading.get_ident())
            super().set()

    by: list[int] = []
    stopped, before = Stopped(), signal.getsignal(signal.SIGTERM)
    try:
        service.stop_at_termination(stopped)
        signal.raise_signal(signal.SIGTERM)
        assert stopped.wait(10)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert by
    assert threading.get_ident() not in by


def test_a_device_imports_nothing_of_a_simulation() -> None:
    code = (
        "import sys, dprec_pilot.device.service, dprec_pilot.device.joining\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"numpy", "flwr", "clients"} <= set(loaded.stdout.split())
    assert not {"ray", "matplotlib", "yaml", "simulation", "strategies"} & set(loaded.stdout.split())
