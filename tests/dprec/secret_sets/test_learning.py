"""What the server learns from sums: popularity, biases, embeddings, and the rounds that lead there."""

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.errors import SettingError
from dprec.gradients import Aggregate
from dprec.randomness import ReleaseDraws
from dprec.secret_sets import ProfileDevice, SecretSetOptions, SecretSets
from dprec.secret_sets.learner import TableLearner
from dprec.secret_sets.method import split_at
from dprec.secret_sets.popularity import Counts
from dprec.sums import Releases, TrustedAggregation
from tests.make import STARS

USERS, ITEMS = 2000, 30
OPTIONS = SecretSetOptions(histogram="netflix", split=(0.2, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1))
HALF = np.arange(ITEMS) < ITEMS // 2


def biases() -> Floats:
    """Return the latent biases of the items that `population` rates."""
    return np.random.default_rng(1).normal(0, 0.6, ITEMS) + 0.3 * HALF


def population(seed: int = 0) -> Profiles:
    """Return profiles of two kinds of users, each of whom mostly rates one half of the catalogue."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 2, USERS)[:, None]
    likely = np.where(kinds == HALF, 0.6, 0.15) * np.linspace(1, 0.4, ITEMS)[np.argsort(np.argsort(biases()))]
    users, items = np.nonzero(random.random((USERS, ITEMS)) < likely)
    latent = biases()[items] + random.normal(0, 0.5, USERS)[users] + random.normal(0, 1, users.size)
    levels = np.searchsorted(OPTIONS.cuts(STARS), latent) + 1
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=USERS))]).astype(np.int64)
    return Profiles(indptr, items.astype(np.int32), levels.astype(np.float64), ITEMS)


def a_catalogue() -> Catalogue:
    years = np.random.default_rng(2).normal(0, 1, ITEMS)
    years = (years - years.mean()) / years.std()
    return Catalogue(years[:, None], np.column_stack([HALF, ~HALF]), ("year",), ("left", "right"))


def learned(
    multiplier: float, *, failed: tuple[int, ...] = (), catalogue: Catalogue | None = None, seed: int = 0
) -> tuple[TableLearner, ProfileDevice]:
    """Run the rounds without messages, and return what the server and the devices hold at the end."""
    method, profiles = SecretSets(options=OPTIONS), population()
    multipliers = tuple(multiplier / np.sqrt(share) for share in method.shares)
    learner = method.learner(Releases(USERS, ITEMS, STARS), catalogue, 0)
    for number, noise in enumerate(multipliers, start=1):
        device = method.device(learner.model_bytes(), ITEMS, STARS)
        layout = device.layout(number)
        assert layout.n_rows == learner.layout(number).n_rows
        vectors = device.contributions(profiles, layout, number, np.zeros(0, dtype=np.uint64))
        valid, total = layout.added_up(vectors.encode(layout))
        assert valid.all()
        aggregate, draws = Aggregate(total, None, USERS), ReleaseDraws(seed, number)
        if number not in failed:
            released = TrustedAggregation().release(aggregate, layout, noise, draws)
            learner.learn(number, released, layout, noise, USERS)
    return learner, method.device(learner.learned_bytes(), ITEMS, STARS)


@pytest.mark.parametrize("catalogue", [None, a_catalogue()], ids=["alone", "with public data"])
def test_without_noise_biases_and_popularity_are_recovered(catalogue: Catalogue | None) -> None:
    _, device = learned(0.0, catalogue=catalogue)
    counts = np.bincount(population().items, minlength=ITEMS)
    expected = biases() - np.average(biases(), weights=counts)
    assert np.abs(device.table.means - expected).max() < 0.35
    assert np.corrcoef(device.table.means, expected)[0, 1] > 0.98
    assert np.corrcoef(device.table.numbers[:, 0], np.log(counts))[0, 1] > 0.97


@pytest.mark.parametrize("failed", [(1,), (2,), (3,), (1, 2, 3)])
def test_releases_that_fail_teach_nothing_and_break_nothing(failed: tuple[int, ...]) -> None:
    learner, device = learned(0.0, failed=failed, catalogue=a_catalogue())
    assert np.isfinite(device.predictions(population())).all()
    knows = np.abs(device.table.means).max() > 0
    assert knows == (1 not in failed)
    assert bool(learner.model_bytes()) == knows


def test_counts_are_estimated_between_the_noisy_ones_and_their_prior() -> None:
    random = np.random.default_rng(0)
    public = random.normal(0, 1, (500, 2))
    true = np.exp(1.5 + 0.8 * public[:, 0] + random.normal(0, 0.7, 500))
    noisy = true + random.normal(0, 6, 500)
    alone, helped = (Counts.of(noisy, 6.0, each, 1000).means for each in (public[:, :0], public))
    assert (alone >= 0).all()
    assert np.square(helped - true).mean() < 0.95 * np.square(alone - true).mean()
    assert np.square(alone - true).mean() < 0.7 * np.square(noisy - true).mean()
    exact = Counts.of(true, 1e-3, public[:, :0], 1000)
    assert np.allclose(exact.means, true, rtol=0.1)


def test_the_split_follows_from_public_numbers() -> None:
    splits = [split_at(tau) for tau in (0.0, 1e-5, 1e-4, 1e-3, 1e-2)]
    assert all(sum(split) == pytest.approx(1) for split in splits)
    assert splits[0] == splits[1]
    assert SecretSetOptions().suited(1e-3).split == split_at(1e-3)
    assert OPTIONS.suited(1e-3) == OPTIONS
    SecretSetOptions(split=splits[-1]).check(STARS)
    for split in (
        (0.5,) * 6,
        (0.5, 0.5),
        (1.0, 0, 0, 0, 0, 0),
        (0, 0.5, 0.5, 0, 0, 0),
        (0.5, 0.5, 0, 0, 0, 0),
    ):
        with pytest.raises(SettingError, match="add up to 1"):
            SecretSetOptions(split=split).check(STARS)
    with pytest.raises(SettingError, match="histogram"):
        SecretSetOptions(histogram=(1.0, 2.0)).check(STARS)
