"""Columns of comparison.csv: how much better than nothing sent, with an interval over users."""

import re
from typing import Any

import numpy as np
import pytest

from dprec.randomness import generator
from simulation.analysis.columns import baseline_columns, best_columns
from simulation.analysis.gains import not_significant
from simulation.analysis.protocol_results import results_of
from simulation.analysis.vocabulary import METRICS
from simulation.comparison.tabulation import UserErrors, with_user_intervals
from simulation.storage.directories import cell_key
from tests.results import row

USERS, RATINGS = 300, 8
RMSE = METRICS[0]
Errors = dict[str, UserErrors]


def errors_of(errors: np.ndarray, users: int = USERS) -> UserErrors:
    """Return the sums of equally many errors of every user, shape (users, ratings)."""
    names = np.repeat([f"u{user}" for user in range(users)], errors.shape[1])
    return UserErrors.of({"user": names, "rating": np.zeros(errors.size), "prediction": errors.ravel()})


def line(name: str, seed: int, errors: np.ndarray, **changes: Any) -> dict[str, Any]:
    means = {"rmse": float(np.sqrt((errors**2).mean())), "mae": float(np.abs(errors).mean())}
    return {**row(name, None), "seed": seed, **means, **changes}


def of_two(seeds: int, shift: float, noise: float) -> tuple[list[dict[str, Any]], Errors, np.ndarray]:
    """Return lines and errors of a baseline and of a protocol with smaller errors, and the differences."""
    random = generator(seeds, "errors")
    rows, errors, gains = [], {}, []
    for seed in range(1, seeds + 1):
        baseline = 2.0 + random.random((USERS, RATINGS))
        own = baseline - shift + noise * random.normal(size=(USERS, 1))
        rows += [line("quiet", seed, baseline, baseline="nothing-sent"), line("blp", seed, own)]
        errors |= {f"quiet-seed{seed}": errors_of(baseline), f"blp-seed{seed}": errors_of(own)}
        gains.append((baseline - own).mean(axis=1))
    return rows, errors, np.mean(gains, axis=0)


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_interval_of_mean_absolute_errors_is_that_of_a_mean_over_users(seeds: int) -> None:
    """The ends of 2,000 replicates are within a tenth of the interval's width but once in a million times."""
    rows, errors, gains = of_two(seeds, shift=0.3, noise=0.4)
    filled = with_user_intervals(rows, errors.__getitem__)
    assert "mae_gain" not in filled[0]
    own = filled[1]
    assert own["against"] == "quiet"
    assert all(line["mae_gain_low"] == own["mae_gain_low"] for line in filled[1::2])
    error = float(gains.std()) / np.sqrt(USERS)
    assert own["mae_gain"] == pytest.approx(gains.mean())
    assert own["mae_gain_low"] == pytest.approx(gains.mean() - 1.96 * error, abs=0.2 * error)
    assert own["mae_gain_high"] == pytest.approx(gains.mean() + 1.96 * error, abs=0.2 * error)
    assert own["rmse_gain_low"] < own["rmse_gain"] < own["rmse_gain_high"]
    assert own["rmse_gain"] == pytest.approx(
        np.mean([rows[at]["rmse"] - rows[at + 1]["rmse"] for at in range(0, 2 * seeds, 2)])
    )


def test_what_makes_a_user_hard_for_both_does_not_widen_the_interval() -> None:
    rows, errors, _ = of_two(1, shift=0.25, noise=0.0)
    own = with_user_intervals(rows, errors.__getitem__)[1]
    assert own["mae_gain_low"] == own["mae_gain"] == own["mae_gain_high"] == 0.25


def test_more_signs_that_are_right_are_better() -> None:
    random = generator(5, "signs")
    signs = np.where(random.random((USERS, RATINGS)) < 0.5, -1.0, 1.0)
    rows, errors = [], {}
    for name, share in (("quiet", 0.6), ("blp", 0.8)):
        predicted = np.where(random.random(signs.shape) < share, signs, -signs)
        right = float((predicted == signs).mean())
        baseline = "nothing-sent" if name == "quiet" else None
        rows.append(
            {**line(name, 1, signs, baseline=baseline), "rmse": None, "mae": None, "sign_accuracy": right}
        )
        users = np.repeat(np.arange(USERS), RATINGS).astype(str)
        columns = {"user": users, "rating": signs.ravel(), "prediction": predicted.ravel()}
        errors[f"{name}-seed1"] = UserErrors.of(columns)
    own = with_user_intervals(rows, errors.__getitem__)[1]
    assert own["sign_accuracy_gain"] == pytest.approx(rows[1]["sign_accuracy"] - rows[0]["sign_accuracy"])
    assert 0 < own["sign_accuracy_gain_low"] < own["sign_accuracy_gain"] < own["sign_accuracy_gain_high"]
    assert "mae_gain" not in own


