"""What others ask of a protocol: every preset's answers, by one class of under two hundred lines."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from dprec.accounting import (
    MatchedBudget,
    PrivacyBudget,
)
from dprec.errors import SettingError
from dprec.mechanisms import MECHANISMS
from dprec.protocols.base import BASELINE_PRESETS
from dprec.protocols.findings import Finding
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.sharing import budget_at, mechanism_budget
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from simulation import run
from simulation.configuration.models import RunConfig, parse_config
from simulation.courses.base import Course, course_of
from simulation.courses.task import Task
from simulation.engine.session import Session, open_session
from simulation.execution import load_ratings
from strategies.participation import RoundRecord
from tests.refusals import refused_at
from tests.simulation.conftest import presets

NAMES = sorted(presets())


class Asked:
    """An auditor that only says which of its tests a protocol asks for."""

    def __getattr__(self, name: str) -> Any:
        def asked(*_: Any) -> Iterator[Finding]:
            yield Finding(name, "user", 1.0, 0.0, None, exact=True, power=1.0)

        return asked


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_answers_for_itself(name: str) -> None:
    protocol = parse_config(presets()[name]).protocol
    named = {preset: baseline for own in BASELINE_PRESETS.values() for baseline, preset in own.items()}
    # Those that know what is public about the items are forms of the same baselines.
    named |= {"content-list": "nothing-sent", "popularity-by-content": "popularity"}
    assert protocol.facts.baseline == named.get(name)
    picked = protocol.picked
    assert picked.undeployable or type(course_of(picked)).serve is not Course.serve
    if picked.undeployable:
        with pytest.raises(SettingError) as caught:
            picked.check_deployed()
        assert caught.value.key == "kind"
    try:
        audited = protocol.audited()
    except SettingError:
        return
    promise = protocol.promise()
    assert promise.epsilon > 0
    assert promise.loss(2) >= promise.loss(1)
    found = list(audited.audit(Asked()))
    assert found
    assert all(each.test.startswith("of_") for each in found)


def test_every_kind_of_audit_is_asked_for() -> None:
    asked = set()
    for name in NAMES:
        try:
            asked |= {found.test for found in parse_config(presets()[name]).protocol.audited().audit(Asked())}
        except SettingError:
            continue
    assert asked == {"of_devices", "of_releases", "of_sums", "of_outputs", "of_samples", "of_groups"}


PER_USER = {"epsilon": 0.5, "per": "user"}


@pytest.mark.parametrize(
    ("kind", "matched", "budget"),
    [
        ("bounded-laplace", MatchedBudget(0.5, "rating"), {"epsilon": 0.5, "per": "rating"}),
        ("bounded-laplace", MatchedBudget(0.5, "user"), PER_USER),
        # A rating is a cell where rated items are hidden.
        ("zheng-randomized-response", MatchedBudget(0.5, "rating"), {"epsilon": 0.5, "per": "cell"}),
        ("zheng-randomized-response", MatchedBudget(0.5, "user"), PER_USER),
        # With a delta, what composes shares the budget by composition.
        (
            "residual-bits",
            MatchedBudget(0.5, "user", 1e-5),
            {**PER_USER, "composition": "pld", "delta": 1e-5},
        ),
        ("bits-and-counts", MatchedBudget(0.5, "user", 1e-5), PER_USER),
    ],
)
def test_a_budget_is_matched_in_the_unit_of_the_mechanism(
    kind: str, matched: MatchedBudget, budget: dict[str, Any]
) -> None:
    assert mechanism_budget(MECHANISMS[kind](kind=kind), None, matched) == PrivacyBudget(**budget)


def test_without_a_delta_a_protocol_composes_as_configured() -> None:
    own = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-4)
    assert budget_at(own, MatchedBudget(2.0, "user"), "user") == replace(own, epsilon=2.0)
    assert budget_at(own, MatchedBudget(2.0, "user", 1e-5), "user").delta == 1e-5
    with refused_at("privacy.composition"):
        budget_at(own, MatchedBudget(2.0), "rating")


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with open_session(parse_config(presets()["blp-mf"]).simulation, nodes=2) as opened:
        yield opened


def installed(session: Session, config: RunConfig, train: Ratings, **more: Any) -> Task:
    keys = RunKeys.derive(config.seed)
    group = session.install(
        train,
        users_per_node=20,
        keys=keys.installed,
        faults=config.simulation.faults,
        protocol=config.protocol.installed,
    )
    return Task(
        train=train,
        judged=train,
        n_items=train.n_items,
        scale=train.scale,
        catalogue=None,
        seed=config.seed,
        server_seed=keys.server,
        public_seed=keys.installed.public_seed,
        group=group,
        roster=session.roster(train.n_users, 20),
        progress=lambda *_: None,
        metric=lambda *_: {},
        checkpoints=None,
        restore=lambda _: None,
        ended=more.get("ended", lambda _: None),
    )


@pytest.mark.parametrize("name", ["blp-mf", "pg-mf", "optimal-on-device", "counts-and-bits"])
def test_a_server_serves_without_ratings(session: Session, name: str) -> None:
    config = parse_config(presets()[name])
    train, _ = load_ratings(config)
    course = course_of(config.protocol)
    heard: list[RoundRecord] = []
    task = installed(session, config, train, ended=heard.append)
    server = task.for_server()
    assert not {"train", "seed", "metric"} & {field.name for field in fields(server)}
    outcome = course.served(server, course.serve(session.grid, server))
    expected = course.run(session.grid, installed(session, config, train))
    for column in ("uplink_message", "downlink_message", "uplink_payload", "downlink_payload"):
        assert (getattr(outcome.traffic, column) == getattr(expected.traffic, column)).all()
    # Every report was accepted, and shows which items are rated or costs the same whatever they are.
    assert (outcome.accountant.get_epsilon() == expected.accountant.get_epsilon()).all()
    assert outcome.diagnostics == expected.diagnostics
    assert len(outcome.rounds) == len(expected.rounds)
    assert len(heard) == (len(outcome.rounds) if isinstance(config.protocol, IterativeProtocol) else 0)


def test_a_run_metrics_what_its_server_sees(tiny: dict[str, Any]) -> None:
    """Without noise to speak of, the server sees the train ratings."""
    tiny["protocol"]["mechanism"] = {"kind": "zheng-randomized-response"}
    tiny["protocol"]["privacy"] = {"epsilon": 20.0, "per": "cell"}
    summary = run(tiny).summary
    found = summary["distance"]
    assert found["measured"] == 0
    assert found["shown_cells"] == found["rated_cells"] == summary["dataset"]["train_ratings"]
    assert (found["tolerance"], found["rating_noise"]) == (0.05, 0.0)
