"""Liars among the users: honest reports stay what they are, and what liars send is accepted."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from dprec.attacks import Liars
from dprec.attacks.liars import Background, FakeProfiles
from dprec.progress import silent
from dprec.randomness import RunKeys, generator
from dprec.ratings import Ratings
from simulation.attacking.lying import outcome_with_liars
from simulation.configuration.models import RunConfig
from simulation.engine.installing import Installer
from simulation.engine.session import Overhearing, open_overheard_session
from simulation.evaluation import Evaluator
from simulation.execution import prepared_ratings, run_in
from strategies.roster import arrivals_of

USERS, LIARS, TARGET = 60, 7, 3

RATED: dict[str, Any] = {"completion": {"kind": "calibrated"}, "personalization": "on-device"}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "bits": {"mechanism": {"kind": "threshold-bit"}, **RATED},
    "levels": {"mechanism": {"kind": "bounded-laplace"}, "completion": {"kind": "mf"}},
    "rows": {
        "mechanism": {"kind": "hidden-threshold"},
        **RATED,
        "privacy": {"epsilon": 1.0, "per": "cell"},
    },
    "few bits": {"mechanism": {"kind": "residual-bits"}, **RATED, "privacy": {"epsilon": 1.0, "per": "user"}},
    "profiles": {
        "mechanism": {"kind": "user-level-bit"},
        **RATED,
        "privacy": {"epsilon": 4.0, "per": "user"},
    },
    "counts": {"mechanism": {"kind": "bits-and-counts"}, **RATED},
    "own budgets": {
        "mechanism": {"kind": "fisher-optimal"},
        **RATED,
        "privacy": {"epsilon": {"0": 0.2, "1": 0.5, "3": 0.3}},
    },
    "gradients": {
        "kind": "iterative",
        "privacy": {"epsilon": 4.0, "per": "user"},
        "gradient": {"kind": "one-bit"},
        "rounds": 2,
        "rank": 2,
        "step": {"size": 0.2, "decay": 1.0, "regularization": 0.01, "start": "random", "pull": "zero"},
    },
}


def configured(protocol: dict[str, Any]) -> RunConfig:
    return RunConfig(
        name="lying",
        seed=3,
        dataset={"kind": "synthetic", "users": USERS, "items": 40, "ratings": 900},
        split={"kind": "holdout", "test_fraction": 0.2},
        protocol={"kind": "one-shot", "privacy": {"epsilon": 1.0, "per": "rating"}} | protocol,
        simulation={"backend": "local", "users_per_node": "all"},
    )


def lying(honest: Ratings, *, crafted: bool) -> Liars:
    random, background = generator(1, "liars of a test"), Background.of(honest)
    profiles = FakeProfiles(background, np.array([TARGET]), honest.scale.levels, "contrast")
    return Liars(profiles.made(honest, LIARS, random), crafted=crafted)


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
@pytest.mark.parametrize("name", PROTOCOLS)
def test_honest_reports_are_the_same_beside_liars(name: str, crafted: bool) -> None:
    """Bit for bit, in the first round; later ones depend on what is learned. All liars are accepted."""
    config = configured(PROTOCOLS[name])
    train, test = prepared_ratings(config.dataset, config.split, None, config.seed)
    liars, keys = lying(train, crafted=crafted), partial(RunKeys.derive, config.seed)
    with open_overheard_session() as heard:
        run_in(heard.session, config, train, test)
        installer = Installer(heard.session, config, None, silent, lambda record: None)
        evaluator = Evaluator(train, test, config.evaluation, None)
        outcome = outcome_with_liars(installer, evaluator, keys(config.protocol.identity), liars)
        alone = first_reports(heard, "00000001", USERS)
        beside = first_reports(heard, "00000002", USERS + LIARS)
    assert beside[: len(alone)] == alone
    assert len(beside) == len(alone) + LIARS
    # Who refuses sends nothing.
    assert outcome.rounds[0].replies == sum(map(bool, beside))
    assert all(beside[len(alone) :])
    assert np.isfinite(outcome.predict(np.arange(USERS), np.full(USERS, TARGET))).all()
