"""Cold users: they take no part, receive what was learned of others, and rank by what they are given."""

import json
from dataclasses import fields

import numpy as np
import pytest

from dprec.datasets import selected
from dprec.ratings import ColdRatings, Ratings
from dprec.splits import UserHoldout
from simulation.configuration.loading import load
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings, run_prepared
from tests.make import POSITIVE_DATA
from tests.simulation.conftest import presets, run_of_sets

COLD = {"kind": "cold-users", "test_users": 0.25, "test_fraction": 0.4}
PROTOCOLS = {name: parse_config(values).protocol for name, values in sorted(presets().items())}
LISTS = [name for name, each in PROTOCOLS.items() if each.predicted == "lists" and each.folds_in]
RATED = {key: value for key, value in POSITIVE_DATA.items() if key != "positive"}


@pytest.mark.parametrize("name", LISTS)
def test_cold_users_take_no_part_and_rank_by_what_is_given(name: str) -> None:
    result = run_of_sets(name, split=COLD)
    summary, predicted = result.summary, result.predictions
    assert summary["dataset"]["users"] == summary["traffic"]["users"] == result.traffic["user"].size == 45
    assert summary["dataset"]["users_only_in_test"] == 15
    assert not np.isin(predicted["user"], result.traffic["user"]).any()
    _, test = load_ratings(result.config)
    assert isinstance(test, ColdRatings)
    given = test.given
    own = set(zip(given.user_ids[given.users].tolist(), given.item_ids[given.items].tolist(), strict=True))
    assert not own & set(zip(predicted["user"].tolist(), predicted["item"].tolist(), strict=True))


@pytest.mark.parametrize(
    "name",
    [
        *("popularity", "ease", "ials", "gram-central", "dp-ials", "fmf-ldp-sets"),
        pytest.param("fcf", marks=pytest.mark.thorough),
    ],
)
def test_cold_users_are_ranked_for_as_those_who_took_part(name: str) -> None:
    """Users who hold what others hold are predicted the same, by what the same ones taught."""
    config = load(name, overrides=[f"dataset={json.dumps(POSITIVE_DATA)}", "simulation.backend=local"])
    train, test = UserHoldout().split(selected(config.dataset), 0)
    backwards, strangers = np.arange(60)[::-1], np.arange(1000, 1060)
    given, tested = (part.of_users(backwards, strangers) for part in (train, test))
    own = {each.name: getattr(tested, each.name) for each in fields(Ratings)}
    known, unknown = (
        run_prepared(config, train, each, None).predictions
        for each in (test, ColdRatings(**own, given=given))
    )
    twins = dict(zip(strangers.tolist(), train.user_ids[backwards].tolist(), strict=True))
    expected = dict(zip(zip(known["user"], known["item"], strict=True), known["prediction"], strict=True))
    pairs = zip(unknown["user"][:].tolist(), unknown["item"][:].tolist(), strict=True)
    of_twins = [expected[twins[user], item] for user, item in pairs]
    np.testing.assert_allclose(unknown["prediction"], of_twins, rtol=1e-9)


@pytest.mark.parametrize("name", ["nothing-sent", "global-mean", "sums-on-device", "dp-als", "fmf-ldp"])
def test_devices_predict_ratings_for_cold_users(name: str) -> None:
    summary = run_of_sets(name, dataset=RATED, split=COLD).summary
    assert 0 < summary["accuracy"]["rmse"] < 3
    assert summary["dataset"]["users_only_in_test"] == 15
