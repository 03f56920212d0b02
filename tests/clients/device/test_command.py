"""dprec-device: what it accepts, in one line each, and that both commands pass on the same."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from clients.device import command
from clients.device.command import INTERVAL, Serving, main
from clients.device.owner import Joining, Rotating
from dprec.errors import InputError, RunError
from simulation.console.command_line import app

NEEDED = ["--superlink", "server.test:443", "--ca", "ca.crt"]
JOIN = ["join", "invitation.json", "mine.csv", "me", "--user", "3"]


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    return int(exit_.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["u0"], "--superlink, --ca"),
        ([*NEEDED], "DIR"),
        (["u0", *NEEDED, "--interval", "0.01"], "'0.01'; accepted: seconds from 0.05 to 1800"),
        (["u0", *NEEDED, "--interval", "nan"], "'nan'; accepted: seconds"),
        (["u0", *NEEDED, "--answer-after", "soon"], "'soon'; accepted: seconds from 0.01 to 600"),
        (["u0", *NEEDED, "--sup", "a:1"], "--sup"),
        (["u0", "--superlink", "server.test", "--ca", "ca.crt"], "accepted: HOST:PORT"),
        (["u0", "--superlink", "a:b:1", "--ca", "ca.crt"], "accepted: HOST:PORT"),
        (["u0", "--superlink", f"a:{'1' * 5000}", "--ca", "ca.crt"], "accepted: HOST:PORT"),
        (["nowhere", *NEEDED], "no device.json"),
        (["rotate", "nowhere"], "device.json"),
        (["rotate"], "DIR"),
        (JOIN, "invitation.json"),
        (JOIN[:-2], "--user"),
        ([*JOIN[:-1], "-1"], "--user"),
        ([*JOIN[:-1], "99999999999"], "'99999999999'; accepted: the number of the user"),
        ([*JOIN[:-1], "one"], "'one'; accepted: the number of the user"),
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
    monkeypatch.setattr(command, "_log_to_standard_error", lambda: None)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    assert ended(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("dprec-device: ")
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
    def run(self: Serving) -> None:
        if raised is not None:
            raise raised

    monkeypatch.setattr(Serving, "run", run)
    assert ended("u0", *NEEDED) == code
    assert capsys.readouterr().err.count("\n") == (raised is not None)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {"interval": INTERVAL, "answer_after": None, "once": False, "seeded": False}),
        (["--interval", "2", "--once"], {"interval": 2.0, "once": True}),
        (["--answer-after", "0.5", "--seeded"], {"answer_after": 0.5, "seeded": True}),
    ],
)
def test_both_commands_serve_alike(
    arguments: list[str], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Serving] = []

    def run(self: Serving) -> None:
        served.append(self)

    monkeypatch.setattr(Serving, "run", run)
    ended("u0", "u1", *NEEDED, *arguments)
    assert CliRunner().invoke(app, ["device", "u0", "u1", *NEEDED, *arguments]).exit_code == 0
    assert [list(each.folders) for each in served] == [[Path("u0"), Path("u1")]] * 2
    assert served[0] == Serving(**{**vars(served[1]), "folders": served[0].folders})
    assert {name: getattr(served[0], name) for name in options} == options


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (
            [*JOIN, "--class", "a:B", "--class", "c:D"],
            Joining(
                invitation=Path("invitation.json"),
                ratings=Path("mine.csv"),
                folder=Path("me"),
                user=3,
                classes=["a:B", "c:D"],
            ),
        ),
        (["rotate", "me"], Rotating(folder=Path("me"))),
    ],
)
def test_both_commands_make_devices_and_keys_alike(
    arguments: list[str], wanted: Joining | Rotating, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    def run(self: object) -> None:
        done.append(self)

    monkeypatch.setattr(type(wanted), "run", run)
    assert ended(*arguments) == 0
    assert CliRunner().invoke(app, ["device", *arguments]).exit_code == 0
    assert done == [wanted, wanted]


def test_a_folder_with_the_name_of_a_command_is_served_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Serving] = []

    def run(self: Serving) -> None:
        served.append(self)

    monkeypatch.setattr(Serving, "run", run)
    for words in (["./join"], ["serve", "join"]):
        ended(*words, *NEEDED)
        assert CliRunner().invoke(app, ["device", *words, *NEEDED]).exit_code == 0
    assert [list(each.folders) for each in served] == [[Path("join")]] * 4


def test_every_option_is_one_of_both() -> None:
    typed = {action.dest for action in command.parser()._actions} - {"help", "version"}
    assert typed == set(command.HELP) == set(Serving.__dataclass_fields__)


def test_termination_waits_for_no_lock_of_the_thread_that_it_interrupts() -> None:
    class Stopped(threading.Event):
        def set(self) -> None:
            by.append(threading.get_ident())
            super().set()

    by: list[int] = []
    stopped, before = Stopped(), signal.getsignal(signal.SIGTERM)
    try:
        command.stop_at_termination(stopped)
        signal.raise_signal(signal.SIGTERM)
        assert stopped.wait(10)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert by
    assert threading.get_ident() not in by


def test_neither_scipy_nor_what_only_a_simulation_needs_is_imported() -> None:
    code = (
        "import sys, clients.device.command, clients.device.joining, clients.device.service\n"
        "import clients.device.fleet\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    absent = {"scipy", "numba", "ray", "matplotlib", "yaml", "simulation", "strategies"}
    assert {"numpy", "flwr", "clients"} <= set(loaded.stdout.split())
    assert not absent & set(loaded.stdout.split())


def test_help_starts_without_what_a_device_needs() -> None:
    code = "import sys, clients.device.command as c; c.parser(); print('numpy' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "False\n"
