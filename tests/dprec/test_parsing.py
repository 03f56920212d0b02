from dataclasses import dataclass
from typing import Any

import pytest

from dprec.components import Options, one_of, option, parse_json
from dprec.errors import SettingError
from dprec.gradients import GRADIENTS
from dprec.privacy.calibration import PrivacyBudget
from dprec.splits import KFold


@dataclass(frozen=True, kw_only=True)
class Whole(Options):
    gradient: one_of(GRADIENTS) = option("A component.")  # type: ignore[valid-type]
    split: KFold | None = option("A part.", None)


def test_settings_are_read() -> None:
    assert parse_json(PrivacyBudget, '{"epsilon": 2, "per": "user"}') == PrivacyBudget(epsilon=2, per="user")
    assert parse_json(Whole, b'{"gradient": {"kind": "full"}}').gradient == GRADIENTS["full"]()


@pytest.mark.parametrize(
    ("group", "text", "key", "line"),
    [
        (PrivacyBudget, "{}", "epsilon", "missing; accepted: Privacy loss, in natural logarithms."),
        (PrivacyBudget, '{"epsilon": null}', "epsilon", "null; accepted: a number"),
        (
            PrivacyBudget,
            '{"epsilon": 1, "pre": 1}',
            "pre",
            "an unknown key; accepted: epsilon, per, composition",
        ),
        (PrivacyBudget, "{", "", "'{'; accepted: JSON"),
        (PrivacyBudget, "[]", "", "[]; accepted: a mapping of keys to values"),
        (
            Whole,
            '{"gradient": {}}',
            "gradient.kind",
            "missing; accepted: one-bit, one-bit-reduced, sampled-signs, full",
        ),
        (
            Whole,
            '{"gradient": {"kind": true}}',
            "gradient.kind",
            "true; accepted: one-bit, one-bit-reduced, sampled-signs, full",
        ),
        (Whole, '{"gradient": {"kind": "one-bit", "x": 1}}', "gradient.x", "an unknown key; accepted: kind"),
        (KFold, '{"fold": 5}', "fold", "5; accepted: 0 to 4, with folds: 5"),
        (
            Whole,
            '{"gradient": {"kind": "full"}, "split": {"kind": "k-fold", "fold": 5}}',
            "split.fold",
            "5; accepted: 0 to 4, with folds: 5",
        ),
    ],
)
def test_the_first_error_names_its_key(group: type[Any], text: str, key: str, line: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_json(group, text)
    assert caught.value.key == key
    assert str(caught.value).startswith(f"{key or 'settings'}: {line}")
