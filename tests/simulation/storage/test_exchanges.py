"""Users of a simulation answer as those of a deployment did."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.faults import ABSENT, LATE, NOT_ASKED, PUNCTUAL
from dprec.errors import InputError
from simulation import run
from simulation.storage.exchanges import EXCHANGES, attendance_in
from tests.simulation.conftest import presets

Answers = dict[int, dict[str, list[str]]]
"""By round, who answered how."""


def asked(folder: Path, rounds: Answers, asks: str = "train", **more: Any) -> Path:
    """Write what a deployed run asked."""
    lines = []
    for number, answers in rounds.items():
        said = {"answered": [], "late": [], "absent": [], "refused": {}, **answers}
        at = {
            "exchange": len(lines) + 1,
            "asks": asks,
            "round": number,
            "began": "2026-01-01",
            "seconds": 1.0,
        }
        lines.append(json.dumps({**at, **said, **more}) + "\n")
    (folder / EXCHANGES).write_text("".join(lines))
    return folder


def test_who_has_answered_is_read(tmp_path: Path) -> None:
    rounds: Answers = {
        1: {"answered": ["a"], "late": ["b"], "absent": ["c"]},
        2: {"absent": ["b", "c"], "refused": {"budget-spent": ["a"]}},
    }
    found = attendance_in(asked(tmp_path, rounds), ["a", "b", "c"])
    assert found.fates.tolist() == [[PUNCTUAL, LATE, NOT_ASKED], [ABSENT, ABSENT, NOT_ASKED]]
    assert found.of_round(1, 1, 2).tolist() == [LATE, ABSENT]
    assert found.of_round(3, 0, 3).tolist() == [ABSENT] * 3
    assert found.never_asked.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("rounds", "more", "found"),
    [
        ({}, {}, "0 rounds"),
        ({1: {"answered": ["a"]}}, {"asks": "query.recommend"}, "0 rounds"),
        ({10**9: {"answered": ["a"]}}, {}, "1000000000 rounds"),
        ({1: {"answered": ["a", "z"]}}, {}, "user 'z'"),
        ({1: {"answered": ["a"]}, 0: {"answered": ["b"]}}, {}, "round"),
    ],
)
def test_what_is_no_attendance_is_refused(
    tmp_path: Path, rounds: Answers, more: dict[str, Any], found: str
) -> None:
    with pytest.raises(InputError, match=found):
        attendance_in(asked(tmp_path, rounds, **more), ["a", "b"])


@pytest.mark.parametrize("name", ["blp-mf", "pg-mf", "dp-als"])
def test_who_was_there_answers(tmp_path: Path, name: str) -> None:
    """Of 40 users, one is never asked, one leaves after the first round, and one is late in it."""
    values = presets()[name]
    rounds = values["protocol"].get("rounds", len(run(values).record.rounds))
    stay = [str(user) for user in range(3, 40)]
    first_round: dict[str, list[str]] = {"answered": ["1", *stay], "late": ["2"], "absent": ["40"]}
    later_rounds = {
        number: {"answered": ["2", *stay], "absent": ["1", "40"]} for number in range(2, rounds + 1)
    }
    asked(tmp_path, {1: first_round, **later_rounds})
    values["simulation"] = {"backend": "local", "faults": {"attendance": str(tmp_path)}}
    result = run(values)
    first, *later = result.record.rounds
    assert first.causes == {"absent": 1, "late": 1}
    assert all(record.causes == {"absent": 2} for record in later)
    users = result.traffic["user"].astype(np.int64)
    sent, received = (result.traffic[f"{way}link_payload_bytes"] for way in ("up", "down"))
    assert received[users == 40] == sent[users == 40] == 0
    assert np.all(sent[users < 40] > 0)
    assert not later or sent[users == 1] < sent[(users > 2) & (users < 40)].min()
