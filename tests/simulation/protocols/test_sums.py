"""Protocols of sums: each with everybody who can add up."""

from typing import Any

import numpy as np
import pytest

import simulation
from dprec.completion import Profiles
from dprec.gradients import RoundDraws
from dprec.lists.method import ListDevice
from dprec.private_als.implicit import ImplicitDevice
from dprec.private_als.method import ItemDevice
from dprec.randomness import DeviceDraws, words
from dprec.ratings import Ratings
from dprec.secret_sets.method import ProfileDevice
from dprec.sums import (
    AGGREGATIONS,
    DeviceHalf,
    SecureAggregation,
    ShuffledAggregation,
)
from dprec.sums.proofs import Bounds
from simulation.configuration.models import RunConfig
from simulation.protocols import PROTOCOLS
from simulation.protocols.sums import SummedProtocol
from tests.make import small_run

KINDS = [each.kind for each in PROTOCOLS if issubclass(each, SummedProtocol)]
AT_4 = {"epsilon": 4.0, "per": "user", "composition": "pld"}
OPTIONS: dict[str, dict[str, Any]] = {"secure": {"norm": 1024, "colluders": 0}, "shuffle": {"colluders": 0}}


def configured(kind: str, aggregation: dict[str, Any], **own: Any) -> dict[str, Any]:
    """Return a run of a protocol whose contributions somebody adds up."""
    privacy = {**AT_4, "composition": "sum" if aggregation["kind"] == "local" else "pld"}
    protocol = {"kind": kind, "privacy": privacy, "aggregation": aggregation, **own}
    split = {"kind": "user-holdout", "test_fraction": 0.2}
    values = small_run(protocol, 40, 20, 400, split=split)
    if PROTOCOLS[kind].predicted == "lists":
        values["dataset"]["positive"] = ">= 4"
    return values


CASES = [
    # Ten rounds through a shuffler take seconds to calibrate.
    pytest.param(kind, how, marks=pytest.mark.thorough if (kind[:3], how) == ("dp-", "shuffle") else ())
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
    """Return the influence of one liar in lists of 900 users who have 25 of 100 items each."""
    config = RunConfig(**configured(kind, aggregation, **settings))
    items = np.sort(np.random.default_rng(1).random((900, 100)).argsort(axis=1)[:, :25], axis=1)
    train = Ratings.from_pairs(np.repeat(np.arange(900), 25), items.ravel())
    return config.protocol.suited_to(train).influence_of_one(train)


def test_one_liar_adds_as_much_as_the_root_of_a_profile_unless_small_sets_count_as_larger_ones() -> None:
    trusted = {"kind": "trusted"}
    assert influence("popularity", trusted) == pytest.approx(5.0)
    assert influence("popularity", trusted, fewest=15) == pytest.approx(np.sqrt(25 / 15))
    assert influence("popularity", trusted, fewest=25) == pytest.approx(1.0)
    pairs = np.sqrt(25 / 16 + 25 * 24 / 2)
    whole = {"items": 100, "popularity_share": 0.0}
    assert influence("gram", trusted, table=whole) == pytest.approx(pairs)
    assert influence("gram", trusted, table={**whole, "fewest": 25}) == pytest.approx(1.0)


def test_without_proofs_nothing_bounds_what_is_added_to_a_masked_sum() -> None:
    assert influence("popularity", {"kind": "secure"}) is None
    room = influence("popularity", {"kind": "secure", "proofs": "norm"}, fewest=25)
    drawn = influence("popularity", {"kind": "secure", "proofs": "norm-and-noise"}, fewest=25)
    assert room is not None
    assert drawn is not None
    # What is rounded up to a step of the grid is little; what noise leaves room for is more.
    assert 1.0 <= drawn < 1.1 < room


def test_whose_proof_fails_is_not_in_the_sum_and_has_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    fates = iter([False])
    monkeypatch.setattr(Bounds, "hold", lambda *_: next(fates, True))
    aggregation = {"kind": "secure", "norm": 1024, "colluders": 0, "proofs": "norm"}
    found = simulation.run(configured("popularity", aggregation), page=False)
    users = found.summary["dataset"]["users"]
    assert [record.replies for record in found.record.rounds] == [users - 1]
    assert found.traffic["epsilon_composed"] == pytest.approx([4.0] * users, rel=1e-6)


def test_who_sends_alone_or_among_fakes_is_louder_than_who_is_trusted_with() -> None:
    local, shuffled = (influence("popularity", {"kind": kind}, fewest=25) for kind in ("local", "shuffle"))
    assert local is not None
    assert shuffled is not None
    assert 5.0 < local < 50.0 < shuffled


NOTHING = Profiles(np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0), 20)
"""The profiles of two users who hold nothing."""


@pytest.mark.parametrize("kind", KINDS)
def test_who_holds_nothing_adds_nothing_in_any_round_whoever_adds_up(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is the none with which epsilon compares a profile, everywhere."""
    seen = []
    draws = RoundDraws(DeviceDraws(words(1, "devices", 0, 4).reshape(2, 2)), 1, 0)
    grids = [SecureAggregation(norm=1024, sketch=0.5), SecureAggregation(rotation=True)]
    messages = ShuffledAggregation(messages=7, null_fakes=2, colluders=0).among(40)

    def watched(device_class: type[DeviceHalf]) -> None:
        honest = device_class.contributions

        def contributions(device: DeviceHalf, profiles: Profiles, layout: Any, *rest: Any) -> Any:
            none = honest(device, NOTHING, layout, rest[0], np.zeros(0, dtype=np.uint64))
            assert not none.vectors(layout).numbers.any()
            for grid in grids:
                added_up = grid.among(40)
                reports = added_up.encode(none, layout, 0.0, draws)
                assert added_up.length(added_up.decode(reports, layout, 0.0)[1], layout, 0.0) == 0
            sent = messages.decode(messages.encode(none, layout, 0.0, draws), layout, 0.0)[1].total
            assert sent[-1] == sent.sum() == 2 * 7
            seen.append(rest[0])
            return honest(device, profiles, layout, *rest)

        monkeypatch.setattr(device_class, "contributions", contributions)

    for each in (ListDevice, ItemDevice, ImplicitDevice, ProfileDevice):
        watched(each)
    config = RunConfig(**configured(kind, {"kind": "trusted"}))
    simulation.run(config, page=False)
    assert sorted(set(seen)) == list(range(1, config.protocol.among(40, 20).method.rounds + 1))
