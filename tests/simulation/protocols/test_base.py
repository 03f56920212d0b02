"""What others ask of a protocol: every preset's answers, by one class of under two hundred lines."""

import inspect
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import yaml

from dprec.accounting import (
    DELTA,
    ComparableUnit,
    Guarantee,
    MatchedBudget,
    PrivacyAccountant,
    PrivacyBudget,
    PrivacyUnit,
)
from dprec.catalogue import Catalogue
from dprec.errors import SettingError
from dprec.mechanisms import MECHANISMS
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from dprec.wire import TrafficLedger
from simulation import compare, run
from simulation.configuration.models import RunConfig, parse_config
from simulation.engine.session import Session, open_session
from simulation.execution import load_ratings
from simulation.protocols import PROTOCOLS, Outcome, Protocol, Task
from simulation.protocols.base import BASELINE_PRESETS, Finding
from simulation.protocols.iterative import IterativeProtocol
from simulation.protocols.one_shot import notes_on_catalogue
from simulation.protocols.sharing import (
    budget_at,
    check_unit,
    mechanism_budget,
    notes_on_failures,
)
from strategies.participation import RoundRecord
from tests.paths import preset_file
from tests.refusals import refused_at
from tests.simulation.conftest import presets

NAMES = sorted(presets())


class Asked:
    """An auditor that only says which of its tests a protocol asks for."""

    def __getattr__(self, name: str) -> Any:
        def asked(*_: Any) -> Iterator[Finding]:
            yield Finding(name, "user", 1.0, 0.0, None, exact=True, power=1.0)

        return asked


def test_the_base_is_one_class_of_under_two_hundred_lines() -> None:
    assert len(inspect.getsource(Protocol).splitlines()) < 200
    asked = {name: value for name, value in vars(Protocol).items() if not name.startswith("_")}
    methods = {name: value for name, value in asked.items() if callable(value) or isinstance(value, property)}
    assert [name for name, method in methods.items() if not method.__doc__] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_answers_for_itself(name: str) -> None:
    protocol = parse_config(presets()[name]).protocol
    named = {preset: baseline for own in BASELINE_PRESETS.values() for baseline, preset in own.items()}
    # Those that know what is public about the items are forms of the same baselines.
    named |= {"content-list": "nothing-sent", "popularity-by-content": "popularity"}
    assert protocol.baseline == named.get(name)
    picked = protocol.picked
    assert picked.not_deployed or type(picked).serve is not Protocol.serve
    if picked.not_deployed:
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


def record(replies: int, failures: int) -> RoundRecord:
    return RoundRecord(1, replies, failures, None, 0, 0, 0, 0, 0.0)


@pytest.mark.parametrize(
    ("kind", "unit", "per"),
    [
        ("bounded-laplace", "rating", "rating"),
        ("bounded-laplace", "user", "user"),
        ("zheng-randomized-response", "rating", "cell"),
        ("zheng-randomized-response", "user", "user"),
    ],
)
def test_a_rating_is_a_cell_where_rated_items_are_hidden(
    kind: str, unit: ComparableUnit, per: PrivacyUnit
) -> None:
    budget = mechanism_budget(MECHANISMS[kind](kind=kind), None, MatchedBudget(0.5, unit))
    assert budget == PrivacyBudget(epsilon=0.5, per=per)


@pytest.mark.parametrize(
    ("kind", "composition", "delta"),
    [("bounded-laplace", "pld", 1e-5), ("residual-bits", "pld", 1e-5), ("bits-and-counts", "sum", DELTA)],
)
def test_with_a_delta_what_composes_shares_the_budget_by_composition(
    kind: str, composition: Literal["sum", "pld"], delta: float
) -> None:
    budget = mechanism_budget(MECHANISMS[kind](kind=kind), None, MatchedBudget(0.5, "user", 1e-5))
    assert budget == PrivacyBudget(epsilon=0.5, per="user", composition=composition, delta=delta)


def test_without_a_delta_a_protocol_composes_as_configured() -> None:
    own = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-4)
    assert budget_at(own, MatchedBudget(2.0, "user"), "user") == replace(own, epsilon=2.0)
    assert budget_at(own, MatchedBudget(2.0, "user", 1e-5), "user").delta == 1e-5
    with refused_at("privacy.composition"):
        budget_at(own, MatchedBudget(2.0), "rating")


def test_a_budget_in_another_unit_is_refused_with_the_reason() -> None:
    check_unit(PrivacyBudget(epsilon=1.0, per="user"), "user", "of no matter")
    with refused_at("privacy.per"):
        check_unit(PrivacyBudget(epsilon=1.0, per="cell"), "user", "the rounds protect whole profiles")


@pytest.mark.parametrize(
    ("records", "notes"),
    [
        ([], ()),
        ([record(7, 0), record(8, 0)], ()),
        (
            [record(7, 1), record(5, 2)],
            ("3 of 15 replies were missing, late or malformed and were not used.",),
        ),
    ],
)
def test_failures_are_counted_over_all_rounds(records: list[RoundRecord], notes: tuple[str, ...]) -> None:
    assert notes_on_failures(records, "replies") == notes


