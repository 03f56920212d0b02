import math
from typing import Literal

import numpy as np
import pytest
import scipy.sparse as sp

from dprec.completion import COMPLETIONS, NuclearNorm, Observations, spectral
from dprec.randomness import generator
from tests import make
from tests.make import STARS
from tests.refusals import refused_at


@pytest.fixture(params=[True, False], ids=["exact", "lanczos"])
def decomposed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectral, "computed_densely", lambda _shape, _observed: request.param)


def planted(shape: tuple[int, int], share: float, noise: float = 0.0) -> tuple[Observations, np.ndarray]:
    random = generator(0, "nuclear")
    truth = random.normal(size=(shape[0], 3)) @ random.normal(size=(shape[1], 3)).T
    users, items = np.nonzero(random.random(shape) < share)
    values = truth[users, items] + noise * random.normal(size=users.size)
    return make.observations(users, items, values, shape), truth


def completed_matrix(observations: Observations, **options: float) -> tuple[np.ndarray, dict]:
    completed = COMPLETIONS["nuclear-norm"](**options).fit(observations, seed=0)
    users, items = np.divmod(np.arange(np.prod(observations.shape)), observations.shape[1])
    return completed.predict(users, items).reshape(observations.shape), completed.diagnostics


def distance(matrix: np.ndarray, observations: Observations) -> float:
    return float(np.linalg.norm(matrix[observations.users, observations.items] - observations.values))


@pytest.mark.usefixtures("decomposed")
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_the_solution_is_optimal(share: float) -> None:
    """The conditions of Karush, Kuhn and Tucker, which only the solution of Eq. (4) meets."""
    observations, _ = planted((60, 45), 0.5, noise=0.5)
    rho = share * np.linalg.norm(observations.values - observations.mean)
    found, diagnostics = completed_matrix(observations, rho=rho)
    assert distance(found, observations) == pytest.approx(rho, rel=1e-3)
    lacking = np.zeros(observations.shape)
    lacking[observations.users, observations.items] = (
        observations.values - found[observations.users, observations.items]
    )
    centred = found - observations.mean
    values = np.linalg.svd(centred, compute_uv=False)
    assert diagnostics["nuclear_norm"] == pytest.approx(values.sum(), rel=1e-9)
    # What the data still ask for is a subgradient of the nuclear norm, times the multiplier.
    assert np.linalg.norm(lacking, 2) == pytest.approx(diagnostics["multiplier"], rel=0.02)
    assert np.sum(lacking * centred) == pytest.approx(diagnostics["multiplier"] * values.sum(), rel=0.01)


def test_the_default_rho_is_that_of_the_noise() -> None:
    observations, truth = planted((60, 45), 0.5, noise=0.8)
    known = Observations.of(
        observations.users, observations.items, observations.values, observations.shape, STARS, 0.64
    )
    found, diagnostics = completed_matrix(known)
    assert diagnostics["rho"] == pytest.approx(0.8 * np.sqrt(known.values.size))
    overfitted, _ = completed_matrix(known, rho=0.2 * diagnostics["rho"])
    assert np.linalg.norm(found - truth) < np.linalg.norm(overfitted - truth)
    _, unknown = completed_matrix(observations, rating_noise=0.1)
    assert unknown["rho"] == pytest.approx(0.4 * np.sqrt(known.values.size))


def test_a_rho_that_cannot_be_met_is_refused_with_one_that_can() -> None:
    observations, _ = planted((60, 45), 0.5, noise=0.5)
    with refused_at("rho") as refused:
        COMPLETIONS["nuclear-norm"](rho=0.1, max_rank=3).fit(observations, seed=0)
    reached = float(refused.value.accepted.split()[2].rstrip(","))
    assert 0.1 < reached < math.inf
    assert COMPLETIONS["nuclear-norm"](rho=reached * 1.001, max_rank=3).fit(observations, seed=0)
    with refused_at("rho"):
        COMPLETIONS["nuclear-norm"](rho=-1.0)


@pytest.mark.parametrize(("center", "base"), [("none", 0.0), ("middle", 3.0), ("mean", None)])
def test_what_lies_within_rho_of_the_center_is_predicted_there(
    center: Literal["none", "middle", "mean"], base: float | None
) -> None:
    observations, _ = planted((30, 20), 0.5)
    expected = observations.mean if base is None else base
    norm = float(np.linalg.norm(observations.values - expected))
    completed = NuclearNorm(rho=norm, center=center).fit(observations, seed=0)
    assert completed.predict(np.arange(4), np.arange(4)).tolist() == pytest.approx([expected] * 4)
    (note,) = completed.notes
    named = {"none": "0", "middle": "the middle of the scale", "mean": "their mean"}[center]
    assert f"the data deviate from {named} by {norm:.4g}" in note
    nearer = NuclearNorm(rho=norm / 2, center=center).fit(observations, seed=0)
    fitted = nearer.predict(observations.users, observations.items)
    assert np.linalg.norm(fitted - observations.values) == pytest.approx(norm / 2, rel=1e-3)


def small() -> Observations:
    random = generator(0, "svd")
    users, items = np.nonzero(random.random((12, 9)) < 0.5)
    values = random.integers(1, 6, users.size).astype(float)
    shape = (12, 9)
    return make.observations(users, items, values, shape)


def by_hand(cells: Observations, rank: int) -> np.ndarray:
    matrix = np.full(cells.shape, np.nan)
    matrix[cells.users, cells.items] = cells.values
    user_means, item_means = np.nanmean(matrix, axis=1), np.nanmean(matrix, axis=0)
    imputed = np.where(np.isnan(matrix), item_means, matrix) - user_means[:, None]
    left, values, right = np.linalg.svd(imputed)
    return user_means[:, None] + (left[:, :rank] * values[:rank]) @ right[:rank]


@pytest.mark.usefixtures("decomposed")
def test_it_is_the_svd_of_the_imputed_matrix() -> None:
    observations = small()
    completed = COMPLETIONS["svd"](rank=3).fit(observations, seed=0)
    users, items = np.divmod(np.arange(12 * 9), 9)
    np.testing.assert_allclose(completed.predict(users, items), by_hand(observations, 3).ravel(), atol=1e-9)


@pytest.mark.parametrize("shape", [(20, 30), (30, 20)])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_large_matrix_of_zeros_or_of_rank_1_is_decomposed(
    rank: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spectral, "DENSE_CELLS", 1)
    left, right = np.ones((shape[0], 2)), np.ones((shape[1], 2))
    # Two parts that cancel, or of which one is left.
    right[:, 1] = -1 if rank == 0 else 0
    matrix = spectral.SparsePlusLowRank(sp.csr_array(shape), left, right)
    leading = matrix.leading(4, seed=1)
    np.testing.assert_allclose(leading.values, [rank * np.sqrt(600), 0, 0, 0], atol=1e-12)
    for vectors in (leading.left, leading.right):
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)


@pytest.mark.parametrize(("shape", "observed"), [((2000, 2000), 0), ((4000, 2000), 4_000_000)])
def test_what_is_small_or_mostly_observed_is_dense(shape: tuple[int, int], observed: int) -> None:
    assert spectral.computed_densely(shape, observed)
    assert not spectral.computed_densely((shape[0] + 1, shape[1]), observed)
