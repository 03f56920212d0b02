"""The device's part of iterative factorisation: solve for its user's factors, report on the gradient.

What a device guarantees against any server: in a run it sends at most one report per round, in no more
rounds than its budget was divided by, each within one round's share. This holds because

- budget, number of rounds and kind of report are installed on the device; no request carries them;
- a node answers a round once (see `clients.memory`), and refusals depend on the requests alone;
- for any finite item factors every user has a report, and its length does not depend on the ratings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from flwr.app import Context
from numpy.typing import NDArray

from clients.draws import draws_of_rounds
from clients.memory import Memory
from clients.population import Cohort
from clients.replies import AddUp
from dprec.completion.factors import inner_products
from dprec.completion.local_factors import Profiles, solve_user_factors
from dprec.gradients import RoundDraws
from dprec.messages import FinalFactors, GradientRequest
from dprec.personalization.ordinal_process import OrdinalProcess
from dprec.ragged import offsets
from dprec.refusals import refusing_malformed
from dprec.setups import IterativeSetup
from dprec.wire.broadcast import Factors, decode_broadcast


def gradient_reports(cohort: Cohort, request: GradientRequest, context: Context) -> tuple[list[bytes], AddUp]:
    """Return the report of every user of a cohort, and what validates and adds them up.

    Parameters
    ----------
    cohort : Cohort
    request : GradientRequest
    context : Context
        Its state records what the node has answered and, if changes are broadcast, what it received last.

    Raises
    ------
    Refusal
        When the broadcast is malformed, the budget was divided by fewer rounds, the round has been
        answered for other factors, or a later one has been answered.
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
    devices = draws_of_rounds(cohort, "gradient report").asked(broadcast.tobytes())
    draws = RoundDraws(devices, request.round_index, population.keys.public_seed)
    reports = setup.gradient.encode(profiles, user_factors, factors, epsilon, draws)
    return reports, partial(setup.gradient.decode, shape=(population.n_items, setup.rank))


def receive_factors(cohort: Cohort, final: FinalFactors, context: Context) -> Factors:
    """Return the item factors of a message that asks for no report.

    Raises
    ------
    Refusal
        When the broadcast is malformed.
    """
    population, setup = cohort.population, cohort.population.installed(IterativeSetup)
    memory = Memory.of(population, setup.rounds, context)
    factors = _decoded(final.factors, setup, memory, population.n_items)
    _hold(factors, setup, memory)
    base = np.zeros(population.n_items)
    population.show(ReceivedFactors(cohort, factors.astype(np.float64), setup.ridge, base))
    return factors


@dataclass(frozen=True, eq=False)
class ReceivedFactors:
    """Item factors, from which each device predicts with factors that it fits to its user; see `Received`.

    Parameters
    ----------
    cohort : Cohort
    item_factors : ndarray of float64, shape (items, rank)
    ridge : float
        As for `solve_user_factors`.
    base : ndarray of float64, shape (items,)
        What is predicted without factors.
    """

    cohort: Cohort
    item_factors: NDArray[np.float64]
    ridge: float
    base: NDArray[np.float64]

    def predictions(self, process: OrdinalProcess) -> NDArray[np.float64]:
        """Predict every item, shape (users, items)."""
        profiles = profiles_of(self.cohort)
        residuals = replace(profiles, values=profiles.values - self.base[profiles.items])
        own = solve_user_factors(residuals, self.item_factors, self.ridge)
        users, items = np.indices((len(own), len(self.item_factors)))
        predicted = inner_products(own, self.item_factors, users.ravel(), items.ravel())
        return predicted.reshape(users.shape) + self.base


def profiles_of(cohort: Cohort) -> Profiles:
    """Return the true ratings of a cohort."""
    return Profiles(offsets(cohort.counts), cohort.items, cohort.values, cohort.population.n_items)


def _decoded(broadcast: bytes, setup: IterativeSetup, memory: Memory, n_items: int) -> Factors:
    """Decode a broadcast, which may contain only what has changed since the last one."""
    shape = (n_items, setup.rank)
    with refusing_malformed():
        return decode_broadcast(broadcast, setup.broadcast, shape, memory.held(setup.broadcast, shape))


def _hold(factors: Factors, setup: IterativeSetup, memory: Memory) -> None:
    """Keep a broadcast if later ones may contain only what has changed."""
    if setup.broadcast.delta:
        memory.hold(factors)
