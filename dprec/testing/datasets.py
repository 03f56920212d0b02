"""What every data set must do."""

import dataclasses
from typing import Any

import pytest

from dprec.components import summary_of
from dprec.datasets import Dataset
from dprec.errors import InputError


class DatasetContract:
    """Tests of a data set's class, given by the fixture `dataset`, with `settings` as in a configuration."""

    @pytest.fixture
    def dataset(self) -> type[Dataset]:
        """Return the class that is tested."""
        raise NotImplementedError("a subclass gives the class of the data set")

    def settings(self, dataset: type[Dataset]) -> dict[str, Any]:
        """Return the settings without which the data set cannot be created."""
        return {}

    def test_describes_itself(self, dataset: type[Dataset]) -> None:
        """In a sentence, and each setting has a description."""
        assert summary_of(dataset).endswith(".")
        assert dataclasses.fields(dataset)[0].name == "kind"
        for field in dataclasses.fields(dataset)[1:]:
            assert field.metadata["description"]

    def test_refuses_a_fold_it_does_not_have(self, dataset: type[Dataset]) -> None:
        """Whether or not it comes with folds."""
        with pytest.raises(InputError, match=r"fold: 'u9'.*accepted: "):
            dataset(**self.settings(dataset)).load_fold("u9")
