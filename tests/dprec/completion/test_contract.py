"""The contract of completions, on every registered one."""

import pytest

from dprec.completion import COMPLETIONS, Completion
from dprec.testing import CompletionContract

MIDDLE = ["one-bit"]
"""The completions that predict the middle of the scale where nothing is known."""


class TestEveryCompletion(CompletionContract):
    @pytest.fixture(params=[kind for kind in COMPLETIONS.kinds if kind not in MIDDLE])
    def completion(self, request: pytest.FixtureRequest) -> Completion:
        return COMPLETIONS[request.param]()


class TestCompletionsTowardsTheMiddle(CompletionContract):
    prior = "middle"

    @pytest.fixture(params=MIDDLE)
    def completion(self, request: pytest.FixtureRequest) -> Completion:
        return COMPLETIONS[request.param]()
