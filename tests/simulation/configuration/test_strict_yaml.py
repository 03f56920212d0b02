import math
from pathlib import Path

import pytest

from dprec.errors import InputError
from simulation import load
from simulation.configuration.strict_yaml import dump_yaml, parse_yaml, read_yaml


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
