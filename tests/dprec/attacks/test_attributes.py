"""Attributes: what is learned, of whom, and held against which guess."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dprec.arrays import Bools
from dprec.attacks.attributes import Attributes, learned
from dprec.attacks.bounds import Roc, above_by_chance
from dprec.catalogue import UsersTable
from dprec.ratings import Ratings
from tests import make
from tests.dprec.attacks.games import Played, hidden_rows, seen_by_all, transcript_of
from tests.dprec.attacks.test_seen import SCALE
from tests.refusals import refused_at


def people(users: int = 120, items: int = 60, seed: int = 1) -> tuple[Ratings, Bools]:
    """Return ratings of people of whom a third like the second half of the items better."""
    random = np.random.default_rng(seed)
    own = np.arange(users) % 3 == 0
    second = np.arange(items) >= items // 2
    cells = random.random((users, items)) < np.where(own[:, None] == second, 0.5, 0.2)
    return make.rated(cells, random.integers(1, 4, int(cells.sum())), SCALE), own


def table(own: Bools) -> UsersTable:
    return UsersTable({"gender": np.where(own, "F", "M"), "age": np.where(own, 50.0, 20.0)}, own.size)


def test_what_is_seen_tells_an_attribute_that_taste_follows() -> None:
    truth, own = people()
    for transcript in (
        seen_by_all(truth, trusted=True),
        seen_by_all(truth, hidden_rows(truth, 4.0, seed=2)[0]),
    ):
        figures = Attributes().perform(Played(truth, transcript, table(own))).figures
        assert figures["attribute_auc_gender"].value > 0.95
        assert figures["attribute_auc_gender"].baseline == 0.5
        assert figures["attribute_accuracy_gender"].value > 0.85
        assert figures["attribute_accuracy_gender"].baseline == pytest.approx(2 / 3)
        assert figures["attribute_auc"].value >= figures["attribute_auc_age"].value


def test_bounds_are_those_of_one_user_and_hold_for_hidden_sets_alone() -> None:
    truth, own = people()
    reports = hidden_rows(truth, 0.01, seed=2)[0]
    played = Played(truth, seen_by_all(truth, reports), table(own), 0.01, 0.5)
    figures = Attributes().perform(played).figures
    # Each of ten folds has four people with it, and eight without.
    curve = Roc.allowed(0.5)
    rights = max(curve.at(c) / 3 + curve.at(1 - c) * 2 / 3 for c in np.linspace(0, 1, 10001))
    assert figures["attribute_auc_gender"].bound == pytest.approx(above_by_chance(curve.auc, 4), rel=1e-4)
    assert figures["attribute_accuracy_gender"].bound == pytest.approx(above_by_chance(rights, 4), rel=1e-3)
    for folds, pairs in ((2, 20), (3, 13)):
        bound = Attributes(folds=folds).perform(played).figures["attribute_auc_gender"].bound
        assert bound == pytest.approx(above_by_chance(curve.auc, pairs))
    shown = Attributes().perform(Played(truth, seen_by_all(truth, trusted=True), table(own), 0.01, 0.5))
    assert shown.figures["attribute_auc_gender"].bound is None


@pytest.mark.parametrize("users", [None, table(np.arange(120) % 2 == 0)])
def test_a_column_that_is_not_there_is_refused_if_it_was_asked_for(users: UsersTable | None) -> None:
    truth, _ = people()
    played = Played(truth, seen_by_all(truth), users)
    with refused_at("columns"):
        Attributes(columns=("occupation",)).perform(played)


def test_the_weights_are_those_of_the_ridge_that_predicts_who_is_left_out() -> None:
    random = np.random.default_rng(2)
    features = random.normal(size=(25, 3)) * np.array([1.0, 0.3, 0.3])
    labels = random.random(25) < 1 / (1 + np.exp(-2 * features[:, 0]))

    def fitted(rows: Bools, ridge: float) -> np.ndarray:
        own, signs = features[rows], np.where(labels[rows], 1.0, -1.0)

        def loss(w: np.ndarray) -> float:
            fit = own @ w[:-1] + w[-1]
            return float(np.logaddexp(0, -signs * fit).sum() + ridge * (w[:-1] ** 2).sum() / 2)

        return np.asarray(minimize(loss, np.zeros(4), tol=1e-10).x)

    def deviance(ridge: float) -> float:
        total = 0.0
        for person in range(25):
            weights = fitted(np.arange(25) != person, ridge)
            score = features[person] @ weights[:-1] + weights[-1]
            total += float(np.logaddexp(0, -score if labels[person] else score))
        return total

    best = min((100.0, 3.0, 0.1), key=deviance)
    found = learned(features, labels)
    everybody = np.ones(25, dtype=np.bool_)
    distances = {
        ridge: np.abs(found - fitted(everybody, ridge)).max()
        for ridge in (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
    }
    chosen = min(distances, key=lambda ridge: distances[ridge])
    assert distances[chosen] < 1e-3
    assert deviance(chosen) <= deviance(best) + 1e-9


def test_nobody_is_guessed_by_what_was_learned_of_them() -> None:
    # The area of 40 against 80 that says nothing has a deviation of .057; .3 more is one alarm in 10^6.
    truth, own = people()
    transcript = transcript_of(truth, vectors=np.random.default_rng(7).normal(size=(own.size, 100)))
    figures = Attributes().perform(Played(truth, transcript, table(own))).figures
    assert figures["attribute_auc_gender"].value < 0.8
