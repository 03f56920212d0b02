"""What every federated model must do, of made-up users, and every data set."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dprec.datasets import Dataset
from dprec.errors import InputError
from dprec.federated import RULES, FederatedModel, Rule, Trial
from dprec.layout import layout_defect
from dprec.ratings import Ratings
from dprec.testing.rules import Contract, described


class ModelContract(Contract):
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


class DatasetContract(Contract):
    """Tests of a data set, given by the fixture `dataset`, of which all is loaded: small data are enough."""

    @pytest.fixture
    def dataset(self) -> Dataset:
        """Return the data set that is tested."""
        raise NotImplementedError("a subclass gives the data set")

    @pytest.fixture
    def loaded(self, dataset: Dataset) -> Ratings:
        """Return its ratings; what a user-defined class loads in another layout is told in one line."""
        try:
            return dataset.load()
        except InputError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None

    def test_describes_itself(self, dataset: Dataset) -> None:
        """A sentence as the docstring, and words for each setting: option("...", default)."""
        described(dataset)

    def test_refuses_a_fold_it_does_not_have(self, dataset: Dataset) -> None:
        """One line that names the fold and what is accepted, whether or not there are folds."""
        _refuses(lambda: dataset.load_fold("u9"), "fold: 'u9'")

    def test_loads_ratings(self, loaded: Ratings) -> None:
        """At least one, in the layout of dprec.ratings.Ratings: by user, items ascending, distinct names."""
        defect = layout_defect(loaded)
        assert defect is None, defect

    def test_loads_the_same_again(self, dataset: Dataset, loaded: Ratings) -> None:
        """The same bits each time."""
        reloaded = dataset.load()
        for name in ("indptr", "items", "levels", "user_ids", "item_ids"):
            assert np.array_equal(getattr(loaded, name), getattr(reloaded, name)), f"other {name}"

    def test_what_is_known_without_the_ratings_is_true(self, dataset: Dataset, loaded: Ratings) -> None:
        """The numbers of known_size and the scale of known_scale, where there are any, are the ratings'."""
        size, known_size = (loaded.n_users, loaded.n_items, loaded.count), dataset.known_size()
        assert known_size is None or not dataset.as_it_is or known_size == size
        scale = dataset.known_scale()
        assert scale is None or dataset.positive or scale.describe() == loaded.scale.describe()

    def test_refuses_a_place_where_nothing_is(self, dataset: Dataset, tmp_path: Path) -> None:
        """One line that names it and what is accepted, of data that have the setting path."""
        if "path" not in {field.name for field in dataclasses.fields(dataset)}:
            pytest.skip("no setting path")
        elsewhere: dict[str, Any] = {"path": str(tmp_path / "absent")}
        _refuses(dataclasses.replace(dataset, **elsewhere).load, elsewhere["path"])


def _refuses(load: Callable[[], object], named: str) -> None:
    """Hold a call to one line that names something, and says what is accepted."""
    try:
        load()
    except InputError as error:
        message = str(error)
    except Exception as error:  # whatever the code of a data set raises
        raise AssertionError(f"{type(error).__name__}: {error}") from None
    else:
        raise AssertionError("no error")
    assert named in message, repr(message)
    assert "\n" not in message, repr(message)
    assert "; accepted: " in message, repr(message)
