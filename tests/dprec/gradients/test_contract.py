"""What every kind of gradient report promises."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.completion.local_factors import Profiles, solve_user_factors
from dprec.datasets.synthetic import Synthetic
from dprec.errors import InputError
from dprec.gradients import GRADIENTS, Aggregate, GradientReport, RoundDraws
from dprec.gradients.full import FullGradient
from dprec.gradients.one_bit import OneBitGradient
from dprec.gradients.one_bit_reduced import ReducedOneBitGradient, projection
from dprec.randomness import generator

ITEMS, RANK, USERS = 24, 2, 40
SHAPE = (ITEMS, RANK)
CASES: dict[str, GradientReport] = {
    "one-bit": OneBitGradient(),
    "one-bit-reduced": ReducedOneBitGradient(dimensions=8),
    "full": FullGradient(),
}


def test_every_registered_kind_is_tried() -> None:
    assert sorted(CASES) == sorted(GRADIENTS.kinds)


@pytest.fixture(params=sorted(CASES))
def gradient(request: pytest.FixtureRequest) -> GradientReport:
    return CASES[request.param]


def profiles_of(users: int, *, seed: int = 3) -> Profiles:
    ratings = Synthetic(users=users, items=ITEMS, ratings=users * 8, seed=seed).load()
    ratings = ratings.select(ratings.users % 11 != 5)
    return Profiles(ratings.indptr, ratings.items, ratings.values, ITEMS)


def part(profiles: Profiles, start: int, stop: int) -> Profiles:
    first, last = profiles.indptr[start], profiles.indptr[stop]
    indptr = profiles.indptr[start : stop + 1] - first
    return Profiles(indptr, profiles.items[first:last], profiles.values[first:last], profiles.n_items)


def item_factors() -> NDArray[np.float64]:
    factors = generator(1, "test").normal(0.0, 0.3, SHAPE)
    factors[:, 0] += 1.0
    return factors


def encoded(
    gradient: GradientReport,
    profiles: Profiles,
    *,
    epsilon: float = 2.0,
    first: int = 0,
    round_index: int = 1,
) -> list[bytes]:
    factors = item_factors()
    own = solve_user_factors(profiles, factors, 1.0)
    return gradient.encode(profiles, own, factors, epsilon, RoundDraws(9, round_index, first))


def true_mean(profiles: Profiles) -> NDArray[np.float64]:
    """Return the mean gradient per user, one cell after the other."""
    factors = item_factors()
    own = solve_user_factors(profiles, factors, 1.0)
    total = np.zeros(SHAPE)
    for user, item, rating in zip(profiles.users, profiles.items, profiles.values, strict=True):
        total[item] += -2.0 * own[user] * (rating - own[user] @ factors[item])
    return total / profiles.n_users


def same(one: Aggregate, other: Aggregate) -> bool:
    raters = (one.raters is None) == (other.raters is None) and (
        one.raters is None or other.raters is None or one.raters.tolist() == other.raters.tolist()
    )
    return raters and one.users == other.users and one.total.tolist() == other.total.tolist()


@pytest.mark.parametrize("size", [1, 7, 39])
def test_reports_and_their_sum_do_not_depend_on_the_cohort(gradient: GradientReport, size: int) -> None:
    profiles = profiles_of(USERS)
    together = encoded(gradient, profiles)
    assert len(together) == USERS
    alone: list[bytes] = []
    sums = []
    for start in range(0, USERS, size):
        reports = encoded(gradient, part(profiles, start, min(start + size, USERS)), first=start)
        sums.append(gradient.decode(reports, SHAPE)[1])
        alone += reports
    assert alone == together
    valid, aggregate = gradient.decode(together, SHAPE)
    assert valid.all()
    assert aggregate.users == USERS
    total = sums[0]
    for more in sums[1:]:
        total = total + more
    assert same(total, aggregate)


def test_other_rounds_have_other_noise(gradient: GradientReport) -> None:
    profiles = profiles_of(USERS)
    assert (encoded(gradient, profiles) != encoded(gradient, profiles, round_index=2)) == gradient.private
    assert encoded(gradient, profiles) == encoded(gradient, profiles)


def test_private_reports_are_alike_whatever_is_rated(gradient: GradientReport) -> None:
    assert gradient.hides_rated_items == gradient.private
    if gradient.private:
        assert len({len(report) for report in encoded(gradient, profiles_of(USERS))}) == 1


def test_the_loss_of_a_report(gradient: GradientReport) -> None:
    if gradient.private:
        assert 0.5 - 1e-9 <= gradient.exact_epsilon(0.5) <= 0.5
    else:
        assert gradient.exact_epsilon(math.inf) == math.inf


@pytest.mark.parametrize("magnitude", [1e4, 1e20, 3.4e38])
def test_every_finite_broadcast_is_answered_whatever_is_rated(
    gradient: GradientReport, magnitude: float
) -> None:
    """A server may broadcast what it likes; who fails at it must not depend on the ratings."""
    profiles = profiles_of(USERS)
    signs = np.sign(item_factors())
    for factors in (
        np.full(SHAPE, magnitude),
        magnitude * signs,
        np.where(np.arange(ITEMS)[:, None] == 3, magnitude, item_factors()),
    ):
        own = solve_user_factors(profiles, factors, 1.0)
        reports = gradient.encode(profiles, own, factors, 2.0, RoundDraws(9, 1, 0))
        assert len(reports) == USERS
        if gradient.private:
            assert gradient.decode(reports, SHAPE)[0].all()


def hostile(gradient: GradientReport, good: bytes) -> list[bytes]:
    """Return reports that nobody's device would send."""
    changed: list[bytes] = [good + b"\0", good[:-1], good * 300, b"\xff" * len(good), bytes(100_000)]
    if isinstance(gradient, FullGradient):
        numbers = len(good) - RANK * 4
        for value in (np.nan, np.inf, -np.inf, 3e38, 2.0**15):
            changed.append(good[:numbers] + np.full(RANK, value, dtype="<f4").tobytes())
        # A bitmap of one item, with a bit set in the padding, or of an item behind the catalogue.
        row = np.zeros(RANK, dtype="<f4").tobytes()
        for item in range(ITEMS, 27):
            bits = np.zeros(32, dtype=np.uint8)
            bits[:5], bits[5], bits[5 + item] = 1, 1, 1
            changed += [np.packbits(bits).tobytes() + row, np.packbits(bits).tobytes() + 2 * row]
    else:
        changed.append(b"")
    return changed


