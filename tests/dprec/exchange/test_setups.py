"""What is installed on devices survives the way through JSON, and damage on it is noticed."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dprec.accounting import PrivacyBudget
from dprec.components import Options, option
from dprec.errors import InputError
from dprec.exchange import (
    AnySetup,
    GradientPerturbationSetup,
    IterativeSetup,
    OneShotSetup,
    ReplacementSetup,
    Setup,
    SilentSetup,
    XMapSetup,
    from_json,
    to_json,
)
from dprec.gradients import GRADIENTS, FullGradient
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import BinaryFlip
from dprec.mechanisms.unprotected import Raw
from dprec.wire import BroadcastOptions


@dataclass(frozen=True, kw_only=True)
class Holder(Options):
    """Holds a setup of any kind."""

    setup: AnySetup = option("What is installed.")


BUDGET = PrivacyBudget(epsilon=0.1, per="user")
ONE_SHOT = OneShotSetup(mechanism=BoundedLaplace(symbols=64), privacy=BUDGET)
ITERATIVE = IterativeSetup(
    gradient=FullGradient(),
    broadcast=BroadcastOptions(dtype="float16", delta=True),
    rank=3,
    ridge=1 / 3,
    epsilon_per_round=None,
    rounds=7,
)
PERTURBATION = GradientPerturbationSetup(
    link="gaussian", sigma=0.7, clamp=0.5, symbols=256, epsilon_per_round=0.2, rounds=3
)
DRAWS = ReplacementSetup(epsilon=0.3, sensitivity=2.0, whole_catalogue=True, transfer="deviation")
SETUPS: list[Setup] = [
    SilentSetup(),
    ONE_SHOT,
    OneShotSetup(mechanism=Raw(), privacy=None),
    ITERATIVE,
    PERTURBATION,
    XMapSetup(mechanism=Raw(), privacy=None, replacement=DRAWS),
    XMapSetup(mechanism=BoundedLaplace(), privacy=BUDGET, replacement=replace(DRAWS, epsilon=None)),
    OneShotSetup(mechanism=BinaryFlip(p1=0.2, p2=0.3), privacy=None),
    *(OneShotSetup(mechanism=kind(), privacy=None) for kind in MECHANISMS if kind is not BinaryFlip),
    *(replace(ITERATIVE, gradient=kind(), epsilon_per_round=0.25) for kind in GRADIENTS),
]


def read(values: Any) -> Setup:
    return from_json(Holder, json.dumps({"setup": values}), "population.json").setup


@pytest.mark.parametrize("setup", SETUPS)
def test_a_setup_survives_the_way_through_json(setup: Setup) -> None:
    assert from_json(Holder, to_json(Holder(setup=setup)), "here").setup == setup


def changed(setup: Setup, key: str, value: Any) -> dict[str, Any]:
    """Return the JSON values of a setup with one of them replaced; the key is dotted."""
    values: dict[str, Any] = json.loads(to_json(setup))
    *path, last = key.split(".")
    inner = values
    for step in path:
        inner = inner[step]
    inner[last] = value
    return values


@pytest.mark.parametrize(
    ("setup", "key", "value"),
    [
        (ONE_SHOT, "mechanism.symbols", "64"),
        (ONE_SHOT, "mechanism.symbols", 64.5),
        (ONE_SHOT, "mechanism.colour", 1),
        (ONE_SHOT, "privacy.epsilon", -1.0),
        (ONE_SHOT, "privacy.epsilon", float("nan")),
        (ONE_SHOT, "privacy.epsilon", float("inf")),
        (ONE_SHOT, "privacy.per", "planet"),
        (ITERATIVE, "rank", True),
        (ITERATIVE, "rounds", 0),
        (ITERATIVE, "epsilon_per_round", 0.0),
        (ITERATIVE, "broadcast.delta", 1),
        (PERTURBATION, "link", "linear"),
        (PERTURBATION, "clamp", None),
        (XMapSetup(mechanism=Raw(), privacy=None, replacement=DRAWS), "replacement.transfer", "all"),
    ],
)
def test_a_damaged_value_is_named(setup: Setup, key: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        read(changed(setup, key, value))
    assert caught.value.where == f"population.json, setup.{key}"


@pytest.mark.parametrize("key", ["mechanism", "privacy"])
def test_a_missing_value_is_named(key: str) -> None:
    values = json.loads(to_json(ONE_SHOT))
    del values[key]
    with pytest.raises(InputError, match=rf"setup\.{key}: missing"):
        read(values)


@pytest.mark.parametrize("values", [None, 1, [], {}, {"kind": "no-such-protocol"}, {"kind": 3}])
def test_what_is_no_setup_is_refused(values: Any) -> None:
    with pytest.raises(InputError, match=r"population\.json, setup(\.kind)?: "):
        read(values)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"setup": '])
def test_text_that_was_cut_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"population\.json, JSON: .*; accepted: "):
        from_json(Holder, text, "population.json")
