"""Runs a protocol with liars among its users, and judges it by the honest ones."""

from __future__ import annotations

from dataclasses import replace

from dprec.attacks import Liars
from dprec.randomness import RunKeys
from simulation.engine.installing import Installer, run_protocol
from simulation.evaluation import Evaluator
from simulation.protocols import Outcome


def outcome_with_liars(installer: Installer, evaluator: Evaluator, keys: RunKeys, liars: Liars) -> Outcome:
    """Run a protocol that liars take part in, after all honest users, whose reports stay what they are.

    ``evaluator``, ``keys``: of the run without them.
    """
    honest, config = evaluator.train, installer.config
    train = liars.joining(honest)
    protocol = config.protocol.resized(train.n_users, train.n_items)
    task = installer.task(
        train,
        train if evaluator.held is honest else evaluator.held,
        evaluator,
        keys,
        held=protocol.held_ratings(train, config.seed),
        setup=protocol.setup(),
        liars=liars,
    )
    return run_protocol(installer.session, protocol, replace(task, attacked=False))
