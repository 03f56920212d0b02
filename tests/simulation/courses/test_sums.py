"""Protocols of sums: each with everybody who can add up."""

from typing import Any

import numpy as np
import pytest

import simulation
from dprec.protocols.base import Public
from dprec.protocols.registry import PROTOCOLS
from dprec.protocols.sums import SumsProtocol
from dprec.ratings import Ratings
from dprec.sums import AGGREGATIONS, SecureAggregation
from dprec.sums.proofs import Bounds
from simulation.configuration.models import RunConfig
from tests.make import ON_THIS_MACHINE, small_run

KINDS = [each.kind for each in PROTOCOLS if issubclass(each, SumsProtocol)]
AT_4 = {"epsilon": 4.0, "per": "user", "composition": "pld"}
OPTIONS: dict[str, dict[str, Any]] = {
    "secure-aggregation": {"norm": 1024, "colluders": 0},
    "shuffle": {"colluders": 0},
}


def configured(kind: str, aggregation: dict[str, Any], **own: Any) -> dict[str, Any]:
    """Return a run of a protocol whose contributions somebody adds up."""
    privacy = {**AT_4, "composition": "sum" if aggregation["kind"] == "local" else "pld"}
    protocol = {"kind": kind, "privacy": privacy, "aggregation": aggregation, **own}
    split = {"kind": "user-holdout", "test_fraction": 0.2}
    values = small_run(protocol, 40, 20, 400, split=split)
    if PROTOCOLS[kind].predicted == "lists":
        values["dataset"]["positive"] = ">= 4"
    return values


SLOW = {(kind, "shuffle") for kind in KINDS if kind == "privirec" or kind.startswith("dp-")}
CASES = [
    # Several rounds through a shuffler take seconds to calibrate.
    pytest.param(kind, how, marks=pytest.mark.thorough if (kind, how) in SLOW else ())
    for kind in KINDS
    for how in AGGREGATIONS.kinds
]


@pytest.mark.parametrize(("kind", "aggregation"), CASES)
def test_every_one_runs_whoever_adds_up(kind: str, aggregation: str) -> None:
    config = configured(kind, {"kind": aggregation, **OPTIONS.get(aggregation, {})})
    found = simulation.run(config, page=False)
    assert np.isfinite(found.predictions["prediction"]).all()
    assert found.summary["privacy"]["trust"] == AGGREGATIONS[aggregation].trust
    assert found.summary["privacy"]["epsilon_composed"]["max"] == pytest.approx(4.0, rel=0.02)


def influence(kind: str, aggregation: dict[str, Any], **settings: Any) -> float | None:
    """Return the influence of one malicious user in lists of 900 users who have 25 of 100 items each."""
    config = RunConfig(**configured(kind, aggregation, **settings))
    items = np.sort(np.random.default_rng(1).random((900, 100)).argsort(axis=1)[:, :25], axis=1)
    train = Ratings.from_pairs(np.repeat(np.arange(900), 25), items.ravel())
    return config.protocol.suited(Public.of(train)).influence_of_one(train)


def test_a_malicious_user_adds_the_root_of_a_profile_unless_small_sets_count_as_larger() -> None:
    trusted = {"kind": "central"}
    assert influence("popularity", trusted) == pytest.approx(5.0)
    assert influence("popularity", trusted, fewest=15) == pytest.approx(np.sqrt(25 / 15))
    assert influence("popularity", trusted, fewest=25) == pytest.approx(1.0)
    pairs = np.sqrt(25 / 16 + 25 * 24 / 2)
    whole = {"items": 100, "popularity_share": 0.0}
    assert influence("gram", trusted, table=whole) == pytest.approx(pairs)
    assert influence("gram", trusted, table={**whole, "fewest": 25}) == pytest.approx(1.0)


def test_without_proofs_nothing_bounds_what_is_added_to_a_masked_sum() -> None:
    assert influence("popularity", {"kind": "secure-aggregation"}) is None
    room = influence("popularity", {"kind": "secure-aggregation", "proofs": "norm"}, fewest=25)
    drawn = influence("popularity", {"kind": "secure-aggregation", "proofs": "norm-and-noise"}, fewest=25)
    assert room is not None
    assert drawn is not None
    # What is rounded up to a step of the grid is little; what noise leaves room for is more.
    assert 1.0 <= drawn < 1.1 < room


def test_whose_proof_fails_is_not_in_the_sum_and_has_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    fates = iter([False])
    monkeypatch.setattr(Bounds, "hold", lambda *_: next(fates, True))
    aggregation = {"kind": "secure-aggregation", "norm": 1024, "colluders": 0, "proofs": "norm"}
    watched = {**configured("popularity", aggregation), "attacks": [{"kind": "membership"}]}
    found = simulation.run(watched, page=False)
    users = found.summary["dataset"]["users"]
    assert [record.replies for record in found.record.rounds] == [users - 1]
    assert found.traffic["epsilon_composed"] == pytest.approx([4.0] * users, rel=1e-6)


def test_who_sends_alone_or_among_fakes_is_louder_than_who_is_trusted_with() -> None:
    local, shuffled = (influence("popularity", {"kind": kind}, fewest=25) for kind in ("local", "shuffle"))
    assert local is not None
    assert shuffled is not None
    assert 5.0 < local < 50.0 < shuffled


SECURELY = {"kind": "secure-aggregation", "norm": 1024, "colluders": 0}


def refused(*_: Any) -> Any:
    raise AssertionError("asked for what nobody needs")


@pytest.mark.parametrize("kind", ["popularity", "dp-als"])
def test_the_noise_of_all_is_drawn_as_one_whatever_node_hosts_whom(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("dprec.sums.secure.noise_rows", refused)
    found = []
    for hosted, held in ((1, 1 << 26), (7, 1 << 26), ("all", 1 << 26), ("all", 1 << 9)):
        # As much as a few reports have, so that a node adds up some users at a time.
        monkeypatch.setattr("clients.iterative.REPORTS_AT_ONCE", held)
        simulated = {**ON_THIS_MACHINE, "users_per_node": hosted}
        values = {**configured(kind, SECURELY), "simulation": simulated}
        found.append(simulation.run(values, page=False))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].predictions["prediction"], other.predictions["prediction"])
        assert found[0].summary["traffic"] == other.summary["traffic"]


@pytest.mark.parametrize(
    "asking",
    [
        {"simulation": {**ON_THIS_MACHINE, "faults": {"straggle": 0.05}, "users_per_node": 7}},
        {"attacks": [{"kind": "membership"}]},
    ],
    ids=["faults", "attacks"],
)
def test_devices_draw_their_own_noise_where_single_reports_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, asking: dict[str, Any]
) -> None:
    monkeypatch.setattr(SecureAggregation, "summed", refused)
    found = simulation.run({**configured("popularity", SECURELY), **asking}, page=False)
    assert np.isfinite(found.predictions["prediction"]).all()
