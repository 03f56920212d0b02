"""The figures that are known of MovieLens 100K."""

from typing import Any

import numpy as np
import pytest

from simulation import load, run
from tests.paths import CONFIGS, DATA

pytestmark = pytest.mark.skipif(
    not (DATA / "ml-100k").is_dir(), reason=f"no MovieLens 100K in {DATA}; set DPREC_DATA"
)


def rmse(preset: str, split: str, **changes: Any) -> float:
    overrides = [
        f"dataset={{kind: movielens-100k, path: {DATA / 'ml-100k'}}}",
        f"split={split}",
        "simulation.backend=local",
        *(f"{key}={value}" for key, value in changes.items()),
    ]
    result = run(load(CONFIGS / f"{preset}.yaml", overrides))
    return float(result.summary["accuracy"]["rmse"])


def test_plain_factorisation_on_u1() -> None:
    # A prototype with 5 factors reaches 0.916.
    assert 0.90 <= rmse("plain-mf", "{kind: predefined, fold: u1}") <= 0.935


def test_plain_factorisation_in_three_of_ten_folds() -> None:
    folds = [rmse("plain-mf", f"{{kind: k-fold, folds: 10, fold: {fold}}}") for fold in (0, 4, 9)]
    assert 0.88 <= np.mean(folds) <= 0.915


def test_bounded_laplace_on_u1() -> None:
    # The prototype's figure; the published decoder's bias towards the middle is part of it.
    assert rmse("blp-mf", "{kind: predefined, fold: u1}") == pytest.approx(1.195, abs=0.04)
