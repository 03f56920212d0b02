"""What every federated model must do, of made-up users, and every data set."""

import dataclasses
from collections.abc import Iterator
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest

from dprec.arrays import Ints
from dprec.completion import Profiles
from dprec.components import summary_of
from dprec.datasets import Dataset
from dprec.errors import InputError
from dprec.federated import (
    FederatedModel,
    Parameters,
    check_predictions,
    check_updates,
    code_of,
    some_people,
)
from dprec.randomness import generator
from dprec.ratings import POSITIVE, RatingScale


class ModelContract:
    """Tests of a federated model, given by the fixture `model`.

    Attributes
    ----------
    items, users : int
        Size of the catalogue, and of the largest group.
    clip : float
        Norm to which updates are clipped.
    """

    items: ClassVar[int] = 24
    users: ClassVar[int] = 65
    clip: ClassVar[float] = 1.0

    @pytest.fixture
    def model(self) -> FederatedModel:
        """Return the model that is tested."""
        raise NotImplementedError("a subclass gives the model")

    def scale(self, model: FederatedModel) -> RatingScale:
        """Return the scale of what it learns from."""
        return POSITIVE if model.predicted == "lists" else RatingScale.evenly(1, 5, 1)

    def people(self, model: FederatedModel, users: int, seed: int = 0) -> Profiles:
        """Return made-up users."""
        return some_people(users, self.items, self.scale(model), seed)

    def start(self, model: FederatedModel) -> Parameters:
        """Return the parameters before the first round."""
        return model.start(self.items, self.scale(model), generator(0, "start"))

    def stages(self, model: FederatedModel) -> Iterator[Parameters]:
        """Yield parameters as they are in three rounds."""
        parameters, step = self.start(model), model.steps()
        for round_index in (1, 2, 3):
            yield parameters
            updates = model.updates(parameters, self.people(model, self.users, round_index))
            parameters = step(parameters, tuple(each.mean(axis=0) for each in updates), round_index)

    def pairs(self, users: int) -> list[Ints]:
        """Return pairs of users of a group: all of a small one, and some of any other."""
        if users == 1:
            return [np.array([0])]
        pairs = [np.array(each) for each in combinations(range(users), 2)]
        return pairs[:: 1 + len(pairs) // 12]

    def test_shapes_are_those_of_the_parameters(self, model: FederatedModel) -> None:
        """Of updates, with users first, and of what follows from a step."""
        for parameters in self.stages(model):
            shapes = [each.shape for each in self.start(model)]
            updates = model.updates(parameters, self.people(model, 5))
            assert [each.shape for each in parameters] == shapes
            assert [each.shape for each in updates] == [(5, *shape) for shape in shapes]

    @pytest.mark.parametrize("users", [1, 2, 3, 5, None])
    def test_what_is_computed_of_users_is_that_of_each_alone(
        self, model: FederatedModel, users: int | None
    ) -> None:
        """Updates and predictions, in groups up to the largest, twice the same."""
        group = self.users if users is None else users
        code = code_of(model, self.items, self.scale(model), self.clip, 0.0)
        people = self.people(model, group, seed=group)
        for parameters in self.stages(model):
            updates, predict = model.updates(parameters, people), model.predictor(parameters, people)
            for pair in self.pairs(group):
                check_updates(model, code, parameters, people, updates, pair)
                check_predictions(model, parameters, people, predict, pair)

    def test_a_step_and_a_start_are_the_same_whenever_they_are_taken(self, model: FederatedModel) -> None:
        """Whatever was computed before: a run has the same bits with the same seed."""
        runs = [list(self.stages(model)) for _ in range(2)]
        for one, other in zip(*runs, strict=True):
            for mine, again in zip(one, other, strict=True):
                np.testing.assert_array_equal(mine, again)


class DatasetContract:
    """Tests of a data set, given by the fixture `dataset`; nothing of it is loaded."""

    @pytest.fixture
    def dataset(self) -> Dataset:
        """Return the data set that is tested."""
        raise NotImplementedError("a subclass gives the data set")

    def test_describes_itself(self, dataset: Dataset) -> None:
        """In a sentence, and each setting has a description."""
        assert summary_of(type(dataset)).endswith(".")
        assert dataclasses.fields(dataset)[0].name == "kind"
        for field in dataclasses.fields(dataset)[1:]:
            assert field.metadata["description"]

    def test_refuses_a_fold_it_does_not_have(self, dataset: Dataset) -> None:
        """Whether or not it comes with folds."""
        with pytest.raises(InputError, match=r"fold: 'u9'.*accepted: "):
            dataset.load_fold("u9")
