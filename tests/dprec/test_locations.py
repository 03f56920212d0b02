from dataclasses import dataclass
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from dprec.components import Options, one_of_classes, option
from dprec.components.settings import Group, descriptions, field_names, follow


@dataclass(frozen=True, kw_only=True)
class Inner(Options):
    size: int = option("How many.", 1)
    limit: int | Literal["none"] = option("Where it ends.", "none")


@dataclass(frozen=True, kw_only=True)
class Red(Options):
    kind: Literal["red"] = "red"
    inner: Inner | None = option("A part.", None)


@dataclass(frozen=True, kw_only=True)
class Blue(Options):
    kind: Literal["blue"] = "blue"
    red: float = option("A setting with the name of another kind.", 0.5)


class Whole(BaseModel):
    colour: one_of_classes([Red, Blue], Options) = Field(description="Red or blue.")  # type: ignore[valid-type]
    parts: list[Inner] | None = Field(default=None, alias="set", description="Parts.")


@pytest.mark.parametrize(
    ("location", "keys", "group"),
    [
        ((), (), Whole),
        (("colour",), ("colour",), Whole),
        (("colour", "red", "inner"), ("colour", "inner"), Red),
        (("colour", "red", "inner", "size"), ("colour", "inner", "size"), Inner),
        (("colour", "red", "inner", "limit", "int"), ("colour", "inner", "limit"), Inner),
        (("colour", "blue", "red"), ("colour", "red"), Blue),
        (("colour", "blue", "misspelt"), ("colour", "misspelt"), Blue),
        (("set", 3, "size"), ("set[3]", "size"), Inner),
        (("set", 0), ("set[0]",), Whole),
        (("misspelt",), ("misspelt",), Whole),
    ],
)
def test_a_location_is_followed_to_its_key(
    location: tuple[str | int, ...], keys: tuple[str, ...], group: Group
) -> None:
    place = follow(location, Whole)
    assert (place.keys, place.group) == (keys, group)


def test_the_kinds_of_a_place_are_those_of_its_own_components() -> None:
    assert follow(("colour",), Whole).kinds == ["red", "blue"]
    assert follow(("colour", "red", "inner"), Whole).kinds == []
    assert follow(("misspelt",), Whole).kinds == []


def test_keys_are_named_as_they_are_written() -> None:
    assert field_names(Whole) == ["colour", "set"]
    assert descriptions(Inner) == {"size": "How many.", "limit": "Where it ends."}
