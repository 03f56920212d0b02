"""Settings and components: what they accept, how they are found, and what is beyond their papers."""

import dataclasses
import math
import pkgutil
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
from pydantic import Field

import dprec
from dprec.accounting import PrivacyBudget
from dprec.attacks import ATTACKS
from dprec.binarization import BINARIZATIONS
from dprec.completion import COMPLETIONS, PERTURBATIONS, MatrixFactorization, NuclearNorm, OneBit
from dprec.components import (
    Deviation,
    Options,
    Registry,
    deviations,
    kind_of,
    one_of,
    option,
    parse_json,
    published_of,
    read,
    summary_of,
)
from dprec.components.options import ELSEWHERE
from dprec.datasets import DATASETS
from dprec.errors import SettingError
from dprec.federated import MODELS
from dprec.gradients import GRADIENTS
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import Raw
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.registry import PROTOCOLS, AnyProtocol
from dprec.schedules import SCHEDULES
from dprec.splits import SPLITS, KFold
from dprec.sums import AGGREGATIONS
from tests.refusals import refused_at


@dataclass(frozen=True, kw_only=True)
class Example(Options):
    size: int = option("How many.", 3, ge=1, le=10)
    share: float = option("Which part.", 0.5, gt=0, lt=1)
    unit: Literal["user", "item"] = option("Of what.", "user")
    exact: bool = option("Whether it is exact.", False)
    every: Annotated[int, Field(ge=1)] | Literal["auto"] = option("How often.", "auto")


@pytest.mark.parametrize(
    ("options", "settings", "line"),
    [
        (Example, {"size": 0}, "size: 0; accepted: at least 1"),
        (Example, {"share": math.nan}, "share: nan; accepted: a finite number"),
        (Example, {"size": 10**400}, f"size: 1{'0' * 79}...; accepted: at most 10"),
        (Example, {"unit": "planet"}, "unit: 'planet'; accepted: 'user' or 'item'"),
        (Raw, {"kind": "laplace"}, "kind: 'laplace'; accepted: 'none'"),
        (Example, {"every": 0}, "every: 0; accepted: at least 1, or 'auto'"),
    ],
)
def test_bounds_types_and_words_hold_in_plain_python(
    options: type[Options], settings: dict[str, Any], line: str
) -> None:
    with pytest.raises(SettingError) as caught:
        options(**settings)
    assert str(caught.value) == line
    assert caught.value.key == line.partition(":")[0]


def test_numbers_of_numpy_are_numbers() -> None:
    example = Example(size=np.int64(4), share=np.float32(0.25), every=np.uint8(3), exact=np.True_)
    kinds = [type(value) for value in (example.size, example.share, example.every, example.exact)]
    assert kinds == [int, float, int, bool]
    for size in (np.int64(11), np.float64(4)):
        with refused_at("size"):
            replace(example, size=size)


@dataclass(frozen=True, kw_only=True)
class WholeSettings(Options):
    gradient: one_of(GRADIENTS) = option("A component.")  # type: ignore[valid-type]
    split: KFold | None = option("A part.", None)


