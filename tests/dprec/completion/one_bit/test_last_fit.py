"""Fits of the same signs are shared, and no others are."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.binarization import binary_scale
from dprec.completion import OneBit
from dprec.completion.one_bit import completion as module
from dprec.observations import Observations


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


def observations() -> Observations:
    users, items = (each.astype(np.int32) for each in np.nonzero(np.eye(7, 9) + np.eye(7, 9, 2)))
    return Observations(users, items, np.where(users < 3, 1.0, -1.0), (7, 9), binary_scale())


@pytest.mark.parametrize("model", [OneBit(bounded=True, alpha=0.31), OneBit(biases=True, alpha=0.31)])
def test_what_depends_on_no_draw_is_solved_once(model: OneBit, solved: list[Any]) -> None:
    one, other = model.fit(observations(), 1), model.fit(observations(), 2)
    assert len(solved) == 1
    np.testing.assert_array_equal(one.point, other.point)
    assert one.diagnostics == other.diagnostics


def test_a_fit_that_is_shared_reports_that_it_is_done(solved: list[Any]) -> None:
    model, seen = OneBit(alpha=0.33), observations()
    model.fit(seen, 1)
    steps: list[tuple[str, int, int]] = []
    model.fit(seen, 2, progress=lambda *step: steps.append(step))
    assert len(solved) == 1
    assert steps == [("completing", 1, 1)]


def test_other_signs_noise_or_settings_are_solved_anew(solved: list[Any]) -> None:
    seen, model = observations(), OneBit(alpha=0.32)
    flipped = replace(seen, values=seen.values * np.where(np.arange(seen.values.size) == 4, -1, 1))
    elsewhere = replace(seen, items=np.roll(seen.items, 1))
    model.fit(seen, 0)
    for changed in (flipped, elsewhere, replace(seen, shape=(7, 10))):
        model.fit(changed, 0)
    linear = np.zeros(seen.values.size)
    model.fit_perturbed(seen, linear, 0)
    model.fit_perturbed(seen, linear + 0.1, 0)
    replace(model, rank=2).fit(seen, 0)
    assert len(solved) == 7


def test_a_start_that_is_drawn_is_part_of_the_problem(
    solved: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dprec.completion import spectral
    from dprec.completion.one_bit import projections

    for owner in (spectral, projections):
        monkeypatch.setattr(owner, "DENSE_CELLS", 10)
    model = OneBit(alpha=0.33, max_rank=2)
    for seed in (1, 2):
        model.fit(observations(), seed)
    assert len(solved) == 2