def rejected(gradient: GradientReport, reports: Sequence[bytes]) -> None:
    honest = encoded(gradient, profiles_of(USERS))
    valid, aggregate = gradient.decode([*honest[:20], *reports, *honest[20:]], SHAPE)
    assert valid.tolist() == [True] * 20 + [False] * len(reports) + [True] * 20
    assert same(aggregate, gradient.decode(honest, SHAPE)[1])


def test_hostile_reports_enter_nothing(gradient: GradientReport) -> None:
    good = next(report for report in encoded(gradient, profiles_of(USERS)) if report)
    for report in hostile(gradient, good):
        rejected(gradient, [report])
    rejected(gradient, hostile(gradient, good))


def test_random_bytes_never_raise_and_move_nothing_far(gradient: GradientReport) -> None:
    draws = generator(5, "bytes")
    reports = [draws.bytes(int(length)) for length in draws.integers(0, 120, 3000)]
    valid, aggregate = gradient.decode(reports, SHAPE)
    assert aggregate.users == int(valid.sum())
    if aggregate.users:
        mean = gradient.gradient(aggregate, SHAPE, 1.0, 9)
        assert mean.shape == SHAPE
        assert np.isfinite(mean).all()
    valid, aggregate = gradient.decode([], SHAPE)
    assert valid.size == aggregate.users == 0


def test_the_full_gradient_is_the_mean_over_all_who_answered() -> None:
    profiles = profiles_of(USERS)
    _, aggregate = FullGradient().decode(encoded(FullGradient(), profiles), SHAPE)
    mean = FullGradient().gradient(aggregate, SHAPE, math.inf, 9)
    np.testing.assert_allclose(mean, true_mean(profiles), atol=1e-6)
    assert aggregate.raters is not None
    assert aggregate.raters.tolist() == np.bincount(profiles.items, minlength=ITEMS).tolist()


def clipped_mean(profiles: Profiles) -> NDArray[np.float64]:
    """Return the mean over users of their gradients, every coordinate clipped to [-1, 1]."""
    factors = item_factors()
    own = solve_user_factors(profiles, factors, 1.0)
    errors = profiles.residuals(own, factors)
    cells = np.clip(-2.0 * own[profiles.users] * errors[:, None], -1.0, 1.0)
    total = np.zeros(SHAPE)
    np.add.at(total, profiles.items, cells)
    return total / profiles.n_users


def error_of(users: int, epsilon: float) -> float:
    """Return the root of the mean squared error of the estimated gradient."""
    profiles = profiles_of(users)
    gradient = OneBitGradient()
    _, aggregate = gradient.decode(encoded(gradient, profiles, epsilon=epsilon), SHAPE)
    estimate = gradient.gradient(aggregate, SHAPE, epsilon, 9)
    return float(np.sqrt(np.mean((estimate - clipped_mean(profiles)) ** 2)))


def test_the_error_falls_with_the_root_of_the_users() -> None:
    """48 coordinates: the error is within 45 % of its deviation but for 1e-6 of the seeds; one is fixed."""
    epsilon = 0.5
    deviation = OneBitGradient().noise_deviation(SHAPE, epsilon)
    errors = {users: error_of(users, epsilon) for users in (1_000, 16_000, 256_000)}
    for users, error in errors.items():
        assert error * math.sqrt(users) == pytest.approx(deviation, rel=0.45)
    slope = math.log(errors[256_000] / errors[1_000]) / math.log(256)
    assert slope == pytest.approx(-0.5, abs=0.12)


def test_the_reduced_gradient_estimates_the_projected_one() -> None:
    """Every one of 16 coordinates within 5.5 deviations: false alarm 16 x 4e-8; the seed is fixed."""
    users, epsilon, gradient = 40_000, 3.0, ReducedOneBitGradient(dimensions=8)
    profiles, factors = profiles_of(users), item_factors()
    own = solve_user_factors(profiles, factors, 1.0)
    cells = -2.0 * own[profiles.users] * profiles.residuals(own, factors)[:, None]
    shared = projection(9, 8, ITEMS)
    projected = np.zeros((users, 8, RANK))
    np.add.at(projected, profiles.users, shared.T[profiles.items][:, :, None] * cells[:, None, :])
    expected = np.clip(projected, -1.0, 1.0).mean(axis=0)
    _, aggregate = gradient.decode(encoded(gradient, profiles, epsilon=epsilon), SHAPE)
    estimate = gradient.gradient(aggregate, SHAPE, epsilon, 9)
    limit = 5.5 * gradient.noise_deviation(SHAPE, epsilon) / math.sqrt(users)
    np.testing.assert_allclose(shared @ estimate, expected, atol=limit)


def test_a_projection_to_more_dimensions_than_items_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        ReducedOneBitGradient(dimensions=ITEMS + 1).check(SHAPE)
    assert caught.value.where == "dimensions"
    ReducedOneBitGradient(dimensions=ITEMS).check(SHAPE)
