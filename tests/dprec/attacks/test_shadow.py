"""Who took part, from what everybody was sent: planted leaks are found, and noise says nothing."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom, norm

from dprec.arrays import Bools, Floats
from dprec.attacks import Figure, ReleasedSum
from dprec.attacks.shadow import ShadowModels, Targets, halves, log_likelihood_ratios
from dprec.attacks.transcript import Broadcast
from dprec.completion import Profiles
from tests import make
from tests.dprec.attacks.games import Repeated, of_kinds

TRUTH = of_kinds(120, 80, 0.3, 1)
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
    whole = make.profiles(TRUTH)
    released = normalised(whole).T @ present + noise(number, TRUTH.n_items)
    return {"sums": (ReleasedSum(released, 1.0, normalised),)}


def test_counts_in_the_clear_tell_who_took_part() -> None:
    game = Repeated(TRUTH, released_counts, hides_item_sets=False)
    attacked = ShadowModels(pairs=PAIRS).perform(game)
    assert game.runs == list(range(1, 2 * PAIRS + 1))
    auc, tpr = attacked.figures["shadow_auc"], attacked.figures["shadow_tpr_at_1_percent"]
    assert value_of(auc) > 0.9
    assert value_of(tpr) > 0.25
    assert (auc.baseline, tpr.baseline) == (0.5, 0.01)
    assert (auc.bound, tpr.bound) == (None, None)
    assert "No epsilon" in attacked.notes[-1]


def test_a_sum_is_not_told_beyond_what_its_noise_allows() -> None:
    """A profile moves the sum by one deviation: an area of .760 to who knows the rest, and less to others.

    1,920 decisions have a standard error of .013 at most.
    """
    auc = ShadowModels(pairs=PAIRS).perform(Repeated(TRUTH, released_sum)).figures["shadow_auc"]
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


def test_weights_between_some_items_say_what_those_with_zeros_for_others_do() -> None:
    targets, some = Targets.drawn(TRUTH, 100, 1), np.array([3, 20, 21, 60])
    weights, whole = noise(4, (4, 4)), np.zeros((80, 80))
    whole[np.ix_(some, some)] = weights
    found, expected = (
        targets.traces(Repeated(TRUTH, lambda *_, said=said: {"broadcast": said}).transcript)
        for said in (Broadcast.of_weights(weights, some), Broadcast.of_weights(whole, np.arange(80)))
    )
    assert found.any()
    np.testing.assert_allclose(found, expected)


def test_statistics_of_pairs_of_items() -> None:
    targets = Targets.drawn(TRUTH, 5, 1)
    random = np.random.default_rng(2)
    weights, embeddings = random.standard_normal((80, 80)), random.standard_normal((80, 3))
    spreads = np.sqrt(targets.raters @ embeddings**2 / targets.raters.sum())
    products = (embeddings / spreads) @ (embeddings / spreads).T
    said = Broadcast(columns=np.zeros((80, 0)), embeddings=(embeddings,), weights=((weights, np.arange(80)),))
    traces = targets.traces(Repeated(TRUTH, lambda *_: {"broadcast": said}).transcript)
    for place, user in enumerate(targets.users.tolist()):
        own = TRUTH.items[TRUTH.indptr[user] : TRUTH.indptr[user + 1]]
        for found, between in zip(traces[:, place], (products, weights), strict=True):
            part = between[np.ix_(own, own)]
            assert found == pytest.approx(part.sum() - np.trace(part))