@pytest.mark.parametrize(
    ("group", "text", "key", "line"),
    [
        (PrivacyBudget, "{}", "epsilon", "missing; accepted: a value (Privacy loss, in natural logarithms)"),
        (PrivacyBudget, '{"epsilo": 1}', "epsilo", "an unknown key; accepted: epsilon, per, "),
        (PrivacyBudget, '{"epsilon": 1, "pre": 1}', "pre", "an unknown key; accepted: epsilon, per, "),
        (PrivacyBudget, "{", "", "'{'; accepted: JSON"),
        (PrivacyBudget, "[]", "", "[]; accepted: a mapping of keys to values"),
        (WholeSettings, '{"gradient": {"kind": true}}', "gradient.kind", "true; accepted: one-bit, "),
        (WholeSettings, '{"gradient": {"kind": "one-bit", "x": 1}}', "gradient.x", "an unknown key"),
        (
            WholeSettings,
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


REFERENCES = (Path(__file__).parents[3] / "dprec" / "references.bib").read_text(encoding="utf-8")


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


@dataclass(frozen=True, kw_only=True)
class Configured(Options):
    protocol: AnyProtocol


@dataclass(frozen=True, kw_only=True)
class Holding(MatrixFactorization):
    kind: str = ""
    held: Any = 3


@pytest.mark.parametrize(
    ("held", "kind"), [(math, "module"), (math.sqrt, "builtin_function_or_method"), ([math], "list")]
)
def test_a_field_that_is_no_data_is_named_with_its_class(held: Any, kind: str) -> None:
    values = {"kind": "one-shot", "mechanism": {"kind": "none"}, "completion": Holding(held=held)}
    with refused_at("completion.held") as caught:
        read(OneShotProtocol, values)
    assert caught.value.found == f"a value of type {kind}, in {__name__}:Holding"
    made = OneShotProtocol(mechanism=Raw(), completion=Holding(held=held))
    with refused_at("protocol.completion.held"):
        read(Configured, {"protocol": made})
    data = Holding(held=(1.5, {"of": Path("a file")}))
    assert read(OneShotProtocol, {**values, "completion": data}).completion is data


@dataclass(frozen=True, kw_only=True)
class Made(MatrixFactorization):
    kind: str = ""
    held: Any = dataclasses.field(default_factory=lambda: [7])


def test_a_default_that_is_made_is_one() -> None:
    assert read(Made, {}).held == [7]


def test_what_no_paper_has_is_ours_or_a_combination_of_ours() -> None:
    (own,) = deviations(Frame(completion=MatrixFactorization()))
    assert own == Deviation("completion.kind", "mf", None, "")
    assert str(own) == "completion.kind is mf, which is ours: no paper has it as it is"
    (own,) = deviations(Frame(mechanism=BoundedLaplace(), completion=NuclearNorm(center="none")))
    sources = "bounded-laplace: neera2023; nuclear-norm: zheng2016"
    assert own == Deviation("kind", "bounded-laplace with nuclear-norm", None, sources)
    assert "a combination that no paper has" in str(own)
    (own,) = deviations(Owned())
    assert own.value == "frame with none with one-bit"


def test_a_declaration_without_its_source_is_a_mistake_of_the_programmer() -> None:
    for half in ({"published": 1}, {"source": "li2021, Eq. 1"}):
        with pytest.raises(TypeError, match="belong together"):
            option("Something.", 1, **half)


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


REGISTRIES = [
    AGGREGATIONS,
    ATTACKS,
    MODELS,
    BINARIZATIONS,
    COMPLETIONS,
    DATASETS,
    GRADIENTS,
    MECHANISMS,
    PERTURBATIONS,
    PROTOCOLS,
    SCHEDULES,
    SPLITS,
]
COMPONENTS = [component for registry in REGISTRIES for component in registry]


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.name)
def test_a_component_is_found_by_its_kind_alone(registry: Registry[Any]) -> None:
    assert len(registry.kinds) == len(set(registry.kinds))
    for component in registry:
        assert registry[kind_of(component)] is component
    with refused_at(registry.name) as caught:
        registry["no such thing"]
    assert caught.value.accepted == (", ".join(registry.kinds) or ELSEWHERE)


@pytest.mark.parametrize("component", COMPONENTS, ids=kind_of)
def test_every_setting_says_what_it_means(component: type[Any]) -> None:
    assert summary_of(component).endswith(".")
    for field in dataclasses.fields(component):
        if field.name != "kind":
            assert field.metadata["description"].endswith(".")


def test_no_registry_is_left_out() -> None:
    modules = [import_module(module.name) for module in pkgutil.walk_packages(dprec.__path__, "dprec.")]
    registries = {
        value for module in modules for value in vars(module).values() if isinstance(value, Registry)
    }
    assert registries == set(REGISTRIES)
