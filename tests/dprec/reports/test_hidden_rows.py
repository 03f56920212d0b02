"""Reports that hide which items were rated: what they make up, and how far they are from the ratings."""

from typing import Any

import numpy as np

from dprec.accounting import PrivacyBudget
from dprec.mechanisms import MECHANISMS, HiddenThreshold
from dprec.randomness import words
from dprec.ratings import Ratings
from dprec.reports.cells import rated_cells
from tests import make
from tests.make import STARS


def distance(kind: str, epsilon: float, train: Ratings, *, accepted: int = 30) -> dict[str, Any]:
    """Send the ratings of the first users through a mechanism and measure."""
    budget = PrivacyBudget(epsilon=epsilon, per="cell")
    family = MECHANISMS[kind]().family(budget, train.scale, train.n_items)
    levels = np.zeros((train.n_users, train.n_items), dtype=np.uint8)
    levels[train.users, train.items] = train.levels
    channel = family.channel(train.n_items)
    symbols = channel.sample(levels.ravel(), words(1, "distance", 0, levels.size)).reshape(levels.shape)
    values = channel.values[symbols]
    values[accepted:] = np.nan
    users, items = np.nonzero(~np.isnan(values))
    observed = make.observations(users, items, values[users, items], levels.shape, train.scale)
    return family.against_truth(train, observed, np.arange(30) < accepted)[1]


def test_made_up_and_swallowed_cells_are_counted() -> None:
    train = make.ratings((0, 0, 5), (0, 2, 3), (1, 1, 1))
    observed = make.observations([0, 1, 1], [2, 0, 1], np.array([1.0, 2.0, 4.0]), (2, 3))
    among_reported, among_rated = rated_cells(train, observed)
    assert among_reported.tolist() == [0, 2]
    assert train.values[among_rated].tolist() == [3.0, 1.0]
    family = HiddenThreshold().family(PrivacyBudget(epsilon=1.0, per="cell"), STARS, 3)
    (note,), distance = family.against_truth(train, observed, np.ones(2, dtype=np.bool_))
    assert [int(word) for word in note.split() if word.isdigit()] == [3, 1, 1, 3]
    assert distance == {}
