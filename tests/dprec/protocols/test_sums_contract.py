"""What every protocol of sums keeps to, whatever users hold, servers send and settings say.

What one profile adds is within what the accountant is told, and is that of this profile alone; bytes of a
server harm no device; devices are given what a run needs. Settings are drawn from what their classes declare,
and what `check` refuses is left out. Devices hold what servers have learned from noisy releases.
"""

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import Options, from_json, option, to_json
from dprec.errors import SettingError
from dprec.protocols.base import Public
from dprec.protocols.collective_als import CollectiveOptions
from dprec.protocols.gram import ListTableOptions, PairTableOptions
from dprec.protocols.graph_filter import GraphFilterOptions
from dprec.protocols.implicit_als import ImplicitAlsOptions
from dprec.protocols.private_als import FactorizationOptions
from dprec.protocols.registry import PROTOCOLS, AnyProtocol
from dprec.protocols.searches import SearchOptions
from dprec.protocols.secret_sets import SecretSetOptions
from dprec.protocols.sums import SumsProtocol
from dprec.randomness import ReleaseDraws, words
from dprec.ratings import POSITIVE, RatingScale
from dprec.sums import (
    AGGREGATIONS,
    UNIT,
    CentralAggregation,
    Contributions,
    LocalAggregation,
    SecureAggregation,
    ShuffledAggregation,
)
from dprec.sums.local import _with_norm_1
from dprec.sums.secure import VectorPlan
from tests.drawn_options import drawn
from tests.hostile import devices_sent
from tests.make import STARS
from tests.summing import contributions, dense, devices, played

USERS, ITEMS = 20, 12
CATALOGUE = Catalogue(
    np.linspace(-1, 1, ITEMS)[:, None],
    np.arange(ITEMS)[:, None] % 3 == np.arange(3),
    ("year",),
    ("a", "b", "c"),
)
ROUNDING = 1 + 1e-9
"""What the noise is made larger by."""

WITH_GROUPS, POPULAR_AGAIN = "gram with groups", "gram that asks for popularity again"
CLASSES: dict[str, Any] = {each.kind: each for each in PROTOCOLS if issubclass(each, SumsProtocol)}
KINDS = [*CLASSES, WITH_GROUPS, POPULAR_AGAIN]
CLASSES[WITH_GROUPS] = CLASSES[POPULAR_AGAIN] = CLASSES["gram"]
PAIRS = PairTableOptions(items=5, popularity_share=0.2)
GROUPS = PairTableOptions(
    items=5, popularity_share=0.4, search=SearchOptions(numbers=64, rounds=2), groups=2, grouped_items=8
)
SMALL: dict[str, dict[str, Any]] = {
    "dp-als": {
        "factorization": FactorizationOptions(rank=2, bias_rounds=2, factor_rounds=1, ratings_per_user=4)
    },
    "dp-cmf": {
        "factorization": CollectiveOptions(rank=2, bias_rounds=2, factor_rounds=1, ratings_per_user=4)
    },
    "dp-ials": {"factorization": ImplicitAlsOptions(rank=2, rounds=2, item_share=0.5, pairs=3)},
    "sums-on-device": {"sums": SecretSetOptions(features=4, split=(0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1))},
    "popularity": {"search": SearchOptions(numbers=64, rounds=3)},
    **{kind: {"table": PAIRS} for kind in ("gram", "pairs-in-blanket")},
    **{kind: {"table": GROUPS} for kind in (WITH_GROUPS, POPULAR_AGAIN)},
    "public-start": {"table": ListTableOptions(items=5, popularity_share=0.2)},
    "privirec": {"filters": GraphFilterOptions(rank=3, iterations=2)},
}
WHO_ADDS_UP = {
    "central": CentralAggregation(),
    "secure-aggregation": SecureAggregation(norm=1024, colluders=0),
    "shuffle": ShuffledAggregation(colluders=0),
    "local": LocalAggregation(),
}


