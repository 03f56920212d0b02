"""What every registered completion must do, whatever it is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dprec.completion import COMPLETIONS, Observations
from dprec.errors import InputError, RunError
from dprec.randomness import generator
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
USERS, ITEMS = 30, 24
COLD_USER, COLD_ITEM = 29, 23


def observations(factor: float = 1.0, *, empty: bool = False) -> Observations:
    """Ratings of a small catalogue, whose last user and last item have none."""
    random = generator(0, "contract")
    tastes = random.normal(size=(USERS, 1)) + random.normal(size=(1, ITEMS))
    seen = random.random(tastes.shape) < 0.4
    seen[COLD_USER] = seen[:, COLD_ITEM] = empty
    seen &= not empty
    users, items = np.nonzero(seen)
    values = STARS.values[STARS.level_of(3.5 + tastes[users, items]) - 1] * factor
    return Observations(users.astype(np.int32), items.astype(np.int32), values, tastes.shape, STARS)


CELLS = np.divmod(np.arange(USERS * ITEMS), ITEMS)

OF_RATINGS = [kind for kind in COMPLETIONS.kinds if kind != "one-bit"]
"""One-bit completion takes signs, and has tests of its own."""

kinds = pytest.mark.parametrize("kind", OF_RATINGS)


@kinds
def test_predictions_are_finite_numbers_for_every_cell(kind: str) -> None:
    completed = COMPLETIONS[kind]().fit(observations(), seed=3)
    predictions = completed.predict(*CELLS)
    assert predictions.shape == (USERS * ITEMS,)
    assert predictions.dtype == np.float64
    assert np.all(np.isfinite(predictions))
    assert completed.predict(CELLS[0][:0], CELLS[1][:0]).shape == (0,)


@kinds
def test_it_learns(kind: str) -> None:
    seen = observations()
    completed = COMPLETIONS[kind]().fit(seen, seed=3)
    errors = completed.predict(seen.users, seen.items) - seen.values
    assert np.sqrt(np.mean(errors**2)) < 0.9 * seen.values.std()


@kinds
def test_the_unseen_are_predicted_from_the_prior(kind: str) -> None:
    seen = observations()
    completed = COMPLETIONS[kind]().fit(seen, seed=3)
    cold = completed.predict(np.array([COLD_USER]), np.array([COLD_ITEM]))
    assert cold[0] == pytest.approx(seen.mean, abs=0.1)
    for users, items in (
        (np.full(ITEMS, COLD_USER), np.arange(ITEMS)),
        (np.arange(USERS), np.full(USERS, COLD_ITEM)),
    ):
        predictions = completed.predict(users, items)
        assert np.all(np.abs(predictions - seen.mean) < STARS.high - STARS.low)


@kinds
def test_the_same_seed_gives_the_same_bits(kind: str) -> None:
    runs = [COMPLETIONS[kind]().fit(observations(), seed=5).predict(*CELLS) for _ in range(2)]
    np.testing.assert_array_equal(*runs)


@kinds
def test_nothing_observed_predicts_mid_scale(kind: str) -> None:
    completed = COMPLETIONS[kind]().fit(observations(empty=True), seed=3)
    np.testing.assert_allclose(completed.predict(*CELLS), 3.0, atol=1e-9)
    json.dumps(completed.diagnostics, allow_nan=False)


@kinds
def test_one_rating_is_enough(kind: str) -> None:
    one = Observations(
        np.array([2], np.int32), np.array([1], np.int32), np.array([4.0]), (USERS, ITEMS), STARS
    )
    completed = COMPLETIONS[kind]().fit(one, seed=3)
    np.testing.assert_allclose(completed.predict(*CELLS), 4.0, atol=1e-6)


@kinds
def test_diagnostics_and_notes_can_be_written(kind: str) -> None:
    completed = COMPLETIONS[kind]().fit(observations(), seed=3)
    assert completed.diagnostics
    json.dumps(completed.diagnostics, allow_nan=False)
    assert all(note and note == note.strip() for note in completed.notes)


@kinds
def test_progress_moves_forward(kind: str) -> None:
    seen: list[tuple[str, int, int]] = []
    COMPLETIONS[kind]().fit(observations(), seed=3, progress=lambda *step: seen.append(step))
    assert seen
    assert {stage for stage, _, _ in seen} == {"completing"}
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert all(0 < done <= planned for _, done, planned in seen)


@kinds
def test_a_rank_beyond_the_catalogue_is_refused(kind: str) -> None:
    component = COMPLETIONS[kind]
    if "rank" not in component.__dataclass_fields__:
        pytest.skip("has no rank")
    component(rank=ITEMS - 1).check((USERS, ITEMS))
    for rank in (ITEMS, USERS):
        with pytest.raises(InputError, match="rank"):
            component(rank=rank).check((USERS, ITEMS))
    with pytest.raises(InputError, match="rank"):
        component(rank=0)


@kinds
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
def test_values_that_overflow_end_in_an_error_never_in_nan(kind: str) -> None:
    if kind.endswith("-average"):
        pytest.skip("averages of such values are numbers")
    with pytest.raises(RunError, match=r"iteration 1|cannot start"):
        COMPLETIONS[kind]().fit(observations(1e160), seed=3)
