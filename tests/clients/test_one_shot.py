from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from clients import one_shot
from clients.faults import FaultOptions
from clients.population import Population, open_population, write_population
from dprec.accounting import PrivacyBudget, PrivacyUnit
from dprec.datasets import Synthetic
from dprec.exchange import OneShotSetup
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.mechanisms.unprotected import Raw
from dprec.mechanisms.whole_profiles import ResidualBits, UserLevelBit
from dprec.mechanisms.zheng import ZhengLaplace, ZhengRandomizedResponse
from dprec.randomness import DRAWS, RunKeys
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ProfileFamily
from dprec.wire import ReportCodec

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
    write_population(
        folder,
        ratings,
        users_per_node=size,
        keys=RunKeys.derive(seed).installed,
        faults=FaultOptions(),
        setup=setup,
    )
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


def test_another_seed_gives_other_noise(tmp_path: Path, ratings: Ratings) -> None:
    budget = PrivacyBudget(epsilon=1.0, per="rating")
    one = populate(tmp_path / "3", ratings, BoundedLaplace(), budget, 7)
    other = populate(tmp_path / "4", ratings, BoundedLaplace(), budget, 7, seed=4)
    assert all_reports(one) != all_reports(other)


def test_another_run_at_the_same_seed_has_other_noise(tmp_path: Path, ratings: Ratings) -> None:
    budget = PrivacyBudget(epsilon=1.0, per="rating")
    one = populate(tmp_path / "one", ratings, BoundedLaplace(), budget, USERS)
    other = replace(one, keys=RunKeys.derive(3, "with another completion").installed)
    both = [
        reports for reports in zip(all_reports(one), all_reports(other), strict=True) if len(reports[0]) > 5
    ]
    assert len(both) > 10
    assert [first for first, second in both if first == second] == []


def test_a_node_without_users_sends_no_report(tmp_path: Path, ratings: Ratings) -> None:
    for name, (mechanism, budget) in enumerate(MECHANISMS):
        population = populate(tmp_path / str(name), ratings, mechanism, budget, 7)
        assert one_shot.reports(population.partition(100)) == []


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