def scale_of(kind: str) -> RatingScale:
    return POSITIVE if CLASSES[kind].predicted == "lists" else STARS


def protocol_of(kind: str, aggregation: str = "central") -> Any:
    """Return a protocol of few rounds, suited to the people."""
    composition: Any = "sum" if aggregation == "local" else "pld"
    budget = PrivacyBudget(epsilon=4.0, per="user", composition=composition, delta=1e-6)
    given_: dict[str, Any] = {"privacy": budget, "aggregation": WHO_ADDS_UP[aggregation]}
    return CLASSES[kind](**given_ | SMALL.get(kind, {})).suited(Public(USERS, ITEMS, scale_of(kind)))


def people_of(kind: str, *held: dict[int, int]) -> Profiles:
    """Return users with levels of ratings by item, which sets are without."""
    rows = [sorted(own.items()) for own in held]
    items = np.array([item for row in rows for item, _ in row], dtype=np.int32)
    levels = np.array([level for row in rows for _, level in row], dtype=np.float64)
    values = np.full(items.size, np.nan) if scale_of(kind).implicit else levels
    return Profiles(offsets(np.array([len(row) for row in rows])), items, values, ITEMS)


def crowd(kind: str, seed: int) -> Profiles:
    """Return one user without a rating, one with all, and others with few and many."""
    random = np.random.default_rng(seed)
    counts = [0, ITEMS, 1, 1, 2, *random.integers(0, ITEMS + 1, USERS - 5)]
    chosen = [random.permutation(ITEMS)[:count].tolist() for count in counts]
    if kind == WITH_GROUPS:
        # Tastes: all but the first two rate one half of the items only.
        chosen[2:] = [[item for item in own if item % 2 == len(own) % 2] for own in chosen[2:]]
    return people_of(kind, *({item: int(random.integers(1, 6)) for item in items} for items in chosen))


@cache
def held(kind: str) -> tuple[Any, ...]:
    """Return what devices hold in each round, and at the end."""
    found = played(protocol_of(kind), crowd(kind, 1), scale_of(kind), multiplier=0.2, catalogue=CATALOGUE)
    return tuple(found[1])


def rounds_of(kind: str) -> Iterator[tuple[Any, Any]]:
    """Yield what devices hold in each round, and what is summed."""
    for number, device in enumerate(held(kind)[:-1], start=1):
        yield device, device.release(number)


EVERY = pytest.mark.parametrize("kind", KINDS)
PEOPLE = st.lists(st.dictionaries(st.integers(0, ITEMS - 1), st.integers(1, 5)), min_size=1, max_size=6)


@EVERY
@settings(max_examples=25)
@given(people=PEOPLE, cut=st.integers(0, 6))
def test_what_a_user_adds_is_bounded_and_follows_from_nobody_else(
    kind: str, people: list[dict[int, int]], cut: int
) -> None:
    """To the last bit, however users are divided; and a trusted server adds up what it is sent."""
    whole = people_of(kind, *people)
    divided = [people[:cut], people[cut:]] if cut else [[own] for own in people]
    for device, layout in rounds_of(kind):
        together = contributions(device, whole, layout)
        rows, reports = dense(together, layout), together.encode(layout)
        assert (rows**2).sum(axis=1).max() <= ROUNDING**2
        assert np.abs(rows).max() <= layout.largest * ROUNDING
        assert layout.signed or rows.min() >= 0
        assert all(report or not row.any() for report, row in zip(reports, rows, strict=True))
        assert not rows[[not own for own in people]].any()
        random, start = words(3, "choices", 0, whole.items.size), 0
        for part in filter(None, divided):
            own = people_of(kind, *part)
            cells = slice(whole.indptr[start], whole.indptr[start + own.n_users])
            apart = device.contributions(own, layout, random[cells])
            np.testing.assert_array_equal(dense(apart, layout), rows[start : start + own.n_users])
            assert list(apart.encode(layout)) == list(reports[start : start + own.n_users])
            some = together.of_users(slice(start, start + own.n_users))
            np.testing.assert_array_equal(dense(some, layout), rows[start : start + own.n_users])
            start += own.n_users
        valid, total = layout.added_up([*reports, b"\xff" * 7])
        assert valid.tolist() == [True] * len(people) + [False]
        np.testing.assert_array_equal(total.ravel() * UNIT, rows.sum(axis=0))


