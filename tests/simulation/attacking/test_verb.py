"""`dprec attack` and `simulation.attack`: a run or a comparison, with attacks."""

import json
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import attack
from tests.simulation.attacking.games import SPYING

FLOORS: dict[str, Any] = {
    "name": "floors",
    "dataset": {"kind": "synthetic", "users": 30, "items": 20, "ratings": 300},
    "split": {"kind": "holdout"},
    "protocols": ["item-average"],
    "baselines": False,
    "simulation": {"backend": "local"},
}


def attacks_of(result: Any) -> list[Any]:
    return [each["settings"]["kind"] for each in result.summary["attacks"]["performed"]]


def test_a_run_is_attacked_as_asked_or_as_configured(tiny: dict[str, Any]) -> None:
    assert attacks_of(attack(tiny, kinds=[SPYING])) == [SPYING]
    configured = attack({**tiny, "attacks": [{"kind": SPYING, "least": 3}]})
    assert configured.summary["attacks"]["performed"][0]["settings"]["least"] == 3  # type: ignore[union-attr]


def test_a_comparison_is_attacked(tmp_path: Path) -> None:
    result = attack(FLOORS, tmp_path / "out", kinds=[SPYING], page=False)
    (row,) = result.rows  # type: ignore[union-attr]
    assert row["recovered_level"] == 0.5
    attacked = tmp_path / "out" / "cells" / "item-average-seed0" / "attack.json"
    assert json.loads(attacked.read_text())["reported"] == 240


def test_an_unknown_kind_is_refused_before_anything_else() -> None:
    with pytest.raises(InputError, match=r"^kinds: 'guessing'; accepted: "):
        attack("no such file", kinds=["guessing"])


def test_the_command_prints_what_was_reached(tiny: dict[str, Any], tmp_path: Path, dprec: Any) -> None:
    (tmp_path / "tiny.yaml").write_text(json.dumps(tiny))
    places = tmp_path / "tiny.yaml", "-o", tmp_path / "out", "--no-page"
    lines = dprec("attack", *places, "--attack", SPYING).out.splitlines()
    assert lines[0].split() == ["reached", "nothing", "sent", "epsilon", "allows"]
    assert lines[2].split() == ["levels", "recovered", "0.500", "0.250", "0.750"]
    assert [line.split()[0] for line in lines[2:4]] == ["levels", "reported"]
    assert not any(line.startswith("endless") for line in lines)  # which has no finite value
    assert "- Cells are counted." in lines
    assert lines[-1] == f"run directory: {tmp_path / 'out'}"
    again = dprec("attack", tmp_path / "out", "-o", tmp_path / "again", "--no-page", "--attack", SPYING)
    assert again.out.splitlines()[:-1] == lines[:-1]
