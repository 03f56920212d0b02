"""What a configuration has beyond its paper, found from its declarations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field

from dprec.accounting import PrivacyBudget
from dprec.completion import COMPLETIONS, PERTURBATIONS, MatrixFactorization, NuclearNorm, OneBit
from dprec.components import (
    Deviation,
    Options,
    deviations,
    one_of,
    one_of_classes,
    option,
    parse_json,
    published_of,
)
from dprec.components.settings import Group, descriptions, field_names, follow
from dprec.errors import SettingError
from dprec.gradients import GRADIENTS
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.unprotected import Raw
from dprec.splits import KFold


@dataclass(frozen=True, kw_only=True)
class Whole(Options):
    gradient: one_of(GRADIENTS) = option("A component.")  # type: ignore[valid-type]
    split: KFold | None = option("A part.", None)


def test_settings_are_read() -> None:
    assert parse_json(PrivacyBudget, '{"epsilon": 2, "per": "user"}') == PrivacyBudget(epsilon=2, per="user")
    assert parse_json(Whole, b'{"gradient": {"kind": "full"}}').gradient == GRADIENTS["full"]()


@pytest.mark.parametrize(
    ("group", "text", "key", "line"),
    [
        (PrivacyBudget, "{}", "epsilon", "missing; accepted: Privacy loss, in natural logarithms."),
        (PrivacyBudget, '{"epsilon": null}', "epsilon", "null; accepted: a number"),
        (
            PrivacyBudget,
            '{"epsilon": 1, "pre": 1}',
            "pre",
            "an unknown key; accepted: epsilon, per, composition",
        ),
        (PrivacyBudget, "{", "", "'{'; accepted: JSON"),
        (PrivacyBudget, "[]", "", "[]; accepted: a mapping of keys to values"),
        (
            Whole,
            '{"gradient": {}}',
            "gradient.kind",
            "missing; accepted: one-bit, one-bit-reduced, sampled-signs, full",
        ),
        (
            Whole,
            '{"gradient": {"kind": true}}',
            "gradient.kind",
            "true; accepted: one-bit, one-bit-reduced, sampled-signs, full",
        ),
        (Whole, '{"gradient": {"kind": "one-bit", "x": 1}}', "gradient.x", "an unknown key; accepted: kind"),
        (KFold, '{"fold": 5}', "fold", "5; accepted: 0 to 4, with folds: 5"),
        (
            Whole,
            '{"gradient": {"kind": "full"}, "split": {"kind": "k-fold", "fold": 5}}',
            "split.fold",
            "5; accepted: 0 to 4, with folds: 5",
        ),
    ],
)
def test_the_first_error_names_its_key(group: type[Any], text: str, key: str, line: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_json(group, text)
    assert caught.value.key == key
    assert str(caught.value).startswith(f"{key or 'settings'}: {line}")


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


class Nested(BaseModel):
    colour: one_of_classes([Red, Blue], Options) = Field(description="Red or blue.")  # type: ignore[valid-type]
    parts: list[Inner] | None = Field(default=None, alias="set", description="Parts.")


@pytest.mark.parametrize(
    ("location", "keys", "group"),
    [
        ((), (), Nested),
        (("colour",), ("colour",), Nested),
        (("colour", "red", "inner"), ("colour", "inner"), Red),
        (("colour", "red", "inner", "size"), ("colour", "inner", "size"), Inner),
        (("colour", "red", "inner", "limit", "int"), ("colour", "inner", "limit"), Inner),
        (("colour", "blue", "red"), ("colour", "red"), Blue),
        (("colour", "blue", "misspelt"), ("colour", "misspelt"), Blue),
        (("set", 3, "size"), ("set[3]", "size"), Inner),
        (("set", 0), ("set[0]",), Nested),
        (("misspelt",), ("misspelt",), Nested),
    ],
)
def test_a_location_is_followed_to_its_key(
    location: tuple[str | int, ...], keys: tuple[str, ...], group: Group
) -> None:
    place = follow(location, Nested)
    assert (place.keys, place.group) == (keys, group)


def test_the_kinds_of_a_place_are_those_of_its_own_components() -> None:
    assert follow(("colour",), Nested).kinds == ["red", "blue"]
    assert follow(("colour", "red", "inner"), Nested).kinds == []
    assert follow(("misspelt",), Nested).kinds == []


def test_keys_are_named_as_they_are_written() -> None:
    assert field_names(Nested) == ["colour", "set"]
    assert descriptions(Inner) == {"size": "How many.", "limit": "Where it ends."}


REFERENCES = (Path(__file__).parents[3] / "docs" / "references.bib").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Steps(Options):
    decay: float = option("How steps shrink.", 1.0, published=1.0, source="shin2018, Algorithm 1")
    limit: int | None = option("Where steps end.", None, published=None, source="shin2018, Algorithm 1")
    size: float = option("A choice.", 0.2)


@dataclass(frozen=True, kw_only=True)
class Frame(Options):
    kind: Literal["frame"] = "frame"
    mechanism: Options = option("A component.", Raw())
    completion: Options = option("A component.", OneBit(bounded=True))
    steps: Steps | None = option("Settings without a kind.", None)
    word: Literal["a", "b", "c"] = option("A word.", "a", published=("a", "b"), source="li2021, Eq. 1")


@dataclass(frozen=True, kw_only=True)
class Owned(Frame):
    papers: ClassVar[tuple[str, ...]] = ("guerraoui2017",)


def test_what_is_as_published_deviates_in_nothing() -> None:
    assert deviations(Frame(steps=Steps(size=0.9))) == ()
    assert deviations(Frame(word="b")) == ()


def test_settings_are_found_however_deep_with_what_the_paper_has() -> None:
    whole = Frame(word="c", steps=Steps(decay=0.0, limit=3), completion=OneBit(biases=True))
    expected = (
        Deviation("completion.bounded", False, True, "li2021, Eq. 2"),
        Deviation("completion.biases", True, False, "li2021, Eq. 2"),
        Deviation("steps.decay", 0.0, 1.0, "shin2018, Algorithm 1"),
        Deviation("steps.limit", 3, None, "shin2018, Algorithm 1"),
        Deviation("word", "c", "a", "li2021, Eq. 1"),
    )
    assert deviations(whole) == expected
    assert [str(deviation) for deviation in deviations(whole)][1:4] == [
        "completion.biases is true; published: false (li2021, Eq. 2)",
        "steps.decay is 0; published: 1 (shin2018, Algorithm 1)",
        "steps.limit is 3; published: null (shin2018, Algorithm 1)",
    ]


def test_a_component_of_no_paper_is_ours_and_the_frame_need_not_be_of_any() -> None:
    (own,) = deviations(Frame(completion=MatrixFactorization()))
    assert own == Deviation("completion.kind", "mf", None, "")
    assert str(own) == "completion.kind is mf, which is ours: no paper has it as it is"


def test_components_without_a_paper_in_common_are_a_combination_of_ours() -> None:
    (own,) = deviations(Frame(mechanism=BoundedLaplace(), completion=NuclearNorm(center="none")))
    sources = "bounded-laplace: neera2023; nuclear-norm: zheng2016"
    assert own == Deviation("kind", "bounded-laplace with nuclear-norm", None, sources)
    assert str(own) == (
        f"kind is bounded-laplace with nuclear-norm, a combination that no paper has ({sources})"
    )
    (own,) = deviations(Owned())
    assert own.value == "frame with none with one-bit"


def test_a_declaration_without_its_source_is_a_mistake_of_the_programmer() -> None:
    with pytest.raises(TypeError, match="belong together"):
        option("Something.", 1, published=1)
    with pytest.raises(TypeError, match="belong together"):
        option("Something.", 1, source="li2021, Eq. 1")


def test_sources_and_papers_are_references() -> None:
    components = [
        component
        for registry in (MECHANISMS, COMPLETIONS, GRADIENTS, PERTURBATIONS)
        for component in registry  # type: ignore[attr-defined]
    ]
    keys = {paper for component in components for paper in component.papers}
    for component in components:
        for field in component.__dataclass_fields__.values():
            if (published := published_of(field)) is not None:
                keys.add(published.source.partition(",")[0])
    assert keys
    assert [key for key in sorted(keys) if f"{{{key}," not in REFERENCES] == []
