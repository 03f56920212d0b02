"""Errors are one line that says where, what was found and what is accepted."""

import pickle
from typing import Annotated, Any, Literal

import pytest
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dprec.components import CodeError
from dprec.errors import LESS_MEMORY, InputError, RunError, SettingError, accepted_by, listed, within


def test_errors_are_one_line() -> None:
    error = InputError("a.csv, line 3", "two\n  lines", "one")
    assert str(error) == "a.csv, line 3: two lines; accepted: one"


def test_errors_hold_nothing_that_a_terminal_obeys_or_cannot_show() -> None:
    error = InputError("a\x1b[31m.csv", "\u202eb\ud800", "c\0")
    assert str(error) == "a\\x1b[31m.csv: \\u202eb\\ud800; accepted: c\\x00"
    assert str(RunError("no\nreply \x1b[31m")) == "no reply \\x1b[31m"
    assert str(InputError("a.csv", "x" * 100_000, "one")) == f"a.csv: {'x' * 1000}...; accepted: one"


@pytest.mark.parametrize("kind", [InputError, SettingError])
def test_errors_survive_a_trip_to_another_process(kind: type[InputError]) -> None:
    error = pickle.loads(pickle.dumps(kind("key", "found", "accepted")))
    assert type(error) is kind
    assert (error.where, error.found, error.accepted) == ("key", "found", "accepted")
    assert str(error) == "key: found; accepted: accepted"


@pytest.mark.parametrize(("key", "full"), [("rank", "protocol.completion.rank"), ("", "protocol.completion")])
def test_every_owner_puts_its_key_before_those_of_its_parts(key: str, full: str) -> None:
    with pytest.raises(SettingError) as caught, within("protocol"), within("completion"):
        raise SettingError(key, "7", "less than 5")
    assert caught.value.key == full
    assert str(caught.value) == f"{full}: 7; accepted: less than 5"


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


def test_a_device_for_which_memory_is_short_says_what_helps() -> None:
    error = MemoryError("Unable to allocate 9 GiB")
    assert CodeError.of(error).line.startswith(f"not enough memory ({error}): what helps is {LESS_MEMORY}")