@EVERY
def test_who_holds_nothing_adds_nothing_in_any_round_whoever_adds_up(kind: str) -> None:
    """That is the none with which epsilon compares a profile, everywhere."""
    secure = SecureAggregation(norm=1024).among(40)
    messages = ShuffledAggregation(messages=7, null_fakes=2, colluders=0).among(40)
    for device, layout in rounds_of(kind):
        none = contributions(device, people_of(kind, {}, {}), layout)
        reports = secure.encode(none, layout, 0.0, devices(2))
        assert secure.length(secure.decode(reports, layout, 0.0)[1], layout, 0.0) == 0
        sent = messages.decode(messages.encode(none, layout, 0.0, devices(2)), layout, 0.0)[1].total
        assert sent[-1] == sent.sum() == 2 * 7


@EVERY
def test_a_release_is_no_larger_than_the_first_device_says_and_rows_are_about_items(kind: str) -> None:
    protocol = protocol_of(kind)
    may_ask = protocol.may_ask(Public(USERS, ITEMS, scale_of(kind)))
    assert len(may_ask) == protocol.rounds == len(held(kind)) - 1
    told = []
    for (device, layout), most in zip(rounds_of(kind), may_ask, strict=True):
        alike = layout.width, layout.largest, layout.signed
        assert any(
            layout.n_rows <= each.n_rows and alike == (each.width, each.largest, each.signed) for each in most
        )
        everything, nothing = (device.about(np.arange(size), layout) for size in (ITEMS, 0))
        assert everything.shape == nothing.shape == (layout.n_rows,)
        told.append(everything.any())
    assert any(told)


def test_groups_are_asked_for_where_there_are_tastes_and_popularity_again_where_there_are_none() -> None:
    assert [held(kind)[-2].again for kind in (WITH_GROUPS, POPULAR_AGAIN)] == [False, True]
    assert held(WITH_GROUPS)[-1].model.groups.items.size


@EVERY
def test_the_probes_of_an_audit_are_as_long_as_contributions_get(kind: str) -> None:
    for layout, own in protocol_of(kind).probes(1):
        lengths = np.linalg.norm(dense(own, layout), axis=1)
        assert lengths.max() <= ROUNDING
        # Factors are far below their clip, and few sets lie along the leading vectors.
        later = {"dp-ials": 1, "privirec": 2}
        assert lengths.max() > 0.9 or layout.round_index > later.get(kind, layout.round_index)


@EVERY
@settings(max_examples=25)
@given(data=st.data())
def test_a_device_is_read_back_from_its_bytes_and_no_other_bytes_harm_it(
    kind: str, data: st.DataObject
) -> None:
    protocol, scale = protocol_of(kind), scale_of(kind)
    people = crowd(kind, 2)

    def read(sent: bytes) -> Any:
        return protocol.device(sent, ITEMS, scale)

    own = data.draw(st.sampled_from(held(kind)))
    assert read(own.encode()).encode() == own.encode()
    with np.errstate(all="ignore"):
        for device in devices_sent(data, own.encode() or b"\0", read):
            for number in range(1, protocol.rounds + 1):
                layout = device.release(number)
                rows = dense(contributions(device, people, layout), layout)
                assert (rows**2).sum(axis=1).max() <= ROUNDING**2


@EVERY
def test_every_item_is_predicted_by_the_devices_and_finite(kind: str) -> None:
    found = held(kind)[-1].predictions(crowd(kind, 2))
    assert found.shape == (USERS, ITEMS)
    assert np.isfinite(found).all()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Holder(Options):
    """Holds what is installed, of any kind."""

    protocol: AnyProtocol = option("What is installed.")


