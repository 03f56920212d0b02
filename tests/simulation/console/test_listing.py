"""What `dprec ls` and `dprec diff` print."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from simulation import run


def test_results_and_their_difference(
    tmp_path: Path, tiny: dict[str, Any], dprec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert dprec("ls").out == "no results in .\n"
    for name, epsilon in (("one", 1.0), ("two", 20.0)):
        run(tiny, name, overrides=[f"protocol.privacy.epsilon={epsilon}"], page=False)
    os.makedirs("bad\x1b[31m")
    Path("bad\x1b[31m/config.yaml").write_text("[")
    lines = dprec("ls").out.splitlines()
    assert {line.split()[0] for line in lines[2:]} == {"bad\ufffd[31m", "two", "one"}
    assert sum("RMSE" in line for line in lines) == 2
    assert "\x1b" not in "".join(lines)
    listed = json.loads(dprec("ls", "--json").out)
    assert {each["path"]: each["state"] for each in listed} == {
        "one": "finished",
        "two": "finished",
        "bad\x1b[31m": "damaged",
    }
    words = dprec("diff", "one", "two").out
    settings, figures, gains = words.split("\n\n")
    assert settings.split()[-3:] == ["protocol.privacy.epsilon", "1.0", "20.0"]
    difference = json.loads(dprec("diff", "one", "two", "--json").out)
    rmse = difference["gains"]["rmse"]
    assert f"{abs(rmse['better_by']):.4f}" in gains.splitlines()[0]
    assert ("not significant" in gains.splitlines()[0]) == (not rmse["significant"])
    assert [line.split()[0] for line in figures.splitlines()[2:]] == [
        each["name"] for each in difference["figures"]
    ]
    same = dprec("diff", "one", "one").out
    assert same.startswith("the same settings\n\nthe same figures\n")
    assert "RMSE: no difference" in same
    assert "better" not in same


def test_what_goes_on_is_said_of_runs_and_of_pilots(
    tmp_path: Path, dprec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("server", "server/runs/one"):
        os.makedirs(folder)
        Path(folder, "config.yaml").write_text("name: x\ndataset: {kind: y}\n")
    Path("server/deployment.json").write_text("{}")
    begun, pilots = "What is not finished runs, or was interrupted", "dprec-pilot resume SERVER DIR goes on."
    assert " ".join(dprec("ls").out.split()).endswith(f"{begun}, in a pilot: {pilots}")
    os.makedirs("own")
    Path("own/config.yaml").write_text("name: x\ndataset: {kind: y}\n")
    said = " ".join(dprec("ls").out.split())
    assert f"{begun}: the same command with --resume -o DIR goes on. {begun}, in a pilot: {pilots}" in said
