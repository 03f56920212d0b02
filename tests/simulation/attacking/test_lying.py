"""Malicious users: honest reports stay what they are, and what they send is accepted and counts."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from dprec.attacks import MaliciousUsers, Shown
from dprec.attacks.malicious import FakeProfiles
from dprec.attacks.promotion import standing_of
from dprec.progress import silent
from dprec.protocols.base import Public
from dprec.randomness import RunKeys, generator
from dprec.ratings import Ratings
from simulation.attacking import outcome_with_malicious_users
from simulation.configuration.models import RunConfig
from simulation.courses.task import Outcome
from simulation.engine.installing import Installer
from simulation.engine.session import Overhearing, Session, open_overheard_session, open_session
from simulation.evaluation import Evaluator
from simulation.execution import prepared_ratings, run_in
from strategies.roster import arrivals_of
from tests.make import ON_THIS_MACHINE, small_run

Parts = tuple[Ratings, Ratings]

PER_USER = {"epsilon": 4.0, "per": "user"}
RATED: dict[str, Any] = {"completion": {"kind": "calibrated"}, "personalization": "on-device"}
REPORTS: dict[str, dict[str, Any]] = {
    "bits": {"mechanism": {"kind": "threshold-bit"}, **RATED},
    "levels": {"mechanism": {"kind": "bounded-laplace"}, "completion": {"kind": "mf"}},
    "rows": {"mechanism": {"kind": "hidden-threshold"}, **RATED, "privacy": {"epsilon": 1.0, "per": "cell"}},
    "few bits": {"mechanism": {"kind": "residual-bits"}, **RATED, "privacy": PER_USER},
    "profiles": {"mechanism": {"kind": "user-level-bit"}, **RATED, "privacy": PER_USER},
    "counts": {"mechanism": {"kind": "bits-and-counts"}, **RATED},
    "own budgets": {
        "mechanism": {"kind": "fisher-optimal"},
        **RATED,
        "privacy": {"epsilon": {"0": 0.2, "1": 0.5, "3": 0.3}},
    },
    "gradients": {
        "kind": "iterative",
        "privacy": PER_USER,
        "gradient": {"kind": "one-bit"},
        "rounds": 2,
        "rank": 2,
        "step": {"size": 0.2, "decay": 1.0, "regularization": 0.01, "start": "random", "pull": "zero"},
    },
}


def fakes(honest: Ratings, target: int, levels: int, count: int) -> Ratings:
    """Return profiles that promote a target."""
    profiles = FakeProfiles(honest, np.array([target]), levels, "contrast")
    return profiles.made(count, generator(1, "malicious users of a test"))


def beside_malicious_users(
    session: Session, config: RunConfig, parts: Parts, malicious: MaliciousUsers
) -> Outcome:
    installer = Installer(session, config, config.protocol.drawn_by, None, silent, lambda record: None)
    evaluator = Evaluator(*parts, config.evaluation, None)
    keys = partial(RunKeys.derive, config.seed)(config.protocol.drawn_by)
    return outcome_with_malicious_users(installer, evaluator, keys, malicious)


def first_reports(heard: Overhearing, group: str, users: int) -> list[bytes]:
    """Return what so many users sent first in a run."""
    replies = (
        reply
        for request, reply in zip(heard.requests, heard.replies, strict=True)
        if request.metadata.group_id == group
    )
    arrived = next(found for reply in replies if (found := arrivals_of(reply, 0, np.arange(users))))
    return list(arrived.reports)


@pytest.mark.parametrize("crafted", [False, True], ids=["drawn", "crafted"])
@pytest.mark.parametrize("name", REPORTS)
def test_honest_reports_are_the_same_beside_malicious_users(name: str, crafted: bool) -> None:
    """Bit for bit, in the first round; later ones depend on what is learned. All are accepted."""
    users, count, target = 60, 7, 3
    protocol = {"kind": "one-shot", "privacy": {"epsilon": 1.0, "per": "rating"}} | REPORTS[name]
    config = RunConfig(**small_run(protocol, users, 40, 900))
    parts = prepared_ratings(config.dataset, config.split, None, config.seed)
    malicious = MaliciousUsers(fakes(parts[0], target, parts[0].scale.levels, count), crafted=crafted)
    with open_overheard_session() as heard:
        run_in(heard.session, config, *parts)
        outcome = beside_malicious_users(heard.session, config, parts, malicious)
        alone = first_reports(heard, "00000001", users)
        beside = first_reports(heard, "00000002", users + count)
    assert beside[: len(alone)] == alone
    assert len(beside) == len(alone) + count
    # Who refuses sends nothing.
    assert outcome.rounds[0].replies == sum(map(bool, beside))
    assert all(beside[len(alone) :])
    assert np.isfinite(outcome.predict(np.arange(users), np.full(users, target))).all()


BUDGET = {"epsilon": 8.0, "per": "user", "composition": "pld", "delta": 1.0e-6}
SECURE = {"kind": "secure-aggregation", "colluders": 0}
GRAM = {"kind": "gram", "privacy": BUDGET}
SUMS: dict[str, tuple[dict[str, Any], int]] = {
    "central": ({**GRAM, "aggregation": {"kind": "central"}}, 30),
    "secure-aggregation": ({**GRAM, "aggregation": SECURE}, 1),
    "proved": ({**GRAM, "aggregation": SECURE | {"proofs": "norm"}}, 20),
    "shuffle": ({**GRAM, "kind": "popularity", "aggregation": {"kind": "shuffle", "colluders": 0}}, 1),
    "local": (
        {
            "kind": "gram",
            "privacy": {"epsilon": 8.0, "per": "user"},
            "aggregation": {"kind": "local"},
            "table": {"items": 10},
        },
        20,
    ),
    "tastes": ({**GRAM, "kind": "public-start", "aggregation": {"kind": "central"}}, 35),
    "best": ({**GRAM, "kind": "best", "trust": "secure-aggregation", "fewest": 15}, 3),
}
"""Protocols of sums, and the rank of the target at most, of 40 items of which it is the least popular."""


@pytest.mark.parametrize(("protocol", "rank"), SUMS.values(), ids=SUMS.keys())
def test_malicious_users_in_sums_promote_a_target_as_far_as_they_are_let(
    protocol: dict[str, Any], rank: int
) -> None:
    users, count = 150, 8
    values = small_run(
        protocol, users, 40, 3000, split={"kind": "user-holdout", "test_fraction": 0.2}, seed=3
    )
    values["dataset"]["positive"] = ">= 4"
    config = RunConfig(**{**values, "simulation": {**ON_THIS_MACHINE, "users_per_node": 40}})
    train, test = prepared_ratings(config.dataset, config.split, None, config.seed)
    suited = config.protocol.suited(Public.of(train, content=False))
    config = config.model_copy(update={"protocol": suited})
    raters = np.bincount(train.items, minlength=train.n_items)
    target = int(np.argmin(np.where(raters > 0, raters, users)))
    profiles = fakes(train, target, 1, count)
    assert (profiles.counts == 3).all()
    with open_session(config.simulation, -(-users // 40)) as session:
        outcome = beside_malicious_users(
            session, config, (train, test), MaliciousUsers(profiles, True, (target,))
        )
    assert sum(record.replies for record in outcome.rounds) == (users + count) * len(outcome.rounds)
    shown = Shown(outcome.predict, outcome.predict_rows, dict)
    assert standing_of(np.array([target]), train, shown, np.arange(users)).rank <= rank
