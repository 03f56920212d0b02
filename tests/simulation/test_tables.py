import pytest

from simulation.tables import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0.000"),
        (0.0005, "0.001"),
        (0.00049, "0.00049"),
        (1.25e-7, "1.2e-07"),
        (-1e-5, "-1e-05"),
        (1234.5, "1,234.500"),
    ],
)
def test_small_numbers_keep_their_digits(value: float | None, text: str) -> None:
    assert number(value, 3) == text
