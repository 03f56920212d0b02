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


def test_the_loss_of_a_family_from_outside_is_its_word() -> None:
    class Matrix(RandomizedResponse):
        """A mechanism from outside with a family of ours."""

    class Word(Matrix):
        """One with a family of its own."""

        report_family = OwnBits.report_family

    class Code(UserLevelBit):
        """One whose loss is that of its code for profiles, and of no channel."""

    declared = [each.declares_loss() for each in (RandomizedResponse, Matrix, Word, Code, OwnBits)]
    assert declared == [False, False, True, True, True]
