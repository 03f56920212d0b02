import pytest
import typer

from simulation.console.parameters import integer


@pytest.mark.parametrize("text", ["100000", "100_000", "1e5", "1E5", "100000.0"])
def test_every_usual_form_is_read(text: str) -> None:
    assert integer(text) == 100_000


def test_a_large_number_keeps_every_digit() -> None:
    assert integer("9007199254740993") == 9007199254740993


@pytest.mark.parametrize("text", ["1.5", "1e-1", "many", "", "inf", "nan", "1e999"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not an integer"):
        integer(text)
