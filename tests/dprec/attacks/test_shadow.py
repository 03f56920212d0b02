"""Who took part, from what everybody was sent: planted leaks are found, and noise says nothing."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom, norm

from dprec.arrays import Bools, Floats
from dprec.attacks import Figure, ReleasedSum
from dprec.attacks.shadow import ShadowModels, halves, log_likelihood_ratios
from dprec.attacks.traces import Targets
from dprec.attacks.transcript import Broadcast
from dprec.completion import Profiles
from dprec.wire import ItemTable
from tests.dprec.attacks.fakes import FakeGame, ratings_of

TRUTH = ratings_of(120, 80, 0.3, 1)
SETS = TRUTH.to_sets()
PAIRS = 16


def value_of(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value


def noise(number: int, size: Any) -> Floats:
    return np.random.default_rng([7, number]).standard_normal(size)


def released_counts(present: Bools, number: int) -> dict[str, Any]:
    counts = (SETS.T @ present)[:, None]
    return {"broadcast": Broadcast(columns=counts + 0.1 * noise(number, counts.shape))}


def normalised(profiles: Profiles) -> sp.csr_array:
    sets = profiles.to_sets()
    return sp.csr_array(sp.diags_array(1 / np.sqrt(np.maximum(np.diff(sets.indptr), 1))) @ sets)


def released_sum(present: Bools, number: int) -> dict[str, Any]:
    whole = Profiles(TRUTH.indptr, TRUTH.items, TRUTH.values, TRUTH.n_items)
    released = normalised(whole).T @ present + noise(number, TRUTH.n_items)
    return {"sums": (ReleasedSum(released, 1.0, normalised),)}


def test_halves_are_complementary_and_of_their_own_seed() -> None:
    present = halves(50, 6, 1)
    assert present.shape == (12, 50)
    assert (present[::2] ^ present[1::2]).all()
    assert (halves(50, 6, 2) != present).any()


def test_counts_in_the_clear_tell_who_took_part() -> None:
    game = FakeGame(TRUTH, released_counts, hides_item_sets=False)
    attacked = ShadowModels(pairs=PAIRS).perform(game)
    assert game.runs == list(range(1, 2 * PAIRS + 1))
    auc, tpr = attacked.figures["shadow_auc"], attacked.figures["shadow_tpr_at_1_percent"]
    assert value_of(auc) > 0.9
    assert value_of(tpr) > 0.25
    assert (auc.baseline, tpr.baseline) == (0.5, 0.01)
    assert (auc.bound, tpr.bound) == (None, None)
    assert "No epsilon" in attacked.notes[-1]


def test_items_that_are_drawn_together_tell_who_took_part() -> None:
    """Item embeddings, turned at random: inner products alone are the same in every run."""

    def released(present: Bools, number: int) -> dict[str, Any]:
        together = (SETS.multiply(present[:, None])).toarray()
        values, vectors = np.linalg.eigh(together.T @ together)
        turned = np.linalg.qr(noise(number, (20, 20)))[0]
        nothing = np.zeros((TRUTH.n_items, 0))
        embeddings = (vectors * np.sqrt(np.maximum(values, 0)))[:, -20:] @ turned
        return {"broadcast": Broadcast(columns=nothing, embeddings=(embeddings,))}

    auc = ShadowModels(pairs=PAIRS).perform(FakeGame(TRUTH, released)).figures["shadow_auc"]
    assert value_of(auc) > 0.7


def test_a_sum_is_not_told_beyond_what_its_noise_allows() -> None:
    """A profile moves the sum by one deviation: an area of .760 to who knows the rest, and less to others.

    1,920 decisions have a standard error of .013 at most.
    """
    auc = ShadowModels(pairs=PAIRS).perform(FakeGame(TRUTH, released_sum)).figures["shadow_auc"]
    # With five standard errors.
    assert auc.bound is None
    assert 0.6 < value_of(auc) < norm.cdf(1 / np.sqrt(2)) + 0.065


def test_noise_tells_nothing() -> None:
    """Of one held-out pair, each user's evidence is as likely to be larger with it as without.

    These are independent fair coins, given the other pairs. False alarm 1e-6.
    """
    random = np.random.default_rng(5)
    present = halves(2000, 8, 1)
    evidence = log_likelihood_ratios(random.standard_normal((3, *present.shape)), present)
    right = int(((evidence[0] > evidence[1]) == present[0]).sum())
    assert binom.ppf(5e-7, 2000, 0.5) <= right <= binom.isf(5e-7, 2000, 0.5)


def test_evidence_of_normal_statistics_is_as_good_as_they_are() -> None:
    """A statistic that is two deviations larger with the user: an area of .921, and noise beside it.

    The area of 32,000 decisions has a standard error of .002 at most.
    """
    random = np.random.default_rng(5)
    present = halves(1000, 16, 1)
    statistics = random.standard_normal((2, *present.shape))
    statistics[0] += 2 * present
    evidence = log_likelihood_ratios(3 * statistics + 5, present)
    better = np.subtract.outer(evidence[present][::40], evidence[~present][::40]) > 0
    assert better.mean() == pytest.approx(norm.cdf(np.sqrt(2)), abs=0.03)


def test_a_constant_statistic_is_no_evidence() -> None:
    present = halves(10, 4, 1)
    assert (log_likelihood_ratios(np.ones((1, *present.shape)), present) == 0).all()


def test_nothing_is_run_again_where_nothing_is_sent() -> None:
    game = FakeGame(TRUTH, lambda present, number: {})
    attacked = ShadowModels().perform(game)
    assert game.runs == []
    assert all(figure.value is None for figure in attacked.figures.values())
    assert set(attacked.figures) == set(ShadowModels().figures())


def test_newcomers_are_looked_at_where_nothing_else_is_said_of_items() -> None:
    counts = {0: np.zeros(TRUTH.n_items)}

    def released(present: Bools, number: int) -> dict[str, Any]:
        counts[number] = SETS.T @ present
        return {"newcomer": lambda items: counts[number][items]}

    auc = ShadowModels(pairs=PAIRS).perform(FakeGame(TRUTH, released)).figures["shadow_auc"]
    assert value_of(auc) > 0.9


def test_statistics_of_pairs_of_items() -> None:
    targets = Targets.drawn(TRUTH, 5, 1)
    random = np.random.default_rng(2)
    weights, embeddings = random.standard_normal((80, 80)), random.standard_normal((80, 3))
    spreads = np.sqrt(targets.raters @ embeddings**2 / targets.raters.sum())
    products = (embeddings / spreads) @ (embeddings / spreads).T
    said = Broadcast(columns=np.zeros((80, 0)), embeddings=(embeddings,), weights=(weights,))
    traces = targets.traces(FakeGame(TRUTH, lambda *_: {"broadcast": said}).transcript)
    for place, user in enumerate(targets.users.tolist()):
        own = TRUTH.items[TRUTH.indptr[user] : TRUTH.indptr[user + 1]]
        for found, between in zip(traces[:, place], (products, weights), strict=True):
            part = between[np.ix_(own, own)]
            assert found == pytest.approx(part.sum() - np.trace(part))


def test_a_table_says_its_numbers_and_embeddings() -> None:
    table = ItemTable.of_biases(np.array([-1.0, 1.0]), np.arange(4.0), np.ones(4))
    said = Broadcast.of_table(table)
    assert said.columns.tolist() == [[0, 1], [1, 1], [2, 1], [3, 1]]
    assert [each.shape for each in said.embeddings] == [(4, 0), (4, 0)]


def test_where_half_of_the_users_may_be_nobody_they_are_not_asked_about() -> None:
    def said(present: Bools, number: int) -> dict[str, Any]:
        return {"broadcast": Broadcast(columns=noise(number, (30, 1)))}

    few, enough = (FakeGame(ratings_of(users, 30, 0.9, 1), said) for users in (19, 20))
    assert {each.value for each in ShadowModels(pairs=4).perform(few).figures.values()} == {None}
    assert value_of(ShadowModels(pairs=4).perform(enough).figures["shadow_auc"]) > 0
