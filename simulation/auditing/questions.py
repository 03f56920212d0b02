"""Audits what devices charge themselves, and whether they answer another question in the same round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from numpy.typing import NDArray

from clients.device.losses import PRICES
from clients.population import Partition
from clients.refusing_app import LOG
from dprec.accounting import COMPARABLE_UNITS, ComparableUnit
from dprec.exchange import REQUEST, Record
from dprec.ratings import Ratings
from simulation.auditing.listening import fitting
from simulation.auditing.promise import Promise
from simulation.auditing.result import Finding
from simulation.configuration.models import RunConfig
from simulation.engine.session import Overhearing, open_overheard_session
from simulation.execution import run_in

_PLACES, _BITS = 6, 8
"""Bytes of a question of which a bit is changed, one after the other, and the bits of each."""

_NO_QUESTION = frozenset({"asked"})
"""Entries of a request that say who is asked."""


def findings_of_questions(config: RunConfig, promise: Promise, people: Ratings) -> Iterator[Finding]:
    """Yield what the devices of a few people charge themselves, and what they answer besides.

    Parameters
    ----------
    config : RunConfig
        Reduced; see `simulation.auditing.listening.reduced`.
    """
    config = fitting(config, people)
    with open_overheard_session(config.simulation.population_dir) as heard:
        result = run_in(heard.session, config, people, people.select(np.arange(people.count) == 0))
        asked = [each for each in heard.requests if each.metadata.message_type in PRICES]
        devices = _charged_by_devices(heard, asked, people.n_users)
        for unit in COMPARABLE_UNITS:
            ledger = result.traffic[f"epsilon_per_{unit}"]
            # Where nothing is proved, the run's ledger has no bound to compare with.
            if np.isfinite(ledger).any():
                yield _of_ledgers(unit, np.nan_to_num(ledger), devices[unit])
        last = {each.metadata.message_type: each for each in asked}
        others = [other for request in last.values() for other in _other_questions(request)]
        if others:
            with _refusals_expected():
                further = any(heard.ask(other).has_content() for other in others)
            yield _of_further_answers(promise, len(asked), further=further)


@contextmanager
def _refusals_expected() -> Iterator[None]:
    """Keep the reasons of refusals, which are for a device's owner, from the log."""
    before, LOG.disabled = LOG.disabled, True
    try:
        yield
    finally:
        LOG.disabled = before


def _charged_by_devices(
    heard: Overhearing, asked: list[Message], users: int
) -> dict[ComparableUnit, NDArray[np.float64]]:
    """Return what each person's device charges for all its answers, by unit, shape (users,)."""
    rating, whole = np.zeros(users), np.zeros(users)
    for request in asked:
        population, price_of = heard.population(request), PRICES[request.metadata.message_type]
        for user in range(users):
            paid = price_of(Partition(population, user, user + 1), _record(request)).paid
            rating[user] += paid.per_rating
            whole[user] += paid.per_user
    return {"rating": rating, "user": whole}


def _of_ledgers(unit: ComparableUnit, ledger: NDArray[np.float64], own: NDArray[np.float64]) -> Finding:
    """Return the person whose device charges least or most, beside what the run's ledger charges."""
    worst = int(np.argmax(np.abs(ledger - own)))
    loss = float(ledger[worst])
    return Finding(
        f"what devices charge, per {unit}", unit, loss, loss, float(own[worst]), exact=True, power=1
    )


def _of_further_answers(promise: Promise, rounds: int, *, further: bool) -> Finding:
    """Return the loss of all rounds, and of one more answer if there was any."""
    loss = promise.epsilon * (1 + 1 / rounds if further else 1)
    test = "another question in a round that was answered"
    return Finding(test, promise.unit, promise.epsilon, loss, None, exact=True, power=1)


def _record(request: Message) -> Record:
    record = request.content.get(REQUEST) if request.has_content() else None
    return record if isinstance(record, ConfigRecord) else ConfigRecord()


def _other_questions(request: Message) -> Iterator[Message]:
    """Yield the request with what it asks changed at one place each time."""
    entries: Mapping[str, object] = {**_record(request)}
    for name, value in entries.items():
        if name in _NO_QUESTION:
            continue
        for changed in _changed(value):
            content = RecordDict({REQUEST: ConfigRecord({**entries, name: changed})})  # type: ignore[dict-item]
            about = request.metadata
            yield Message(content, about.dst_node_id, about.message_type, group_id=about.group_id)


def _changed(value: object) -> Iterator[object]:
    """Yield bytes with one bit flipped, at places from first to last; of a list, in one of its elements."""
    if isinstance(value, bytes) and value:
        for place in np.unique(np.linspace(0, len(value) - 1, _PLACES).astype(np.int64)).tolist():
            for bit in range(_BITS):
                yield value[:place] + bytes([value[place] ^ 1 << bit]) + value[place + 1 :]
    elif isinstance(value, list):
        for index, element in enumerate(value[:_PLACES]):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in _changed(element))
