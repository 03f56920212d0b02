"""The device's part of a round: solve the own factors, report something about the gradient.

What a device promises, against any server: in a run it sends at most one report per round, in at
most the rounds that its budget was divided by, each within a round's share. It holds because

- budget, number of rounds and kind of report are installed on the device; no request carries them;
- a node answers a round for one broadcast only, and no round earlier than one it answered. A device
  draws the same numbers whenever it computes the report of a round, so asked again with the same
  factors it repeats what it sent; with others, the two answers together would tell more than the
  budget allows, and it refuses. Refusals depend on the requests alone;
- for any finite item factors every user has a report, of the same length whatever it has rated.

A node remembers what it answered in Flower's context, by run, and answers one message at a time;
one that loses the context must not take part in the same run again. Where one node hosts a cohort
of a simulation, it answers for all of its users as each of them would.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from flwr.app import ConfigRecord, Context
from numpy.typing import NDArray

from clients.population import Cohort
from dprec.completion.local_factors import Profiles, solve_user_factors
from dprec.gradients import RoundDraws
from dprec.ragged import offsets
from dprec.setups import IterativeSetup
from dprec.wire.broadcast import Factors, decode_broadcast, encode_broadcast

_HELD, _ANSWERED = "held-factors", "answered"


def round_reports(
    cohort: Cohort,
    asked: NDArray[np.bool_],
    round_index: int,
    request: ConfigRecord,
    context: Context,
) -> list[bytes]:
    """Return the reports of the users of a cohort who are asked.

    Parameters
    ----------
    cohort : Cohort
    asked : ndarray of bool, shape (users,)
    round_index : int
    request : ConfigRecord
        Holds the broadcast factors.
    context : Context
        Its state keeps what the node answered and, where changes are broadcast, received last.

    Raises
    ------
    ValueError
        When the broadcast is malformed, the budget was not divided by so many rounds, or the round
        was answered with other factors, or is earlier than one that was answered.
    """
    installed = cohort.population.installed(IterativeSetup)
    if not 1 <= round_index <= installed.rounds:
        raise ValueError(f"asked for round {round_index} of {installed.rounds}")
    broadcast = _decoded(cohort, request, context)
    _answer_once(cohort, round_index, broadcast, context)
    _keep(cohort, broadcast, context)
    factors = broadcast.astype(np.float64)
    profiles = profiles_of(cohort)
    user_factors = solve_user_factors(profiles, factors, installed.ridge)
    epsilon = math.inf if installed.epsilon_per_round is None else installed.epsilon_per_round
    draws = RoundDraws(cohort.population.seed, round_index, cohort.start)
    reports = installed.gradient.encode(profiles, user_factors, factors, epsilon, draws)
    return [report for report, wanted in zip(reports, asked.tolist(), strict=True) if wanted]


def receive_factors(cohort: Cohort, request: ConfigRecord, context: Context) -> Factors:
    """Return the broadcast item factors of a request that asks for nothing.

    Raises
    ------
    ValueError
        When the broadcast is malformed.
    """
    factors = _decoded(cohort, request, context)
    _keep(cohort, factors, context)
    return factors


def _decoded(cohort: Cohort, request: ConfigRecord, context: Context) -> Factors:
    """Decode the broadcast of a request, which may only tell what changed since the last one."""
    installed, population = cohort.population.installed(IterativeSetup), cohort.population
    shape = (population.n_items, installed.rank)
    kept, before = context.state.get(_HELD), population.held.factors if population.held else None
    if isinstance(kept, ConfigRecord) and kept.get("run") == population.key:
        before = decode_broadcast(_bytes(kept, "factors"), installed.broadcast, shape, None)
    return decode_broadcast(_bytes(request, "factors"), installed.broadcast, shape, before)


def _keep(cohort: Cohort, factors: Factors, context: Context) -> None:
    """Keep a broadcast where later ones may only tell what changed."""
    if cohort.population.installed(IterativeSetup).broadcast.delta:
        run, whole = cohort.population.key, encode_broadcast(factors)
        context.state[_HELD] = ConfigRecord({"run": run, "factors": whole})


def _answer_once(cohort: Cohort, round_index: int, factors: Factors, context: Context) -> None:
    """Remember what a round is answered for; refuse a second broadcast for it, and earlier rounds."""
    population = cohort.population
    # Several runs may share a node; each has a budget, and hence a memory, of its own.
    name = f"{_ANSWERED}-{population.key}"
    answered = context.state.get(name)
    if isinstance(answered, ConfigRecord):
        last, known = answered["round"], answered["broadcast"]
    elif population.held is not None:
        last, known = population.held.round_index, _digest(population.held.factors)
    else:
        last, known = 0, b""
    assert isinstance(last, int)
    broadcast = _digest(factors)
    if round_index < last or (round_index == last and broadcast != known):
        raise ValueError(f"asked for round {round_index} again, after round {last} was answered")
    context.state[name] = ConfigRecord({"round": round_index, "broadcast": broadcast})


def _digest(factors: Factors) -> bytes:
    return hashlib.sha256(factors.tobytes()).digest()


def profiles_of(cohort: Cohort) -> Profiles:
    """Return the true ratings of a cohort."""
    counts = cohort.counts
    return Profiles(offsets(counts), cohort.items, cohort.values, cohort.population.n_items)


def _bytes(record: ConfigRecord, name: str) -> bytes:
    value = record.get(name)
    if not isinstance(value, bytes):
        raise ValueError(f"a request without {name}")
    return value
