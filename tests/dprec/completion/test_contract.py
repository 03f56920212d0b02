"""The contract of completions, on every registered one."""

import pytest

from dprec.completion import COMPLETIONS, Completion
from dprec.testing import CompletionContract

MIDDLE = ["one-bit"]
"""The completions that predict the middle of the scale where nothing is known."""

ORDINAL = ["calibrated", "item-biases"]
"""The models of a latent rating, with a prior on its mean."""

PLAIN = ["mog-mf", "sgd-mf"]
"""The factorisations without biases, under a fixed ridge."""


class TestEveryCompletion(CompletionContract):
    @pytest.fixture(params=[kind for kind in COMPLETIONS.kinds if kind not in [*MIDDLE, *ORDINAL, *PLAIN]])
    def completion(self, request: pytest.FixtureRequest) -> Completion:
        return COMPLETIONS[request.param]()


class TestCompletionsTowardsTheMiddle(CompletionContract):
    prior = "middle"

    @pytest.fixture(params=MIDDLE)
    def completion(self, request: pytest.FixtureRequest) -> Completion:
        return COMPLETIONS[request.param]()


class TestPlainFactorisations(CompletionContract):
    repeats_one_rating = False

    @pytest.fixture(params=PLAIN)
    def completion(self, request: pytest.FixtureRequest) -> Completion:
        return COMPLETIONS[request.param]()


class TestOrdinalModels(CompletionContract):
    shrinks_the_mean = True

    @pytest.fixture(params=ORDINAL)
    def completion(self, request: pytest.FixtureRequest) -> Completion:
        return COMPLETIONS[request.param]()
