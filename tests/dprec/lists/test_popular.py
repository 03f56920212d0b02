"""Searches for popular items: which items share numbers, what is looked into, and what is found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.lists.popular import PopularityPlan, PopularitySearch, least_numbers, stages_of

EVERY = [(12, 16, 2), (12, 64, 3), (41_000, 20_000, 2), (41_000, 4_000, 3), (1_000_000, 90_000, 3)]


@given(n_items=st.integers(1, 2_000_000), more=st.integers(0, 200_000), stages=st.sampled_from([1, 2, 3]))
def test_a_plan_keeps_to_its_numbers_and_ends_with_items_by_themselves(
    n_items: int, more: int, stages: int
) -> None:
    numbers = least_numbers(n_items, stages) + more
    plan = PopularityPlan.of(n_items, numbers, stages)
    assert len(plan.stages) == stages
    assert sum(stage.rows for stage in plan.stages) <= numbers
    assert plan.stages[0].places == n_items
    assert plan.stages[-1].bucket == 1
    assert sum(stage.share for stage in plan.stages) == pytest.approx(1)
    assert all(0 < kept <= stage.rows for kept, stage in zip(plan.kept, plan.stages, strict=False))
    if stages > 1:
        with pytest.raises(ValueError, match="at least"):
            PopularityPlan.of(n_items, least_numbers(n_items, stages) - 1, stages)


@given(n_items=st.integers(17, 2_000_000), numbers=st.integers(1, 2_000_000))
def test_all_items_have_a_number_where_there_are_enough(n_items: int, numbers: int) -> None:
    assert (stages_of(n_items, numbers) == 1) == (numbers >= n_items)
    if numbers >= least_numbers(n_items, 2):
        PopularityPlan.of(n_items, numbers)


@pytest.mark.parametrize(("n_items", "numbers", "stages"), EVERY)
def test_items_that_share_a_number_do_not_share_the_next(n_items: int, numbers: int, stages: int) -> None:
    search = PopularitySearch.begun(PopularityPlan.of(n_items, numbers, stages))
    items = np.arange(n_items)
    before, left = search.rows(items, 0)
    assert left.all()
    for stage in range(1, stages):
        sizes = np.bincount(before[left])
        assert sizes.max() <= search.plan.stages[stage - 1].bucket
        rows, present = search.rows(items, stage)
        # Those of the buckets that are looked into, and no others.
        assert np.array_equal(present, left & np.isin(before, search.chosen[stage - 1]))
        pairs = np.column_stack([before[present], rows[present]])
        assert len(np.unique(pairs, axis=0)) == len(pairs) or n_items == 12
        assert rows[present].max() < search.plan.stages[stage].rows
        before, left = rows, present
    assert np.bincount(before[left]).max() == 1


def found(plan: PopularityPlan, counts: np.ndarray, deviation: float) -> np.ndarray:
    """Return the popularity that a search finds in sums of counts with noise."""
    random, search, sums = np.random.default_rng(3), PopularitySearch.begun(plan), {}
    for stage, planned in enumerate(plan.stages):
        rows, present = search.rows(np.arange(counts.size), stage)
        noisy = np.bincount(rows[present], counts[present], planned.rows)
        noisy += deviation / np.sqrt(planned.share) * random.standard_normal(planned.rows)
        sums[stage] = noisy, deviation / np.sqrt(planned.share)
        search = search.narrowed(stage, noisy)
    return search.popularity(sums)


@pytest.mark.parametrize(("n_items", "numbers", "stages"), EVERY[2:])
def test_what_is_popular_is_found_and_what_is_not_shares_what_is_left(
    n_items: int, numbers: int, stages: int
) -> None:
    counts = np.where(np.arange(n_items) % (n_items // 40) == 7, 2_000.0, 1.0)
    popular = np.flatnonzero(counts > 1)
    popularity = found(PopularityPlan.of(n_items, numbers, stages), counts, 20.0)
    assert np.array_equal(np.sort(np.argsort(-popularity)[: popular.size]), popular)
    # Noise of a number in the last stage is at most 34; 6 deviations have a probability below 1e-8 for each.
    assert np.abs(popularity[popular] - 2_000).max() < 204
    others = np.delete(popularity, popular)
    assert (others > 0).all()
    assert others.mean() == pytest.approx(1, abs=0.5)


def test_a_stage_that_failed_teaches_nothing_and_the_next_looks_into_the_first_buckets() -> None:
    plan = PopularityPlan.of(400, 200, 2)
    search, none = PopularitySearch.begun(plan), PopularitySearch.begun(plan).popularity({})
    assert np.array_equal(none, np.ones(400))
    rows, present = search.rows(np.arange(400), 1)
    assert np.array_equal(np.unique(search.rows(np.arange(400), 0)[0][present]), np.arange(plan.kept[0]))
    noisy = np.zeros(plan.stages[1].rows)
    noisy[rows[present][0]] = 50.0
    late = search.popularity({1: (noisy, 1.0)})
    assert late.argmax() == np.flatnonzero(present)[0]


def test_a_search_of_all_items_is_their_own_order() -> None:
    search = PopularitySearch.of_all(50)
    rows, present = search.rows(np.arange(50), 0)
    assert np.array_equal(rows, np.arange(50))
    assert present.all()
    assert search.narrowed(0, np.zeros(50)) is search
