"""The contract of families of reports, on ours and on one from outside."""

import pytest

from dprec.mechanisms import (
    BitsAndCounts,
    HiddenThreshold,
    Mechanism,
    RandomizedResponse,
    Raw,
    ResidualBits,
    UserLevelBit,
)
from dprec.testing import FamilyContract
from tests.own_family import OwnBits

EXAMPLES = [
    RandomizedResponse(),
    Raw(),
    HiddenThreshold(),
    ResidualBits(bits=2),
    UserLevelBit(answers=2),
    BitsAndCounts(),
    OwnBits(bits=2),
]


class TestEveryFamily(FamilyContract):
    @pytest.fixture(params=EXAMPLES, ids=lambda mechanism: mechanism.kind)
    def mechanism(self, request: pytest.FixtureRequest) -> Mechanism:
        return request.param
