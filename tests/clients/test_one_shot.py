from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from numpy.typing import NDArray
from scipy.stats import binom, chisquare

from clients import one_shot
from clients.delivery import receive_lists
from clients.one_shot import count_reports, held, installed_follow_up
from clients.population import Population, Received, open_population
from dprec.accounting import PrivacyBudget, PrivacyUnit
from dprec.exchange import CountRequest, Recommendations, Refusal, RefusalCode
from dprec.mechanisms import (
    BitsAndCounts,
    BoundedLaplace,
    Mechanism,
    ThresholdBit,
    TwoLayers,
    ZhengLaplace,
    ZhengRandomizedResponse,
)
from dprec.mechanisms.randomized_response import RandomizedResponse, Raw
from dprec.mechanisms.thresholds import ResidualBits, UserLevelBit
from dprec.protocols.one_shot import OneShotProtocol
from dprec.randomness import DRAWS, RunKeys
from dprec.ratings import Ratings
from dprec.reports import ProfileFamily
from dprec.reports.counts import CountFollowUp
from dprec.schedules import PermanentAnswers, RepeatedAnswers
from dprec.wire import ItemListCodec, ReportCodec
from tests import make
from tests.builders import populated
from tests.make import STARS, rated, synthetic, table

USERS, ITEMS = 25, 30

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
    return synthetic(USERS, ITEMS, 300, without=(0, 11))


def populate(
    folder: Path,
    ratings: Ratings,
    mechanism: Mechanism,
    budget: PrivacyBudget | None,
    size: int,
    seed: int = 3,
) -> Population:
    protocol = make.one_shot(mechanism, budget)
    populated(folder, ratings, protocol, size, seed=seed)
    return open_population(str(folder))


def all_reports(population: Population) -> list[bytes]:
    nodes = -(-population.n_users // population.users_per_node)
    return [report for node in range(nodes) for report in one_shot.reports(population.partition(node))]


@pytest.mark.parametrize(("mechanism", "budget"), MECHANISMS)
def test_a_report_is_what_the_mechanism_sends_and_depends_on_its_user_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ratings: Ratings,
    mechanism: Mechanism,
    budget: PrivacyBudget | None,
) -> None:
    reports = all_reports(populate(tmp_path / "all", ratings, mechanism, budget, USERS))
    decoded = mechanism.family(budget, ratings.scale, ITEMS).codec.decode(reports)
    assert decoded.valid.all()
    if not mechanism.report_family.hides_items:
        assert decoded.items.tolist() == ratings.items.tolist()
        assert decoded.indptr.tolist() == ratings.indptr.tolist()
    if not mechanism.private:
        assert (decoded.symbols + 1).tolist() == ratings.levels.tolist()
    for size in (1, 7):
        population = populate(tmp_path / str(size), ratings, mechanism, budget, size)
        assert all_reports(population) == reports
        assert one_shot.reports(population.partition(100)) == []
    # However many rows are perturbed at once.
    for cells in (1, 3 * ITEMS):
        monkeypatch.setattr(one_shot, "_CELLS_AT_ONCE", cells)
        assert all_reports(population) == reports


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
    protocol = make.one_shot(
        ThresholdBit(),
        PrivacyBudget(epsilon=2.0),
        answers=PermanentAnswers(mechanism=TwoLayers(first=0.9)),
    )
    populated(tmp_path / "all", ratings, protocol, USERS, seed=3)
    codec = protocol.family(ratings.scale, ITEMS).codec

    def bits(run: str) -> list[int]:
        population = replace(open_population(str(tmp_path / "all")), keys=RunKeys.derive(3, run).installed)
        return codec.decode(all_reports(population)).symbols.tolist()

    assert bits("first") == bits("first")
    assert 0.88 < np.mean(np.array(bits("first")) == bits("second")) < 1


def test_a_memoised_answer_is_the_same_in_every_run_whatever_else_is_rated(
    tmp_path: Path, ratings: Ratings
) -> None:
    protocol = make.one_shot(BoundedLaplace(), PrivacyBudget(epsilon=1.0), answers=RepeatedAnswers())

    def answers(name: str, held: Ratings, size: int, run: str) -> dict[tuple[int, int], int]:
        populated(tmp_path / name, held, protocol, size, seed=3)
        population = open_population(str(tmp_path / name))
        population = replace(population, keys=RunKeys.derive(3, run).installed)
        decoded = protocol.family(held.scale, ITEMS).codec.decode(all_reports(population))
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
    cells = random.random((users, items)).argsort(axis=1) < random.integers(1, 4, users)[:, None]
    return rated(cells, random.integers(1, 6, int(cells.sum())))


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
    profiles = rated(np.ones((users, 3)), levels)
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
    profiles = rated(np.ones((users, 2)), level)
    budget = PrivacyBudget(epsilon=1.0, per="rating")
    population = populate(tmp_path / "run", profiles, RandomizedResponse(), budget, users)
    symbols = population_codec(population).decode(all_reports(population)).symbols.reshape(users, 2)
    both = int((symbols == level - 1).all(axis=1).sum())
    honest = RandomizedResponse().channel(STARS, 1.0).probabilities[level - 1, level - 1]
    assert tail_probabilities(np.array([both]), users, np.array([honest**2])).min() > 5e-7


