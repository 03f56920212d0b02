"""One-bit completion: what it learns, from whom, and what it refuses.

Fits of the same signs are shared, and no others are.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.accounting import PrivacyBudget
from dprec.binarization import binary_scale
from dprec.completion import Observations, OneBit
from dprec.completion.one_bit import completion as module
from dprec.mechanisms import MECHANISMS
from dprec.randomness import generator
from tests import make

SHAPE = (40, 30)
COLD_USER, COLD_ITEM = 39, 29
CELLS = np.divmod(np.arange(SHAPE[0] * SHAPE[1]), SHAPE[1])
KINDS = [{}, {"biases": True}, {"bounded": True}, {"link": "gaussian"}]
settings = pytest.mark.parametrize("settings", KINDS, ids=str)


def hidden_matrix() -> NDArray[np.float64]:
    random = generator(0, "hidden")
    return 2 * np.outer(random.normal(size=SHAPE[0]), random.normal(size=SHAPE[1])) + random.normal(
        size=(1, SHAPE[1])
    )


def observations(*, cold: bool = True) -> Observations:
    random = generator(1, "observed")
    seen = random.random(SHAPE) < 0.5
    seen[COLD_USER] = seen[:, COLD_ITEM] = not cold
    users, items = (each.astype(np.int32) for each in np.nonzero(seen))
    return make.observations(users, items, np.sign(hidden_matrix()[users, items]), SHAPE, binary_scale())


@settings
def test_it_predicts_signs_that_it_did_not_see(settings: dict[str, object]) -> None:
    completed = OneBit(**settings).fit(observations(cold=False), 0)  # type: ignore[arg-type]
    predictions = completed.predict(*CELLS)
    assert np.all(np.abs(predictions) <= 1)
    assert np.mean((predictions >= 0) == (hidden_matrix().ravel() > 0)) > 0.85
    np.testing.assert_array_equal(np.sign(predictions), np.sign(completed.hidden(*CELLS)))
    assert json.loads(json.dumps(completed.diagnostics))["stopped"] == "optimal"


def test_the_likelihood_of_what_was_received_follows_each_users_channel() -> None:
    mechanism = MECHANISMS["randomized-response"]()
    for budget in (PrivacyBudget(epsilon=1.0), PrivacyBudget(epsilon=3.0, per="user")):
        calibrated = mechanism.family(budget, binary_scale(), 30)
        given = calibrated.likelihood(np.array([1, 0, 3]), np.array([0, 1, 1, 0], np.uint16))
        first = 1 / (1 + np.exp(-(1.0 if budget.per == "rating" else 3.0)))
        assert given.shape == (4, 2)
        np.testing.assert_allclose(given[0], [first, 1 - first], rtol=1e-9)
        kept = 1 / (1 + np.exp(-1.0))
        np.testing.assert_allclose(
            given[1:], [[1 - kept, kept], [1 - kept, kept], [kept, 1 - kept]], rtol=1e-9
        )
    hidden = MECHANISMS["zheng-randomized-response"]().family(
        PrivacyBudget(epsilon=1.0, per="cell"), binary_scale(), 3
    )
    given = hidden.likelihood(np.array([3]), np.array([0, 1, 2], np.uint16))
    np.testing.assert_allclose(given, hidden.reference_channel.probabilities[1:].T)


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows with every problem that is solved."""
    calls: list[Any] = []
    for name in ("minimise", "minimise_bounded"):
        solver = getattr(module, name)

        def counted(*given: Any, _solver: Any = solver, **options: Any) -> Any:
            calls.append(given)
            return _solver(*given, **options)

        monkeypatch.setattr(module, name, counted)
    return calls


def signs_of() -> Observations:
    users, items = (each.astype(np.int32) for each in np.nonzero(np.eye(7, 9) + np.eye(7, 9, 2)))
    return make.observations(users, items, np.where(users < 3, 1.0, -1.0), (7, 9), binary_scale())


def test_other_signs_noise_or_settings_are_solved_anew(solved: list[Any]) -> None:
    seen, model = signs_of(), OneBit(alpha=0.32)
    signs = seen.values * np.where(np.arange(seen.values.size) == 4, -1, 1)
    flipped = replace(seen, read=lambda: [signs])
    elsewhere = replace(seen, items=np.roll(seen.items, 1))
    model.fit(seen, 0)
    for changed in (flipped, elsewhere, replace(seen, shape=(7, 10))):
        model.fit(changed, 0)
    linear = np.zeros(seen.values.size)
    model.fit_perturbed(seen, linear, 0)
    model.fit_perturbed(seen, linear + 0.1, 0)
    replace(model, rank=2).fit(seen, 0)
    assert len(solved) == 7
