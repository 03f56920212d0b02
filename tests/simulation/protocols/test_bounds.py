"""What one profile adds is within what the accountant is told, whatever the options, and however it is sent.

Settings are drawn from what their classes declare, and what `check` refuses is left out. Contributions are
those of the devices' half, with models that the server's half has learned from noisy releases.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.completion.one_bit.solver import levels_of
from dprec.errors import SettingError
from dprec.federated import STEPS, CollaborativeFiltering, UpdateCode
from dprec.gradients import GRADIENTS, FittedProfiles, GradientReport, RoundDraws
from dprec.lists import TableOptions
from dprec.private_als import FactorizationOptions, ImplicitAlsOptions
from dprec.protocols.federated import FederatedProtocol
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.randomness import DeviceDraws, ReleaseDraws, words
from dprec.ratings import POSITIVE, RatingScale
from dprec.secret_sets import SecretSetOptions
from dprec.sums import (
    AGGREGATIONS,
    UNIT,
    Contributions,
    Layout,
    LocalAggregation,
    Releases,
    SecureAggregation,
    ShuffledAggregation,
    TrustedAggregation,
)
from dprec.sums.local import _with_norm_1
from dprec.sums.secure import VectorPlan
from simulation.protocols import PROTOCOLS
from simulation.protocols.sums import SummedProtocol
from tests.drawn_options import drawn

USERS, ITEMS = 20, 12
STARS = RatingScale.evenly(1, 5, 1)
CATALOGUE = Catalogue(
    np.linspace(-1, 1, ITEMS)[:, None],
    np.arange(ITEMS)[:, None] % 3 == np.arange(3),
    ("year",),
    ("a", "b", "c"),
)
ROUNDING = 1 + 1e-9
"""What the noise is made larger by."""

OPTIONS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "dp-als": (
        "factorization",
        drawn(
            FactorizationOptions,
            {name: st.integers(1, 2) for name in ("bias_rounds", "factor_rounds")}
            | {"rank": st.integers(0, 3)},
        ),
    ),
    "dp-ials": (
        "factorization",
        drawn(ImplicitAlsOptions, {"rank": st.integers(1, 3), "rounds": st.integers(1, 2)}),
    ),
    "best-secret-set": (
        "sums",
        drawn(
            SecretSetOptions,
            {
                "split": st.none()
                | st.lists(st.just(0.0) | st.floats(0, 1), min_size=8, max_size=8).map(
                    lambda own: tuple(each / (sum(own) or 1) for each in own)
                )
            },
        ),
    ),
    **{kind: ("table", drawn(TableOptions)) for kind in ("gram", "pairs-in-blanket", "public-start")},
}
KINDS = [each.kind for each in PROTOCOLS if issubclass(each, SummedProtocol)]
WHO_ADDS_UP: dict[str, st.SearchStrategy[Any]] = {
    "trusted": drawn(TrustedAggregation),
    "secure": drawn(
        SecureAggregation,
        {"norm": st.integers(2, 1 << 11), "colluders": st.integers(0, 2), "users": st.none()},
    ),
    "shuffle": drawn(
        ShuffledAggregation,
        {"messages": st.integers(1, 12), "colluders": st.integers(0, 2), "users": st.none()},
    ),
    "local": drawn(LocalAggregation, {"shares": st.none()}),
}


def test_options_of_every_kind_are_drawn() -> None:
    assert set(KINDS) == {*OPTIONS, "popularity"}
    assert set(WHO_ADDS_UP) == set(AGGREGATIONS.kinds)


def profiles(seed: int, *, implicit: bool) -> Profiles:
    """Return one user without a rating, one with all, and others with few and many."""
    random = np.random.default_rng(seed)
    counts = np.append([0, ITEMS, 1, 1, 2], random.integers(0, ITEMS + 1, USERS - 5))
    items = [np.sort(random.permutation(ITEMS)[:count]) for count in counts.tolist()]
    rated = np.concatenate(items).astype(np.int32)
    values = random.integers(1, 6, rated.size).astype(np.float64)
    return Profiles(offsets(counts), rated, np.full(rated.size, np.nan) if implicit else values, ITEMS)


def released_in(
    protocol: Any, people: Profiles, scale: RatingScale
) -> Iterator[tuple[Any, Contributions[Any]]]:
    """Yield the layout of each round, and what devices contribute to it, as in a run."""
    method, aggregation = protocol.method, protocol.installed
    releases = Releases(USERS, ITEMS, scale)
    learner = method.learner(releases, CATALOGUE, 5)
    for number, multiplier in enumerate(protocol.multipliers, start=1):
        try:
            half = method.device(learner.model_bytes(), ITEMS, scale)
        except ValueError:  # devices refuse a model that settings have made too large
            return
        layout = half.layout(number)
        own = half.contributions(people, layout, number, words(number, "choices", 0, people.items.size))
        yield layout, own
        keys = words(number, "devices", 0, 2 * USERS).reshape(2, USERS)
        lasting = words(1, "lasting", 0, USERS)
        reports = aggregation.encode(
            own, layout, multiplier, RoundDraws(DeviceDraws(keys), number, 0, lasting)
        )
        valid, total = aggregation.decode(reports, layout, multiplier)
        assert valid.all()
        released = aggregation.release(total, layout, multiplier, ReleaseDraws(1, number))
        try:
            learner.learn(number, released, layout, aggregation.noise_in(total, layout, multiplier), USERS)
        except (
            np.linalg.LinAlgError,
            ValueError,
            OverflowError,
        ):  # nothing can be learned with such settings
            return


def assert_within(rows: Floats, longest: float, apart: float, *, signed: bool) -> None:
    """Hold rows against what they are said to be at most, and how far apart."""
    products = rows @ rows.T
    squares = np.diag(products)
    assert squares.max() <= (longest * ROUNDING) ** 2
    assert (squares[:, None] + squares - 2 * products).max() <= (apart * ROUNDING) ** 2
    assert signed or rows.min() >= 0


def dense(own: Contributions[Any], layout: Layout) -> Floats:
    vectors = own.vectors(layout)
    rows = np.zeros((own.n_users, layout.n_rows, layout.width))
    owners = np.repeat(np.arange(own.n_users), np.diff(vectors.indptr))
    rows[owners, vectors.rows] = vectors.numbers * UNIT
    return rows.reshape(own.n_users, -1)


def assert_as_sent(protocol: Any, own: Contributions[Any], layout: Any) -> None:
    """Hold what is added up of each user against what the noise is made for."""
    aggregation, apart, exact = protocol.installed, protocol.farthest, dense(own, layout)
    assert_within(exact, 1.0, protocol.method.farthest, signed=layout.signed)
    if isinstance(aggregation, TrustedAggregation):
        for row, report in zip(exact, aggregation.encode(own, layout, 0.0, None), strict=True):  # type: ignore[arg-type]
            valid, total = layout.added_up([report])
            assert valid.all()
            np.testing.assert_array_equal(total.ravel() * UNIT, row)
    elif isinstance(aggregation, SecureAggregation):
        plan = VectorPlan.of(layout, aggregation.norm, aggregation.sketch, aggregation.rotation)
        rounded = plan.vectors(own, layout, [bytes([user]) for user in range(USERS)]).astype(np.float64)
        turned = aggregation.sketch is not None or aggregation.rotation
        assert_within(rounded, aggregation.norm, apart * aggregation.norm, signed=layout.signed or turned)
    elif isinstance(aggregation, ShuffledAggregation):
        keys = words(3, "devices", 0, 2 * USERS).reshape(2, USERS)
        for report in aggregation.encode(own, layout, 0.0, RoundDraws(DeviceDraws(keys), 1, 0)):
            counts = aggregation.decode([report], layout, 0.0)[1].total
            assert counts.sum() == aggregation.messages
            assert counts[:-1].max() <= 1
    else:
        vectors = own.vectors(layout)
        indptr, _, numbers = _with_norm_1(vectors, np.arange(USERS), layout.n_rows)
        lengths = np.add.reduceat(numbers**2, indptr[:-1])
        assert np.abs(lengths - 1).max() < 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize("aggregation", AGGREGATIONS.kinds)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_whatever_the_options_contributions_are_as_long_and_as_far_apart_as_is_told(
    kind: str, aggregation: str, data: st.DataObject
) -> None:
    hold_contributions(kind, aggregation, data)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_with_some_options_contributions_are_as_long_and_as_far_apart_as_is_told(
    kind: str, data: st.DataObject
) -> None:
    hold_contributions(kind, data.draw(st.sampled_from(["trusted", "secure"])), data)


def hold_contributions(kind: str, aggregation: str, data: st.DataObject) -> None:
    """Hold one draw of the options of a protocol."""
    implicit = PROTOCOLS[kind].predicted == "lists"
    composition = "sum" if aggregation == "local" else "pld"
    epsilon = data.draw(st.floats(0.1, 20))
    budget = PrivacyBudget(epsilon=epsilon, per="user", composition=composition, delta=1e-6)
    settings_: dict[str, Any] = {
        "privacy": budget,
        "aggregation": data.draw(WHO_ADDS_UP[aggregation]),
        "adjacency": data.draw(st.sampled_from(["add-or-remove-one", "replace-one"])),
    }
    if kind in OPTIONS:
        name, options = OPTIONS[kind]
        settings_[name] = data.draw(options)
    else:
        settings_ |= {"content": data.draw(st.booleans()), "fewest": data.draw(st.integers(1, 40))}
    scale = POSITIVE if implicit else STARS
    sizes = Releases(USERS, ITEMS, scale)
    try:
        protocol = PROTOCOLS[kind](**settings_).knowing_items(content=True).among(USERS, ITEMS)
        protocol.check(sizes)
    except SettingError:
        assume(False)
    assert isinstance(protocol, SummedProtocol)
    told = 1.0 if protocol.adjacency == "add-or-remove-one" else protocol.farthest
    assert protocol.sensitivity == told
    for layout, own in released_in(
        protocol, profiles(data.draw(st.integers(0, 99)), implicit=implicit), scale
    ):
        assert_as_sent(protocol, own, layout)


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
        reports = code.encode(
            model.updates((size * start,), people), RoundDraws(FixedAnswers(USERS, 1), 1, 0)
        )
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
    setup = protocol.setup()
    try:
        channel = setup.channel
    except ValueError:  # `check` refuses it
        assume(False)
    assert channel.epsilon <= setup.epsilon_per_round * ROUNDING
    assert channel.epsilon * setup.rounds <= budget.epsilon * ROUNDING
    slopes = np.array([0.0, 0.3, -0.3, 1e9, -1e9, 1e300, np.inf, -np.inf])
    levels = levels_of(slopes, setup.clamp)
    assert levels.min() >= 1
    assert levels.max() <= len(channel.probabilities)
