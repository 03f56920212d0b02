"""The way of public data about items from a data set's file to a completion."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.catalogue import Catalogue
from dprec.completion import Completed, Completion, ItemAverage
from dprec.datasets import DelimitedTable
from dprec.datasets.table import ItemColumns
from dprec.mechanisms.thresholds import ThresholdBit
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.protocols.baselines import NothingSentProtocol
from dprec.protocols.one_shot import OneShotProtocol
from dprec.ratings import Ratings, RatingScale
from dprec.splits import LeaveOneOut
from simulation import run
from simulation.configuration.models import RunConfig, SimulationOptions

STARS = RatingScale.evenly(1, 5, 1)
SEEN: list[Catalogue | None] = []


@dataclass(frozen=True, kw_only=True)
class Curious(Completion):
    """Keeps what it is told about the items."""

    kind: Literal["curious"] = "curious"

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> Completed:
        SEEN.append(observations.catalogue)
        return ItemAverage().fit(observations, seed, progress)


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    rows = [f"{user},{item},{1 + (user + item) % 5}" for user in range(4) for item in (3, 5, 9)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *rows]) + "\n")
    (tmp_path / "items.csv").write_text("item,year,kind\n9,1990,a|b\n3,2000,a\n")
    items = ItemColumns(path=str(tmp_path / "items.csv"), numbers=("year",), categories=("kind",))
    return RunConfig(
        name="catalogue",
        dataset=DelimitedTable(path=str(tmp_path / "ratings.csv"), items=items),
        split=LeaveOneOut(by="random"),
        protocol=OneShotProtocol(
            mechanism=ThresholdBit(), privacy=PrivacyBudget(epsilon=1.0), completion=Curious()
        ),
        simulation=SimulationOptions(backend="local"),
    )


def test_a_completion_is_given_what_the_file_says(config: RunConfig) -> None:
    SEEN.clear()
    run(config, page=False)
    (catalogue,) = SEEN
    assert catalogue is not None
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [1, 0, -1])
    assert catalogue.categories.tolist() == [[True, False], [False, False], [True, True]]


def test_a_device_alone_knows_what_is_public_of_the_items() -> None:
    draws = np.random.default_rng(1)
    liked, users, items = draws.random(60) < 0.5, 50, 60
    rated = [np.sort(draws.permutation(items)[:20]) for _ in range(users)]
    values = [np.where(liked[own] ^ (user % 2 == 0), 5.0, 1.0) for user, own in enumerate(rated)]
    ratings = Ratings.from_triples(
        np.repeat(np.arange(users), 20), np.concatenate(rated), np.concatenate(values), STARS
    )
    catalogue = Catalogue(np.zeros((items, 0)), liked[:, None], (), ("liked",))
    protocol = NothingSentProtocol()
    who, which = np.indices((users, items))
    predicted = protocol.alone(ratings, catalogue).predict(who.ravel(), which.ravel()).reshape(users, items)
    # By half of the users an item of the category is liked, by the others one that is not.
    assert ((predicted > 3) == (liked ^ (who % 2 == 0))).mean() > 0.95
    without = protocol.alone(ratings, None).predict(who.ravel(), which.ravel()).reshape(users, items)
    assert (np.ptp(without, axis=1) == 0).all()