@pytest.mark.parametrize(("seconds", "server"), [(10.0, 4.0), (6.0, 0.0), (1.0, 0.0)])
def test_the_server_works_outside_the_rounds(seconds: float, server: float) -> None:
    outcome = Outcome(
        predict=lambda users, items: np.zeros(users.size),
        traffic=TrafficLedger(1),
        accountant=PrivacyAccountant(rated=np.ones(1, dtype=np.bool_)),
        guarantee=Guarantee("none", "central", False, "the server receives the true ratings."),
        rounds=tuple(RoundRecord(number, 1, 0, None, 0, 0, 0, 0, 2.0 * number) for number in (1, 2)),
        seconds=seconds,
    )
    assert outcome.clients_seconds == 6.0
    assert outcome.server_seconds == server


def test_public_data_about_the_items_are_named() -> None:
    whole = Catalogue(np.zeros((3, 1)), np.zeros((3, 2), dtype=np.bool_), ("year",), ("Drama", "War"))
    assert notes_on_catalogue(whole) == (
        "Predictions also rest on public data about the items: year, 2 categories.",
    )
    assert notes_on_catalogue(None) == ()


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
        setup=config.protocol.setup(),
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
    protocol = config.protocol
    heard: list[RoundRecord] = []
    task = installed(session, config, train, ended=heard.append)
    server = task.for_server()
    assert not {"train", "seed", "metric"} & {field.name for field in fields(server)}
    outcome = protocol.served(server, protocol.serve(session.grid, server))
    expected = protocol.run(session.grid, installed(session, config, train))
    for column in ("uplink_message", "downlink_message", "uplink_payload", "downlink_payload"):
        assert (getattr(outcome.traffic, column) == getattr(expected.traffic, column)).all()
    # Every report was accepted, and shows which items are rated or costs the same whatever they are.
    assert (outcome.accountant.get_epsilon() == expected.accountant.get_epsilon()).all()
    assert outcome.diagnostics == expected.diagnostics
    assert len(outcome.rounds) == len(expected.rounds)
    assert len(heard) == (len(outcome.rounds) if isinstance(protocol, IterativeProtocol) else 0)


def test_a_hidden_item_set_stays_unknown_to_the_server(session: Session) -> None:
    config = parse_config(presets()["zheng-rr"])
    train, _ = load_ratings(config)
    protocol = config.protocol
    server = installed(session, config, train).for_server()
    outcome = protocol.served(server, protocol.serve(session.grid, server))
    assert outcome.distance == {}
    assert np.isfinite(outcome.accountant.get_epsilon()).all()


def test_early_stopping_is_refused_in_a_deployment() -> None:
    values = presets()["pg-mf"]
    values["protocol"]["early_stopping"] = {"patience": 2}
    protocol = parse_config(values).protocol
    with refused_at("early_stopping"):
        protocol.check_deployed()


def test_what_can_be_deployed() -> None:
    kinds = {kind for kind in PROTOCOLS.kinds if not PROTOCOLS[kind].not_deployed}
    sums = {"dp-als", "dp-ials", "gram", "pairs-in-blanket", "public-start", "popularity", "best-secret-set"}
    assert kinds == {"one-shot", "iterative", "best", "best-list", "randomized-sets"} | sums


def test_other_mechanisms_have_none(tiny: dict[str, Any]) -> None:
    assert run(tiny).summary["distance"] == {}


def test_a_run_metrics_what_its_server_sees(tiny: dict[str, Any]) -> None:
    """Without noise to speak of, the server sees the train ratings."""
    tiny["protocol"]["mechanism"] = {"kind": "zheng-randomized-response"}
    tiny["protocol"]["privacy"] = {"epsilon": 20.0, "per": "cell"}
    summary = run(tiny).summary
    found = summary["distance"]
    assert found["measured"] == 0
    assert found["shown_cells"] == found["rated_cells"] == summary["dataset"]["train_ratings"]
    assert (found["tolerance"], found["rating_noise"]) == (0.05, 0.0)


@pytest.mark.thorough
def test_a_comparison_draws_bound_and_distance(tmp_path: Path) -> None:
    for preset in ("zheng-laplace", "zheng-rr", "plain-mf"):
        (tmp_path / f"{preset}.yaml").write_text((preset_file(preset)).read_text())
    config = {
        "name": "small",
        "dataset": {"kind": "synthetic", "users": 40, "items": 30, "ratings": 400},
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "epsilons": [1.0, 3.0],
        "protocols": ["zheng-laplace", "zheng-rr", "plain-mf"],
        "simulation": {"backend": "local"},
    }
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(config))
    result = compare(tmp_path / "small.yaml", tmp_path / "out")
    private = [row for row in result.rows if row["epsilon"]]
    assert len(private) == 4
    assert all(row["distance_bound"] > row["distance_measured"] > 0 for row in private)
    assert "distance_bound" not in result.rows[-1]
    assert (result.directory / "figures" / "distance-epsilon.svg").is_file()
    page = (result.directory / "report.html").read_text(encoding="utf-8")
    assert "at least 0.95" in page
