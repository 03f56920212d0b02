from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from numpy.typing import NDArray
from scipy.stats import binom

from clients import one_shot
from clients.delivery import receive_lists
from clients.one_shot import count_reports, held, installed_follow_up
from clients.population import Partition, Population, Received, open_population
from dprec.accounting import PrivacyBudget, PrivacyUnit
from dprec.arrays import offsets
from dprec.datasets import Synthetic
from dprec.exchange import (
    CountRequest,
    LayeredSetup,
    MemoisedSetup,
    OneShotSetup,
    Recommendations,
    Refusal,
    RefusalCode,
)
from dprec.mechanisms import BitsAndCounts, Mechanism, TwoLayers
from dprec.mechanisms.laplace import BoundedLaplace, ZhengLaplace, ZhengRandomizedResponse
from dprec.mechanisms.randomized_response import RandomizedResponse, Raw
from dprec.mechanisms.thresholds import ResidualBits, UserLevelBit
from dprec.randomness import DRAWS, RunKeys
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ProfileFamily
from dprec.reports.counts import Counts
from dprec.wire import ItemListCodec, ReportCodec
from tests.builders import populated

USERS, ITEMS = 25, 30
STARS = RatingScale.evenly(1, 5, 1)

MECHANISMS: list[tuple[Mechanism, PrivacyBudget | None]] = [
    (Raw(), None),
    (BoundedLaplace(), PrivacyBudget(epsilon=1.0, per="rating")),
    (BoundedLaplace(), PrivacyBudget(epsilon=5.0, per="user")),
    (ZhengRandomizedResponse(), PrivacyBudget(epsilon=1.0, per="cell")),
    (ZhengRandomizedResponse(), PrivacyBudget(epsilon=7.0, per="cell")),
    (ZhengLaplace(), PrivacyBudget(epsilon=30.0, per="user")),
    (ResidualBits(bits=2), PrivacyBudget(epsilon=2.0, per="user")),
]


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    everything = Synthetic(users=USERS, items=ITEMS, ratings=300).load()
    # The first and a middle user have no ratings.
    return everything.select(~np.isin(everything.users, [0, 11]))


def populate(
    folder: Path,
    ratings: Ratings,
    mechanism: Mechanism,
    budget: PrivacyBudget | None,
    size: int,
    seed: int = 3,
) -> Population:
    setup = OneShotSetup(mechanism=mechanism, privacy=budget)
    populated(folder, ratings, setup, size, seed=seed)
    return open_population(str(folder))


def all_reports(population: Population) -> list[bytes]:
    nodes = -(-population.n_users // population.users_per_node)
    return [report for node in range(nodes) for report in one_shot.reports(population.partition(node))]


@pytest.mark.parametrize(("mechanism", "budget"), MECHANISMS)
def test_a_report_depends_on_its_user_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ratings: Ratings,
    mechanism: Mechanism,
    budget: PrivacyBudget | None,
) -> None:
    expected = all_reports(populate(tmp_path / "all", ratings, mechanism, budget, USERS))
    assert len(expected) == USERS
    for size in (1, 7):
        population = populate(tmp_path / str(size), ratings, mechanism, budget, size)
        assert all_reports(population) == expected
    # However many rows are perturbed at once.
    for cells in (1, 3 * ITEMS):
        monkeypatch.setattr(one_shot, "_CELLS_AT_ONCE", cells)
        assert all_reports(population) == expected


@pytest.mark.parametrize(("mechanism", "budget"), MECHANISMS)
def test_a_report_holds_what_the_mechanism_sends(
    tmp_path: Path, ratings: Ratings, mechanism: Mechanism, budget: PrivacyBudget | None
) -> None:
    reports = all_reports(populate(tmp_path / "run", ratings, mechanism, budget, 7))
    calibrated = mechanism.family(budget, ratings.scale, ITEMS)
    decoded = calibrated.codec.decode(reports)
    assert decoded.valid.all()
    if not mechanism.report_family.hides_items:
        assert decoded.items.tolist() == ratings.items.tolist()
        assert decoded.indptr.tolist() == ratings.indptr.tolist()
        assert [len(report) > 0 for report in reports] == (ratings.counts > 0).tolist()
    if not mechanism.private:
        assert (decoded.symbols + 1).tolist() == ratings.levels.tolist()


