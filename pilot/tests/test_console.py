"""The command line: what it accepts, says and prints, and what a device lets a terminal see."""

import io
import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprec.errors import InputError
from dprec_pilot import console
from dprec_pilot.console import app
from dprec_pilot.device.service import OneLine
from dprec_pilot.files import check_address
from pilot.tests.server.control import installed

DATA = ["--set", "dataset={kind: synthetic, users: 4, items: 20, ratings: 40}"]


def typed(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        console.main(list(arguments))
    return int(ended.value.code or 0)


def test_prepare_says_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pilot = tmp_path / "pilot"
    arguments = ["--devices", "2", "--host", "pilot.example", "--port", "9000", "--seeded"]
    assert typed("prepare", "blp-mf", str(pilot), *DATA, *arguments) == 0
    said = capsys.readouterr().out
    for command in (
        f"{pilot}/server/superlink.sh",
        f"dprec-pilot enrol {pilot}/server --superlink 127.0.0.1:9000",
        f"dprec-pilot run {pilot}/server",
        f"dprec-pilot device {pilot}/devices --superlink pilot.example:9000 --ca {pilot}/ca.crt --seeded",
    ):
        assert command in said
    assert len(list((pilot / "devices").iterdir())) == 2


def test_an_address_of_version_6_is_printed_as_it_is_to_be_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--devices", "2", "--host", "::1", "--port", "9000"]
    assert typed("prepare", "blp-mf", str(tmp_path / "pilot"), *DATA, *arguments) == 0
    assert " --superlink [::1]:9000 " in capsys.readouterr().out
    check_address("[::1]:9000")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["prepare", "x-map", "pilot"], "accepted: a kind that deploys: one-shot"),
        (["prepare", "blp-mf", "."], "accepted: a new directory"),
        (["prepare", "blp-mf", "pilot", "--days", "0", *DATA], "days: 0"),
        (["prepare", "blp-mf", "pilot", "--deadline", "nan", *DATA], "deadline: "),
        (["prepare", "blp-mf", "pilot", "--quorum", "1.5", *DATA], "quorum: 1.5"),
        (["run", "nowhere"], "config.toml: No such file"),
        (["run", "nowhere", "-o", ".."], "accepted: a new directory; dprec-pilot resume"),
        (["run", "nowhere", "--app", "."], "no pyproject.toml"),
        (["resume", "nowhere", "."], "no run"),
        (["resume", "nowhere", ".", "--forget"], "no complete run"),
        (["prepare", "blp-mf", "pilot", "--host", "", *DATA], "host: ''"),
        (["prepare", "blp-mf", "pilot", "--host", "a b; rm", *DATA], "host: 'a b; rm'"),
        (["prepare", "blp-mf", "pilot", "--host", "a\nb", *DATA], "host: 'a"),
        (["app", "."], "accepted: a new directory"),
        (["app", "/dev/null/app"], "/dev/null: "),
        (["enrol", "nowhere", "--superlink", "127.0.0.1:1"], "enrolment.csv: No such file"),
        (["invite", "nowhere", "ann"], "enrolment.csv: No such file"),
        (["admit", "nowhere", "0 key"], "enrolment.csv: No such file"),
        (["remove", "nowhere", "ann", "--superlink", "127.0.0.1:1"], "enrolment.csv: No such file"),
        (["renew", "nowhere"], "ca.key: No such file"),
        (["renew", "nowhere", "--host", "a b"], "host: 'a b'"),
        (["renew", "nowhere", "--days", "0"], "days: 0"),
        (
            ["prepare", "blp-mf", "pilot", "--devices", "0", "--seeded", *DATA],
            "seeded: true, without devices",
        ),
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
    assert typed(*arguments) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1


