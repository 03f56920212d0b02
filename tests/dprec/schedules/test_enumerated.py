"""What histories of small cases cost, by enumerating all that can be sent, beside what ledgers charge.

The mathematics is written here anew, in fractions: epsilon is log 4, so that every probability is one. Of the
project, runs are read: which ratings devices answer about in which collection, what they send, and ledgers.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from dprec.accounting import gaussian_epsilon, largest_mu
from dprec.protocols.one_shot import Learned, OneShotProtocol
from dprec.schedules import Collection
from simulation import run, scheduled
from simulation.result import RunResult
from tests.histories import Histories
from tests.refusals import refused_at

RATIO = 4
"""e^epsilon."""
EPSILON = math.log(RATIO)
COLLECTIONS = 2
LOW, HIGH = 1, 5
"""Levels on either side of a bit."""

Rows = Mapping[int, Sequence[Fraction]]
"""Of each level, or answer, the probabilities of what follows."""
Law = dict[tuple[Any, ...], Fraction]


def response(ratio: int | Fraction) -> Rows:
    """Return two answers, of which the true one is ``ratio`` times as likely."""
    true = Fraction(ratio) / (ratio + 1)
    return {0: (true, 1 - true), 1: (1 - true, true)}


AS_IT_IS: Rows = {0: (Fraction(1), Fraction(0)), 1: (Fraction(0), Fraction(1))}


def side(level: int) -> int:
    return int(level > 3)


@dataclass(frozen=True)
class Device:
    """A device that answers about the bit of every level that a rating has, for good, and reports on it."""

    answer: Rows
    report: Rows
    once: bool = False
    """Whether only what was not answered about is reported."""
    changes: bool = True
    """Whether it is told then that a rating has changed."""

    def asked(self, levels: Sequence[int]) -> list[tuple[int, int]]:
        """Return the collections in which a rating is reported, and its level then; 0 is not rated."""
        held = [(at, level) for at, level in enumerate(levels) if level]
        if not self.once:
            return held
        told: list[tuple[int, int]] = []
        for at, level in held:
            if not told or (self.changes and told[-1][1] != level):
                told.append((at, level))
        return told

    def law(self, levels: Sequence[int]) -> Law:
        """Return the probability of everything that can be seen of a rating with these levels."""
        asked, law = self.asked(levels), defaultdict[tuple[Any, ...], Fraction](Fraction)
        about = list(dict.fromkeys(level for _, level in asked))
        for answers in product((0, 1), repeat=len(about)):
            answer_of = dict(zip(about, answers, strict=True))
            chance = math.prod(self.answer[side(level)][answer_of[level]] for level in about)
            for said in product((0, 1), repeat=len(asked)):
                pairs = zip(asked, said, strict=True)
                sent = math.prod(self.report[answer_of[level]][symbol] for (_, level), symbol in pairs)
                law[tuple((at, symbol) for (at, _), symbol in zip(asked, said, strict=True))] += chance * sent
        return law


@dataclass(frozen=True)
class Forgetful(Device):
    """A device that draws another answer every time."""

    def law(self, levels: Sequence[int]) -> Law:
        asked, law = self.asked(levels), Law()
        for said in product((0, 1), repeat=len(asked)):
            pairs = list(zip(asked, said, strict=True))
            seen = tuple((at, symbol) for (at, _), symbol in pairs)
            law[seen] = Fraction(math.prod(self.answer[side(level)][symbol] for (_, level), symbol in pairs))
        return law


def loss(one: Law, other: Law) -> float:
    """Return the largest log ratio of two laws, either way; infinite where only one says something."""
    ratios = [Fraction(1)]
    for seen in {*one, *other}:
        first, second = one.get(seen, Fraction(0)), other.get(seen, Fraction(0))
        if (first > 0) != (second > 0):
            return math.inf
        if first:
            ratios += [first / second, second / first]
    return math.log(max(ratios))


def histories(collections: int = COLLECTIONS) -> Iterator[tuple[int, ...]]:
    """Yield all levels of a rating by collection: made in some period, and changed at most once later."""
    for made, level in product(range(collections), (LOW, HIGH)):
        yield (0,) * made + (level,) * (collections - made)
        for at in range(made + 1, collections):
            yield (0,) * made + (level,) * (at - made) + (LOW + HIGH - level,) * (collections - at)


def times(levels: Sequence[int]) -> tuple[int, ...]:
    """Return when a rating was made and changed."""
    return tuple(at for at, level in enumerate(levels) if level != (levels[at - 1] if at else 0))


def policies(collections: int = COLLECTIONS) -> dict[str, tuple[Device, dict[str, Any]]]:
    """Return devices beside the policies that they follow, at epsilon = log 2 for each of some collections.

    First reports of two layers are at log 2, by responses at (e^(epsilon + first) - 1) over (e^epsilon -
    e^first); a hash function that tells the two levels apart leaves two layers.
    """
    ratio, first = 2**collections, 1 / collections
    layers = Device(response(ratio), response(Fraction(2 * ratio - 1, ratio - 2)))
    half = response(Fraction(math.sqrt(ratio)))
    return {
        "keep": (Device(response(ratio), AS_IT_IS, once=True, changes=False), {"kind": "increments"}),
        "update": (
            Device(response(ratio), AS_IT_IS, once=True),
            {"kind": "increments", "on_change": "update"},
        ),
        "shared": (Forgetful(response(2), AS_IT_IS), {"kind": "fresh"}),
        "each": (Forgetful(response(ratio), AS_IT_IS), {"kind": "fresh", "budget": "each"}),
        "two-layers": (layers, {"kind": "two-layers", "first": first}),
        "hashed": (layers, {"kind": "loloha", "hashed_to": 2, "first": first}),
        "one bucket": (Device(half, AS_IT_IS), {"kind": "d-bit-flip"}),
    }


POLICIES = policies()
FROM_TIMES = {"keep": 1.0, "shared": 1.0, "each": 2.0, "update": math.inf, "one bucket": math.inf}
"""In epsilons, the loss between any histories of a rating that is there from the first collection on; of two
layers, it grows with their number."""


def ran(cells: Sequence[tuple[int, int, int]], **given: Any) -> RunResult:
    """Run a schedule of a day each on users who have these ratings."""
    named = {key: given.pop(key) for key in ("again", "users", "days", "idle") if key in given}
    own = {key: given.pop(key) for key in ("protocol", "simulation", "privacy") if key in given}
    data = Histories(cells=tuple(cells), **{"days": COLLECTIONS + 1, **named})
    one_shot = {
        "kind": "one-shot",
        "privacy": own.get("privacy", {"epsilon": EPSILON, "per": "rating"}),
        "mechanism": {"kind": "threshold-bit"},
        "completion": {"kind": "calibrated", "sweeps": 1, "dimensions": 2, "features": 1},
        "personalization": "on-device",
    }
    values = {
        "name": "enumerated",
        "dataset": data,
        "schedule": {"days": 1, **given},
        "protocol": {**one_shot, **own.get("protocol", {})},
        "simulation": {"backend": "local", **own.get("simulation", {})},
    }
    return run(values, page=False)


def as_data(levels: Sequence[int]) -> tuple[list[tuple[int, int, int]], tuple[tuple[int, int, int], ...]]:
    """Return the rating of a history, and its change."""
    made, *changed = times(levels)
    return [(0, made, levels[made])], tuple((0, at, levels[at]) for at in changed)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Collection]:
    """Return the collections of the last run."""
    collections: list[Collection] = []
    outcome = scheduled._ReadTogether.outcome

    def noted(self: Any, rounds: Any) -> Any:
        collections[:] = self.collections
        return outcome(self, rounds)

    monkeypatch.setattr(scheduled._ReadTogether, "outcome", noted)
    return collections


@pytest.mark.parametrize("collections", [2, pytest.param(3, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", POLICIES)
def test_no_two_values_that_a_rating_had_at_the_same_times_cost_more_than_is_charged(
    name: str, collections: int
) -> None:
    device, policy = policies(collections)[name]
    privacy = {"epsilon": collections * math.log(2), "per": "rating"}
    for levels in histories(collections):
        cells, again = as_data(levels)
        result = ran(cells, again=again, days=collections + 1, privacy=privacy, **policy)
        charged = result.traffic["epsilon_per_rating"][0]
        alike = [other for other in histories(collections) if times(other) == times(levels)]
        exact = max(loss(device.law(levels), device.law(other)) for other in alike)
        assert exact <= charged + 1e-9, levels
        # Reports on an answer say less than it does: the first of them, its share.
        least = 1 / collections if policy["kind"] in ("two-layers", "loloha") else 1
        assert exact >= charged * least - 1e-9, levels


@pytest.mark.parametrize("name", [*FROM_TIMES, "two-layers"])
def test_that_a_rating_changed_costs_what_the_policies_say(name: str) -> None:
    """Nothing where changes are kept; where answers are permanent, no bound, as they say themselves."""
    device, _ = POLICIES[name]
    there = [levels for levels in histories() if levels[0]]
    farthest = max(loss(device.law(one), device.law(other)) for one, other in combinations(there, 2))
    expected = FROM_TIMES.get(name)
    if expected is not None:
        assert farthest == pytest.approx(expected * EPSILON)
        return
    longer = [device.law(levels) for levels in histories(4) if levels[0]]
    grown = max(loss(one, other) for one, other in combinations(longer, 2))
    assert farthest < grown
    assert grown > 1.5 * EPSILON


@pytest.mark.parametrize("name", ["keep", "each"])
def test_composed_losses_bound_what_is_enumerated(name: str) -> None:
    """Two ratings at once: by the probability beyond e^epsilon of everything that can be sent about both."""
    device, policy = POLICIES[name]
    composed = ran([(0, 0, LOW), (1, 0, HIGH)], **policy).traffic["epsilon_composed"][0]
    delta = Fraction(1, 10**6)

    def both(first: int, second: int) -> Law:
        laws = (device.law((level,) * COLLECTIONS).items() for level in (first, second))
        return {(one, other): p * q for (one, p), (other, q) in product(*laws)}

    one, other = both(LOW, HIGH), both(HIGH, LOW)

    def beyond(epsilon: float) -> Fraction:
        ratio = Fraction(math.exp(epsilon))
        return sum((max(Fraction(0), one[seen] - ratio * other[seen]) for seen in one), Fraction(0))

    assert beyond(composed) <= delta < beyond(composed * 0.999)


def test_a_budget_of_a_whole_user_is_kept_to_by_all_collections_together(made: list[Collection]) -> None:
    """One rating and then two: three bits, by the channels that devices were installed with."""
    privacy = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-4}
    result = ran([(0, 0, LOW), (1, 1, LOW)], privacy=privacy, kind="fresh")
    draws = [(each.family.channel(int(each.counts[0])), int(each.counts[0])) for each in made]
    bits = [channel.probabilities for channel, number in draws for _ in range(number)]
    assert len(bits) == 3
    exact = [
        [math.prod(rows[level, symbol] for rows, symbol in zip(bits, seen, strict=True)) for level in (0, -1)]
        for seen in product((0, 1), repeat=3)
    ]

    def left(epsilon: float) -> float:
        return sum(max(0.0, low - math.exp(epsilon) * high) for low, high in exact)

    composed = result.traffic["epsilon_composed"][0]
    assert composed <= 2.0
    assert left(composed) <= 1e-4 * (1 + 1e-9) < left(0.99 * composed)


@pytest.mark.thorough
@pytest.mark.parametrize("levels", [(LOW, LOW), (LOW, HIGH), (HIGH, LOW), (0, HIGH)])
@pytest.mark.parametrize("name", ["keep", "update", "shared", "each", "two-layers"])
def test_devices_send_what_is_enumerated(name: str, levels: tuple[int, ...], made: list[Collection]) -> None:
    """Chi-square of 3,000 devices with one history: false alarm 1e-8 each, 2e-7 in all."""
    device, policy = POLICIES[name]
    cells, again = as_data(levels)
    users = 3000
    ran(cells, again=again, users=users, **policy)
    said: list[list[tuple[int, int]]] = [[] for _ in range(users)]
    for each in made:
        seen = each.observations
        assert seen.symbols is not None
        for user, item, symbol in zip(seen.users, seen.items, seen.symbols.symbols, strict=True):
            if item == 0:
                said[user].append((each.number, int(symbol)))
    counts, law = Counter(map(tuple, said)), device.law(levels)
    assert set(counts) <= {seen for seen, chance in law.items() if chance}
    likely = [(counts[seen], float(chance) * users) for seen, chance in law.items() if chance]
    observed, expected = (np.array(column, dtype=float) for column in zip(*likely, strict=True))
    assert stats.chisquare(observed, expected).pvalue > 1e-8


@pytest.mark.parametrize("name", ["keep", "update", "each", "two-layers"])
@pytest.mark.parametrize("limits", [{}, {"leave_after": 1}])
def test_no_report_that_arrives_is_free_where_others_are_lost(
    name: str, limits: dict[str, int], made: list[Collection]
) -> None:
    """Sixty devices with three ratings, two of which change, while reports are dropped, late and damaged."""
    _, policy = POLICIES[name]
    cells, again = [(0, 0, LOW), (1, 0, LOW), (2, 1, HIGH)], ((0, 2, HIGH), (1, 1, HIGH))
    faults = {"faults": {"dropout": 0.4, "corrupt": 0.25, "straggle": 0.2}}
    users, level = 60, {(item, at): value for item, day, value in cells for at in range(day, 5)}
    level |= {(item, at): value for item, day, value in again for at in range(day, 5)}
    result = ran(cells, again=again, users=users, days=6, simulation=faults, **policy, **limits)
    answers = [defaultdict[int, set[Any]](set) for _ in range(users + 1)]
    said: dict[Any, int] = {}
    for each in made:
        seen = each.observations
        assert seen.symbols is not None
        rows = zip(seen.users.tolist(), seen.items.tolist(), seen.symbols.symbols.tolist(), strict=True)
        for user, item, symbol in ((user, item, symbol) for user, item, symbol in rows if item < 3):
            about = {"keep": 0, "each": each.number}.get(name, level[item, each.number])
            answers[user][item].add(about)
            if policy["kind"] == "increments":
                assert said.setdefault((user, item, about), symbol) == symbol
    per_user, per_rating = (result.traffic[f"epsilon_per_{unit}"] for unit in ("user", "rating"))
    for user, of_items in enumerate(answers[:users]):
        numbers = [len(about) for about in of_items.values()]
        assert sum(numbers) * EPSILON <= per_user[user] + 1e-6
        assert max(numbers, default=0) * EPSILON <= np.nan_to_num(per_rating[user]) + 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("on_change", ["keep", "update"])
@pytest.mark.parametrize("cap", [1, 2])
def test_a_cap_chooses_by_no_value_and_is_kept_to(cap: int, on_change: str, made: list[Collection]) -> None:
    """Three ratings over two collections, the first of which changes: all values, beside their ledgers."""
    chosen = set()
    for levels in product((LOW, HIGH), repeat=3):
        cells = [(0, 0, levels[0]), (1, 0, levels[1]), (2, 1, levels[2])]
        again = ((0, 1, LOW + HIGH - levels[0]),)
        result = ran(cells, again=again, kind="increments", answers_per_user=cap, on_change=on_change)
        answers = [(each.number, int(each.counts[0]), int(each.again[0])) for each in made]
        told = []
        for each in made:
            seen = each.observations
            assert seen.symbols is not None
            own = (seen.users == 0) & (seen.symbols.channel_of == 0)
            told.append(tuple(seen.items[own].tolist()))
        chosen.add((tuple(answers), tuple(told)))
        number = sum(map(len, told))
        assert number == cap + (on_change == "update")
        assert result.traffic["epsilon_per_user"][0] == pytest.approx(number * EPSILON)
        worst = 2 if on_change == "update" else 1
        assert result.traffic["epsilon_per_rating"][0] == pytest.approx(worst * EPSILON)
    assert len(chosen) == 1


@pytest.mark.parametrize(("leave_after", "forget_after"), list(product([None, 1], [None, 1, 2])))
@pytest.mark.parametrize("kind", ["increments", "fresh"])
def test_a_noisy_table_costs_everybody_whose_reports_it_is_learned_from(
    kind: str, leave_after: int | None, forget_after: int | None, made: list[Collection]
) -> None:
    """A user rates on the first day alone: how many of three tables have its item, counted by hand."""
    release = {"item_embeddings": {"epsilon": 1.0, "least_raters": 1}}
    policy = {"kind": kind, "leave_after": leave_after, "forget_after": forget_after}
    if kind == "fresh":
        policy["budget"] = "each"
    result = ran([(0, 0, LOW)], days=4, protocol=release, **policy)
    there = [True, leave_after is None, leave_after is None]
    kept = [3 if forget_after is None else forget_after] * 3
    tables = sum(any(there[max(0, at + 1 - kept[at]) : at + 1]) for at in range(3))
    answers = sum(there) if kind == "fresh" else 1
    assert np.isinf(result.traffic["epsilon_per_user"][0]) == (tables > 0)
    # Tables are normal sums; of so few answers nearly nothing is spared. Each kind has half of delta.
    shown = gaussian_epsilon(math.sqrt(tables) * largest_mu(1.0, 1e-6), 5e-7)
    assert result.traffic["epsilon_composed"][0] == pytest.approx(answers * EPSILON + shown, abs=1e-4)
    assert [note[:8] for note in result.record.summary.notes if "tables" in note] == ["3 tables"]
    assert [bool(each.sent[0]) for each in made] == there


@pytest.mark.parametrize("epsilon", [None, 5.0])
def test_the_noise_of_a_table_is_drawn_again_where_no_item_set_has_changed(
    epsilon: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal noise would say that nobody has rated anything, whoever it is that could have."""
    tables: list[Learned] = []
    learned = OneShotProtocol.learn

    def noted(*given: Any, **named: Any) -> Learned:
        tables.append(learned(*given, **named))
        return tables[-1]

    monkeypatch.setattr(OneShotProtocol, "learn", noted)
    cells = [(0, 0, LOW), (1, 0, HIGH)]
    ran(cells, idle=(1,), users=30, kind="increments", protocol={"item_embeddings": {"epsilon": epsilon}})
    first, second = (each.sent_table.encode() for each in tables if each.sent_table is not None)
    assert (first == second) == (epsilon is None)


