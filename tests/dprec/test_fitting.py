"""Completions on ratings that a notebook holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dprec.completion import COMPLETIONS, ItemAverage, MatrixFactorization
from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.fitting import fit
from dprec.mechanisms import BoundedLaplace, RandomizedResponse, Raw, ResidualBits, ZhengLaplace

RATINGS = Synthetic(users=30, items=12, ratings=200, seed=1).load()


@pytest.fixture
def frame() -> pd.DataFrame:
    frame = RATINGS.to_pandas()
    return frame.assign(user="u" + frame["user"].astype(str), item="i" + frame["item"].astype(str))


def test_a_frame_and_a_matrix_are_completed_alike(frame: pd.DataFrame) -> None:
    users, items = np.array([3, 4, 7]), np.array([5, 6, 2])
    named = RATINGS.user_ids[users], RATINGS.item_ids[items]
    predicted = [
        fit(ItemAverage(), sp.csr_array(RATINGS.to_sparse())).predict(users, items),
        fit(ItemAverage(), RATINGS).predict(*named),
        fit(ItemAverage(), frame).predict(
            [f"u{user}" for user in named[0]], [f"i{item}" for item in named[1]]
        ),
    ]
    np.testing.assert_allclose(predicted[1:], [predicted[0]] * 2, atol=1e-12)
    assert fit(MatrixFactorization(rank=2), RATINGS).predict(named[0][0], RATINGS.item_ids).shape == (12,)


@pytest.mark.parametrize("kind", [kind for kind in COMPLETIONS.kinds if kind != "one-bit"])
def test_every_completion_reads_what_a_mechanism_sends(kind: str) -> None:
    fitted = fit(COMPLETIONS[kind](), RATINGS, mechanism=RandomizedResponse(), epsilon=1.0, seed=2)
    assert np.isfinite(fitted.predict(RATINGS.user_ids, RATINGS.item_ids[0])).all()
    assert fitted.observations.noise_variance > 1


def test_the_noise_is_that_of_the_mechanism_and_the_seed() -> None:
    sent = [fit(ItemAverage(), RATINGS, mechanism=BoundedLaplace(), epsilon=1.0, seed=s) for s in (1, 1, 2)]
    values = [fitted.observations.values.tolist() for fitted in sent]
    assert values[0] == values[1] != values[2]
    clear = fit(ItemAverage(), RATINGS).observations
    assert (clear.values.tolist(), clear.noise_variance) == (RATINGS.values.tolist(), None)


def test_a_budget_and_a_private_mechanism_belong_together() -> None:
    for mechanism in (None, Raw()):
        with pytest.raises(InputError) as caught:
            fit(ItemAverage(), RATINGS, mechanism=mechanism, epsilon=0.01)
        assert str(caught.value) == (
            "epsilon: 0.01, with mechanism none, which adds no noise; "
            "accepted: an epsilon beside a private mechanism, or none"
        )
    with pytest.raises(InputError, match=r"^epsilon: none, with mechanism randomized-response; "):
        fit(ItemAverage(), RATINGS, mechanism=RandomizedResponse())
    noisy = fit(ItemAverage(), RATINGS, mechanism=RandomizedResponse(), epsilon=0.01).observations
    assert noisy.noise_variance is not None
    assert noisy.noise_variance > 1


def test_what_cannot_be_completed_is_refused(frame: pd.DataFrame) -> None:
    for mechanism in (ZhengLaplace(), ResidualBits()):
        with pytest.raises(InputError, match=r"mechanism: .*accepted: a mechanism that shows which items"):
            fit(ItemAverage(), RATINGS, mechanism=mechanism, epsilon=1.0)
    with pytest.raises(InputError, match="epsilon: -1; accepted: a number above 0"):
        fit(ItemAverage(), RATINGS, mechanism=BoundedLaplace(), epsilon=-1.0)
    with pytest.raises(InputError, match="rank"):
        fit(MatrixFactorization(rank=12), RATINGS)
    fitted = fit(ItemAverage(), frame)
    with pytest.raises(InputError, match=r"users: 'nobody', which has no rating; accepted: .* such as 'u"):
        fitted.predict("nobody", "i1")
    with pytest.raises(InputError, match="items: identifiers of type int64"):
        fitted.predict(frame["user"][0], 1)
