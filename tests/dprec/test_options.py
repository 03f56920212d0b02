import math
from dataclasses import FrozenInstanceError, dataclass

import pytest

from dprec.errors import InputError
from dprec.options import Options, option


@dataclass(frozen=True, kw_only=True)
class Example(Options):
    size: int = option("How many.", 3, ge=1, le=10)
    share: float = option("Which part.", 0.5, gt=0, lt=1)
    name: str = option("What it is called.", "x")
    limit: float | None = option("Where it ends.", None, ge=0)


def test_defaults_are_valid() -> None:
    assert Example() == Example(size=3, share=0.5, name="x", limit=None)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"size": 0}, "size: 0; accepted: at least 1"),
        ({"size": 11}, "size: 11; accepted: at most 10"),
        ({"share": 0}, "share: 0; accepted: greater than 0"),
        ({"share": 1.0}, "share: 1.0; accepted: less than 1"),
        ({"share": math.nan}, "share: nan; accepted: a finite number"),
        ({"limit": math.inf}, "limit: inf; accepted: a finite number"),
        ({"limit": -0.5}, "limit: -0.5; accepted: at least 0"),
        ({"size": 10**400}, f"size: {10**400}; accepted: at most 10"),
    ],
)
def test_bounds_hold_in_plain_python(settings: dict[str, float], line: str) -> None:
    with pytest.raises(InputError) as caught:
        Example(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == line


def test_whole_numbers_beyond_the_largest_float_are_numbers() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Unbounded(Options):
        seed: int = option("A seed.", 0, ge=0)

    assert Unbounded(seed=10**400).seed == 10**400


def test_the_ends_of_a_closed_range_are_accepted() -> None:
    assert (Example(size=1).size, Example(size=10).size) == (1, 10)


def test_what_is_configured_cannot_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Example().size = 4  # type: ignore[misc]


def test_a_bound_of_an_unknown_kind_is_a_mistake_of_the_programmer() -> None:
    with pytest.raises(TypeError, match="minimum"):
        option("Something.", 1, minimum=0)
