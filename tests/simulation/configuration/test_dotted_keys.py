from typing import Any

import pytest

from dprec.errors import InputError
from simulation.configuration.strict_yaml import apply_override, flatten, replace_value


@pytest.mark.parametrize(
    ("override", "where"),
    [
        ("seed", "overrides"),
        ("=5", "overrides"),
        ("a..b=1", "overrides"),
        (".a=1", "overrides"),
        ("seed.x=1", "overrides seed.x"),
        ("name.x.y=1", "overrides name.x.y"),
        ("seed=[1", "overrides seed, line 1"),
        ("seed=*x", "overrides seed, line 1"),
        ("seed={a: 1, a: 2}", "overrides seed, line 1"),
    ],
)
def test_a_bad_override_is_refused(tiny: dict[str, Any], override: str, where: str) -> None:
    with pytest.raises(InputError) as caught:
        apply_override(tiny, override)
    assert caught.value.where == where


def test_nested_mappings_are_flattened() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": [2]}}, "e": {}}) == {"a.b": 1, "a.c.d": [2]}


def test_mappings_on_the_way_are_made() -> None:
    values: dict[str, Any] = {"a": {"b": 1}}
    replace_value(values, "a.c.d", 2, "here")
    assert values == {"a": {"b": 1, "c": {"d": 2}}}
    with pytest.raises(InputError, match=r"here a\.b\.c: a\.b is 1; accepted: a key below a mapping"):
        replace_value(values, "a.b.c", 3, "here")
