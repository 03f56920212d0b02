import pickle

import pytest

from dprec.errors import InputError, RunError, SettingError, within


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
