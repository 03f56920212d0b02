"""The contract of completions, on every registered one."""

import numpy as np
import pytest

from dprec.completion import COMPLETIONS, Completion, one_mean_per_user, own_averages
from dprec.testing import CompletionContract
from tests import make

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


RATINGS = make.ratings((0, 0, 5), (0, 1, 4), (2, 0, 1), users=3, items=2)


@pytest.mark.parametrize(
    ("weight", "expected"), [(0.0, [4.5, 3.0, 1.0]), (2.0, [15 / 4, 3.0, 7 / 3]), (1e12, [3.0, 3.0, 3.0])]
)
def test_means_are_shrunk_towards_the_prior(weight: float, expected: list[float]) -> None:
    averages = own_averages(RATINGS, 3.0, weight)
    assert averages.predict(np.arange(3), np.array([1, 0, 1])) == pytest.approx(expected)
    assert averages.diagnostics == {"prior": 3.0, "users_without_ratings": 1}


def test_a_mean_is_one_rating_of_one_item() -> None:
    means = one_mean_per_user(RATINGS)
    assert means.counts.tolist() == [1, 0, 1]
    assert means.values.tolist() == [4.5, 1.0]
    assert means.scale.values[means.levels - 1] == pytest.approx([4.5, 1.0])
    assert (means.scale.low, means.scale.high, means.n_items) == (1, 5, 1)
