""""""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import Field

from dprec.accounting import PrivacyBudget
from dprec.completion import OneBit
from dprec.components import Options, option
from dprec.errors import InputError, SettingError
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.unprotected import Raw


@dataclass(frozen=True, kw_only=True)
class Example(Options):
    size: int = option("How many.", 3, ge=1, le=10)
    share: float = option("Which part.", 0.5, gt=0, lt=1)
    name: str = option("What it is called.", "x")
    limit: float | None = option("Where it ends.", None, ge=0)
    unit: Literal["user", "item"] = option("Of what.", "user")
    exact: bool = option("Whether it is exact.", False)
    every: Annotated[int, Field(ge=1)] | Literal["auto"] = option("How often.", "auto")


@dataclass(frozen=True, kw_only=True)
class Whole(Options):
    part: Example = option("A part.", Example())
    budget: PrivacyBudget | None = option("Another part.", None)
    table: np.ndarray | None = option("Something that no file can hold.", None)


def test_defaults_are_valid() -> None:
    assert Example() == Example(size=3, share=0.5, name="x", limit=None, unit="user", exact=False)


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
        ({"size": 10**400}, f"size: 1{'0' * 79}...; accepted: at most 10"),
    ],
)
def test_bounds_hold_in_plain_python(settings: dict[str, float], line: str) -> None:
    with pytest.raises(InputError) as caught:
        Example(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("options", "settings", "line"),
    [
        (BoundedLaplace, {"symbols": "256"}, "symbols: '256'; accepted: an integer"),
        (BoundedLaplace, {"symbols": 2.5}, "symbols: 2.5; accepted: an integer"),
        (BoundedLaplace, {"symbols": 2.0}, "symbols: 2.0; accepted: an integer"),
        (BoundedLaplace, {"symbols": True}, "symbols: True; accepted: an integer"),
        (BoundedLaplace, {"symbols": None}, "symbols: None; accepted: an integer"),
        (PrivacyBudget, {"epsilon": "1"}, "epsilon: '1'; accepted: a number"),
        (PrivacyBudget, {"epsilon": False}, "epsilon: False; accepted: a number"),
        (
            PrivacyBudget,
            {"epsilon": 1, "per": "planet"},
            "per: 'planet'; accepted: 'rating', 'cell' or 'user'",
        ),
        (OneBit, {"link": "probit"}, "link: 'probit'; accepted: 'logistic' or 'gaussian'"),
        (Raw, {"kind": "laplace"}, "kind: 'laplace'; accepted: 'none'"),
        (Example, {"name": 5}, "name: 5; accepted: text"),
        (Example, {"exact": 1}, "exact: 1; accepted: true or false"),
        (Example, {"every": 0}, "every: 0; accepted: at least 1, or 'auto'"),
        (Example, {"every": "never"}, "every: 'never'; accepted: an integer, or 'auto'"),
        (Whole, {"part": {"size": 2}}, "part: {'size': 2}; accepted: an instance of Example"),
        (Whole, {"budget": 1.0}, "budget: 1.0; accepted: an instance of PrivacyBudget"),
        (Whole, {"table": [1]}, "table: [1]; accepted: an instance of ndarray"),
    ],
)
def test_types_and_words_hold_in_plain_python(
    options: type[Options], settings: dict[str, Any], line: str
) -> None:
    with pytest.raises(SettingError) as caught:
        options(**settings)
    assert str(caught.value) == line
    assert caught.value.key == line.partition(":")[0]


def test_a_changed_copy_is_checked_too() -> None:
    with pytest.raises(SettingError, match="size: 'large'"):
        replace(Example(), size="large")


def test_an_integer_becomes_a_number_where_one_is_wanted() -> None:
    budget = PrivacyBudget(epsilon=2)
    assert (budget.epsilon, type(budget.epsilon)) == (2.0, float)
    assert type(PrivacyBudget(epsilon=np.float64(0.5)).epsilon) is float


def test_numbers_of_numpy_are_numbers() -> None:
    example = Example(size=np.int64(4), share=np.float32(0.25), every=np.uint8(3), exact=np.True_)
    assert [type(value) for value in (example.size, example.share, example.every, example.exact)] == [
        int,
        float,
        int,
        bool,
    ]
    with pytest.raises(SettingError, match="size: 11; accepted: at most 10"):
        Example(size=np.int64(11))
    with pytest.raises(SettingError, match=r"size: 4\.0; accepted: an integer"):
        Example(size=np.float64(4))


def test_parts_are_kept_as_they_are() -> None:
    part, table = Example(size=4), np.zeros(3)
    whole = Whole(part=part, table=table)
    assert whole.part is part
    assert whole.table is table


def test_a_subclass_of_a_part_is_such_a_part() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Finer(Example):
        grain: int = option("How fine.", 1, ge=1)

    assert Whole(part=Finer()).part == Finer()
    with pytest.raises(SettingError, match="grain: 0; accepted: at least 1"):
        Finer(grain=0)


def test_a_type_that_the_module_does_not_know_is_a_mistake_of_the_programmer() -> None:
    class Hidden:
        pass

    @dataclass(frozen=True, kw_only=True)
    class Local(Options):
        part: Hidden = option("A part.")

    with pytest.raises(TypeError, match=r"Local: name 'Hidden' is not defined; the types of its fields must"):
        Local(part=Hidden())


def test_integers_beyond_the_largest_float_are_numbers() -> None:
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