def test_leaving_would_make_a_hidden_cell_cost_as_much_as_all_others_of_its_user() -> None:
    """One rating more keeps a device in a collection: then all of its cells are reported as rated."""
    cell = {0: response(RATIO)[0], 1: response(RATIO)[1]}

    def row(rated: Sequence[int]) -> Law:
        return {
            seen: Fraction(math.prod(cell[own][symbol] for own, symbol in zip(rated, seen, strict=True)))
            for seen in product((0, 1), repeat=len(rated))
        }

    assert loss(row((1, 1, 1, 0)), row((1, 1, 1, 1))) == pytest.approx(EPSILON)
    assert loss(row((0, 0, 0, 0)), row((1, 1, 1, 1))) == pytest.approx(4 * EPSILON)
    hidden = {
        "mechanism": {"kind": "hidden-threshold"},
        "personalization": "none",
        "completion": {"kind": "item-average"},
    }
    cells = [(0, 0, LOW), (1, 1, HIGH)]
    privacy = {"epsilon": EPSILON, "per": "cell"}
    result = ran(cells, kind="fresh", protocol=hidden, privacy=privacy)
    assert result.traffic["epsilon_per_rating"].max() == pytest.approx(EPSILON)
    with refused_at("schedule.leave_after"):
        ran(cells, kind="fresh", leave_after=1, protocol=hidden, privacy=privacy)


