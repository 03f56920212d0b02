"""What is written at one end is read at the other, and anything else is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dprec.exchange import (
    DELIVER,
    IDENTIFY,
    SLOPES,
    TRAIN,
    FinalFactors,
    GradientRequest,
    Identity,
    Recommendations,
    ReplacementRequest,
    Reports,
    SlopesRequest,
    action_of,
    asked_users,
    bitmap_of,
)

WRITTEN = [
    GradientRequest(3, b"factors"),
    GradientRequest(3, b"", b"\x01"),
    FinalFactors(b"factors"),
    SlopesRequest(1, [b"", b"row"]),
    SlopesRequest(1, []),
    Recommendations([b"list", b""]),
    ReplacementRequest(2, 0, 5, b"rows"),
    ReplacementRequest(2, 3, 4, b"", b"\x01\x02"),
    Reports(7, [b"a", b"", b"c"]),
    Reports(0, [b"a", b"", b"c"], absent=(1,), late=(0, 2)),
    Identity(4),
]


@pytest.mark.parametrize("written", WRITTEN)
def test_what_was_written_is_read(written: Any) -> None:
    assert type(written).of(written.entries()) == written


@pytest.mark.parametrize("written", WRITTEN)
def test_an_entry_that_is_missing_is_noticed(written: Any) -> None:
    for key in set(written.entries()) - {"asked", "absent", "late"}:
        rest = {name: value for name, value in written.entries().items() if name != key}
        with pytest.raises(ValueError):
            type(written).of(rest)


@pytest.mark.parametrize("value", [None, True, False, "1", 1.0, b"1", [1]])
@pytest.mark.parametrize("written", WRITTEN)
def test_what_should_be_an_integer_is_one(written: Any, value: Any) -> None:
    for key in {"round", "start", "stop", "first", "partition"} & set(written.entries()):
        with pytest.raises(ValueError):
            type(written).of(written.entries() | {key: value})


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        (GradientRequest, {"round": 1, "factors": "text"}),
        (GradientRequest, {"round": 1, "factors": b"", "asked": "text"}),
        (GradientRequest, {"round": 1, "factors": b"", "asked": [True]}),
        (SlopesRequest, {"round": 1, "rows": b"row"}),
        (SlopesRequest, {"round": 1, "rows": [b"row", 1]}),
        (Recommendations, {"lists": b"list"}),
        (Recommendations, {"lists": ["list"]}),
        (ReplacementRequest, {"round": 2, "start": 5, "stop": 5, "rows": b""}),
        (ReplacementRequest, {"round": 2, "start": -1, "stop": 5, "rows": b""}),
        (Reports, {"first": 0, "reports": [1, 2]}),
        (Reports, {"first": 0, "reports": [b""], "late": [1]}),
        (Reports, {"first": 0, "reports": [b""], "late": [-1]}),
        (Reports, {"first": 0, "reports": [b""], "absent": [True]}),
        (Reports, {"first": 0, "reports": [b""], "absent": 0}),
    ],
)
def test_values_that_do_not_belong_are_refused(kind: Any, entries: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        kind.of(entries)


@pytest.mark.parametrize("users", [1, 7, 8, 9, 40])
def test_a_bitmap_names_the_users_who_are_asked(users: int) -> None:
    wanted = np.arange(users) % 3 == 1
    bitmap = bitmap_of(wanted)
    assert bitmap is not None
    assert asked_users(bitmap, users).tolist() == wanted.tolist()
    for other in (bitmap[:-1], bitmap + b"\0"):
        with pytest.raises(ValueError, match="another partition"):
            asked_users(other, users)


def test_a_request_to_everybody_names_nobody() -> None:
    assert bitmap_of(np.ones(9, dtype=np.bool_)) is None
    assert asked_users(None, 9).all()


def test_an_action_is_what_follows_the_category() -> None:
    assert [action_of(kind) for kind in (IDENTIFY, TRAIN, SLOPES, DELIVER)] == [
        "identify",
        "default",
        "slopes",
        "deliver",
    ]
