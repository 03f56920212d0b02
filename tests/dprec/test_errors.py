"""Errors are one line that says where, what was found and what is accepted, with the names of today."""

import pickle
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dprec.errors import ACCEPTED, InputError, RunError, SettingError, accepted_by, listed, shown, within
from dprec.renamed import KEYS, TRUST, VALUES, first_names, now
from simulation.configuration.loading import load
from simulation.storage.columns import read_rows


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


def test_a_setting_without_a_key_survives_it_too() -> None:
    error = pickle.loads(pickle.dumps(SettingError("", "a fraction and a count", "one of the two")))
    assert (error.key, str(error)) == ("", "settings: a fraction and a count; accepted: one of the two")


@pytest.mark.parametrize(("key", "full"), [("rank", "protocol.completion.rank"), ("", "protocol.completion")])
def test_every_owner_puts_its_key_before_those_of_its_parts(key: str, full: str) -> None:
    with pytest.raises(SettingError) as caught, within("protocol"), within("completion"):
        raise SettingError(key, "7", "less than 5")
    assert caught.value.key == full
    assert str(caught.value) == f"{full}: 7; accepted: less than 5"


@pytest.mark.parametrize("error", [InputError("u.data, line 3", "x", "a rating"), RunError("diverged")])
def test_other_errors_pass_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, within("dataset"):
        raise error
    assert caught.value is error


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


@pytest.mark.parametrize(
    ("preset", "setting", "new"),
    [
        ("one-bit-on-device", "protocol.places={least_raters: 9}", "item_embeddings"),
        ("one-bit-clear-effects", "protocol.completion.effects=true", "biases"),
        ("dp-als", "protocol.neighbors=removal", "adjacency"),
        ("best-server", "protocol.item_set=visible", "revealed"),
        ("sets-only", "protocol.completion.kind=item-effects", "item-biases"),
    ],
)
def test_an_old_name_is_refused_with_the_new_one(preset: str, setting: str, new: str) -> None:
    with pytest.raises((InputError, SettingError)) as refused:
        load(preset, [setting])
    assert new in refused.value.accepted


def test_an_old_trust_model_is_refused_with_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "comparison.csv").write_text("name,trust\na,nobody\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_rows(tmp_path / "comparison.csv")
    assert refused.value.where.endswith(": trust")
    assert TRUST["nobody"] in refused.value.accepted


def test_a_name_that_is_as_it_was_is_not_said_to_be_another() -> None:
    assert now("neighbors", ["neighbors", "epsilon"]) is None
    assert now("neighbors", ["adjacency", "epsilon"]) == "adjacency"


def test_draws_are_keyed_by_the_first_names() -> None:
    settings: dict[str, Any] = {"adjacency": "replace-one", "parts": [{"kind": "item-biases"}], "rounds": 3}
    first = {"neighbors": "replacement", "parts": [{"kind": "item-effects"}], "rounds": 3}
    assert first_names(settings) == first
    assert len(set(KEYS.values())) == len(KEYS)
    assert len(set(VALUES.values())) == len(VALUES)
