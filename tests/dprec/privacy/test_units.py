from typing import get_args

import pytest

from dprec.accounting import COMPARABLE_UNITS, UNITS_IN_WORDS, PrivacyBudget, PrivacyUnit, unit_from_text


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
