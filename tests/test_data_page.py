"""The code of docs/data.md does what the page says."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dprec.datasets import Synthetic
from simulation.comparison.planning import load_comparison
from simulation.console.command_line import main
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_programs_run() -> None:
    known: dict[str, Any] = {"frame": Synthetic(users=20, items=12, ratings=150).load().to_pandas()}
    for program in blocks("python"):
        exec(program, known)
    assert known["result"].config.split.kind == "k-fold"


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(user, item, 1 + user * item % 5) for user in range(20) for item in range(12)]
    (tmp_path / "ratings.csv").write_text("".join(f"{user},{item},{rating}\n" for user, item, rating in rows))
    (tmp_path / "plays.tsv").write_text(
        "".join(f"{user}\t{item}\t{6**rating}\n" for user, item, rating in rows)
    )
    lines = "".join(blocks("bash")).replace("\\\n", " ").splitlines()
    run, compare, threshold = (shlex.split(line)[1:] for line in lines)
    assert len(load_comparison(compare[1]).cells) > 10
    for arguments in (run, [each.replace("high: 5000", "high: 7776") for each in threshold]):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--no-page", "--set", "simulation.backend=local"])
        assert ended.value.code == 0
