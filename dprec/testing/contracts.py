"""The contract of a component, as a class of tests in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dprec.completion import Completion
from dprec.components import Options
from dprec.datasets import Dataset
from dprec.gradients import GradientReport
from dprec.mechanisms import Mechanism
from dprec.testing.completions import CompletionContract
from dprec.testing.datasets import DatasetContract
from dprec.testing.gradients import GradientContract
from dprec.testing.mechanisms import MechanismContract

_CONTRACTS: dict[type[Options], tuple[type[Any], str]] = {
    Mechanism: (MechanismContract, "mechanism"),
    Completion: (CompletionContract, "completion"),
    GradientReport: (GradientContract, "gradient"),
    Dataset: (DatasetContract, "dataset"),
}
"""The tests of each kind of component, and the fixture that gives them the component."""


def contract(*components: Options, **attributes: Any) -> type[Any]:
    """Return the class of the tests that components must pass; its name in a file must begin with Test.

    Parameters
    ----------
    *components : Mechanism, Completion, GradientReport or Dataset
        Instances, all of one of these kinds; each is tested.
    **attributes
        Attributes of the contract to replace, such as ``prior="middle"`` of `CompletionContract`.

    Raises
    ------
    TypeError
        When there is no contract for the components.
    """
    for base, (tests, name) in _CONTRACTS.items():
        if components and all(isinstance(component, base) for component in components):
            tested: list[Any] = list(components)
            if base is Dataset:
                tested, attributes = [type(each) for each in components], {"settings": _settings(components)}
            ids = [type(component).__name__ for component in components]
            return type(tests.__name__, (tests,), {name: _given(name, tested, ids), **attributes})
    kinds = ", ".join(base.__name__ for base in _CONTRACTS)
    given = ", ".join(
        component.__name__ if isinstance(component, type) else type(component).__name__
        for component in components
    )
    elsewhere = "simulation.run and simulation.audit test a protocol, as no test without devices can"
    raise TypeError(
        f"no contract for {given or 'nothing'}; accepted: instances of one of {kinds}; {elsewhere}"
    )


def _settings(datasets: Sequence[Options]) -> Callable[[Any, type[Dataset]], dict[str, Any]]:
    """Return the method that gives the settings of a data set's class: those of its instance."""

    def settings(self: Any, dataset: type[Dataset]) -> dict[str, Any]:
        entries = next(each.entries() for each in datasets if type(each) is dataset)
        return {key: value for key, value in entries.items() if key != "kind"}

    return settings


def _given(name: str, tested: list[Any], ids: list[str]) -> Any:
    @pytest.fixture(name=name, params=tested, ids=ids)
    def component(self: Any, request: pytest.FixtureRequest) -> Any:
        return request.param

    return component
