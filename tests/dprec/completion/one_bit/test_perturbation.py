"""What the noise of a trusted server really guarantees, by exact computation on small matrices."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dprec.binarization import binary_scale
from dprec.completion import Link, Observations, OneBit, OutputPerturbation, SignLikelihood
from dprec.completion.one_bit.perturbation import (
    Calibration,
    NoisyMatrix,
    ObjectivePerturbation,
    curvature_ratio,
    objective_noise,
    output_noise,
    output_sensitivity,
    slope_bound_of,
)
from dprec.completion.one_bit.solver import steepness
from dprec.errors import InputError
from dprec.randomness import NoiseGrid, generator
from tests import make
from tests.distributions import check_drawn, check_independent
from tests.refusals import refused_at

EPSILON = 1.0
SIDE = 6
CELLS = np.divmod(np.arange(SIDE * SIDE), SIDE)


def signs_of(changed: bool) -> Observations:
    """Six users who agree on five items; the last user has one rating, which may change."""
    random = generator(0, "audit")
    user_factors = np.where(random.random(SIDE) < 0.5, 1.0, -1.0)
    rows = [(user, item) for user in range(SIDE - 1) for item in range(SIDE)] + [(SIDE - 1, 0)]
    users, items = np.array(rows, dtype=np.int32).T
    values = user_factors[items]
    values[-1] *= -1 if changed else 1
    return make.observations(users, items, values, (SIDE, SIDE), binary_scale())


@pytest.mark.parametrize("bounded", [False, True])
def test_output_perturbation_as_published_leaks_more_than_its_epsilon(bounded: bool) -> None:
    completion = OneBit(bounded=bounded)

    def loss(calibration: Calibration) -> float:
        """Return the exact loss between two matrices of ratings that differ in one.

        Laplace noise of scale b on every entry makes outputs beyond both estimates e^(L1 / b) times
        likelier under one than under the other, L1 being the distance of the estimates.
        """
        perturbation = OutputPerturbation(calibration=calibration)
        scale = perturbation.noise(completion, (SIDE, SIDE), EPSILON).scale
        one, other = (
            np.clip(completion.fit(signs_of(changed), 0).hidden(*CELLS), -completion.alpha, completion.alpha)
            for changed in (False, True)
        )
        return float(np.abs(one - other).sum()) / scale

    assert loss("published") > 1.5 * EPSILON
    assert loss("sound") <= EPSILON


def test_what_is_published_is_reported_with_what_it_proves() -> None:
    shape = (30, 20)
    published = output_noise(shape, 0.5, None, 2.0, "published")
    assert published.scale == pytest.approx(2 * 0.5 / 2.0)
    assert published.per_rating == pytest.approx(2.0 * 600)
    sound = output_noise(shape, 0.5, None, 2.0, "sound")
    assert sound.per_rating == 2.0
    assert sound.scale == pytest.approx(600 * published.scale)
    # A small nuclear ball is narrower than the box of the entries.
    assert output_sensitivity(shape, 0.5, 1.0) == pytest.approx(2 * math.sqrt(600))
    assert output_sensitivity(shape, 0.5, 1e9) == pytest.approx(600)


@pytest.mark.parametrize("bounded", [False, True])
def test_objective_perturbation_with_the_logistic_link_is_the_laplace_mechanism_on_bits(
    bounded: bool,
) -> None:
    # Changing a bit and its noise alike changes nothing: the solution is a function of Y - H.
    before, after = signs_of(False), signs_of(True)
    noise = generator(1, "objective").laplace(size=before.values.size)
    bits = [(observations.values > 0).astype(float) for observations in (before, after)]
    completion = OneBit(bounded=bounded)
    one = completion.fit_perturbed(before, noise, 0)
    other = completion.fit_perturbed(after, noise + bits[1] - bits[0], 0)
    np.testing.assert_allclose(one.hidden(*CELLS), other.hidden(*CELLS), atol=1e-9)
    for calibration in ("published", "sound"):
        noise_of = objective_noise(Link(), 1.0, 0.7, calibration, bounded=bounded)  # type: ignore[arg-type]
        assert (noise_of.scale, noise_of.per_rating) == pytest.approx((1 / 0.7, 0.7))


def test_objective_perturbation_with_the_logistic_link_computes_with_noisy_bits_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # To the last bit: a change of the rating and of its noise that cancel is a change of nothing.
    before, after = signs_of(False), signs_of(True)
    grid = objective_noise(Link(), 1.0, EPSILON, "published", bounded=False).grid
    noise = grid.noise(0, "test", np.arange(before.values.size))
    moved = ((after.values - before.values) / 2).astype(np.int64) * grid.on_grid(np.ones(1))
    solutions = []
    for observations, drawn in ((before, noise), (after, noise + moved)):
        monkeypatch.setattr(NoiseGrid, "noise", lambda *_, drawn=drawn: drawn.copy())
        completed = ObjectivePerturbation().complete(OneBit(biases=True), observations, EPSILON, 0)
        solutions.append(completed.hidden(*CELLS))
    assert np.count_nonzero(moved) == 1
    np.testing.assert_array_equal(*solutions)


def test_what_output_perturbation_releases_lies_on_the_grid() -> None:
    noisy = OutputPerturbation().complete(OneBit(), signs_of(False), EPSILON, seed=3)
    assert isinstance(noisy, NoisyMatrix)
    steps = noisy.hidden(*CELLS) / noisy.grid.step
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_output_perturbation_adds_its_noise_to_entries_within_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NoiseGrid, "noise", lambda *_: np.int64(0))
    completion = OneBit(alpha=0.1, biases=True)
    assert np.abs(completion.fit(signs_of(False), 0).hidden(*CELLS)).max() > 1.0
    noisy = OutputPerturbation().complete(completion, signs_of(False), EPSILON, seed=3)
    assert np.abs(noisy.hidden(*CELLS)).max() == pytest.approx(0.1)


LARGE = 200
"""Rows and columns of a matrix with enough cells to find an error of 5 % of a Laplace deviation."""


def all_of_one_sign() -> Observations:
    users, items = (each.astype(np.int32) for each in np.indices((LARGE, LARGE)).reshape(2, -1))
    return make.observations(users, items, np.ones(LARGE**2), (LARGE, LARGE), binary_scale())


@pytest.mark.parametrize("link", ["logistic", "gaussian"])
def test_the_noise_on_the_objective_is_laplace_and_each_cells_own(
    link: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    linear: list[NDArray[np.float64]] = []
    monkeypatch.setattr(
        OneBit, "fit_perturbed", lambda completion, seen, noise, *_: linear.append(noise) or seen
    )
    completion, perturbation = OneBit(link=link, alpha=1.0, bounded=True), ObjectivePerturbation()
    for seed in (1, 2):
        perturbation.complete(completion, all_of_one_sign(), EPSILON, seed)
    scale = perturbation.noise(completion, (LARGE, LARGE), EPSILON).scale
    for noise in linear:
        check_drawn(noise, stats.laplace(scale=scale))
    check_independent(*linear)
    check_independent(linear[0][::2], linear[0][1::2])


@pytest.mark.parametrize("calibration", ["published", "sound"])
def test_the_noise_on_the_estimate_is_laplace_and_each_cells_own(calibration: Calibration) -> None:
    completion, perturbation = OneBit(iterations=1), OutputPerturbation(calibration=calibration)
    cells = np.indices((LARGE, LARGE)).reshape(2, -1)
    exact = completion.fit(all_of_one_sign(), 1).hidden(*cells)
    released = perturbation.complete(completion, all_of_one_sign(), EPSILON, seed=1).hidden(*cells)
    noise = released - np.clip(exact, -completion.alpha, completion.alpha)
    check_drawn(noise, stats.laplace(scale=perturbation.noise(completion, (LARGE, LARGE), EPSILON).scale))
    check_independent(noise[::2], noise[1::2])
    check_independent(noise.reshape(LARGE, LARGE)[::2], noise.reshape(LARGE, LARGE)[1::2])


def loss_of_one_cell(link: Link, alpha: float, scale: float) -> float:
    """Return the exact loss of the minimiser of l(y x) + H x over |x| <= alpha between y = +1 and -1.

    Its density at x is that of H = -l'(x) times l''(x), and its masses at +-alpha are tails of H.
    """
    x = np.linspace(-alpha, alpha, 4001)
    densities: list[NDArray[np.float64]] = []
    for sign in (1.0, -1.0):
        likelihood = SignLikelihood.of_signs(link, np.full(x.size, sign))
        slopes = likelihood.value_and_slopes(x)[1]
        inner = np.exp(-np.abs(slopes) / scale) / (2 * scale) * link.curvature(sign * x)
        low, high = slopes[0], slopes[-1]  # x = -alpha where H >= -l'(-alpha), and so on.
        tails = [tail(-low / scale), tail(high / scale)]
        densities.append(np.concatenate([inner, tails]))
    return float(np.max(np.abs(np.log(densities[0] / densities[1]))))


def tail(t: float) -> float:
    """Return Pr(standard Laplace >= t)."""
    return math.exp(-t) / 2 if t >= 0 else 1 - math.exp(t) / 2


@pytest.mark.parametrize(("alpha", "epsilon"), [(0.5, 0.5), (1.0, 1.0), (2.0, 3.0)])
def test_objective_perturbation_with_the_gaussian_link_keeps_what_is_proved(
    alpha: float, epsilon: float
) -> None:
    link = Link(1.0)
    published = objective_noise(link, alpha, epsilon, "published", bounded=True, slope_bound="tight")
    sound = objective_noise(link, alpha, epsilon, "sound", bounded=True, slope_bound="tight")
    assert epsilon < published.per_rating
    assert loss_of_one_cell(link, alpha, published.scale) <= published.per_rating + 1e-9
    assert loss_of_one_cell(link, alpha, sound.scale) <= epsilon + 1e-9
    assert sound.scale > published.scale


@pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
def test_the_audit_of_one_cell_finds_no_more_than_the_logistic_loss(alpha: float) -> None:
    assert loss_of_one_cell(Link(), alpha, 1 / 0.7) <= 0.7
    assert curvature_ratio(Link(), 3.0) == pytest.approx(0, abs=1e-12)


def test_delta_is_the_papers_bound_or_the_maximum_below_it() -> None:
    link = Link(1.0)
    published = objective_noise(link, 1.0, 2.0, "published", bounded=True)
    tight = objective_noise(link, 1.0, 2.0, "published", bounded=True, slope_bound="tight")
    # 2 phi(0) / Phi(-1), and phi(1) / (Phi(1) Phi(-1)), from tables.
    assert published.scale == pytest.approx(5.0289 / 2, abs=1e-4)
    assert tight.scale == pytest.approx(1.8127 / 2, abs=1e-4)
    assert tight.scale == pytest.approx(steepness(link, 1.0) / 2)
    assert tight.per_rating == pytest.approx(2.0 + curvature_ratio(link, 1.0))
    assert loss_of_one_cell(link, 1.0, published.scale) <= published.per_rating < tight.per_rating
    assert slope_bound_of(Link(), 7.0, "published") == 1.0
    assert math.isfinite(slope_bound_of(link, 100.0, "published"))


def test_without_a_bound_on_the_entries_nothing_is_proved() -> None:
    link = Link(1.0)
    assert math.isinf(objective_noise(link, 1.0, 2.0, "published", bounded=False).per_rating)
    with pytest.raises(InputError, match="bounded=true --set protocol"):
        objective_noise(link, 1.0, 2.0, "sound", bounded=False)
    with pytest.raises(InputError, match="leaves no step of 1 rounded numbers; accepted: a larger epsilon"):
        objective_noise(Link(), 1.0, 1e-10, "published", bounded=False)
    with refused_at("privacy.epsilon"):
        objective_noise(link, 1.0, 0.5, "sound", bounded=True)


def test_noise_on_an_entry_does_not_depend_on_the_others_that_are_asked_for() -> None:
    seen = signs_of(False)
    noisy = OutputPerturbation().complete(OneBit(), seen, EPSILON, seed=3)
    whole = noisy.hidden(*CELLS)
    some = generator(0, "some").permutation(SIDE * SIDE)[:17]
    np.testing.assert_array_equal(noisy.hidden(CELLS[0][some], CELLS[1][some]), whole[some])
    assert noisy.hidden(CELLS[0][:0], CELLS[1][:0]).shape == (0,)
    assert np.unique(whole).size == SIDE * SIDE
    again = OutputPerturbation().complete(OneBit(), seen, EPSILON, seed=4)
    assert not np.any(again.hidden(*CELLS) == whole)
    assert not np.array_equal(
        ObjectivePerturbation().complete(OneBit(), seen, EPSILON, seed=3).hidden(*CELLS),
        ObjectivePerturbation().complete(OneBit(), seen, EPSILON, seed=4).hidden(*CELLS),
    )
