"""Groups of users: who is in which, and what is said of each, by hand and under chance alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import norm

from dprec.groups import MEANS, SUMS, UNKNOWN, Grouping, error_sums, group_figures, pooled

NAN = np.nan


def members(values: object) -> dict[str, list[int]]:
    grouping = Grouping.of(np.asarray(values))
    return {name: np.flatnonzero(own).tolist() for name, own in grouping.masks()}


def test_few_values_are_groups_as_they_are() -> None:
    assert members(["M", "F", "", "M"]) == {UNKNOWN: [2], "F": [1], "M": [0, 3]}
    assert members([0.1, NAN, 3.0, 0.1]) == {"0.1": [0, 3], "3": [2], UNKNOWN: [1]}
    assert members([NAN, NAN]) == {UNKNOWN: [0, 1]}
    assert members([1.0, np.inf]) == {"1": [0], "inf": [1]}


def test_many_numbers_are_cut_into_quarters() -> None:
    ages = np.array([7.0, 20, 21, 22, 30, 31, 32, 40, 41, 42, 60, 73])
    named = members(ages)
    assert list(named) == ["7 to 21", "22 to 31", "32 to 41", "42 to 73"]
    assert [len(own) for own in named.values()] == [3, 3, 3, 3]
    # Equal numbers stay together.
    assert list(members([1.0] * 90 + list(range(2, 12)))) == ["1", "2 to 11"]


@given(
    values=hnp.arrays(
        np.float64, st.integers(1, 60), elements=st.floats(allow_nan=True, allow_infinity=False, width=32)
    )
)
@settings(deadline=None)
def test_everybody_is_in_one_group(values: np.ndarray) -> None:
    grouping = Grouping.of(values)
    together = np.sum([own for _, own in grouping.masks()], axis=0)
    np.testing.assert_array_equal(together, 1)
    unknown = np.isnan(values)
    assert all((np.array(grouping.names)[grouping.members] == UNKNOWN) == unknown)


def filled(**columns: list[float]) -> dict[str, np.ndarray]:
    size = len(next(iter(columns.values())))
    return {name: np.array(columns.get(name, [NAN] * size), dtype=float) for name in (*SUMS, *MEANS)}


def test_figures_by_hand() -> None:
    users = np.array([0, 0, 2])
    truth, predictions, alone = np.array([[3.0, 4, 1], [4, 4, 3], [3, 3, 2]])
    sums = error_sums(users, truth, predictions, alone)
    assert {name: own.tolist() for name, own in sums.items()} == {
        "test_ratings": [2, 1],
        "squared_errors": [1, 4],
        "absolute_errors": [1, 2],
        "squared_errors_alone": [1, 1],
        "squared_differences": [2, 9],
    }
    more = filled(list_popularity=[0.6, 0.2], own_popularity=[0.2, NAN], message_bytes=[10, 30])
    figures = group_figures({**more, **sums}, np.array([True, True]))
    assert (figures["users"], figures["test_ratings"]) == (2, 3)
    assert figures["rmse"] == pytest.approx((5 / 3) ** 0.5)
    assert figures["rmse_alone"] == pytest.approx((2 / 3) ** 0.5)
    assert figures["mae"] == 1
    assert figures["worse"] == 0.5
    assert figures["popularity_lift"] == pytest.approx(2)
    assert figures["message_bytes"] == 20
    assert figures["ndcg_at_10"] is figures["epsilon_per_user"] is None
    alone_in_group = group_figures({**more, **sums}, np.array([False, True]))
    assert (alone_in_group["worse"], alone_in_group["worse_by_chance"]) == (1, 1)


def test_what_is_the_same_as_alone_makes_nobody_worse_off() -> None:
    errors = np.array([1.0, 2.0])
    same = error_sums(np.array([0, 1]), errors, np.zeros(2), np.zeros(2))
    figures = group_figures({**filled(test_ratings=[1, 1]), **same}, np.ones(2, dtype=np.bool_))
    assert [figures[name] for name in ("gain_p", "worse", "worse_by_chance")] == [1, 0, 0]
    assert figures["worse_p"] == 1


def drawn(seed: int, spread: float) -> dict[str, float | None]:
    """Return the figures of 400 users whose gain is the same up to a spread, over 4 to 40 ratings each."""
    random = np.random.default_rng(seed)
    counts = random.integers(4, 41, 400)
    users = np.repeat(np.arange(400), counts)
    gains = 0.1 + spread * random.standard_normal(400)
    # The truth is 0 and the squared error alone is 9, so that the squared errors differ as wanted.
    differences = gains[users] + random.laplace(size=users.size)
    alone = np.full(users.size, 3.0)
    sums = error_sums(users, np.zeros(users.size), np.sqrt(9 - np.minimum(differences, 9)), alone)
    return group_figures({**filled(test_ratings=[1] * 400), **sums}, np.ones(400, dtype=np.bool_))


def test_luck_alone_is_not_significant() -> None:
    # One p-value below 1e-7 has that probability; the share is within 5 standard errors of .025 each.
    for seed in range(5):
        luck = drawn(seed, 0.0)
        assert luck["worse_p"] is not None
        assert luck["worse_p"] > 1e-7
        assert luck["worse"] is not None
        assert luck["worse_by_chance"] == pytest.approx(luck["worse"], abs=0.125)
        assert 0.2 < luck["worse"] < 0.5


def test_folds_are_pooled_by_user() -> None:
    first = filled(test_ratings=[1, 2], squared_errors=[1, 1], ndcg_at_10=[0.5, NAN])
    second = filled(test_ratings=[4], squared_errors=[3], ndcg_at_10=[1])
    at, together = pooled([np.array(["a", "b"]), np.array(["a"])], [first, second])
    assert at.tolist() == [0, 1]
    assert together["test_ratings"].tolist() == [5, 2]
    assert together["squared_errors"].tolist() == [4, 1]
    np.testing.assert_array_equal(together["ndcg_at_10"], [0.75, NAN])


def test_the_gain_of_a_group_is_held_against_how_its_users_differ_from_it() -> None:
    """Gains of 2, 1 and 3: their sum of 6 has an error of sqrt(2), which is what they are apart from 2."""
    columns = filled(
        test_ratings=[1, 1, 1],
        squared_errors=[1, 1, 1],
        absolute_errors=[1, 1, 1],
        squared_errors_alone=[3, 2, 4],
        squared_differences=[4, 1, 9],
    )
    figures = group_figures(columns, np.ones(3, dtype=np.bool_))
    assert figures["gain_p"] == pytest.approx(2 * norm.sf(6 / np.sqrt(2)))