def test_another_run_at_the_same_seed_has_other_noise(tmp_path: Path, ratings: Ratings) -> None:
    budget = PrivacyBudget(epsilon=1.0, per="rating")
    one = populate(tmp_path / "one", ratings, BoundedLaplace(), budget, USERS)
    other = replace(one, keys=RunKeys.derive(3, "with another completion").installed)
    both = [
        reports for reports in zip(all_reports(one), all_reports(other), strict=True) if len(reports[0]) > 5
    ]
    assert len(both) > 10
    assert [first for first, second in both if first == second] == []


def test_a_report_on_a_permanent_answer_is_another_in_every_run(tmp_path: Path, ratings: Ratings) -> None:
    """In 76 % of cases two reports would agree if every run drew an answer of its own."""
    setup = LayeredSetup(mechanism=TwoLayers(first=0.9), privacy=PrivacyBudget(epsilon=2.0))
    populated(tmp_path / "all", ratings, setup, USERS, seed=3)
    codec = setup.family(ratings.scale, ITEMS).codec

    def bits(run: str) -> list[int]:
        population = replace(open_population(str(tmp_path / "all")), keys=RunKeys.derive(3, run).installed)
        return codec.decode(all_reports(population)).symbols.tolist()

    assert bits("first") == bits("first")
    assert 0.88 < np.mean(np.array(bits("first")) == bits("second")) < 1


def test_a_memoised_answer_is_the_same_in_every_run_whatever_else_is_rated(
    tmp_path: Path, ratings: Ratings
) -> None:
    setup = MemoisedSetup(mechanism=BoundedLaplace(), privacy=PrivacyBudget(epsilon=1.0))

    def answers(name: str, held: Ratings, size: int, run: str) -> dict[tuple[int, int], int]:
        populated(tmp_path / name, held, setup, size, seed=3)
        population = open_population(str(tmp_path / name))
        population = replace(population, keys=RunKeys.derive(3, run).installed)
        decoded = setup.family(held.scale, ITEMS).codec.decode(all_reports(population))
        cells = zip(held.users.tolist(), decoded.items.tolist(), strict=True)
        return dict(zip(cells, decoded.symbols.tolist(), strict=True))

    whole = answers("all", ratings, USERS, "first")
    assert answers("again", ratings, 7, "second") == whole
    fewer = ratings.select(np.arange(ratings.count) % 3 > 0)
    kept = answers("fewer", fewer, 1, "third")
    assert kept == {cell: whole[cell] for cell in kept}


def profiles_of_one_to_three(users: int, items: int) -> Ratings:
    """Return users who rated one, two or three items of a small catalogue, at any level."""
    random = np.random.default_rng(7)
    rated = random.random((users, items)).argsort(axis=1) < random.integers(1, 4, users)[:, None]
    who, which = np.nonzero(rated)
    return Ratings.from_triples(who, which, random.integers(1, 6, who.size), STARS, item_ids=np.arange(items))


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "per"),
    [
        (RandomizedResponse(), 1.0, "rating"),
        (RandomizedResponse(), 3.0, "user"),
        (ZhengRandomizedResponse(), 1.0, "cell"),
    ],
)
def test_the_odds_are_those_promised_for_any_profile_item_and_level(
    tmp_path: Path, mechanism: Mechanism, epsilon: float, per: PrivacyUnit
) -> None:
    """Exact binomial tests of all counts: false alarm 1e-6 together; the seed is fixed."""
    users, items = 6_000, 4
    profiles = profiles_of_one_to_three(users, items)
    population = populate(
        tmp_path / "run", profiles, mechanism, PrivacyBudget(epsilon=epsilon, per=per), users
    )
    decoded = population_codec(population).decode(all_reports(population))
    assert decoded.valid.all()
    hidden = mechanism.report_family.hides_items
    sent, levels = np.zeros((2, users, items), dtype=np.int64)
    sent[np.repeat(np.arange(users), np.diff(decoded.indptr)), decoded.items] = decoded.symbols
    levels[profiles.users, profiles.items] = profiles.levels
    tails = []
    for length in (1, 2, 3):
        expected = mechanism.channel(profiles.scale, epsilon / length if per == "user" else epsilon)
        for level, shares in enumerate(expected.probabilities, start=expected.first_level):
            for item in range(items):
                own = (profiles.counts == length) & (levels[:, item] == level)
                counts = np.bincount(sent[own, item], minlength=expected.symbols)
                tails.append(tail_probabilities(counts, int(own.sum()), shares))
    tested = np.concatenate(tails)
    assert tested.size == 2 * 3 * items * (5 + hidden) ** 2
    assert tested.min() > 1e-6 / tested.size


