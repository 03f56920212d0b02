from typing import Annotated, Any, Literal

import pytest
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dprec.errors import ACCEPTED, accepted_by, listed, shown


def accepted(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind, config=ConfigDict(strict=True)).validate_python(value)
    return accepted_by(caught.value.errors()[0])


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Annotated[float, Field(gt=0)], -1, "greater than 0"),
        (Annotated[float, Field(ge=0.25)], 0, "at least 0.25"),
        (Annotated[float, Field(le=1e9)], 1e10, "at most 1000000000"),
        (Annotated[int, Field(lt=2**31)], 2**31, "less than 2147483648"),
        (Annotated[str, Field(max_length=1)], "ab", "at most 1 character"),
        (Annotated[str, Field(min_length=2)], "a", "at least 2 characters"),
        (Annotated[str, Field(pattern="^a*$")], "b", "text that matches '^a*$'"),
        (Annotated[list[int], Field(min_length=1)], [], "at least 1 item"),
        (Annotated[list[int], Field(max_length=2)], [1, 2, 3], "at most 2 items"),
        (Literal["one", "two"], "three", "'one' or 'two'"),
        (list[int], 1, "a list"),
        (dict[str, int], 1, "a mapping of keys to values"),
    ],
)
def test_limits_are_said_with_what_they_are(kind: Any, value: object, words: str) -> None:
    assert accepted(kind, value) == words


def test_no_words_of_pydantics_are_left() -> None:
    for words in ACCEPTED.values():
        assert not any(phrase in words for phrase in ("Input", "should", "valid", "or equal"))


def test_a_type_that_nobody_here_uses_is_refused_all_the_same() -> None:
    assert "complex" in accepted(complex, "one")


def test_long_values_are_cut() -> None:
    assert (shown("x" * 80), shown("x" * 81)) == ("x" * 80, "x" * 80 + "...")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("symbol", "kind, symbols; did you mean symbols?"),
        ("unrelated", "kind, symbols"),
        (None, "kind, symbols"),
    ],
)
def test_the_nearest_name_is_offered(given: object, line: str) -> None:
    assert listed(["kind", "symbols"], given) == line
