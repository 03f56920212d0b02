"""What is written at one end is read at the other, and anything else is refused."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.completion import OneBit
from dprec.components import Options, as_values, from_json, option, to_json
from dprec.crossdomain import ReplacementOptions
from dprec.exchange import (
    REPORT,
    FinalFactors,
    GradientRequest,
    Identity,
    Recommendations,
    ReplacementRequest,
    Reports,
    SlopesRequest,
    asked_users,
    bitmap_of,
)
from dprec.gradients import GRADIENTS, FullGradient
from dprec.mechanisms import MECHANISMS, TwoLayers
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import BinaryFlip, Raw
from dprec.protocols.base import Protocol
from dprec.protocols.baselines import NothingSentProtocol
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.protocols.gram import GramProtocol, PairTableOptions
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.registry import AnyProtocol
from dprec.protocols.x_map import GraphOptions, XMapProtocol
from dprec.ratings import RatingScale
from dprec.schedules import PermanentAnswers, RepeatedAnswers
from dprec.sums import CentralAggregation, SecureAggregation
from dprec.wire import BroadcastOptions
from tests import make
from tests.make import user_budget
from tests.refusals import refused_at

WRITTEN = [
    GradientRequest(3, b"factors"),
    GradientRequest(3, b"", b"\x01"),
    FinalFactors(b"factors"),
    SlopesRequest(1, [b"", b"row"]),
    SlopesRequest(1, []),
    Recommendations([b"list", b""]),
    ReplacementRequest(2, 0, 5, b"rows"),
    ReplacementRequest(2, 3, 4, b"", b"\x01\x02"),
    Reports(7, [b"a", b"", b"c"]),
    Reports(7, [b"a"]),
    Reports(7, []),
    Reports(0, [b"a", b"", b"c"], absent=(1,), late=(0, 2)),
    Identity(4),
]


def sizes(*of_reports: int) -> bytes:
    return np.array(of_reports, dtype="<u4").tobytes()


@pytest.mark.parametrize("written", WRITTEN)
def test_what_was_written_is_read_and_nothing_may_be_missing_or_of_another_type(written: Any) -> None:
    kind, entries = type(written), written.entries()
    assert kind.of(entries) == written
    for key in set(entries) - {"asked", "absent", "late"}:
        with pytest.raises(ValueError):
            kind.of({name: value for name, value in entries.items() if name != key})
    for key in {"round", "start", "stop", "first", "partition"} & set(entries):
        for value in (None, True, False, "1", 1.0, b"1", [1]):
            with pytest.raises(ValueError):
                kind.of(entries | {key: value})


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        (GradientRequest, {"round": 1, "factors": "text"}),
        (GradientRequest, {"round": 1, "factors": b"", "asked": [True]}),
        (SlopesRequest, {"round": 1, "rows": [b"row", 1]}),
        (Recommendations, {"lists": ["list"]}),
        (ReplacementRequest, {"round": 2, "start": 5, "stop": 5, "rows": b""}),
        (ReplacementRequest, {"round": 2, "start": -1, "stop": 5, "rows": b""}),
        (Reports, {"first": 0, "reports": [1, 2]}),
        (Reports, {"first": 0, "reports": [b"ab", sizes(1, 1), b""]}),
        (Reports, {"first": 0, "reports": [b"ab", sizes(1, 1)[:-1]]}),
        (Reports, {"first": 0, "reports": [b"ab", sizes(1, 2)]}),
        (Reports, {"first": 0, "reports": [b"ab", sizes(1)]}),
        (Reports, {"first": 0, "reports": [b"ab", sizes(3, 2**32 - 1)]}),
        (Reports, {"first": 0, "reports": [b""], "late": [1]}),
        (Reports, {"first": 0, "reports": [b""], "late": [-1]}),
        (Reports, {"first": 0, "reports": [b""], "absent": [True]}),
    ],
)
def test_values_that_do_not_belong_are_refused(kind: Any, entries: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        kind.of(entries)


@pytest.mark.parametrize("users", [1, 7, 8, 9, 40])
def test_a_bitmap_names_the_users_who_are_asked(users: int) -> None:
    wanted = np.arange(users) % 3 == 1
    bitmap = bitmap_of(wanted)
    assert bitmap is not None
    assert asked_users(bitmap, users).tolist() == wanted.tolist()
    for other in (bitmap[:-1], bitmap + b"\0"):
        with pytest.raises(ValueError, match="another partition"):
            asked_users(other, users)


@dataclass(frozen=True, kw_only=True)
class Holder(Options):
    """Holds a protocol of any kind."""

    protocol: AnyProtocol = option("What is installed.")


BUDGET = PrivacyBudget(epsilon=0.1, per="user")
ONE_SHOT = make.one_shot(BoundedLaplace(symbols=64), BUDGET)
ITERATIVE = IterativeProtocol(
    gradient=FullGradient(),
    downlink=BroadcastOptions(dtype="float16", delta=True),
    rank=3,
    ridge=1 / 3,
    rounds=7,
)
PERTURBATION = GradientPerturbationProtocol(
    completion=OneBit(link="gaussian", sigma=0.7), rounds=3, privacy=PrivacyBudget(epsilon=0.6)
)
X_MAP = XMapProtocol(
    mechanism=Raw(),
    replacement=ReplacementOptions(
        selection="private", epsilon=0.3, candidates="catalogue", transfer="deviation"
    ),
).installed
MEMOISED = make.one_shot(BoundedLaplace(), PrivacyBudget(epsilon=1.0), answers=RepeatedAnswers())
SETUPS: list[Protocol] = [
    NothingSentProtocol(),
    ONE_SHOT,
    make.one_shot(Raw()),
    ITERATIVE,
    PERTURBATION,
    X_MAP,
    XMapProtocol(mechanism=BoundedLaplace(), privacy=BUDGET, graph=GraphOptions(similarity="cosine")),
    make.one_shot(BinaryFlip(p1=0.2, p2=0.3)),
    MEMOISED,
    make.one_shot(
        BoundedLaplace(),
        PrivacyBudget(epsilon=1.0),
        predicts=True,
        answers=RepeatedAnswers(on_change="update", answers_per_user=20),
    ),
    make.one_shot(Raw(), None, answers=RepeatedAnswers()),
    make.one_shot(
        BoundedLaplace(), PrivacyBudget(epsilon=1.0), answers=PermanentAnswers(mechanism=TwoLayers(first=0.4))
    ),
    *(make.one_shot(kind()) for kind in MECHANISMS if kind is not BinaryFlip),
    *(replace(ITERATIVE, gradient=kind(), privacy=BUDGET) for kind in GRADIENTS),
]


def read(values: Any) -> Protocol:
    return from_json(Holder, json.dumps({"protocol": values}), "population.json").protocol


@pytest.mark.parametrize("protocol", SETUPS)
def test_a_setup_survives_the_way_through_json(protocol: Protocol) -> None:
    assert from_json(Holder, to_json(Holder(protocol=protocol)), "here").protocol == protocol


def test_what_is_memoised_follows_from_mechanism_budget_and_scale_alone() -> None:
    stars = RatingScale.evenly(1, 5, 1)
    own = MEMOISED.memory(stars, REPORT)
    for same in (RepeatedAnswers(on_change="update"), RepeatedAnswers(answers_per_user=3)):
        assert replace(MEMOISED, answers=same, personalization="on-device").memory(stars, REPORT) == own
    layered = replace(MEMOISED, answers=PermanentAnswers(mechanism=TwoLayers()))
    others = [
        MEMOISED.memory(RatingScale.evenly(1, 10, 1), REPORT),
        replace(MEMOISED, privacy=PrivacyBudget(epsilon=2.0)).memory(stars, REPORT),
        replace(MEMOISED, mechanism=BoundedLaplace(symbols=64)).memory(stars, REPORT),
        layered.memory(stars, REPORT),
    ]
    assert len({own, *others}) == 5
    assert MEMOISED.memory(stars, "anything else") == own
    assert layered.memory(stars, "anything else") is None
    assert make.one_shot(BoundedLaplace(), BUDGET).memory(stars, REPORT) is None


def changed(protocol: Protocol, key: str, value: Any) -> dict[str, Any]:
    """Return the JSON values of a protocol with one of them replaced; the key is dotted."""
    values: dict[str, Any] = json.loads(to_json(protocol))
    *path, last = key.split(".")
    inner = values
    for step in path:
        inner = inner[step]
    inner[last] = value
    return values


@pytest.mark.parametrize(
    ("protocol", "key", "value"),
    [
        (ONE_SHOT, "mechanism.colour", 1),
        (ONE_SHOT, "privacy.epsilon", float("nan")),
        (ITERATIVE, "downlink.delta", 1),
        (X_MAP, "replacement.transfer", "all"),
    ],
)
def test_a_damaged_value_is_named(protocol: Protocol, key: str, value: Any) -> None:
    with refused_at(f"population.json, protocol.{key}"):
        read(changed(protocol, key, value))


@pytest.mark.parametrize("told", [{"privacy": user_budget()}, {"aggregation": SecureAggregation()}])
def test_a_device_takes_no_sums_in_which_profiles_have_any_length(told: dict[str, Any]) -> None:
    table = PairTableOptions(items=0, normalised=False)
    clear = GramProtocol(table=table, aggregation=CentralAggregation()).installed
    assert read(json.loads(to_json(clear))) == clear
    with refused_at("table.normalised"):
        replace(clear, **told)
    values = json.loads(to_json(clear)) | {key: as_values(value) for key, value in told.items()}
    with refused_at("population.json, protocol.table.normalised"):
        read(values)


@pytest.mark.parametrize("text", ["", "[]", '{"protocol": '])
def test_text_that_was_cut_is_refused(text: str) -> None:
    with refused_at("population.json, JSON"):
        from_json(Holder, text, "population.json")
