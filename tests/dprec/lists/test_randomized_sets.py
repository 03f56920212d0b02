"""What randomised sets tell of items and of pairs of them, and the lists that follow."""

import math

import numpy as np
import pytest

from dprec.arrays import Bools, Floats
from dprec.lists import randomized_sets
from dprec.mechanisms import RandomizedSet
from dprec.observations import SetReports
from dprec.randomness import words
from dprec.ratings import POSITIVE


def planted(users: int, items: int = 12) -> Bools:
    """Return sets in which popular items come first, and the last two go together."""
    random = np.random.default_rng(4)
    sets = random.random((users, items)) < 1 / (2 + np.arange(items))
    sets[:, -1] = sets[:, -2]
    return sets


def reported(sets: Bools, epsilon: float, seed: int = 1) -> SetReports:
    """Return what a server keeps of sets that devices randomise."""
    channel = RandomizedSet().channel(POSITIVE, epsilon)
    answers = channel.sample(sets.ravel().astype(np.uint8), words(seed, "answers", 0, sets.size))
    bits = np.packbits(answers.reshape(sets.shape) == 1, axis=1)
    not_had, had = channel.probabilities[:, 1].tolist()
    return SetReports(bits, sets.shape[1], had, not_had, np.ones(len(bits), dtype=np.bool_))


def estimated(reports: SetReports) -> tuple[Floats, Floats]:
    """Return the estimated counts of items and of pairs."""
    said = randomized_sets.counted(reports, np.arange(reports.n_items))
    counts = randomized_sets.unbiased_counts(reports, randomized_sets.answers_per_item(reports))
    return counts, randomized_sets.unbiased_pairs(reports, said)


def test_no_channel_of_two_answers_has_less_noise() -> None:
    channel = RandomizedSet().channel(POSITIVE, 1.0)
    assert channel.epsilon == pytest.approx(1.0)
    variance = reported(planted(8), 1.0).variance
    assert variance == pytest.approx(math.e / (math.e - 1) ** 2)
    for not_had in np.linspace(0.01, 0.6, 60):
        had = min(math.e * not_had, 1 - (1 - not_had) / math.e)
        assert not_had * (1 - not_had) / (had - not_had) ** 2 >= variance * (1 - 1e-9)


def test_counts_and_pairs_have_no_bias_and_the_noise_that_is_said() -> None:
    """Means within 6 of their standard errors in 12 + 66 numbers: false alarm below 2e-7."""
    sets, draws = planted(300), 400
    truth = (sets.T.astype(float) @ sets)[np.triu_indices(12, 1)]
    counts, pairs = zip(*(estimated(reported(sets, 1.0, seed)) for seed in range(draws)), strict=True)
    upper = np.array([table[np.triu_indices(12, 1)] for table in pairs])
    own, variance = sets.sum(axis=0), reported(sets, 1.0).variance
    noise = math.sqrt(300 * variance)
    assert (np.abs(np.mean(counts, axis=0) - own) < 6 * noise / math.sqrt(draws)).all()
    both = np.add.outer(own, own)[np.triu_indices(12, 1)]
    deviations = np.sqrt(300 * variance**2 + variance * both)
    assert (np.abs(upper.mean(axis=0) - truth) < 6 * deviations / math.sqrt(draws)).all()
    # The standard error of a ratio of deviations over 400 draws is 3.5 %.
    np.testing.assert_allclose(upper.std(axis=0) / deviations, 1.0, atol=0.25)
    np.testing.assert_allclose(np.std(counts, axis=0) / noise, 1.0, atol=0.25)


def test_without_noise_they_are_the_counts_whatever_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = planted(100)
    reports = SetReports(np.packbits(sets, axis=1), 12, 1.0, 0.0, np.ones(len(sets), dtype=np.bool_))
    whole = estimated(reports)
    np.testing.assert_array_equal(whole[0], sets.sum(axis=0))
    np.testing.assert_array_equal(whole[1], sets.T.astype(float) @ sets)
    monkeypatch.setattr(randomized_sets, "_USERS_AT_ONCE", 7)
    for one, other in zip(estimated(reports), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_table_counts_for_next_to_nothing_without_tastes_and_for_more_the_more_there_are() -> None:
    random = np.random.default_rng(6)
    likely = 1 / (2 + np.arange(40)) * random.gamma(1.0, 1.0, (2_000, 1))
    tastes = np.arange(40) % 2 == random.integers(0, 2, (2_000, 1))
    for epsilon in (2.0, 4.0, 12.0):
        drawn = (random.random((2_000, 40)) < likely * (1 + much * tastes) for much in (0.0, 2.0, 8.0))
        models = (randomized_sets.list_model(reported(sets, epsilon), None, None) for sets in drawn)
        shares = [model.table.share for model in models]
        assert shares[0] < 0.3
        assert shares[0] < shares[1] < shares[2]
        assert shares[2] > 1.0


def test_what_answers_add_to_pairs_of_small_sets_is_not_taken_for_tastes() -> None:
    random = np.random.default_rng(7)
    likely = random.gamma(0.5, 1.0, 300)
    sets = random.random((3_000, 300)) < 1.7 * likely / likely.sum()
    for seed in range(4):
        assert randomized_sets.list_model(reported(sets, 4.0, seed), None, None).table.share < 1.0
