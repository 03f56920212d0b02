"""Liars among the users whose contributions are added up."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from dprec.attacks import Liars, Shown
from dprec.attacks.liars import Background, FakeProfiles
from dprec.attacks.promotion import seen_of
from dprec.progress import silent
from dprec.randomness import RunKeys, generator
from simulation.attacking.lying import outcome_with_liars
from simulation.configuration.models import RunConfig
from simulation.engine.installing import Installer
from simulation.engine.session import open_session
from simulation.evaluation import Evaluator
from simulation.execution import prepared_ratings

USERS, LIARS = 150, 8

BUDGET = {"epsilon": 8.0, "per": "user", "composition": "pld", "delta": 1.0e-6}
ALONE = {"epsilon": 8.0, "per": "user"}
SECURE = {"kind": "secure", "colluders": 0}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "central": {"kind": "gram", "privacy": BUDGET, "aggregation": {"kind": "trusted"}},
    "secure": {"kind": "gram", "privacy": BUDGET, "aggregation": SECURE},
    "proved": {"kind": "gram", "privacy": BUDGET, "aggregation": SECURE | {"proofs": "norm"}},
    "shuffle": {"kind": "popularity", "privacy": BUDGET, "aggregation": {"kind": "shuffle", "colluders": 0}},
    "local": {"kind": "gram", "privacy": ALONE, "aggregation": {"kind": "local"}, "table": {"items": 10}},
    "tastes": {"kind": "public-start", "privacy": BUDGET, "aggregation": {"kind": "trusted"}},
    "best": {"kind": "best-list", "privacy": BUDGET, "fewest": 15},
}

RANKS = {"central": 25, "secure": 1, "proved": 20, "shuffle": 1, "local": 20, "tastes": 35, "best": 1}
"""Of the target at most, whatever liars may not do: of 40 items, where it is the least popular."""


def configured(protocol: dict[str, Any]) -> RunConfig:
    return RunConfig(
        name="lying",
        seed=3,
        dataset={"kind": "synthetic", "users": USERS, "items": 40, "ratings": 3000, "positive": ">= 4"},
        split={"kind": "user-holdout", "test_fraction": 0.2},
        protocol=protocol,
        simulation={"backend": "local", "users_per_node": 40},
    )


@pytest.mark.parametrize("name", PROTOCOLS)
def test_liars_are_accepted_and_promote_a_target_as_far_as_they_are_let(name: str) -> None:
    config = configured(PROTOCOLS[name])
    train, test = prepared_ratings(config.dataset, config.split, None, config.seed)
    suited = config.protocol.knowing_items(content=False).suited_to(train)
    config = config.model_copy(update={"protocol": suited})
    random, background = generator(1, "liars of a test"), Background.of(train)
    target = int(np.argmin(np.where(background.raters > 0, background.raters, USERS)))
    profiles = FakeProfiles(background, np.array([target]), 1, "contrast").made(train, LIARS, random)
    assert (profiles.counts == 3).all()
    liars = Liars(profiles, True, (target,))
    keys = partial(RunKeys.derive, config.seed)(config.protocol.identity)
    with open_session(config.simulation, -(-USERS // 40)) as session:
        installer = Installer(session, config, None, silent, lambda record: None)
        outcome = outcome_with_liars(installer, Evaluator(train, test, config.evaluation, None), keys, liars)
    assert sum(record.replies for record in outcome.rounds) == (USERS + LIARS) * len(outcome.rounds)
    shown = Shown(outcome.predict, outcome.predict_rows, {})
    assert seen_of(np.array([target]), train, shown, np.arange(USERS)).rank <= RANKS[name]
