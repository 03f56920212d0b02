"""The device's part of gradient perturbation: how its entries should move, under noise, in rounds.

What a device promises, against any server: budget, number of rounds and clamp are installed on it;
it answers a round for one row of values only, and no round earlier than one it answered. Asked again
with the same row it repeats what it sent, and with another it refuses: the two answers together
would tell more than the round's share of the budget.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flwr.app import ConfigRecord, Context
from numpy.typing import NDArray

from clients.population import Cohort, Population
from dprec.completion.one_bit.links import Link, link_of
from dprec.completion.one_bit.slope_channel import levels_of, slope_channel
from dprec.completion.one_bit.solver import SignLikelihood
from dprec.mechanisms.channel import Channel
from dprec.ragged import offsets, sizes_of
from dprec.randomness import words
from dprec.setups import GradientPerturbationSetup
from dprec.wire import ReportCodec
from dprec.wire.symbol_rows import SymbolRows

NUMBER = np.dtype("<f4")
"""How the entries of a row travel to its user."""


@dataclass(frozen=True, eq=False)
class Installed:
    """What is installed on the devices.

    Parameters
    ----------
    link : Link
    clamp : float
    channel : Channel
        Of one gradient entry, at the budget of one round.
    first, later : ReportCodec and SymbolRows
        The code of a report that tells the rated items, and of one that need not.
    rounds : int
    """

    link: Link
    clamp: float
    channel: Channel
    first: ReportCodec
    later: SymbolRows
    rounds: int


def slope_reports(cohort: Cohort, round_index: int, request: ConfigRecord, context: Context) -> list[bytes]:
    """Return the report of every user of a cohort.

    Parameters
    ----------
    cohort : Cohort
    round_index : int
    request : ConfigRecord
        Holds one row of values per user: the entries at its rated items, or nothing where the
        server does not know these; the entries are 0 then, and the report tells the items.
    context : Context
        Its state keeps what the node answered.

    Raises
    ------
    ValueError
        When the request is malformed, the budget was not divided by so many rounds, or the round
        was answered with other rows, or is earlier than one that was answered.
    """
    installed = installed_on(cohort.population)
    if not 1 <= round_index <= installed.rounds:
        raise ValueError(f"asked for round {round_index} of {installed.rounds}")
    rows, counts = _rows(request, cohort.size), cohort.counts
    told = sizes_of(rows) > 0
    entries = _entries(rows, told, counts)
    _answer_once(cohort, round_index, rows, context)
    likelihood = SignLikelihood.of_signs(installed.link, cohort.values)
    levels = levels_of(likelihood.value_and_slopes(entries)[1], installed.clamp)
    noise = words(
        cohort.population.seed,
        "slope report",
        cohort.first_rating,
        cohort.items.size,
        round_index=round_index,
    )
    symbols = installed.channel.sample(levels, noise)
    later = np.repeat(told, counts)
    whole = np.where(told, 0, counts)
    with_items = installed.first.encode(offsets(whole), cohort.items[~later], symbols[~later])
    without = installed.later.encode(np.where(told, counts, 0), symbols[later])
    return [short if knows else long for knows, short, long in zip(told, without, with_items, strict=True)]


def _rows(request: ConfigRecord, users: int) -> list[bytes]:
    rows = request.get("rows")
    if not isinstance(rows, list) or len(rows) != users:
        raise ValueError("rows of another cohort")
    return [row if isinstance(row, bytes) else b"" for row in rows]


def _entries(rows: list[bytes], told: NDArray[np.bool_], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Decode the entries at the rated items, shape (ratings,)."""
    for row, count in zip(rows, counts.tolist(), strict=True):
        if row and len(row) != count * NUMBER.itemsize:
            raise ValueError(f"a row of {len(row)} bytes for {count} ratings")
    entries = np.zeros(int(counts.sum()))
    entries[np.repeat(told, counts)] = np.frombuffer(b"".join(rows), dtype=NUMBER)
    if not np.isfinite(entries).all():
        raise ValueError("a row with numbers that are not finite")
    return entries


def _answer_once(cohort: Cohort, round_index: int, rows: list[bytes], context: Context) -> None:
    """Remember what a round is answered for; refuse other rows for it, and earlier rounds."""
    name = f"one-bit-{cohort.population.key}"
    digest = hashlib.sha256(b"".join(len(row).to_bytes(8, "little") + row for row in rows)).digest()
    answered = context.state.get(name)
    last, known = (answered["round"], answered["rows"]) if isinstance(answered, ConfigRecord) else (0, b"")
    assert isinstance(last, int)
    if round_index < last or (round_index == last and digest != known):
        raise ValueError(f"asked for round {round_index} again, after round {last} was answered")
    context.state[name] = ConfigRecord({"round": round_index, "rows": digest})


@lru_cache(maxsize=4)
def installed_on(population: Population) -> Installed:
    """Return what is installed on the devices of a population."""
    setup = population.installed(GradientPerturbationSetup)
    channel = slope_channel(setup.clamp, setup.symbols, setup.epsilon_per_round)
    return Installed(
        link_of(setup.link, setup.sigma),
        setup.clamp,
        channel,
        ReportCodec(channel, population.n_items),
        SymbolRows(channel),
        setup.rounds,
    )
