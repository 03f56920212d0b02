"""dprec deploy and dprec device: what they accept, and what a device lets a terminal see."""

import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clients.device.command import OneLine
from dprec.errors import InputError
from simulation.console import command_line
from simulation.console.command_line import app

DATA = ["--set", "dataset={kind: synthetic, users: 4, items: 20, ratings: 40}"]


def typed(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        command_line.main(list(arguments))
    return int(ended.value.code or 0)


def test_prepare_says_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pilot = tmp_path / "pilot"
    arguments = ["--devices", "2", "--host", "pilot.example", "--port", "9000", "--seeded"]
    assert typed("deploy", "prepare", "blp-mf", str(pilot), *DATA, *arguments) == 0
    said = capsys.readouterr().out
    for command in (
        f"{pilot}/server/superlink.sh",
        f"dprec deploy enrol {pilot}/server --superlink 127.0.0.1:9000",
        f"dprec deploy run {pilot}/server",
        f"dprec device {pilot}/devices --superlink pilot.example:9000 --ca {pilot}/ca.crt --seeded",
    ):
        assert command in said
    assert len(list((pilot / "devices").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["prepare", "x-map", "pilot"], "accepted: a kind that deploys: one-shot"),
        (["prepare", "blp-mf", "."], "accepted: a new directory"),
        (["prepare", "blp-mf", "pilot", "--days", "0", *DATA], "days: 0"),
        (["prepare", "blp-mf", "pilot", "--deadline", "nan", *DATA], "deadline: "),
        (["prepare", "blp-mf", "pilot", "--quorum", "1.5", *DATA], "quorum: 1.5"),
        (["run", "nowhere"], "config.toml: No such file"),
        (["run", "nowhere", "-o", ".."], "accepted: a new directory; dprec deploy resume"),
        (["run", "nowhere", "--app", "."], "no pyproject.toml"),
        (["resume", "nowhere", "."], "no run"),
        (["resume", "nowhere", ".", "--forget"], "no complete run"),
        (["prepare", "blp-mf", "pilot", "--host", "", *DATA], "host: ''"),
        (["prepare", "blp-mf", "pilot", "--host", "a b; rm", *DATA], "host: 'a b; rm'"),
        (["prepare", "blp-mf", "pilot", "--host", "a\nb", *DATA], "host: 'a"),
        (["app", "."], "accepted: a new directory"),
        (["app", "/dev/null/app"], "/dev/null: "),
        (["enrol", "nowhere", "--superlink", "127.0.0.1:1"], "enrolment.csv: No such file"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert typed("deploy", *arguments) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1


def test_a_superlink_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pilot = tmp_path / "pilot"
    assert typed("deploy", "prepare", "blp-mf", str(pilot), *DATA, "--devices", "2", "--quiet") == 0
    assert typed("deploy", "enrol", str(pilot / "server"), "--superlink", "127.0.0.1:1") == 1
    error = capsys.readouterr().err
    assert "the SuperLink at 127.0.0.1:1 cannot be reached" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("superlink", "error"),
    [
        ("server.test", r"--superlink: server\.test; accepted: HOST:PORT"),
        ("server.test:0", r"--superlink: server\.test:0"),
        ("server.test:99999", r"--superlink: server\.test:99999"),
        (":443", r"--superlink: :443"),
        ("server.test:443", r"no device\.json; accepted: the folder of a device"),
    ],
)
def test_what_cannot_be_served_is_named(tmp_path: Path, superlink: str, error: str) -> None:
    (tmp_path / "u0").mkdir()
    arguments = ["device", str(tmp_path), "--superlink", superlink, "--ca", str(tmp_path / "ca.crt")]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InputError)
    with pytest.raises(InputError, match=error):
        raise result.exception


def test_a_line_commands_no_terminal() -> None:
    record = logging.LogRecord("dprec.device", logging.INFO, "", 0, "u0: \x1b[2J\x9b%s", ("\x07",), None)
    assert OneLine("%(message)s").format(record) == r"u0: \x1b[2J\x9b\x07"
