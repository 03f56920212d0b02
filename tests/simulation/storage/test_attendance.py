"""Users of a simulation answer as those of a deployment did."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.faults import ABSENT, LATE, NOT_ASKED, PUNCTUAL
from dprec.errors import InputError, SettingError
from simulation import run
from simulation.storage.attendance import read_attendance, write_attendance
from tests.simulation.conftest import presets

ROWS = [(1, "a", "answered"), (1, "b", "late"), (2, "a", "budget-spent"), (2, "b", "absent")]


def test_it_is_read_as_written(tmp_path: Path) -> None:
    write_attendance(tmp_path / "attendance.csv", ROWS)
    found = read_attendance(tmp_path / "attendance.csv", ["a", "b", "c"])
    assert found.fates.tolist() == [[PUNCTUAL, LATE, NOT_ASKED], [ABSENT, ABSENT, NOT_ASKED]]
    assert found.of_round(1, 1, 2).tolist() == [LATE, ABSENT]
    assert found.of_round(3, 0, 3).tolist() == [ABSENT] * 3
    assert found.never_asked.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("round,user,outcome\n", "no round"),
        ("round,user,outcome\n0,a,answered\n", "round 0"),
        ("round,user,outcome\n1000000000,a,answered\n", "round 1000000000"),
        ("round,user,outcome\none,a,answered\n", "one"),
        ("round,user,outcome\n1,z,answered\n", "user 'z'"),
        ("round,user,outcome\n1,a,answered\n1,a,late\n", "a user twice"),
        ("round,user\n1,a\n", "outcome"),
        ("", "attendance.csv"),
    ],
)
def test_what_is_no_attendance_is_refused(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "attendance.csv").write_text(text)
    with pytest.raises(InputError, match=found):
        read_attendance(tmp_path / "attendance.csv", ["a", "b"])


@pytest.mark.parametrize("name", ["blp-mf", "pg-mf", "dp-als"])
def test_who_was_there_answers(tmp_path: Path, name: str) -> None:
    """Of 40 users, one is never asked, one leaves after the first round, and one is late in it."""
    values = presets()[name]
    rounds = values["protocol"].get("rounds", len(run(values).record.rounds))
    rows = [(number, str(user), "answered") for number in range(1, rounds + 1) for user in range(1, 40)]
    rows = [row for row in rows if row[:2] != (1, "2") and (row[0] == 1 or row[1] != "1")]
    write_attendance(tmp_path / "attendance.csv", [*rows, (1, "2", "late")])
    values["simulation"] = {"backend": "local", "faults": {"attendance": str(tmp_path / "attendance.csv")}}
    result = run(values)
    first, *later = result.record.rounds
    assert first.causes == {"absent": 1, "late": 1}
    assert all(record.causes == {"absent": 2} for record in later)
    users = result.traffic["user"].astype(np.int64)
    sent, received = (result.traffic[f"{way}link_payload_bytes"] for way in ("up", "down"))
    assert received[users == 40] == sent[users == 40] == 0
    assert np.all(sent[users < 40] > 0)
    assert not later or sent[users == 1] < sent[(users > 2) & (users < 40)].min()


def test_attendance_goes_with_no_other_faults(tiny: dict[str, Any]) -> None:
    tiny["simulation"]["faults"] = {"attendance": "attendance.csv", "dropout": 0.1}
    with pytest.raises((SettingError, InputError), match="attendance"):
        run(tiny)