def test_people_join_by_the_words_that_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pilot, mine = tmp_path / "pilot", tmp_path / "mine.csv"
    server = str(pilot / "server")
    assert typed("prepare", "blp-mf", str(pilot), *DATA, "--devices", "0") == 0
    said = capsys.readouterr().out
    assert f"dprec-pilot invite {server} NAME..." in said
    assert f"{server}/invitation.json" in said
    assert typed("invite", server, "ann", "bob") == 0
    assert capsys.readouterr().out == "0 ann\n1 bob\n"
    item = (pilot / "server" / "catalogue.txt").read_text().split()[0]
    mine.write_text(f"item,rating\n{item},3\nelsewhere,4\n")
    words = [
        "join",
        str(pilot / "server" / "invitation.json"),
        str(mine),
        str(tmp_path / "me"),
        "--user",
        "1",
    ]
    assert typed(*words) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    assert line.startswith("1 ecdsa-sha2-nistp384 ")
    secret = (tmp_path / "me" / "secret.key").read_bytes()
    assert (tmp_path / "me" / "node.key").read_text() not in out + err
    assert secret.hex() not in out + err
    assert "left out, as the catalogue lacks them: elsewhere" in err
    assert typed(*words) == 2
    assert "a folder that is not empty" in capsys.readouterr().err
    for given, typed_in in ((line, ""), ("-", f"\n{line}\n\n")):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed_in))
        assert typed("admit", server, given) == 0
        assert capsys.readouterr().out == "admitted bob\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\n0 key\n"))
    assert typed("admit", server, "-") == 2
    assert "standard input, line 2: 0 key" in capsys.readouterr().err
    assert typed("admit", server, f"{line}\n0 key") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_not_enrolled_is_an_error_and_what_is_removed_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    control, server = installed(monkeypatch), str(tmp_path / "pilot" / "server")
    where = ["--superlink", "127.0.0.1:8000"]
    assert typed("prepare", "blp-mf", str(tmp_path / "pilot"), *DATA, "--quiet") == 0
    assert typed("enrol", server, *where) == 0
    assert capsys.readouterr().out == "4 devices are enrolled\n"
    control.nodes[1].status = "unregistered"
    assert typed("enrol", server, *where) == 1
    error = capsys.readouterr().err
    assert "enrolment.csv:3: user " in error
    assert error.count("\n") == 1
    user = (tmp_path / "pilot" / "server" / "enrolment.csv").read_text().splitlines()[2].partition(",")[0]
    assert typed("remove", server, user, *where) == 0
    assert capsys.readouterr().out == f"removed {user}\n"
    assert typed("enrol", server, *where) == 0
    assert capsys.readouterr().out == "3 devices are enrolled\n"
    assert typed("remove", server, user, *where) == 2


def test_a_certificate_is_renewed_beside_its_authority(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = str(tmp_path / "pilot" / "server")
    words = ["--host", "pilot.example", "--devices", "2", "--quiet"]
    assert typed("prepare", "blp-mf", str(tmp_path / "pilot"), *DATA, *words) == 0
    assert typed("renew", server) == 0
    assert "UTC, for pilot.example, localhost, 127.0.0.1\n" in capsys.readouterr().out
    assert typed("renew", server, "--host", "new.example", "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_a_superlink_that_starts_no_run_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pilot = tmp_path / "pilot"
    assert typed("prepare", "blp-mf", str(pilot), *DATA, "--devices", "2", "--quiet") == 0
    started = ["run", str(pilot / "server"), "--superlink", "127.0.0.1:1"]
    assert typed(*started, "-o", str(tmp_path / "new")) == 1
    error = capsys.readouterr().err
    assert "the SuperLink at 127.0.0.1:1 cannot be reached: " in error
    assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_what_waits_for_devices_is_forgotten_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("summary.json", "undelivered.json"):
        (tmp_path / name).write_text("{}")
    assert typed("resume", str(tmp_path), str(tmp_path), "--forget") == 0
    assert capsys.readouterr().out == "deleted what there was for 0 devices\n"
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


def test_a_superlink_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pilot = tmp_path / "pilot"
    assert typed("prepare", "blp-mf", str(pilot), *DATA, "--devices", "2", "--quiet") == 0
    assert typed("enrol", str(pilot / "server"), "--superlink", "127.0.0.1:1") == 1
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
