"""What a configuration has beyond its paper, found from its declarations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from dprec.completion import COMPLETIONS, PERTURBATIONS, MatrixFactorization, NuclearNorm, OneBit
from dprec.components import Deviation, Options, deviations, option, published_of
from dprec.gradients import GRADIENTS
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.unprotected import Raw

REFERENCES = (Path(__file__).parents[2] / "docs" / "references.bib").read_text(encoding="utf-8")


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
