"""What one profile adds is within what the accountant is told, whatever the options, and however it is sent.

Settings are drawn from what their classes declare, and what `check` refuses is left out. Contributions to
sums are in `tests.dprec.protocols.test_sums_contract`.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats, offsets
from dprec.completion import Profiles
from dprec.completion.one_bit.solver import levels_of
from dprec.errors import SettingError
from dprec.federated import STEPS, CollaborativeFiltering, UpdateCode
from dprec.gradients import GRADIENTS, FittedProfiles, GradientReport, RoundDraws
from dprec.protocols.federated import FederatedProtocol
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.randomness import DeviceDraws, words
from dprec.ratings import POSITIVE
from tests.drawn_options import drawn

USERS, ITEMS = 20, 12
ROUNDING = 1 + 1e-9
"""What the noise is made larger by."""


def profiles(seed: int, *, implicit: bool) -> Profiles:
    """Return one user without a rating, one with all, and others with few and many."""
    random = np.random.default_rng(seed)
    counts = np.append([0, ITEMS, 1, 1, 2], random.integers(0, ITEMS + 1, USERS - 5))
    items = [np.sort(random.permutation(ITEMS)[:count]) for count in counts.tolist()]
    rated = np.concatenate(items).astype(np.int32)
    values = random.integers(1, 6, rated.size).astype(np.float64)
    return Profiles(offsets(counts), rated, np.full(rated.size, np.nan) if implicit else values, ITEMS)


def assert_within(rows: Floats, longest: float, apart: float, *, signed: bool) -> None:
    """Hold rows against what they are said to be at most, and how far apart."""
    products = rows @ rows.T
    squares = np.diag(products)
    assert squares.max() <= (longest * ROUNDING) ** 2
    assert (squares[:, None] + squares - 2 * products).max() <= (apart * ROUNDING) ** 2
    assert signed or rows.min() >= 0


class FixedAnswers(DeviceDraws):
    """Draws of devices of which every answer is decided by one word, and coordinates are alike."""

    def __init__(self, users: int, word: int) -> None:
        super().__init__(np.zeros((2, users), dtype=np.uint64))
        self.word = word

    def per_user(self, index: int, round_index: int) -> Any:
        shared = words(round_index, "coordinates", index, 1)[0]
        return np.full(self.keys.shape[1], self.word if index % 2 else shared, dtype=np.uint64)


def with_answers(report: GradientReport, epsilon: float, word: int, seed: int, size: float) -> set[bytes]:
    """Return what users send whose profiles and factors differ, if a word decides their answers."""
    random, people = np.random.default_rng(seed), profiles(seed, implicit=report.predicted == "lists")
    factors = size * random.standard_normal((ITEMS, 2))
    with np.errstate(all="ignore"):
        own = size * random.standard_normal((USERS, 2))
        draws = RoundDraws(FixedAnswers(USERS, word), 1, 7)
        return set(report.encode(FittedProfiles(people, own, factors), epsilon, draws))


@pytest.mark.parametrize("kind", [each.kind for each in GRADIENTS if each.private])
@settings(max_examples=20, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_no_gradient_moves_the_chance_of_an_answer_by_more_than_is_told(
    kind: str, data: st.DataObject
) -> None:
    """Whatever was rated and sent, words that decide answers at the bounds of their chances decide alike."""
    report = data.draw(drawn(GRADIENTS[kind]))
    try:
        report.check((ITEMS, 2))
    except SettingError:
        assume(False)
    epsilon, seed = data.draw(st.floats(0.01, 8)), data.draw(st.integers(0, 99))
    size = data.draw(st.sampled_from([1e-3, 1.0, 1e9, 1e200, np.inf]))
    answers = getattr(report, "coordinates", 1)
    told = report.exact_epsilon(epsilon)
    assert told <= epsilon
    # An answer is yes with a part of 2^60 draws at least, and no with as many.
    fewest = int(2.0**60 / (1 + np.exp(told / answers)) / ROUNDING)
    assert all(
        len(with_answers(report, epsilon, word << 4, seed, size)) == 1
        for word in (fewest, (1 << 60) - fewest)
    )


@settings(max_examples=30, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_no_update_is_longer_than_a_clip_whatever_is_computed(data: st.DataObject) -> None:
    budget = PrivacyBudget(epsilon=data.draw(st.floats(0.1, 20)), per="user", composition="pld", delta=1e-6)
    model = data.draw(drawn(CollaborativeFiltering, {"rank": st.integers(1, 4)}))
    federated = data.draw(drawn(FederatedProtocol, {"privacy": st.just(budget), "model": st.just(model)}))
    people = profiles(data.draw(st.integers(0, 99)), implicit=True)
    size = data.draw(st.sampled_from([1e-200, 1.0, 1e9, 1e200]))
    with np.errstate(all="ignore"):
        code = UpdateCode(((ITEMS, model.rank),), federated.clip, 0.0)
        (start,) = model.start(ITEMS, POSITIVE, np.random.default_rng(1))
        steps, _ = code.steps(model.updates((size * start,), people))
        reports = code.reports(steps, RoundDraws(FixedAnswers(USERS, 1), 1, 0))
    valid, rows = code.numbers(reports)
    assert valid.all()
    assert_within(rows * STEPS, STEPS, 2 * STEPS, signed=True)
    assert federated.sensitivity == (
        1 if (federated.trust, federated.adjacency) == ("central", "add-or-remove-one") else 2
    )


@settings(max_examples=30, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_a_slope_of_any_size_is_sent_within_the_budget_of_a_round(data: st.DataObject) -> None:
    budget = PrivacyBudget(epsilon=data.draw(st.floats(0.1, 20)))
    given_ = {"privacy": st.just(budget), "symbols": st.integers(3, 300), "rounds": st.integers(1, 6)}
    protocol = data.draw(drawn(GradientPerturbationProtocol, given_))
    try:
        channel = protocol.channel
    except ValueError:  # `check` refuses it
        assume(False)
    assert channel.epsilon <= protocol.epsilon_per_round * ROUNDING
    assert channel.epsilon * protocol.rounds <= budget.epsilon * ROUNDING
    slopes = np.array([0.0, 0.3, -0.3, 1e9, -1e9, 1e300, np.inf, -np.inf])
    levels = levels_of(slopes, protocol.clamp)
    assert levels.min() >= 1
    assert levels.max() <= len(channel.probabilities)
