"""Sets as anonymous messages: what devices send, how it is hidden, and what the server makes of counts."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import poisson

from dprec.accounting import HiddenMessages, hidden_delta, least_fakes
from dprec.arrays import Ints, offsets
from dprec.auditing import proportion_above, proportion_below
from dprec.lists.pairs import SetMessages
from dprec.randomness import DeviceDraws, SecretDraws

ITEMS, ROUND = 8, 1
PAIRS = SetMessages(ITEMS, of_pairs=True, messages=4, share=0.02)
SINGLES = SetMessages(ITEMS, of_pairs=False, messages=2, share=0.3)


def sets(users: int, seed: int = 0, n_items: int = ITEMS) -> tuple[Ints, Ints]:
    """Return sets of 0 to all items."""
    member = np.random.default_rng(seed).random((users, n_items)) < np.linspace(0, 1, users)[:, None]
    return offsets(member.sum(axis=1)), np.nonzero(member)[1]


def draws_for(indptr: Ints, items: Ints, first: int = 0, purpose: str = "test") -> DeviceDraws:
    """Return the words of consecutive users."""
    return DeviceDraws.of(bytes(range(16)), first, indptr, items, np.ones(items.size), purpose)


def same_set(own: list[int], users: int, purpose: str = "test") -> tuple[Ints, Ints, DeviceDraws]:
    """Return users with one and the same set, and their words."""
    indptr, items = len(own) * np.arange(users + 1), np.tile(np.array(own, dtype=np.int64), users)
    return indptr, items, draws_for(indptr, items, purpose=purpose)


def test_pairs_are_numbered_row_by_row() -> None:
    one, other = np.triu_indices(ITEMS)
    assert PAIRS.pair(one, other).tolist() == list(range(PAIRS.null))
    assert PAIRS.pair(other, one).tolist() == list(range(PAIRS.null))
    assert (PAIRS.null, SINGLES.null) == (36, 8)


@pytest.mark.parametrize("exchange", [PAIRS, SINGLES])
def test_devices_say_of_their_sets_as_much_as_they_can_and_nothing_twice(exchange: SetMessages) -> None:
    indptr, items = sets(60)
    said = exchange.of_sets(indptr, items, draws_for(indptr, items), ROUND)
    assert said.shape == (60, exchange.messages)
    for user, row in enumerate(said.tolist()):
        own = items[indptr[user] : indptr[user + 1]]
        one, other = np.triu_indices(own.size)
        possible = exchange.pair(own[one], own[other]) if exchange.of_pairs else own
        named = [message for message in row if message != exchange.null]
        assert len(set(named)) == len(named) == min(exchange.messages, possible.size)
        assert set(named) <= set(possible.tolist())


def test_the_pairs_of_a_set_are_equally_likely_and_those_of_weighted_items_as_their_weights() -> None:
    # A share is 5.5 deviations off with a chance of 4e-8: about 1e-6 for all of 21 of them.
    users, own = 20_000, [0, 2, 3, 5, 6, 7]
    one, other = np.triu_indices(len(own))
    pairs = PAIRS.pair(np.array(own)[one], np.array(own)[other])
    for weights in (None, np.linspace(0.5, 1.5, ITEMS)):
        said = PAIRS.of_sets(*same_set(own, users), ROUND, weights)
        each = np.ones(21) if weights is None else (weights[own][one] * weights[own][other])
        expected = PAIRS.messages * each / each.sum()
        shares = np.bincount(said.ravel(), minlength=PAIRS.null + 1)[pairs] / users
        deviations = np.sqrt(expected * (1 - expected) / users)
        assert np.abs((shares - expected) / deviations).max() < 5.5


def test_small_sets_send_fewer_pairs_where_all_are_to_weigh_the_same() -> None:
    full = SetMessages(ITEMS, of_pairs=True, messages=6, share=0.02, full_set=5)
    for size, expected in ((2, 6 * math.sqrt(3 / 15)), (4, 6 * math.sqrt(10 / 15)), (5, 6.0), (8, 6.0)):
        said = full.of_sets(*same_set(list(range(size)), 4000), ROUND)
        numbers = (said != full.null).sum(axis=1)
        assert set(numbers.tolist()) <= {math.floor(expected), math.ceil(expected)}
        assert numbers.mean() == pytest.approx(expected, abs=6 * 0.5 / math.sqrt(4000))


def test_single_items_of_a_set_are_equally_likely() -> None:
    said = SINGLES.of_sets(*same_set([1, 4, 6], 10_000), ROUND)
    shares = np.bincount(said.ravel(), minlength=ITEMS + 1)[[1, 4, 6]] / 10_000
    assert np.abs(shares - 2 / 3).max() < 6 * math.sqrt(2 / 9 / 10_000)


@pytest.mark.parametrize("exchange", [PAIRS, SINGLES])
def test_a_user_sends_the_same_whoever_else_is_computed_beside_it(exchange: SetMessages) -> None:
    indptr, items = sets(30)
    counts, sent = exchange.sent(indptr, items, draws_for(indptr, items), ROUND)
    parts = []
    for first in range(0, 30, 7):
        rows = indptr[first : first + 8]
        own = items[rows[0] : rows[-1]]
        parts.append(exchange.sent(rows - rows[0], own, draws_for(rows - rows[0], own, first), ROUND))
    assert counts.tolist() == [count for part in parts for count in part[0].tolist()]
    assert sent.tolist() == [message for part in parts for message in part[1].tolist()]
    again = exchange.sent(indptr, items, draws_for(indptr, items), ROUND + 1)
    assert again[1].tolist() != sent.tolist()


def test_a_device_that_stands_by_itself_sends_as_much() -> None:
    items = np.array([1, 4, 6])
    draws = SecretDraws.of(bytes(32), items, np.ones(3), "test")
    counts, sent = PAIRS.sent(np.array([0, 3]), items, draws, ROUND)
    possible = PAIRS.pair(*np.meshgrid(items, items))
    assert counts[0] == sent.size >= PAIRS.messages
    assert np.isin(sent[: PAIRS.messages], possible).all()


def test_fakes_are_independent_poisson_numbers_and_r_times_as_many_are_null() -> None:
    """Shares, and products of neighbours, are 6 deviations off with a chance of 2e-9 each, 72 of them."""
    users = 30_000
    _, _, draws = same_set([], users)
    counts, fakes = PAIRS.fakes(users, draws, ROUND)
    table = np.zeros((users, PAIRS.null + 1))
    np.add.at(table, (np.repeat(np.arange(users), counts), fakes), 1)
    means = np.full(PAIRS.null + 1, PAIRS.share)
    means[-1] *= PAIRS.messages
    assert np.abs((table.mean(axis=0) - means) / np.sqrt(means / users)).max() < 6
    covariances = ((table - means)[:, 1:] * (table - means)[:, :-1]).mean(axis=0)
    assert np.abs(covariances / np.sqrt(means[1:] * means[:-1] / users)).max() < 6
    expected = users * poisson.pmf([0, 1, 2], PAIRS.share * (PAIRS.null + PAIRS.messages))
    seen = np.bincount(counts)[:3]
    assert np.abs((seen - expected) / np.sqrt(expected)).max() < 6
    assert PAIRS.mean == pytest.approx(PAIRS.messages + counts.mean(), rel=0.05)
    assert counts.max() + PAIRS.messages <= PAIRS.most < 60


def test_how_many_messages_a_device_sends_says_nothing_about_its_set() -> None:
    for own in ([], [3], [0, 1, 2, 3, 4, 5, 6, 7]):
        indptr, items, draws = same_set(own, 200)
        counts, sent = PAIRS.sent(indptr, items, draws, ROUND)
        assert (counts == PAIRS.messages + PAIRS.fakes(200, draws, ROUND)[0]).all()
        assert sent.size == counts.sum()


def test_dropouts_and_colluding_devices_do_not_thin_the_blanket() -> None:
    settings = {"n_items": ITEMS, "of_pairs": True, "messages": 4}
    exchange = SetMessages.hidden_among(50.0, 1000, 0.1, 100, **settings)
    assert exchange.share == 50 / 800
    assert exchange.hiding(900, 100) == pytest.approx(50.0)
    assert exchange.hiding(1000, 100) > 50
    assert exchange.hiding(60, 100) == 0
    with pytest.raises(ValueError, match="none of 10"):
        SetMessages.hidden_among(50.0, 10, 0.5, 5, **settings)


FALSE_ALARM = 1e-6
"""Of the whole test: each bound on a probability fails with a fortieth of it."""


@pytest.mark.parametrize("own", [[0, 1], [2]])
def test_no_attack_on_the_counts_tells_more_than_the_account(own: list[int]) -> None:
    """A user with a set against one without, all others known, by likelihood ratio; null messages count."""
    messages, users, trials, epsilon, delta = 3, 6, 20_000, 1.0, 0.1
    fakes = least_fakes(messages, epsilon, delta)
    exchange = SetMessages.hidden_among(fakes, users, 0.2, 1, n_items=3, of_pairs=True, messages=messages)
    honest = users - 1 - 1
    said = np.sort(exchange.of_sets(*same_set(own, trials), ROUND), axis=1)
    assert (said == said[0]).all()
    seen = []
    for side in ("with", "without"):
        _, _, draws = same_set([], trials * honest, side)
        counts, chosen = exchange.fakes(trials * honest, draws, ROUND)
        trial = np.repeat(np.arange(trials * honest) // honest, counts)
        table = np.zeros((trials, exchange.null + 1))
        np.add.at(table, (trial, chosen), 1)
        if side == "with":
            np.add.at(table, (np.arange(trials)[:, None], said), 1)
        seen.append(table)
    evidence = [likelihood_ratio(table, said[0], exchange, fakes) for table in seen]
    most = 0.0
    for one, other in ((evidence[0], evidence[1]), (-evidence[1], -evidence[0])):
        for threshold in np.quantile(one, np.linspace(0.45, 0.99, 10), method="higher"):
            right = proportion_below([(one >= threshold).sum()], trials, FALSE_ALARM / 40)[0]
            wrong = proportion_above([(other >= threshold).sum()], trials, FALSE_ALARM / 40)[0]
            most = max(most, float(right - math.exp(epsilon) * wrong))
    assert most <= delta
    assert hidden_delta([HiddenMessages(messages, fakes)], epsilon, "add-or-remove-one") <= delta
    if own == [0, 1]:
        assert most > delta / 3


def likelihood_ratio(
    table: NDArray[np.float64], said: Ints, exchange: SetMessages, fakes: float
) -> NDArray[np.float64]:
    """Return log Pr(counts | with) - log Pr(counts | without), which is certain where it is infinite."""
    kinds, times = np.unique(said, return_counts=True)
    ratio = np.zeros(len(table))
    for kind, count in zip(kinds.tolist(), times.tolist(), strict=True):
        mean = fakes * (exchange.messages if kind == exchange.null else 1)
        seen = table[:, kind]
        with np.errstate(divide="ignore"):
            ratio += poisson.logpmf(seen - count, mean) - poisson.logpmf(seen, mean)
    return ratio


def counted(exchange: SetMessages, indptr: Ints, items: Ints, purpose: str) -> Ints:
    """Return the counts that a server sees."""
    return exchange.count(exchange.sent(indptr, items, draws_for(indptr, items, purpose=purpose), ROUND)[1])


def test_the_estimate_of_pairs_is_without_bias_and_knows_its_noise() -> None:
    """Means over 300 runs are 6 deviations off with a chance of 2e-9 each, 36 of them."""
    users, runs = 60, 300
    indptr, items = sets(users)
    member = np.zeros((users, ITEMS))
    member[np.repeat(np.arange(users), np.diff(indptr)), items] = 1
    pairs = np.maximum(np.diff(indptr) * (np.diff(indptr) + 1) / 2, 1)
    shares = np.minimum(1.0, PAIRS.messages / pairs)
    upper = np.triu_indices(ITEMS)
    expected = (member.T @ (member * shares[:, None]))[upper]
    estimates = [PAIRS.estimate(counted(PAIRS, indptr, items, f"run {run}"), users) for run in range(runs)]
    found = np.array([estimate.counts for estimate in estimates])
    exact = users * PAIRS.share + (member.T @ (member * (shares * (1 - shares))[:, None]))[upper]
    assert np.abs((found.mean(axis=0) - expected) / np.sqrt(exact / runs)).max() < 6
    variances = np.array([estimate.variance for estimate in estimates])
    assert exact.mean() <= variances.mean() + 6 * variances.std() / math.sqrt(runs)
    assert variances.mean() <= users * PAIRS.share + expected.mean() + 0.1
    named = np.array([estimate.named for estimate in estimates])
    spread = math.sqrt(PAIRS.messages * users * PAIRS.share / runs)
    assert abs(named.mean() - (pairs * shares)[np.diff(indptr) > 0].sum()) < 6 * spread


def test_the_matrix_is_that_of_unit_contributions_and_noise_is_per_entry_and_user() -> None:
    users, own = 20_000, [0, 1, 2, 4, 5, 7]
    indptr, items, _ = same_set(own, users)
    exchange = SetMessages(ITEMS, of_pairs=True, messages=3, share=0.01)
    estimate = exchange.estimate(counted(exchange, indptr, items, "unit"), users)
    matrix = estimate.gram()
    unit = np.zeros((ITEMS, ITEMS))
    unit[np.ix_(own, own)] = users / math.sqrt(21)
    assert (matrix == matrix.T).all()
    off = (matrix - unit)[np.triu_indices(ITEMS)]
    # Of 36 entries; the scale itself is off by a few parts in a hundred.
    assert np.abs(off).max() < 6 * estimate.noise * users + 0.06 * unit.max()
    assert estimate.noise == pytest.approx(exchange.expected_noise(users, 6), rel=0.05)
    untouched = np.setdiff1d(np.arange(ITEMS), own)
    only_fakes = matrix[np.ix_(untouched, np.arange(ITEMS))].std()
    assert only_fakes == pytest.approx(estimate.scale * math.sqrt(users * exchange.share), rel=0.6)


def test_fewer_messages_and_more_fakes_are_more_noise() -> None:
    few, many = (SetMessages(200, True, messages, 0.002) for messages in (10, 100))
    assert few.expected_noise(10_000, 40) > 5 * many.expected_noise(10_000, 40)
    assert few.expected_noise(40_000, 40) == pytest.approx(few.expected_noise(10_000, 40) / 2)
    fuller = SetMessages(200, True, 10, 0.002, full_set=80)
    assert fuller.expected_noise(10_000, 40) > 1.5 * few.expected_noise(10_000, 40)


def test_what_devices_send_fits_the_codec() -> None:
    indptr, items = sets(40)
    for exchange in (PAIRS, SINGLES):
        counts, sent = exchange.sent(indptr, items, draws_for(indptr, items), ROUND)
        pieces = exchange.codec.encode(counts, sent)
        valid, sizes, read = exchange.codec.decode(pieces, exchange.messages, exchange.most)
        assert valid.all()
        assert sizes.tolist() == counts.tolist()
        assert (exchange.count(read) == exchange.count(sent)).all()
