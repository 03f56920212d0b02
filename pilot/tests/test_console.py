"""The command line: what it refuses, in one line, and what people who join see on a terminal."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from dprec_pilot import console
from dprec_pilot.device import service

DATA = ["--set", "dataset={kind: synthetic, users: 4, items: 20, ratings: 40}"]
PREPARE = ["prepare", "blp-mf", "pilot", *DATA]
NEEDED = ["--superlink", "server.test:443", "--ca", "ca.crt"]
DEVICE = ["device", "nowhere", *NEEDED]
JOIN = ["join", "invitation.json", "mine.csv", "me", "--user", "3"]


def typed(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        console.main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["prepare", "x-map", "pilot"], "needs ratings or trust; accepted: a kind that deploys: "),
        (["prepare", "blp-mf", "."], "accepted: a new directory"),
        ([*PREPARE, "--days", "0"], "days: 0"),
        ([*PREPARE, "--deadline", "nan"], "deadline: "),
        ([*PREPARE, "--quorum", "1.5"], "quorum: 1.5"),
        ([*PREPARE, "--host", ""], "host: ''"),
        ([*PREPARE, "--host", "a\nb"], "host: 'a"),
        ([*PREPARE, "--devices", "0", "--seeded"], "seeded: true, without devices"),
        (["run", "nowhere", "-o", ".."], "accepted: a new directory; dprec-pilot resume"),
        (["run", "nowhere", "--app", "."], "no pyproject.toml"),
        (["resume", "nowhere", "."], "no run"),
        (["resume", "nowhere", ".", "--forget"], "no complete run"),
        (["app", "."], "accepted: a new directory"),
        (["enrol", "nowhere", "--superlink", "127.0.0.1:1"], "enrolment.csv: No such file"),
        (["invite", "nowhere", "ann"], "enrolment.csv: No such file"),
        (["renew", "nowhere"], "ca.key: No such file"),
        (["device", "u0"], "--superlink"),
        (["device", *NEEDED], "DIR"),
        (DEVICE, "no device.json"),
        ([*DEVICE, "--interval", "0.01"], "0.01; accepted: seconds from 0.05 to 1800"),
        ([*DEVICE, "--answer-after", "0"], "0; accepted: seconds from 0.01 to 600"),
        (["device", "u0", "--superlink", "server.test", "--ca", "ca.crt"], "accepted: HOST:PORT"),
        (["device", "u0", "--superlink", "server.test:0", "--ca", "ca.crt"], "accepted: HOST:PORT"),
        (["rotate", "nowhere"], "device.json"),
        (JOIN, "invitation.json"),
        (JOIN[:-2], "--user"),
        ([*JOIN[:-1], "-1"], "--user"),
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
    # Of this process, which has other tests to run.
    monkeypatch.setattr(service, "_log_to_standard_error", lambda: None)
    monkeypatch.setattr(service.signal, "signal", lambda *_: None)
    assert typed(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("dprec-pilot: ")
    assert line in error
    assert error.count("\n") == 1


def test_people_join_by_the_words_that_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pilot, mine = tmp_path / "pilot", tmp_path / "mine.csv"
    server = str(pilot / "server")
    assert typed("prepare", "blp-mf", str(pilot), *DATA, "--devices", "0") == 0
    told = capsys.readouterr().out
    assert told.splitlines()[1].startswith("the server sees which items each user rated, in clear, and how, ")
    assert f"dprec-pilot invite {server} NAME..." in told
    assert typed("invite", server, "ann", "bob") == 0
    assert capsys.readouterr().out == "0 ann\n1 bob\n"
    item = (pilot / "server" / "catalogue.txt").read_text().split()[0]
    mine.write_text(f"item,rating\n{item},3\nelsewhere,4\n")
    words = ["join", f"{server}/invitation.json", str(mine), str(tmp_path / "me"), "--user", "1"]
    assert typed(*words) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    assert line.startswith("1 ecdsa-sha2-nistp384 ")
    assert (tmp_path / "me" / "node.key").read_text() not in out + err
    assert (tmp_path / "me" / "secret.key").read_bytes().hex() not in out + err
    assert "left out, as the catalogue lacks them: elsewhere" in err
    assert typed(*words) == 2
    assert "a folder that is not empty" in capsys.readouterr().err
    for given, typed_in in ((line, ""), ("-", f"\n{line}\n\n")):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed_in))
        assert typed("admit", server, given) == 0
        assert capsys.readouterr().out == "admitted bob\n"


def test_a_device_imports_nothing_of_a_simulation() -> None:
    code = (
        "import sys, dprec_pilot.device.service, dprec_pilot.device.joining\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"numpy", "flwr", "clients"} <= set(loaded.stdout.split())
    assert not {"ray", "matplotlib", "yaml", "simulation", "strategies"} & set(loaded.stdout.split())
