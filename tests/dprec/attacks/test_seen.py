"""What reports say of cells: likelihoods of what is shown, and of what is not, against a loop over cells."""

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.attacks.seen import ServerView, Weighed
from dprec.observations import Observations, RatedSets, SymbolReports
from dprec.ratings import Ratings, RatingScale
from tests import make
from tests.dprec.attacks.games import hidden_rows, seen_by_all

SCALE = RatingScale(np.array([1.0, 2.0, 3.0]))
CHANNEL = np.array([[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]])


def ratings(users: int = 7, items: int = 9, seed: int = 3) -> Ratings:
    return make.random_ratings(users, items, seed=seed, scale=SCALE)


def shown(truth: Ratings, symbols: Ints) -> Observations:
    evidence = SymbolReports((CHANNEL,), symbols, np.zeros(symbols.size, dtype=np.int64))
    shape = truth.n_users, truth.n_items
    return make.observations(truth.users, truth.items, symbols * 1.0, shape, truth.scale, evidence=evidence)


def whole(reading: ServerView) -> tuple[Floats, Floats]:
    blocks: list[Weighed] = list(reading.weighed())
    assert [block.users.start for block in blocks[1:]] == [block.users.stop for block in blocks[:-1]]
    logs = np.concatenate([block.log_likelihoods for block in blocks], axis=1)
    return logs, np.concatenate([block.rated for block in blocks])


def test_a_cell_of_a_hidden_set_weighs_as_its_symbol_does() -> None:
    truth = ratings()
    seen, given, answers = hidden_rows(truth, 1.0, seed=1)
    reading = ServerView.of(seen_by_all(truth, seen), truth)
    assert reading is not None
    assert reading.hides_items
    logs, rated = whole(reading)
    differences = logs[1:] - logs[0]
    expected = np.log(given[1:][:, answers] / given[0][answers])
    np.testing.assert_allclose(differences, expected, atol=1e-12)
    # Bayes: what is seen of a cell against what was expected has mean 1 by what was expected.
    np.testing.assert_allclose((1 - rated) * np.exp(-logs[0]) + rated * np.exp(-logs[1]), 1.0)


def reading_of(truth: Ratings, *seen: Observations) -> ServerView | None:
    return ServerView.of(seen_by_all(truth, *seen), truth)


def test_seen_sets_are_certain_and_their_symbols_weigh_levels() -> None:
    truth = ratings()
    symbols = np.random.default_rng(1).integers(0, 2, truth.count)
    reading = reading_of(truth, shown(truth, symbols))
    assert reading is not None
    assert not reading.hides_items
    logs, rated = whole(reading)
    held = np.zeros((truth.n_users, truth.n_items), dtype=np.bool_)
    held[truth.users, truth.items] = True
    np.testing.assert_array_equal(rated, held)
    assert np.isneginf(logs[0][held]).all()
    assert np.isneginf(logs[1:][:, ~held]).all()
    of_levels = logs[:, truth.users, truth.items][1:]
    np.testing.assert_allclose(of_levels - of_levels[0], np.log(CHANNEL[:, symbols] / CHANNEL[0, symbols]))


def test_nothing_is_read_of_users_who_cannot_be_told_apart() -> None:
    truth = ratings()
    reports = shown(truth, np.zeros(truth.count, dtype=np.int64))
    assert reading_of(truth) is None
    assert reading_of(truth, reports.unlinked(with_sets=False)) is None
    of_sets = reading_of(truth, reports.unlinked(with_sets=True))
    assert of_sets is not None
    assert not of_sets.hides_items
    np.testing.assert_array_equal(whole(of_sets)[1].sum(axis=1), truth.counts)


def test_who_sent_nothing_may_have_rated_anything() -> None:
    truth = ratings()
    kept = truth.select(truth.users != 2)
    sets = RatedSets(kept.users, kept.items, truth.n_users)
    seen = make.observations(
        np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), (3, 9), SCALE, rated=sets
    )
    reading = reading_of(truth, seen)
    assert reading is not None
    logs, rated = whole(reading)
    np.testing.assert_allclose(logs[:, 2], 0.0, atol=1e-12)
    assert ((rated[2] > 0) & (rated[2] < 1)).all()
