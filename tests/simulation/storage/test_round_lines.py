"""rounds.jsonl: rounds come back as they were, and a line that is none is named."""

from __future__ import annotations

import json

import pytest

from dprec.errors import InputError
from simulation.storage.run_files import line_of, parse_rounds, written_rounds
from strategies.round_record import RoundRecord

ROUNDS = (
    RoundRecord(1, 40, 2, {"rmse": 1.25, "mae": None, "k": 10}, 1, 2, 3, 4, 0.5),
    RoundRecord(2, 41, 1, None, 5, 6, 7, 8, 0.25),
)


def test_rounds_come_back() -> None:
    text = "".join(written_rounds(ROUNDS))
    assert parse_rounds(text, "rounds.jsonl") == ROUNDS
    assert [json.loads(line) for line in text.splitlines()] == [line_of(record) for record in ROUNDS]


def test_a_line_says_what_went_which_way() -> None:
    line = line_of(ROUNDS[0])
    assert line["uplink"] == {"payload_bytes": 1, "message_bytes": 2}
    assert line["downlink"] == {"payload_bytes": 3, "message_bytes": 4}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"replies": "many"}, 'line 2: replies: "many"; accepted: an integer'),
        ({"uplink": {"payload_bytes": 1}}, "line 2: uplink.message_bytes: missing"),
        ({"more": 1}, "line 2: more: an unknown key"),
    ],
)
def test_a_line_that_is_no_round_is_named(change: dict[str, object], complaint: str) -> None:
    first, second = (line_of(record) for record in ROUNDS)
    text = f"{json.dumps(first)}\n{json.dumps({**second, **change})}\n"
    with pytest.raises(InputError, match=complaint):
        parse_rounds(text, "rounds.jsonl")


def test_a_line_that_is_no_json_is_named() -> None:
    with pytest.raises(InputError, match=r"rounds\.jsonl, line 2: .*; accepted: a JSON object"):
        parse_rounds(f"{json.dumps(line_of(ROUNDS[0]))}\n{{\n", "rounds.jsonl")