@pytest.mark.parametrize("aggregation", AGGREGATIONS.kinds)
@EVERY
def test_what_is_installed_survives_json_and_facts_are_plain(kind: str, aggregation: str) -> None:
    protocol = protocol_of(kind, aggregation)
    installed = protocol.installed
    read: Any = from_json(Holder, to_json(Holder(protocol=installed)), "here").protocol
    assert read == installed
    assert read.drawn_by == installed.drawn_by
    assert (read.multipliers, read.adding_up) == (protocol.multipliers, protocol.adding_up)
    assert installed.installed == installed
    plain = (str, bool, type(None), Options)
    assert all(isinstance(value, plain) for value in vars(protocol.facts).values())
    assert protocol.facts.protects == f"{aggregation}-sums"
    guarantee = protocol.guarantee((USERS, ITEMS))
    assert (guarantee.status, guarantee.trust) == ("proved", AGGREGATIONS[aggregation].trust)


DRAWN: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    **{
        kind: (
            "factorization",
            drawn(
                options,
                {name: st.integers(1, 2) for name in ("bias_rounds", "factor_rounds")}
                | {"rank": st.integers(0, 3)},
            ),
        )
        for kind, options in (("dp-als", FactorizationOptions), ("dp-cmf", CollectiveOptions))
    },
    "dp-ials": (
        "factorization",
        drawn(ImplicitAlsOptions, {"rank": st.integers(1, 3), "rounds": st.integers(1, 2)}),
    ),
    "sums-on-device": (
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
    **{kind: ("table", drawn(PairTableOptions)) for kind in ("gram", "pairs-in-blanket")},
    **{
        kind: (
            "table",
            drawn(
                PairTableOptions,
                {
                    "items": st.integers(2, ITEMS),
                    "popularity_share": st.floats(0.1, 0.5),
                    "groups": st.integers(1, 4),
                    "groups_share": st.floats(0.05, 0.4),
                },
            ),
        )
        for kind in (WITH_GROUPS, POPULAR_AGAIN)
    },
    "public-start": ("table", drawn(ListTableOptions)),
    "privirec": (
        "filters",
        drawn(GraphFilterOptions, {"rank": st.integers(1, 2 * ITEMS), "iterations": st.integers(1, 3)}),
    ),
}
AGGREGATIONS_DRAWN: dict[str, st.SearchStrategy[Any]] = {
    "central": drawn(CentralAggregation),
    "secure-aggregation": drawn(
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
    assert set(KINDS) == {*DRAWN, "popularity"} == {*SMALL, "popularity"}
    assert set(AGGREGATIONS_DRAWN) == set(WHO_ADDS_UP) == set(AGGREGATIONS.kinds)


def released_in(
    protocol: Any, people: Profiles, scale: RatingScale
) -> Iterator[tuple[Any, Contributions[Any]]]:
    """Yield the layout of each round, and what devices contribute to it, as in a run."""
    aggregation = protocol.adding_up
    server = protocol.server(Public(USERS, ITEMS, scale), CATALOGUE, 5)
    for number, multiplier in enumerate(protocol.multipliers, start=1):
        try:
            device = protocol.device(server.held.encode(), ITEMS, scale)
        except ValueError:  # devices refuse a model that settings have made too large
            return
        layout = device.release(number)
        own = contributions(device, people, layout)
        yield layout, own
        reports = aggregation.encode(own, layout, multiplier, devices(USERS, number))
        valid, total = aggregation.decode(reports, layout, multiplier)
        assert valid.all()
        released = aggregation.release(total, layout, multiplier, ReleaseDraws(1, number))
        try:
            server.learn(layout, number, released, aggregation.noise_in(total, layout, multiplier), USERS)
        except (np.linalg.LinAlgError, ValueError, OverflowError):
            return  # nothing can be learned with such settings


def assert_within(rows: Floats, longest: float, apart: float, *, signed: bool) -> None:
    """Hold rows against what they are said to be at most, and how far apart."""
    products = rows @ rows.T
    squares = np.diag(products)
    assert squares.max() <= (longest * ROUNDING) ** 2
    assert (squares[:, None] + squares - 2 * products).max() <= (apart * ROUNDING) ** 2
    assert signed or rows.min() >= 0


def assert_as_sent(protocol: Any, own: Contributions[Any], layout: Any) -> None:
    """Hold what is added up of each user against what the noise is made for."""
    aggregation, apart, exact = protocol.adding_up, protocol.farthest, dense(own, layout)
    assert_within(exact, 1.0, protocol.apart, signed=layout.signed)
    assert protocol.signed or not layout.signed
    if isinstance(aggregation, CentralAggregation):
        for row, report in zip(exact, aggregation.encode(own, layout, 0.0, devices(USERS)), strict=True):
            valid, total = layout.added_up([report])
            assert valid.all()
            np.testing.assert_array_equal(total.ravel() * UNIT, row)
    elif isinstance(aggregation, SecureAggregation):
        plan = VectorPlan.of(layout, aggregation.norm)
        keys = np.arange(2 * USERS, dtype=np.uint64).reshape(2, USERS)
        rounded = plan.vectors(own, layout, keys).astype(np.float64)
        assert_within(rounded, aggregation.norm, apart * aggregation.norm, signed=layout.signed)
    elif isinstance(aggregation, ShuffledAggregation):
        for report in aggregation.encode(own, layout, 0.0, devices(USERS)):
            counts = aggregation.decode([report], layout, 0.0)[1].total
            assert counts.sum() == aggregation.messages
            assert counts[:-1].max() <= 1
    else:
        indptr, _, numbers = _with_norm_1(own.vectors(layout), layout.n_rows)
        lengths = np.add.reduceat(numbers**2, indptr[:-1])
        assert np.abs(lengths - 1).max() < 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize("aggregation", AGGREGATIONS.kinds)
@EVERY
@settings(max_examples=8, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_whatever_the_options_contributions_are_as_long_and_as_far_apart_as_is_told(
    kind: str, aggregation: str, data: st.DataObject
) -> None:
    hold_contributions(kind, aggregation, data)


@EVERY
@settings(max_examples=4, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_with_some_options_contributions_are_as_long_and_as_far_apart_as_is_told(
    kind: str, data: st.DataObject
) -> None:
    hold_contributions(kind, data.draw(st.sampled_from(["central", "secure-aggregation"])), data)


def hold_contributions(kind: str, aggregation: str, data: st.DataObject) -> None:
    """Hold one draw of the options of a protocol."""
    composition: Any = "sum" if aggregation == "local" else "pld"
    epsilon = data.draw(st.floats(0.1, 20))
    drawn_: dict[str, Any] = {
        "privacy": PrivacyBudget(epsilon=epsilon, per="user", composition=composition, delta=1e-6),
        "aggregation": data.draw(AGGREGATIONS_DRAWN[aggregation]),
        "adjacency": data.draw(st.sampled_from(["add-or-remove-one", "replace-one"])),
    }
    if kind in DRAWN:
        name, options = DRAWN[kind]
        drawn_[name] = data.draw(options)
    else:
        drawn_ |= {"content": data.draw(st.booleans()), "fewest": data.draw(st.integers(1, 40))}
    scale = scale_of(kind)
    public = Public(USERS, ITEMS, scale)
    try:
        protocol: Any = CLASSES[kind](**drawn_).suited(public)
        protocol.check(public)
    except SettingError:
        assume(False)
    told = 1.0 if protocol.adjacency == "add-or-remove-one" else protocol.farthest
    assert protocol.sensitivity == told
    for layout, own in released_in(protocol, crowd(kind, data.draw(st.integers(0, 99))), scale):
        assert_as_sent(protocol, own, layout)
