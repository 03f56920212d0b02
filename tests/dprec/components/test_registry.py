""""""

from __future__ import annotations

import dataclasses
import pkgutil
from importlib import import_module
from typing import Any

import pytest

import dprec
from dprec.binarization import BINARIZATIONS
from dprec.completion import COMPLETIONS, PERTURBATIONS
from dprec.components import Registry, kind_of, summary_of
from dprec.components.registry import ELSEWHERE
from dprec.datasets import DATASETS
from dprec.errors import InputError
from dprec.federated import MODELS
from dprec.gradients import GRADIENTS
from dprec.mechanisms import MECHANISMS, Mechanism
from dprec.private_als import AGGREGATIONS
from dprec.splits import SPLITS

REGISTRIES = [
    AGGREGATIONS,
    MODELS,
    BINARIZATIONS,
    COMPLETIONS,
    DATASETS,
    GRADIENTS,
    MECHANISMS,
    PERTURBATIONS,
    SPLITS,
]
COMPONENTS = [component for registry in REGISTRIES for component in registry]


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.name)
def test_a_component_is_found_by_its_kind(registry: Registry[Any]) -> None:
    assert len(registry.kinds) == len(set(registry.kinds))
    for component in registry:
        assert registry[kind_of(component)] is component


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.name)
def test_an_unknown_kind_is_refused_with_the_known_ones(registry: Registry[Any]) -> None:
    with pytest.raises(InputError) as caught:
        registry["no such thing"]
    assert caught.value.where == registry.name
    assert caught.value.accepted == (", ".join(registry.kinds) or ELSEWHERE)


@pytest.mark.parametrize("component", COMPONENTS, ids=kind_of)
def test_every_setting_says_what_it_means(component: type[Any]) -> None:
    assert summary_of(component).endswith(".")
    for field in dataclasses.fields(component):
        if field.name != "kind":
            assert field.metadata["description"].endswith(".")


def test_kinds_are_unique() -> None:
    first = next(iter(MECHANISMS))
    with pytest.raises(TypeError, match="share a kind"):
        Registry("mechanism", Mechanism, [first, first])


def test_no_registry_is_left_out() -> None:
    modules = [import_module(module.name) for module in pkgutil.walk_packages(dprec.__path__, "dprec.")]
    registries = {
        value for module in modules for value in vars(module).values() if isinstance(value, Registry)
    }
    assert registries == set(REGISTRIES)


def test_a_misspelt_kind_is_recognised() -> None:
    with pytest.raises(InputError, match=r"set-only; did you mean bounded-laplace\?$"):
        MECHANISMS["bounded-lapalce"]


def test_summaries_leave_out_the_keys_of_references() -> None:
    assert summary_of(MECHANISMS["laplace"]) == (
        "Unbounded Laplace noise on the rating (Neera et al., Definition 4)."
    )
