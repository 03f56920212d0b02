import platform
from dataclasses import replace
from pathlib import Path

import pytest

from clients import shards
from clients.places import folder_inside, place_of
from clients.population import open_population
from clients.shards import INDEX, ShardedRatings, write_shards
from dprec.accounting import PrivacyBudget
from dprec.errors import InputError
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.ratings import Ratings, RatingScale
from tests import make
from tests.builders import populated
from tests.make import synthetic
from tests.refusals import refused_at

USERS, NODE = 23, 4


@pytest.fixture
def ratings() -> Ratings:
    """Return ratings among which the first and the last user, and some others, have none."""
    return synthetic(USERS, 30, 250, without=(0, 5, 6, USERS - 1))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut shards of about 40 ratings; no shard is still open from another test."""
    monkeypatch.setattr(shards, "_RATINGS_PER_SHARD", 40)
    shards._opened.cache_clear()


def install(folder: Path, ratings: Ratings, place: Path) -> None:
    protocol = make.one_shot(BoundedLaplace(), PrivacyBudget(epsilon=1.0))
    populated(folder, ratings, protocol, NODE, seed=0, shards=place)


@pytest.mark.parametrize("continuous", [False, True])
def test_users_read_the_same_wherever_shards_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ratings: Ratings, *, continuous: bool
) -> None:
    if continuous:
        scale = RatingScale(ratings.scale.values, continuous=True)
        ratings = replace(ratings, scale=scale, exact=ratings.values + 0.01)
    for most in (1, 40, 10_000):
        monkeypatch.setattr(shards, "_RATINGS_PER_SHARD", most)
        folder = tmp_path / str(most)
        index = write_shards(folder, ratings)
        assert len(index.sizes) == {1: 20, 40: 6, 10_000: 1}[most]
        read = ShardedRatings.open(folder)
        assert read.n_users == USERS
        for start, stop in ((0, USERS), (0, 0), (0, 1), (5, 7), (3, 20), (USERS, USERS)):
            rows = slice(ratings.indptr[start], ratings.indptr[stop])
            profiles = read.profiles(start, stop)
            assert profiles.counts.tolist() == ratings.counts[start:stop].tolist()
            assert profiles.items.tolist() == ratings.items[rows].tolist()
            assert profiles.levels.tolist() == ratings.levels[rows].tolist()
            exact = None if ratings.exact is None else ratings.exact[rows].tolist()
            assert (None if profiles.exact is None else profiles.exact.tolist()) == exact


def test_a_run_with_the_same_ratings_uses_the_shards_that_are_there(tmp_path: Path, ratings: Ratings) -> None:
    place = tmp_path / "shared"
    install(tmp_path / "one", ratings, place)
    written = {path: path.stat().st_mtime_ns for path in place.iterdir()}
    install(tmp_path / "two", ratings, place)
    assert {path: path.stat().st_mtime_ns for path in place.iterdir()} == written
    assert open_population(str(tmp_path / "two")).partition(2).items.size


def test_the_population_of_another_run_is_refused(tmp_path: Path, ratings: Ratings) -> None:
    place = tmp_path / "shared"
    install(tmp_path / "one", ratings, place)
    others = replace(ratings, levels=6 - ratings.levels)
    with refused_at("shared"):
        install(tmp_path / "two", others, place)
    # Nor does a node read ratings that were exchanged after its run began.
    write_shards(tmp_path / "others", others)
    (tmp_path / "others" / INDEX).replace(place / INDEX)
    with refused_at("shared"):
        open_population(str(tmp_path / "one"))


def test_a_shard_that_is_cut_short_is_named(tmp_path: Path, ratings: Ratings) -> None:
    place = tmp_path / "shared"
    install(tmp_path / "one", ratings, place)
    shard = place / "shard-00002.npy"
    shard.write_bytes(shard.read_bytes()[:-1])
    with refused_at("shard-00002.npy"):
        open_population(str(tmp_path / "one")).ratings.profiles(0, USERS)
    with refused_at("shard-00002.npy"):
        install(tmp_path / "two", ratings, place)
    shard.unlink()
    with refused_at("shard-00002.npy"):
        install(tmp_path / "three", ratings, place)


@pytest.mark.parametrize("name", ["shard-00000.npy", INDEX])
def test_a_node_that_does_not_see_a_file_is_named(tmp_path: Path, ratings: Ratings, name: str) -> None:
    place = tmp_path / "shared"
    install(tmp_path / "one", ratings, place)
    (place / name).unlink()
    with pytest.raises(InputError, match=f"{name}: not on {platform.node()}; accepted: .*--devices-dir"):
        open_population(str(tmp_path / "one")).partition(0).items  # noqa: B018


def test_a_place_may_be_at_a_url(tmp_path: Path, ratings: Ratings) -> None:
    pytest.importorskip("upath")
    place = place_of("memory://population/shards")
    with folder_inside(place) as session:
        install(session / "00000001", ratings, place)
        population = open_population(f"{session}/00000001")
        assert population.key == "00000001"
        assert population.ratings.profiles(0, USERS).items.tolist() == ratings.items.tolist()
    assert not session.exists()
    assert (place / INDEX).exists()