def test_gains_are_over_the_strongest_baseline_and_beside_it_over_the_one_that_knows_as_little() -> None:
    """A baseline that knows less than another never makes a protocol look better."""
    shared = 1.0 + generator(3, "known").random((USERS, RATINGS))
    shifts = {"plain": 0.2, "knowing": 0.0, "ours": -0.1, "published": 0.1}
    known, quiet = {"public_items": "items"}, {"baseline": "nothing-sent"}
    more = {"plain": quiet, "knowing": {**quiet, **known}, "ours": known, "published": {}}
    rows = [line(name, 1, shared + shift, **more[name]) for name, shift in shifts.items()]
    errors = {f"{name}-seed1": errors_of(shared + shift) for name, shift in shifts.items()}
    filled = {row["name"]: row for row in with_user_intervals(rows, errors.__getitem__)}
    assert {name: row.get("against") for name, row in filled.items()} == {
        **dict.fromkeys(("plain", "ours", "published"), "knowing"),
        "knowing": None,
    }
    gains = {name: row["mae_gain"] for name, row in filled.items() if name != "knowing"}
    assert gains == pytest.approx({"plain": -0.2, "ours": 0.1, "published": -0.1})
    published = filled["published"]
    assert published["against_plain"] == "plain"
    errors_in_rmse = filled["plain"]["rmse"] - published["rmse"]
    assert published["plain_gain"] == pytest.approx(errors_in_rmse)
    assert 0 < published["plain_gain_low"] <= published["plain_gain"] <= published["plain_gain_high"]
    assert not any("against_plain" in filled[name] for name in ("ours", "plain", "knowing"))
    first, beside = baseline_columns(RMSE, results_of(list(filled.values())))
    assert (first.title, beside.title) == ("against nothing sent, items known", "against nothing sent")


def of_rivals(shifts: dict[str, float], budget: float | None = 1.0) -> tuple[list[dict[str, Any]], Errors]:
    """Return lines and errors of protocols whose errors are larger than shared ones by a shift."""
    random = generator(7, "rivals")
    shared = 1.0 + random.random((USERS, RATINGS))
    own = {name: shared + shift + 0.3 * random.normal(size=(USERS, 1)) for name, shift in shifts.items()}
    keys = {name: cell_key(name, budget, None, 1) for name in own}
    return (
        [line(name, 1, errors, epsilon=budget) for name, errors in own.items()],
        {keys[name]: errors_of(errors) for name, errors in own.items()},
    )


def test_the_others_of_a_budget_are_held_against_its_best() -> None:
    rows, errors = of_rivals({"far": 0.5, "best": 0.0, "near": 0.01})
    elsewhere, more = of_rivals({"alone": 0.0}, budget=2.0)
    far, best, near, alone = with_user_intervals(rows + elsewhere, (errors | more).__getitem__)
    assert best["best_at_budget"] == far["best_at_budget"] == near["best_at_budget"] == "best"
    assert "behind_best" not in best
    assert "best_at_budget" not in alone
    assert far["behind_best"] == pytest.approx(far["rmse"] - best["rmse"])
    assert 0 < far["behind_best_low"] < far["behind_best"] < far["behind_best_high"]
    assert near["behind_best_low"] < 0 < near["behind_best"] < near["behind_best_high"]
    results = results_of([far, best, near, alone])
    assert [result.name for result in not_significant(results[1], results)] == ["near"]
    (column,) = best_columns(METRICS[0], results)
    assert column.unit == "RMSE, same ε asked, ± 95 % interval over users"
    texts = [column.text(result) for result in results]
    assert re.fullmatch(r"0\.\d{3} ± 0\.\d{3}", texts[0])
    assert texts[1:] == ["best", texts[2], "–"]
    assert re.fullmatch(r"0\.\d{3} ± 0\.\d{3}, not significant", texts[2])


def test_a_budget_for_a_user_is_no_rival_of_one_for_a_rating() -> None:
    rows, errors = of_rivals({"values": 0.0, "other": 0.1, "profile": 0.2, "whole": 0.3})
    for own, unit in zip(rows, ("rating", "cell", "user", "user"), strict=True):
        own["per"] = unit
    best = [filled["best_at_budget"] for filled in with_user_intervals(rows, errors.__getitem__)]
    assert best == ["values", "values", "profile", "profile"]


def test_baselines_do_not_compete_and_one_protocol_has_no_rival() -> None:
    rows, errors = of_rivals({"quiet": -0.5, "only": 0.0})
    rows[0]["baseline"] = "nothing-sent"
    assert all("best_at_budget" not in row for row in with_user_intervals(rows, errors.__getitem__))


def test_every_fold_counts_once_however_many_seeds_it_has() -> None:
    rows, errors = [], {}
    for fold, seed, gain in (("u1", 1, 0.1), ("u1", 2, 0.2), ("u2", 1, 0.6)):
        baseline, own = np.full((USERS, 2), 1.0), np.full((USERS, 2), 1.0 - gain)
        rows += [
            line("quiet", seed, baseline, fold=fold, baseline="nothing-sent"),
            line("blp", seed, own, fold=fold),
        ]
        errors |= {
            f"{name}-fold{fold}-seed{seed}": errors_of(each)
            for name, each in (("quiet", baseline), ("blp", own))
        }
    found = with_user_intervals(rows, errors.__getitem__)[1]
    assert found["mae_gain"] == pytest.approx(((0.1 + 0.2) / 2 + 0.6) / 2)
