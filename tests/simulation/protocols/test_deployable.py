"""The part of a protocol that a server runs: it is given no rating, and knows what it was sent."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from simulation.configuration.models import RunConfig, parse_config
from simulation.engine.session import Session, open_session
from simulation.execution import load_ratings
from simulation.protocols import PROTOCOLS, Task
from simulation.protocols.iterative import IterativeProtocol
from strategies.participation import RoundRecord
from tests.simulation.conftest import presets


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
    with pytest.raises(SettingError, match="early_stopping"):
        protocol.check_deployed()


def test_what_can_be_deployed() -> None:
    kinds = {kind for kind in PROTOCOLS.kinds if not PROTOCOLS[kind].not_deployed}
    assert kinds == {"one-shot", "iterative", "dp-als", "best"}