def test_a_few_ratings_drawn_at_random_are_compared_with_the_mean(tmp_path: Path) -> None:
    """Exact binomial tests of answers and choices: false alarm 1e-6 together; the seed is fixed."""
    users, budget = 6_000, PrivacyBudget(epsilon=2.0, per="user")
    levels = np.tile(np.array([1, 5, 4], dtype=np.uint8), users)
    profiles = Ratings.from_triples(
        np.repeat(np.arange(users), 3), np.tile([0, 1, 2], users), levels.astype(float), STARS
    )
    population = populate(tmp_path / "run", profiles, ResidualBits(bits=2), budget, users)
    decoded = population_codec(population).decode(all_reports(population))
    symbols = decoded.symbols.reshape(users, 3)
    assert ((symbols < 2).sum(axis=1) == 2).all()
    honest = 1 / (1 + np.exp(-1.0))
    tails = []
    for item, above in enumerate([False, True, True]):
        answered = symbols[symbols[:, item] < 2, item]
        tails.append(tail_probabilities(np.array([answered.size]), users, np.array([2 / 3])))
        true = np.array([int((answered == above).sum())])
        tails.append(tail_probabilities(true, answered.size, np.array([honest])))
    assert np.concatenate(tails).min() > 1e-6 / 12


def tail_probabilities(
    counts: NDArray[np.int64], trials: int, chances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the probabilities of at most, and of at least, so many successes."""
    return np.concatenate([binom.cdf(counts, trials, chances), binom.sf(counts - 1, trials, chances)])


def test_ratings_of_one_profile_have_noise_of_their_own(tmp_path: Path) -> None:
    """How often two ratings of a user both are sent as they are: false alarm 1e-6; the seed is fixed."""
    users, level = 4_000, 3
    profiles = Ratings.from_triples(
        np.repeat(np.arange(users), 2), np.tile([0, 1], users), np.full(2 * users, level), STARS
    )
    budget = PrivacyBudget(epsilon=1.0, per="rating")
    population = populate(tmp_path / "run", profiles, RandomizedResponse(), budget, users)
    symbols = population_codec(population).decode(all_reports(population)).symbols.reshape(users, 2)
    both = int((symbols == level - 1).all(axis=1).sum())
    honest = RandomizedResponse().channel(STARS, 1.0).probabilities[level - 1, level - 1]
    assert tail_probabilities(np.array([both]), users, np.array([honest**2])).min() > 5e-7


def population_codec(population: Population) -> ReportCodec:
    """Return the code of the reports, as the server knows it."""
    setup = population.installed(OneShotSetup)
    calibrated = setup.mechanism.family(setup.privacy, population.scale, population.n_items)
    return calibrated.codec


def test_how_elements_are_divided_into_blocks_does_not_tell_whether_an_answer_is_honest(
    tmp_path: Path,
) -> None:
    """For multipliers in each of four classes, as many blocks are the user's own as the loss allows.

    All four bounds fail together by chance with a probability below 1e-7.
    """
    users, item, mechanism = 6000, 17, UserLevelBit(profile=1)
    people = Ratings.from_triples(
        np.arange(users),
        np.full(users, item),
        np.full(users, 4.0),
        STARS,
        user_ids=np.arange(users),
        item_ids=np.arange(ITEMS),
    )
    budget = PrivacyBudget(epsilon=2.0, per="user")
    calibrated = mechanism.family(budget, STARS, ITEMS)
    assert isinstance(calibrated, ProfileFamily)
    code = calibrated.code
    assert code.size > 1
    numbers = calibrated.numbers.decode(
        all_reports(populate(tmp_path / "run", people, mechanism, budget, users))
    )[1]
    multipliers, blocks = np.divmod(numbers[:, 0], code.blocks)
    named = (multipliers + 1) * 2 * item % code.modulus // code.size == blocks
    for quarter in np.array_split(np.arange(code.multipliers), 4):
        own = named[np.isin(multipliers, quarter)]
        assert own.size > users / 5
        least, most = binom.ppf([1e-8, 1 - 1e-8], own.size, code.draws / DRAWS)
        assert least <= own.sum() <= most


COUNTED, COUNTED_ITEMS = 4000, 3
GROUPS = np.array([[0, 1, 1]])


def context() -> Context:
    return Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})


def counted(
    folder: Path,
    levels: tuple[int, ...],
    size: int = COUNTED,
    mechanism: Mechanism = BitsAndCounts(bits=0.4),  # noqa: B008 (frozen)
    per: float = 1.5,
) -> Population:
    ratings = Ratings(
        indptr=offsets(np.full(COUNTED, COUNTED_ITEMS)),
        items=np.tile(np.arange(COUNTED_ITEMS, dtype=np.int32), COUNTED),
        levels=np.tile(np.array(levels, dtype=np.uint8), COUNTED),
        scale=STARS,
        user_ids=np.arange(COUNTED),
        item_ids=np.arange(COUNTED_ITEMS),
    )
    populated(
        folder, ratings, OneShotSetup(mechanism=mechanism, privacy=PrivacyBudget(epsilon=per)), size, seed=2
    )
    return open_population(str(folder))


def counting(population: Population) -> Counts:
    made = installed_follow_up(population)
    assert isinstance(made, Counts)
    return made


def request(population: Population, groups: NDArray[np.int64] = GROUPS) -> CountRequest:
    return CountRequest(counting(population).group_codec.encode(groups)[0])


def heard(partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the symbols of a partition's reports and its counts."""
    counts = counting(partition.population)
    reports = count_reports(partition, request(partition.population), context())
    symbols = counts.family.drawn(*held(partition)).reshape(partition.size, COUNTED_ITEMS).astype(np.int64)
    return symbols, counts.codec.decode(reports)[1]


def test_a_rating_is_in_its_bit_or_in_the_one_count_of_its_group(tmp_path: Path) -> None:
    """The odds of every report and its counts are those of the two channels: chi-square, false alarm 1e-7."""
    levels = (5, 1, 4)
    partition = counted(tmp_path / "run", levels).partition(0)
    symbols, noisy = heard(partition)
    left = symbols == 2
    for group in (0, 1):
        members, reaching = GROUPS[0] == group, np.array(levels) >= 4
        sizes = left[:, members].sum(axis=1)
        counts = left[:, members & reaching].sum(axis=1)
        for size, count in {*zip(sizes.tolist(), counts.tolist(), strict=True)}:
            own = noisy[(sizes == size) & (counts == count), group]
            if size == 0:
                assert not own.any()
                continue
            table = counting(partition.population)
            expected = _odds(table, size, count) * own.size
            observed = np.bincount(own, minlength=size + 1)
            assert _surprise(observed, expected) < 1e-7**-1, (group, size, count)


def _odds(counts: Counts, size: int, count: int) -> NDArray[np.float64]:
    """Return the probability of every noisy count, from its definition."""
    steps = np.arange(-200, 201)
    shares = np.exp(-1.5 * np.abs(steps))
    return np.bincount(np.clip(count + steps, 0, size), weights=shares / shares.sum(), minlength=size + 1)


def _surprise(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """Return one over the p-value of a chi-square test."""
    from scipy.stats import chisquare

    return 1 / max(float(chisquare(observed, expected).pvalue), 1e-300)


def test_counts_do_not_depend_on_the_partition_and_are_repeated(tmp_path: Path) -> None:
    whole = counted(tmp_path / "whole", (5, 1, 4))
    reports = count_reports(whole.partition(0), request(whole), context())
    split = counted(tmp_path / "split", (5, 1, 4), size=1000)
    parts = [count_reports(split.partition(node), request(split), context()) for node in range(4)]
    assert [report for part in parts for report in part] == reports
    state = context()
    for _ in range(2):
        assert count_reports(whole.partition(0), request(whole), state) == reports


def test_ratings_are_counted_for_one_set_of_groups_only(tmp_path: Path) -> None:
    population, state = counted(tmp_path / "run", (5, 1, 4), size=10), context()
    partition = population.partition(0)
    count_reports(partition, request(population), state)
    with pytest.raises(ValueError, match="asked for round 2 again"):
        count_reports(partition, request(population, 1 - GROUPS), state)


LISTED = 8
LISTS = ItemListCodec(LISTED).encode(np.array([[7, 0, 3], [2, -1, -1]]), np.full((2, 3), 4.5))


def partition(shown: list[Received]) -> Partition:
    return cast(
        Partition,
        SimpleNamespace(size=2, population=SimpleNamespace(n_items=LISTED, show=shown.append)),
    )


@pytest.mark.parametrize(
    "lists", [LISTS[:1], [*LISTS, b""], [LISTS[0], LISTS[1][1:]], [b"\xff" * 6, LISTS[1]]]
)
def test_a_malformed_delivery_is_refused(lists: list[bytes]) -> None:
    shown: list[Received] = []
    with pytest.raises(Refusal) as refusal:
        receive_lists(partition(shown), Recommendations(lists))
    assert refusal.value.code == RefusalCode.MALFORMED_REQUEST
    assert not shown