def population_codec(population: Population) -> ReportCodec:
    """Return the code of the reports, as the server knows it."""
    protocol = population.installed(OneShotProtocol)
    calibrated = protocol.mechanism.family(protocol.privacy, population.scale, population.n_items)
    return calibrated.codec


def test_how_elements_are_divided_into_blocks_does_not_tell_whether_an_answer_is_honest(
    tmp_path: Path,
) -> None:
    """For multipliers in each of four classes, as many blocks are the user's own as the loss allows.

    All four bounds fail together by chance with a probability below 1e-7.
    """
    users, item, mechanism = 6000, 17, UserLevelBit(profile=1)
    people = rated(np.tile(np.arange(ITEMS) == item, (users, 1)), 4.0)
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


COUNTED, LEVELS, GROUPS = 4000, np.array([5, 1, 4]), np.array([[0, 1, 1]])


def context() -> Context:
    return Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})


def counted(folder: Path, size: int = COUNTED) -> tuple[Population, CountFollowUp]:
    """Return users who all rated the same, and how their ratings without a bit are counted."""
    protocol = make.one_shot(BitsAndCounts(bits=0.4), PrivacyBudget(epsilon=1.5))
    populated(folder, table(np.tile(LEVELS, (COUNTED, 1))), protocol, size, seed=2)
    population = open_population(str(folder))
    counts = installed_follow_up(population)
    assert isinstance(counts, CountFollowUp)
    return population, counts


def test_a_rating_is_in_its_bit_or_in_the_one_count_of_its_group(tmp_path: Path) -> None:
    """The odds of every report and its counts are those of the two channels: chi-square, false alarm 1e-7."""
    population, counts = counted(tmp_path / "run")
    partition, request = population.partition(0), CountRequest(counts.group_codec.encode(GROUPS)[0])
    noisy = counts.codec.decode(count_reports(partition, request, context()))[1]
    left = counts.family.drawn(*held(partition)).reshape(COUNTED, LEVELS.size) == 2
    steps = np.arange(-200, 201)
    shares = np.exp(-1.5 * np.abs(steps)) / np.exp(-1.5 * np.abs(steps)).sum()
    for group in (0, 1):
        sizes = left[:, GROUPS[0] == group].sum(axis=1)
        reaching = left[:, (GROUPS[0] == group) & (LEVELS >= 4)].sum(axis=1)
        for size, count in {*zip(sizes.tolist(), reaching.tolist(), strict=True)}:
            own = noisy[(sizes == size) & (reaching == count), group]
            if size == 0:
                assert not own.any()
                continue
            expected = np.bincount(np.clip(count + steps, 0, size), weights=shares, minlength=size + 1)
            drawn = np.bincount(own, minlength=size + 1)
            assert chisquare(drawn, expected * own.size).pvalue > 1e-7, (group, size, count)


def test_counts_do_not_depend_on_the_partition_and_are_given_for_one_set_of_groups_only(
    tmp_path: Path,
) -> None:
    (whole, counts), (split, _) = counted(tmp_path / "whole"), counted(tmp_path / "split", size=1000)
    request, other = (CountRequest(counts.group_codec.encode(groups)[0]) for groups in (GROUPS, 1 - GROUPS))
    state = context()
    reports = count_reports(whole.partition(0), request, state)
    parts = [count_reports(split.partition(node), request, context()) for node in range(4)]
    assert [report for part in parts for report in part] == reports
    assert count_reports(whole.partition(0), request, state) == reports
    with pytest.raises(ValueError, match="asked for round 2 again"):
        count_reports(whole.partition(0), other, state)


LISTS = ItemListCodec(8).encode(np.array([[7, 0, 3], [2, -1, -1]]), np.full((2, 3), 4.5))


@pytest.mark.parametrize(
    "lists", [LISTS[:1], [*LISTS, b""], [LISTS[0], LISTS[1][1:]], [b"\xff" * 6, LISTS[1]]]
)
def test_a_malformed_delivery_is_refused(lists: list[bytes]) -> None:
    shown: list[Received] = []
    device: Any = SimpleNamespace(size=2, population=SimpleNamespace(n_items=8, show=shown.append))
    with pytest.raises(Refusal) as refusal:
        receive_lists(device, Recommendations(lists))
    assert refusal.value.code == RefusalCode.MALFORMED_REQUEST
    assert not shown
