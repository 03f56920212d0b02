"""What is said of a file of another format."""

import json

import pytest

from dprec import __version__
from dprec.errors import InputError
from dprec.formats import Format

SECOND = Format("own.json", 2)


def refusal(values: object) -> InputError:
    with pytest.raises(InputError) as caught:
        SECOND.checked(json.dumps(values), "here/own.json")
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("number", [1, 3])
def test_the_version_that_wrote_a_file_reads_it(number: int) -> None:
    error = refusal({"schema": number, "dprec": "9.8.7"})
    assert error.where == "here/own.json"
    assert error.found == f"format {number}, written by dprec 9.8.7"
    assert error.accepted == f"format 2, of dprec {__version__}; what reads format {number} is dprec 9.8.7"


def test_a_summary_says_who_wrote_it_beside_its_surroundings() -> None:
    assert "dprec 9.8.7" in refusal({"schema": 3, "environment": {"dprec": "9.8.7"}}).accepted


@pytest.mark.parametrize("writer", [{}, {"dprec": 5}, {"dprec": __version__}, {"environment": []}])
def test_an_unknown_writer_is_earlier_or_later(writer: dict[str, object]) -> None:
    assert refusal({"schema": 1, **writer}).accepted.endswith("format 1 is an earlier version")
    assert refusal({"schema": 3, **writer}).accepted.endswith("format 3 is a later version")


@pytest.mark.parametrize("number", ["2", 2.5, True, None, [2]])
def test_what_is_no_number_is_refused(number: object) -> None:
    error = refusal({"schema": number})
    assert (error.where, error.accepted) == ("here/own.json: schema", "2")


@pytest.mark.parametrize("text", ['{"a": 1}', '{"schema": 2, "a": 1}', "[1]", "", "{", "[" * 100_000])
def test_another_text_is_left_to_its_reader(text: str) -> None:
    assert SECOND.checked(text, "here") == text


def test_a_stamp_is_put_on_and_taken_off() -> None:
    text = SECOND.stamped('{"a": 1}')
    assert json.loads(text) == {"schema": 2, "dprec": __version__, "a": 1}
    assert json.loads(SECOND.body(text, "here")) == {"a": 1}
    for other in ('{"a":  1}', "no object"):
        assert SECOND.body(other, "here") == other
    with pytest.raises(InputError):
        Format("own.json", 3).body(text, "here")
