"""The device's part of iterative factorisation: solve the own factors, report about the gradient.

What a device promises, against any server: in a run it sends at most one report per round, in at
most the rounds that its budget was divided by, each within a round's share. It holds because

- budget, number of rounds and kind of report are installed on the device; no request carries them;
- a node answers a round once (see `clients.memory`), and refusals depend on the requests alone;
- for any finite item factors every user has a report, of the same length whatever it has rated.
"""

from __future__ import annotations

import math

import numpy as np
from flwr.app import Context

from clients.memory import Memory
from clients.population import Cohort
from dprec.completion.local_factors import Profiles, solve_user_factors
from dprec.gradients import RoundDraws
from dprec.messages import Delivery, GradientRequest
from dprec.ragged import offsets
from dprec.setups import IterativeSetup
from dprec.wire.broadcast import Factors, decode_broadcast


def gradient_reports(cohort: Cohort, request: GradientRequest, context: Context) -> list[bytes]:
    """Return the report of every user of a cohort.

    Parameters
    ----------
    cohort : Cohort
    request : GradientRequest
    context : Context
        Its state keeps what the node answered and, where changes are broadcast, received last.

    Raises
    ------
    ValueError
        When the broadcast is malformed, the budget was not divided by so many rounds, or the round
        was answered with other factors, or is earlier than one that was answered.
    """
    population, setup = cohort.population, cohort.population.installed(IterativeSetup)
    memory = Memory.of(population, setup.rounds, context)
    broadcast = _decoded(request.factors, setup, memory, population.n_items)
    memory.answer_once(request.round_index, broadcast.tobytes())
    _hold(broadcast, setup, memory)
    factors = broadcast.astype(np.float64)
    profiles = profiles_of(cohort)
    user_factors = solve_user_factors(profiles, factors, setup.ridge)
    epsilon = math.inf if setup.epsilon_per_round is None else setup.epsilon_per_round
    draws = RoundDraws(population.seed, request.round_index, cohort.start)
    return setup.gradient.encode(profiles, user_factors, factors, epsilon, draws)


def receive_factors(cohort: Cohort, delivery: Delivery, context: Context) -> Factors:
    """Return the item factors of a message that asks for nothing.

    Raises
    ------
    ValueError
        When the broadcast is malformed.
    """
    population, setup = cohort.population, cohort.population.installed(IterativeSetup)
    memory = Memory.of(population, setup.rounds, context)
    factors = _decoded(delivery.factors, setup, memory, population.n_items)
    _hold(factors, setup, memory)
    return factors


def profiles_of(cohort: Cohort) -> Profiles:
    """Return the true ratings of a cohort."""
    return Profiles(offsets(cohort.counts), cohort.items, cohort.values, cohort.population.n_items)


def _decoded(broadcast: bytes, setup: IterativeSetup, memory: Memory, n_items: int) -> Factors:
    """Decode a broadcast, which may only tell what changed since the last one."""
    shape = (n_items, setup.rank)
    return decode_broadcast(broadcast, setup.broadcast, shape, memory.held(setup.broadcast, shape))


def _hold(factors: Factors, setup: IterativeSetup, memory: Memory) -> None:
    """Keep a broadcast where later ones may only tell what changed."""
    if setup.broadcast.delta:
        memory.hold(factors)