def beyond(mu: float, epsilon: float) -> float:
    """Return the delta of two normal distributions whose means are mu deviations apart."""
    tails = stats.norm.cdf([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
    return float(tails[0] - math.exp(epsilon) * tails[1])


@pytest.mark.parametrize("budget", ["lifetime", "each"])
def test_a_summary_gives_no_epsilon_of_one_collection_for_that_of_all(budget: str) -> None:
    privacy = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-6}
    protocol = {"kind": "federated", "model": {"kind": "tests.models:Means"}, "rounds": 2}
    data = Histories(cells=((0, 0, LOW), (1, 1, HIGH)), users=3, days=4)
    values = {
        "name": "whole",
        "dataset": data,
        "schedule": {"kind": "fresh", "days": 1, "budget": budget},
        "protocol": {**protocol, "privacy": privacy},
        "simulation": {"backend": "local"},
    }
    told = run(values, page=False).summary["privacy"]
    all_three, rest = (
        told["epsilon_composed"]["max"],
        [note for note in told["notes"] if "Epsilon = " in note],
    )
    assert (all_three <= 2.0) == (budget == "lifetime")
    # Three collections whose means are mu deviations apart are one in which they are sqrt(3) mu apart.
    parts = 3 if budget == "lifetime" else 1
    mu = optimize.brentq(lambda apart: beyond(apart, 2.0 / parts) - 1e-6 / parts, 1e-3, 9)
    assert beyond(math.sqrt(3) * mu, all_three) == pytest.approx(1e-6, rel=1e-4)
    for note in rest:
        whole = "in each collection" not in note and not note.startswith("Of one collection of 3: ")
        assert not whole or budget == "lifetime", note
