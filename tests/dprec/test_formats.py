"""What is said of a file of another format."""

import json

import pytest

from dprec import __version__, formats
from tests.refusals import refused_at


@pytest.mark.parametrize("number", [formats.NUMBER - 1, formats.NUMBER + 1, "2", 2.5, True, None, [2]])
def test_another_number_is_refused(number: object) -> None:
    with refused_at("here/own.json: schema") as caught:
        formats.check({"schema": number}, "here/own.json")
    assert caught.value.accepted == f"{formats.NUMBER}, of dprec {__version__}"


def test_a_stamp_is_put_on_and_taken_off() -> None:
    text = formats.stamped('{"a": 1}')
    assert json.loads(text) == {"schema": formats.NUMBER, "dprec": __version__, "a": 1}
    assert json.loads(formats.body(text, "here")) == {"a": 1}
    for other in ('{"a":  1}', "no object", "[1]", "", "{", "[" * 100_000):
        assert formats.body(other, "here") == other
    with refused_at("here: schema"):
        formats.body('{"schema": 1}', "here")
