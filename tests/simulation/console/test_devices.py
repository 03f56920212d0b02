"""The command `dprec device`: what it accepts, and what it lets a terminal see."""

import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprec.errors import InputError
from simulation.console.command_line import app
from simulation.console.pilots import _OneLine


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
    assert _OneLine("%(message)s").format(record) == r"u0: \x1b[2J\x9b\x07"
