"""What a device contributes of a rated profile: vectors of norm 1 at most, whatever it is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.secret_sets.contributions import Part, ProfileContributions, ProfileLayout
from dprec.sums import UNIT, TrustedAggregation
from dprec.wire import ItemTable
from tests.make import STARS

ITEMS, WIDTH = 7, 3

PROFILES = st.lists(st.dictionaries(st.integers(0, ITEMS - 1), st.integers(1, 5)), min_size=1, max_size=6)
FIRST: tuple[tuple[Part, float], ...] = (("counts", 0.6), ("residuals", 0.4))
SECOND: tuple[tuple[Part, float], ...] = (
    ("residuals", 0.5),
    ("features", 0.2),
    ("profiles", 0.2),
    ("tastes", 0.1),
)


def layout(shares: tuple[tuple[Part, float], ...], size: float = 1.0) -> ProfileLayout:
    random = np.random.default_rng(0)
    table = ItemTable.of_biases(np.arange(4.0), random.normal(0, size, ITEMS), np.zeros(ITEMS))
    return ProfileLayout(shares, replace(table, embeddings=random.normal(0, size, (ITEMS, WIDTH))), STARS)


LAYOUTS = [layout(FIRST), layout(SECOND), layout(SECOND, 0.0), layout(SECOND, 300.0)]


def flat(profiles: list[dict[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = [len(each) for each in profiles]
    cells = [cell for each in profiles for cell in sorted(each.items())]
    items, levels = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    return (
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        items.astype(np.int32),
        levels.astype(np.uint8),
    )


def unit(values: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(values)
    return values / norm if norm > 1e-6 else 0 * values


def dense(own: ProfileLayout, profile: dict[int, int]) -> np.ndarray:
    """Return the vector of a profile, made from its definition."""
    rated, residuals = np.zeros(ITEMS), np.zeros(ITEMS)
    items = sorted(profile)
    if items:
        rated[items] = 1
        left = np.array([profile[item] for item in items]) - own.table.means[items]
        residuals[items] = left - left.mean()
    features = own.table.embeddings
    of_raters = rated[:, None] * (rated @ features - features)
    parts = {
        "counts": rated,
        "residuals": residuals,
        "features": residuals @ features,
        "profiles": of_raters.ravel(),
        "tastes": (residuals[:, None] * (residuals @ features - residuals[:, None] * features)).ravel(),
    }
    return np.concatenate([np.sqrt(share) * unit(parts[part]) for part, share in own.shares])


@pytest.mark.parametrize("own", LAYOUTS)
@given(profiles=PROFILES)
def test_vectors_are_those_of_the_profiles_and_no_longer_than_one(
    own: ProfileLayout, profiles: list[dict[int, int]]
) -> None:
    vectors = ProfileContributions(*flat(profiles)).vectors(own)
    numbers = vectors.numbers[:, 0]
    for user, profile in enumerate(profiles):
        cells = slice(vectors.indptr[user], vectors.indptr[user + 1])
        assert (np.diff(vectors.rows[cells]) > 0).all()
        found = np.zeros(own.n_rows)
        found[vectors.rows[cells]] = numbers[cells] * UNIT
        assert np.allclose(found, dense(own, profile), rtol=0, atol=1e-9)
        assert sum(int(number) ** 2 for number in numbers[cells]) <= int(1 / UNIT) ** 2


@pytest.mark.parametrize("own", LAYOUTS[:2])
@given(profiles=PROFILES, cut=st.integers(0, 6))
def test_sums_do_not_depend_on_partitions(
    own: ProfileLayout, profiles: list[dict[int, int]], cut: int
) -> None:
    given = ProfileContributions(*flat(profiles))
    reports = TrustedAggregation().encode(given, own, 1.0, None)  # type: ignore[arg-type]
    assert [not report for report in reports] == [not profile for profile in profiles]
    valid, whole = own.added_up(reports)
    assert valid.all()
    expected = sum(dense(own, profile) for profile in profiles)
    assert np.allclose(whole[:, 0] * UNIT, expected, rtol=0, atol=1e-8)
    parts = [ProfileContributions(*flat(part)) for part in (profiles[:cut], profiles[cut:]) if part]
    assert np.array_equal(sum(own.added_up(part.encode(own))[1] for part in parts), whole)
    some = given.of_users(slice(0, min(cut, len(profiles))))
    assert some.encode(own) == reports[:cut]
    numbers = some.vectors(own).numbers
    assert np.array_equal(numbers, given.vectors(own).numbers[: len(numbers)])


def test_what_is_no_profile_is_rejected_and_nothing_else() -> None:
    own = layout(SECOND)
    good = ProfileContributions(*flat([{1: 5, 4: 2}])).encode(own)[0]
    bad = [b"\xff\xff\xff\xff\xff", good[:-1], good + b"\1", good[:-1] + b"\0", good[:-1] + b"\6"]
    valid, total = own.added_up([*bad, good, b""])
    assert valid.tolist() == [False] * len(bad) + [True, True]
    assert np.array_equal(total, own.added_up([good])[1])


def test_the_parts_of_a_release_are_in_units_of_their_own() -> None:
    own = layout(SECOND)
    profile = {0: 1, 2: 5, 5: 4}
    parts = {part: (sums, grown) for part, sums, grown in own.parts_of(dense(own, profile)[:, None])}
    assert [sums.size for sums, _ in parts.values()] == [ITEMS, WIDTH, ITEMS * WIDTH, ITEMS * WIDTH]
    assert all(np.linalg.norm(sums) == pytest.approx(1) for sums, _ in parts.values())
    assert parts["features"][1] == pytest.approx(np.sqrt(5))


def test_a_liar_cares_for_how_often_its_target_is_rated_and_for_its_residuals() -> None:
    target = np.array([2])
    assert np.flatnonzero(layout(FIRST).about(target)).tolist() == [2, ITEMS + 2]
    assert np.flatnonzero(layout(SECOND).about(target)).tolist() == [2]
    assert layout(SECOND).about(target).size == layout(SECOND).n_rows
