"""Federated models whose rows depend on more than a user's ratings: what a run sees, and what an audit."""

import math
from typing import Any

import numpy as np
import pytest

from dprec.accounting import gaussian_epsilon
from dprec.completion import Profiles
from dprec.errors import InputError
from dprec.federated import ContractError, Devices, check_updates, code_of, moved_by_others, some_devices
from dprec.protocols.federated import FederatedProtocol
from simulation import audit, load, run
from tests.make import ON_THIS_MACHINE, STARS, small_run
from tests.models import InSingle, Mixing

BUDGET = {"epsilon": 1.0, "per": "user", "composition": "pld", "delta": 1e-6}


def values(kind: str, users_per_node: int | str = "all", **protocol: Any) -> dict[str, Any]:
    name, _, least = kind.partition(" ")
    model = {"kind": f"tests.models:{name}", **({"least": int(least)} if least else {})}
    own = {"kind": "federated", "model": model, "rounds": 2, "privacy": BUDGET, **protocol}
    here = {**ON_THIS_MACHINE, "users_per_node": users_per_node}
    return small_run(own, 140, 20, 1500, simulation=here)


@pytest.mark.parametrize("kind", ["Mixing", "Mixing 3", "Drawing", "Remembering", "Guessing"])
@pytest.mark.parametrize("verb", ["run", "audit"])
def test_a_model_that_mixes_or_draws_or_remembers_is_refused_in_one_line(kind: str, verb: str) -> None:
    with pytest.raises(InputError) as caught:
        run(values(kind), page=False) if verb == "run" else audit(values(kind), trials=200)
    assert caught.value.where == f"tests.models:{kind.partition(' ')[0]}"
    assert caught.value.found.startswith("predictions" if kind == "Guessing" else "updates")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("trust", ["central", "local"])
def test_what_only_a_whole_node_mixes_is_seen_there(trust: str) -> None:
    """Of 128 users or more, every round of a node has two computed alone."""
    with pytest.raises(ContractError) as caught:
        run(values("Mixing 128", trust=trust), page=False)
    assert caught.value.where == "tests.models:Mixing"
    assert caught.value.found.startswith("updates of ")
    # Where no node has so many users, nothing is mixed.
    assert run(values("Mixing 128", 7, trust=trust), page=False).summary["privacy"]["status"] == "proved"


def test_what_predicts_for_a_whole_node_is_seen_there_whatever_computes_updates() -> None:
    own = values("Means")
    own["protocol"]["model"] = {"kind": "tests.faulty_models:PredictsTogether"}
    with pytest.raises(ContractError) as caught:
        run(own, page=False)
    assert caught.value.found.startswith("predictions of ")


def test_an_audit_mixes_more_users_than_the_run_has_and_says_what_it_would_not_see() -> None:
    assert run(values("Mixing 200"), page=False).summary["privacy"]["status"] == "proved"
    result = audit(values("Mixing 200"), trials=400)
    assert not result.findings[0].holds
    assert result.findings[0].at_least > 1.5
    assert result.findings[0].test in result.verdict
    fair = audit(values("Means"), trials=400)
    assert fair.holds
    assert fair.findings[0].at_least == pytest.approx(1.0, rel=1e-6)
    # None of 72 groups is one of those in which a model mixes with probability .938^72 = .01.
    covers = "in 72 groups of up to 256 made-up users: mixing in 6% of such groups"
    assert covers in fair.verdict


def test_the_finding_is_the_loss_of_what_really_moves() -> None:
    """Rows of all users that each are the sum of all: by exact arithmetic of two users with one item each."""
    model = Mixing()
    code = code_of(model, 2, STARS, 1.0, 0.0)
    parameters = (np.array([1.0, 1.0]),)
    profiles = Profiles(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([3.0, 2.0]), 2)
    with_first = Devices(profiles, (), np.zeros((2, 2), np.uint64))
    without = with_first.of_users(np.array([1]))
    moved = moved_by_others(model, code, parameters, with_first, without)
    # (2, 1) / |(2, 1)| where the second alone sends (0, 1).
    np.testing.assert_allclose(moved, [[-2 / math.sqrt(5), 1 - 1 / math.sqrt(5)]])
    protocol = load(values("Means")).protocol
    assert isinstance(protocol, FederatedProtocol)
    sd = protocol.deviation
    assert protocol._loss(3.18) == pytest.approx(gaussian_epsilon(4.18 * math.sqrt(2) / sd, 1e-6))
    assert protocol._loss(3.18) > 4.5


def test_what_devices_send_differs_by_a_step_at_most_where_rounding_does() -> None:
    model = InSingle()
    code = code_of(model, 20, STARS, 1.0, 0.0)
    parameters, devices = (np.ones(20),), some_devices(model, 64, 20, STARS, 3)
    computed = model.computed(parameters, devices)
    check_updates(model, code, parameters, devices, computed, np.array([0, 5]))
    whole, people = code.clipped(computed.updates), devices.profiles
    alone = np.concatenate(
        [code.clipped(model.updates(parameters, people.of_users(np.array([user])))) for user in range(64)]
    )
    steps = np.rint((whole - alone) * 2**14)
    assert np.abs(steps).max() <= 1
    assert (steps != 0).mean() < 0.01
