import math
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import load
from simulation.configuration.strict_yaml import (
    apply_override,
    dump_yaml,
    flatten,
    parse_yaml,
    read_yaml,
    replace_value,
)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: [1, 2\n", 3, "expected ',' or ']'"),
        ("a:\n\t- b\n", 2, "cannot start any token"),
        ("a: 1\nb: {c: 1, c: 2}\n", 2, "the key 'c' twice"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' twice"),
        ("a: &x 1\nb: *x\n", 2, "an alias, which is not supported"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ("? [a, b]\n: 1\n", 1, "unhashable key"),
        ("a: !!python/object/apply:os.system ['true']\n", 1, "could not determine a constructor"),
    ],
)
def test_bad_yaml_is_refused_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load(file)
    assert caught.value.where == f"{file}, line {line}"
    assert problem in caught.value.found
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "nothing"),
        (b"- a\n- b\n", "a list"),
        (b"7", "a value"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b"a: \x01", "unacceptable character"),
        (b"[" * 5000, "recursion"),
        (b"seed: " + b"9" * 5000, "4300 digits"),
    ],
)
def test_what_is_no_mapping_is_refused(tmp_path: Path, content: bytes, found: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_yaml(file)
    assert str(file) in caught.value.where
    assert found in caught.value.found
    assert "\n" not in str(caught.value)


PADDING = "".join(f"key-{each}: {each}\n" for each in range(2000))
"""Makes a text so long that it is read by libyaml."""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: {c: 1, c: 2}\n", "the key 'c' twice"),
        ("a: &x 1\nb: *x\n", "an alias, which is not supported"),
        ("a: [1\n", "expected ',' or ']'"),
        ("? [a, b]\n: 1\n", "unhashable key"),
        ("a: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
        ("a: " + "[" * 100_000, "recursion"),
        ("- " * 100_000, "expected <block end>|recursion"),
        ("a:\n" + "\n".join(" " * depth + "b:" for depth in range(1, 400)), "recursion"),
    ],
)
def test_a_long_text_is_read_as_strictly(text: str, problem: str) -> None:
    assert parse_yaml(PADDING, "long") == {f"key-{each}": each for each in range(2000)}
    with pytest.raises(InputError, match=problem) as caught:
        parse_yaml(PADDING + text, "long")
    assert "\n" not in str(caught.value)
    assert parse_yaml(PADDING + "a: [1e-3, 1E5]\nb: 1e5\nc: '1e5'\n", "long")["a"] == [1e-3, 1e5]


def test_exponents_are_numbers() -> None:
    assert parse_yaml("[1e-3, 1E5, -2e+2, 1.5e3]", "x") == [1e-3, 1e5, -200.0, 1500.0]


def test_dumped_yaml_is_read_back_unchanged() -> None:
    values = {
        "text": ["1e5", "1", "-1e+5", "~"],
        "numbers": [1e5, 1e-7, 1, math.pi],
        "nothing": None,
        "ü": "é",
    }
    assert parse_yaml(dump_yaml(values), "again") == values


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
