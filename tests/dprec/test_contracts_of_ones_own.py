"""The contract of a user-defined component, in one line each."""

from dataclasses import dataclass

import numpy as np
import pytest

from dprec.completion import Completed, Completion, ItemAverage, Observations
from dprec.components import option
from dprec.datasets import Dataset, Synthetic
from dprec.gradients import FullGradient
from dprec.mechanisms import Channel, Mechanism
from dprec.progress import Progress, silent
from dprec.ratings import Ratings, RatingScale
from dprec.splits import Holdout
from dprec.testing import contract


@dataclass(frozen=True, kw_only=True)
class Geometric(Mechanism):
    """A level of the scale, whose probability falls by the same factor with every step."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        levels = np.arange(scale.levels)
        steps = np.abs(levels[:, None] - levels) / (scale.levels - 1)
        return Channel.from_probabilities(np.exp(-epsilon * steps), scale.values, scale.values, epsilon)


class Average(Completion):
    """The mean of an item."""

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> Completed:
        return ItemAverage().fit(observations, seed, progress)


@dataclass(frozen=True, kw_only=True)
class Few(Dataset):
    """A few ratings."""

    users: int = option("Users.")

    def load(self) -> Ratings:
        return Synthetic(users=self.users, items=10, ratings=50).load()


TestMechanism = contract(Geometric())
TestCompletion = contract(Average(), repeats_one_rating=False)
TestDataset = contract(Few(users=10))
TestGradient = contract(FullGradient())


def test_what_has_no_contract_is_refused() -> None:
    for components in ((), (Holdout(),), (Geometric(), Average())):
        with pytest.raises(TypeError, match="accepted: instances of one of Mechanism, Completion"):
            contract(*components)
