"""Units, deltas and guarantees, as they are written."""

from __future__ import annotations

from typing import get_args

import pytest

from dprec.accounting import (
    COMPARABLE_UNITS,
    UNITS_IN_WORDS,
    Guarantee,
    PrivacyBudget,
    PrivacyUnit,
    Status,
    Trust,
    note_on_delta,
    unit_from_text,
)


def test_every_unit_has_its_words_and_can_be_promised() -> None:
    assert list(UNITS_IN_WORDS) == list(get_args(PrivacyUnit))
    for unit in UNITS_IN_WORDS:
        assert PrivacyBudget(epsilon=1.0, per=unit).per == unit


def test_protocols_are_compared_in_units_of_privacy() -> None:
    assert set(COMPARABLE_UNITS) < set(UNITS_IN_WORDS)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        *((unit, unit) for unit in UNITS_IN_WORDS),
        ("per-rating", "rating"),
        ("per-user", "user"),
        ("per-cell", "per-cell"),
        (["user"], ["user"]),
        (None, None),
    ],
)
def test_a_file_may_spell_a_unit_in_two_ways(text: object, unit: object) -> None:
    assert unit_from_text(text) == unit


@pytest.mark.parametrize(
    ("delta", "users", "warns"), [(1e-3, 943, False), (1e-3, 1001, True), (0.1, 10, False)]
)
def test_a_delta_above_one_in_the_number_of_users_is_warned_about(
    delta: float, users: int, warns: bool
) -> None:
    assert (note_on_delta(delta, users) is not None) is warns


def test_the_reason_says_how_many_profiles_it_would_allow_to_publish() -> None:
    note = note_on_delta(1e-3, 6040)
    assert note is not None
    assert note.startswith("Delta = 0.001 is above one in 6,040 users: to publish 6.04 of the profiles in")


@pytest.mark.parametrize(
    ("status", "opening"),
    [("proved", "Proved: "), ("claimed", "Claimed, not proved: "), ("none", "No privacy: ")],
)
def test_the_status_comes_first_and_says_why(status: Status, opening: str) -> None:
    guarantee = Guarantee(status, "local", True, "for a reason.", ("What else there is to know.",))
    assert guarantee.statements == (f"{opening}for a reason.", "What else there is to know.")


@pytest.mark.parametrize(
    ("trust", "trusts_server"),
    [("central", True), ("secure-aggregation", False), ("shuffle", False), ("local", False)],
)
def test_only_a_trusted_server_sees_true_ratings(trust: Trust, trusts_server: bool) -> None:
    assert Guarantee("proved", trust, False, "for a reason.").trusts_server is trusts_server
