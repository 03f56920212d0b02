"""What every federated model must do, of made-up users, and every data set."""

import dataclasses
from typing import Any, ClassVar

import pytest

from dprec.components import summary_of
from dprec.datasets import Dataset
from dprec.errors import InputError
from dprec.federated import RULES, FederatedModel, Rule, Trial


class ModelContract:
    """Tests of a federated model, given by the fixture `model`: one for each of `dprec.federated.RULES`.

    Attributes
    ----------
    sizes : dict
        Fields of `dprec.federated.Trial` that are not its defaults, such as ``{"items": 100}``.
    """

    sizes: ClassVar[dict[str, Any]] = {}

    @pytest.fixture
    def model(self) -> FederatedModel:
        """Return the model that is tested."""
        raise NotImplementedError("a subclass gives the model")

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
    def test_the_rule_is_kept(self, model: FederatedModel, rule: Rule) -> None:
        """On made-up users; what is broken is said with what to change."""
        broken = rule.broken(Trial.of(model, **self.sizes))
        assert broken is None, f"{broken.found}; change: {broken.change}"


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
