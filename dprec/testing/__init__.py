"""Contract tests: what every mechanism, family of reports, completion, gradient report and data set must do.

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

import pytest

# Before the modules are imported: a failing assertion then shows its values, as in a test file.
pytest.register_assert_rewrite(
    "dprec.testing.completions",
    "dprec.testing.datasets",
    "dprec.testing.gradients",
    "dprec.testing.mechanisms",
    "dprec.testing.reports",
)

from dprec.testing.completions import CompletionContract  # noqa: E402
from dprec.testing.contracts import contract  # noqa: E402
from dprec.testing.datasets import DatasetContract, FileDatasetContract  # noqa: E402
from dprec.testing.gradients import GradientContract  # noqa: E402
from dprec.testing.mechanisms import MechanismContract  # noqa: E402
from dprec.testing.reports import FamilyContract  # noqa: E402
from dprec.testing.samples import Sample  # noqa: E402

__all__ = [
    "CompletionContract",
    "DatasetContract",
    "FamilyContract",
    "FileDatasetContract",
    "GradientContract",
    "MechanismContract",
    "Sample",
    "contract",
]
