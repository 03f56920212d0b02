"""Contract tests: what mechanisms, families of reports, completions, gradients, models, data and splits do.

They are for authors of such components, here or in their own projects. In a file that pytest collects, one
line runs every test of the contract on a component::

    TestMine = contract(Mine(symbols=16), Mine(symbols=256))

To add tests, or to change what a contract expects, subclass it and give the component as a fixture::

    class TestMine(MechanismContract):
        @pytest.fixture
        def mechanism(self) -> Mechanism:
            return Mine(symbols=16)

Statistical tests have fixed seeds and
state how likely a correct component would be to fail with another seed. This package needs pytest;
nothing else in dprec does.
"""

from typing import Any

import pytest

from dprec.completion import Completion
from dprec.components import Options
from dprec.datasets import Dataset
from dprec.federated import FederatedModel
from dprec.gradients import GradientReport
from dprec.mechanisms import Mechanism
from dprec.splits import Split

# Before the contracts are imported: a failing assertion then shows its values, as in a test file.
_TESTS = ("completions", "divisions", "models", "reports", "rules")
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _TESTS))

from dprec.testing.completions import CompletionContract, GradientContract  # noqa: E402
from dprec.testing.divisions import SplitContract  # noqa: E402
from dprec.testing.models import DatasetContract, ModelContract  # noqa: E402
from dprec.testing.reports import FamilyContract, MechanismContract  # noqa: E402

__all__ = [
    "CompletionContract",
    "DatasetContract",
    "FamilyContract",
    "GradientContract",
    "MechanismContract",
    "ModelContract",
    "SplitContract",
    "contract",
]

_CONTRACTS: dict[type[Options], tuple[type[Any], str]] = {
    Mechanism: (MechanismContract, "mechanism"),
    Completion: (CompletionContract, "completion"),
    GradientReport: (GradientContract, "gradient"),
    FederatedModel: (ModelContract, "model"),
    Dataset: (DatasetContract, "dataset"),
    Split: (SplitContract, "split"),
}
"""The tests of each kind of component, and the fixture that gives them the component."""


def contract(*components: Options, **attributes: Any) -> type[Any]:
    """Return the class of the tests that components must pass; its name in a file must begin with Test.

    Parameters
    ----------
    *components : Mechanism, Completion, GradientReport, FederatedModel, Dataset or Split
        Instances, all of one of these kinds; each is tested.
    **attributes
        Attributes of the contract to replace, such as ``prior="middle"`` of `CompletionContract`.

    Raises
    ------
    TypeError
        When there is no contract for the components.
    """
    kinds = [type(component) for component in components]
    for base, (tests, name) in _CONTRACTS.items():
        if kinds and all(issubclass(kind, base) for kind in kinds):

            @pytest.fixture(name=name, params=components, ids=[kind.__name__ for kind in kinds])
            def component(self: Any, request: pytest.FixtureRequest) -> Any:
                return request.param

            return type(tests.__name__, (tests,), {name: component, **attributes})
    accepted = ", ".join(base.__name__ for base in _CONTRACTS)
    names = [str(getattr(component, "__name__", type(component).__name__)) for component in components]
    elsewhere = "dprec.run and dprec.audit test a protocol, as no test without devices can"
    refused = ", ".join(names) or "nothing"
    raise TypeError(f"no contract for {refused}; accepted: instances of one of {accepted}; {elsewhere}")
