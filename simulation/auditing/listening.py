"""Runs protocols on the people of experiments: what devices send, charge themselves, and answer besides.

Whether noise is used again, across users, items, rounds, runs and budgets, shows in reports of people who all
have the same profile. These may agree by chance alone, so pairs of reports that could share noise are
compared with pairs that cannot: if an event distinguishes the two kinds, noise is shared. No report belongs
to two pairs of a kind, so that pairs count as independent.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from numpy.typing import NDArray

from clients.population import Partition
from clients.prices import PRICES
from clients.refusing import LOG
from dprec.accounting import COMPARABLE_UNITS, ComparableUnit
from dprec.arrays import Ints, Pieces
from dprec.auditing import Sent, class_edges, detection, learning, measured
from dprec.datasets import Synthetic
from dprec.exchange import REQUEST, Record
from dprec.protocols.base import Promise
from dprec.protocols.findings import Finding
from dprec.ratings import Ratings
from dprec.sent_symbols import SentSymbols
from simulation.configuration.models import RunConfig, SimulationOptions
from simulation.courses.base import course_of
from simulation.engine.session import open_overheard_session
from simulation.execution import run_in
from simulation.storage.run_files import RunRecord
from strategies.roster import arrivals_of


@dataclass(frozen=True, eq=False)
class Overheard:
    """What the people of a population sent, and what they were charged."""

    reports: Sequence[Sequence[bytes]]
    """By round, then by person."""
    symbols: list[Ints]
    """The symbols in them, by round; empty if there are none; shape (people, items)."""
    charged: dict[ComparableUnit, float | None]
    """Largest loss in the ledger, by unit; None if it has no bound, and one is claimed."""

    def by_profile(self, profiles: int) -> list[Sent]:
        """Return what people of each profile sent, if the profiles take turns."""
        share = 64 // max(1, len(self.reports))
        features = [_byte_features(reports, share) for reports in self.reports]
        columns = [column for symbols in self.symbols for column in symbols.T]
        matrix = np.column_stack([*features, *columns]).astype(np.float32)
        rounds = [numbered(reports, {}) for reports in self.reports]
        return [
            Sent(
                tuple(column[turn::profiles] for column in rounds),
                tuple(column[turn::profiles] for column in columns),
                matrix[turn::profiles],
            )
            for turn in range(profiles)
        ]


def reduced(config: RunConfig) -> RunConfig:
    """Return a configuration of the least work with the same reports; raises SettingError without noise."""
    place = config.simulation.devices_dir
    options = SimulationOptions(backend="local", workers=1, users_per_node="all", devices_dir=place)
    small = {"protocol": config.protocol.audited(), "dataset": Synthetic(), "simulation": options}
    # Attacks ask for people who are not all alike.
    return config.model_copy(update={**small, "attacks": ()})


def _fitting(config: RunConfig, people: Ratings, *, separating: bool = False) -> RunConfig:
    """Return a reduced configuration for a small catalogue; see `Protocol.audited_on`."""
    protocol = config.protocol.audited_on(people.n_items, separating=separating)
    return config.model_copy(update={"protocol": protocol})


def overhear(config: RunConfig, people: Ratings, *, separating: bool = False) -> Overheard:
    """Run a reduced configuration on people and listen to their devices; see `Protocol.audited_on`."""
    config = _fitting(config, people, separating=separating)
    protocol = config.protocol
    with open_overheard_session(config.simulation.devices_dir) as heard:
        # Devices send the same whatever is predicted, so a single prediction is enough.
        tested = people.select(np.arange(people.count) == 0)
        result = run_in(heard.session, config, people, tested)
    arrivals = (arrivals_of(reply, 0, np.arange(people.n_users)) for reply in heard.replies)
    rounds = [arrived.reports for arrived in arrivals if arrived is not None]
    symbols = protocol.installed.sent_symbols(course_of(protocol).held_ratings(people, config.seed))
    decoded = (
        [] if symbols is None else [symbols.decode(number, reports) for number, reports in enumerate(rounds)]
    )
    return Overheard(rounds, decoded, _charged(result))


def _charged(record: RunRecord) -> dict[ComparableUnit, float | None]:
    """Return the largest loss that a run charges, or that a class from outside declares it to be."""
    privacy = record.summary.privacy
    if privacy.status == "claimed":
        return dict.fromkeys(COMPARABLE_UNITS)
    if privacy.status == "declared":
        declared = {"rating": privacy.epsilon_claimed.per_rating, "user": privacy.epsilon_claimed.per_user}
        return {unit: math.inf if (loss := declared[unit]) is None else loss for unit in COMPARABLE_UNITS}
    return {unit: float(np.nanmax(record.traffic[f"epsilon_per_{unit}"])) for unit in COMPARABLE_UNITS}


def numbered(reports: Sequence[bytes], numbers: dict[bytes, int]) -> Ints:
    """Return one number per report, equal for equal bytes; new numbers are added to the given ones."""
    return np.array([numbers.setdefault(report, len(numbers)) for report in reports], dtype=np.int64)


def _byte_features(reports: Sequence[bytes], limit: int) -> NDArray[np.float32]:
    """Return features of reports as they are sent."""
    lengths = Pieces.of(reports).sizes
    width = max(1, min(int(lengths.max()), (limit - 2) // 8))
    padded = b"".join([report[:width].ljust(width, b"\0") for report in reports])
    first = np.frombuffer(padded, dtype=np.uint8).reshape(-1, width)
    last = np.frombuffer(b"".join([report[-1:] or b"\0" for report in reports]), dtype=np.uint8)
    ending = np.unpackbits(last[:, None], axis=1)[:, ::-1]
    zeros = np.where(last > 0, ending.argmax(axis=1), 8)
    bits = np.unpackbits(first, axis=1)
    return np.column_stack([lengths, zeros, bits]).astype(np.float32)


_PLACES, _BITS = 6, 8
"""Bytes of a question of which a bit is changed, one after the other, and the bits of each."""


def findings_of_questions(config: RunConfig, promise: Promise, people: Ratings) -> Iterator[Finding]:
    """Yield what a few people's devices charge in a reduced run, and what they answer besides."""
    config = _fitting(config, people)
    with open_overheard_session(config.simulation.devices_dir) as heard:
        result = run_in(heard.session, config, people, people.select(np.arange(people.count) == 0))
        requests = [request for request in heard.requests if request.metadata.message_type in PRICES]
        # What each person's device charges for all its answers, by unit.
        devices = {unit: np.zeros(people.n_users) for unit in COMPARABLE_UNITS}
        answered: dict[str, set[int]] = {}
        for request in requests:
            kind, population = request.metadata.message_type, heard.population(request)
            before = tuple(answered.setdefault(kind, set()))
            for user in range(people.n_users):
                price = PRICES[kind](Partition(population, user, user + 1), _record(request), before)
                devices["rating"][user] += price.paid.per_rating
                devices["user"][user] += price.paid.per_user
                answered[kind].add(price.round_index)
        for unit in COMPARABLE_UNITS:
            ledger = result.traffic[f"epsilon_per_{unit}"]
            # Where nothing is proved, the run's ledger has no bound to compare with.
            if np.isfinite(ledger).any():
                charged, by_device = np.nan_to_num(ledger), devices[unit]
                # The person whose device charges least or most, beside what the run's ledger charges.
                worst = int(np.argmax(np.abs(charged - by_device)))
                loss, test = float(charged[worst]), f"what devices charge, per {unit}"
                yield Finding(test, unit, loss, loss, float(by_device[worst]), exact=True, power=1)
        last = {request.metadata.message_type: request for request in requests}
        other_questions = [question for request in last.values() for question in _other_questions(request)]
        if other_questions:
            # Reasons of refusals are for a device's owner.
            heeded, LOG.disabled = LOG.disabled, True
            try:
                further = any(heard.ask(question).has_content() for question in other_questions)
            finally:
                LOG.disabled = heeded
            # The loss of all rounds, and of one more answer if there was any.
            loss = promise.epsilon * (1 + 1 / len(requests) if further else 1)
            test = "another question in a round that was answered"
            yield Finding(test, promise.unit, promise.epsilon, loss, None, exact=True, power=1)


def _record(request: Message) -> Record:
    record = request.content.get(REQUEST) if request.has_content() else None
    return record if isinstance(record, ConfigRecord) else ConfigRecord()


def _other_questions(request: Message) -> Iterator[Message]:
    """Yield the request with what it asks changed at one place each time."""
    entries: Mapping[str, object] = {**_record(request)}
    for name, value in entries.items():
        if name == "asked":
            continue  # it says of whom, and not what
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
            yield from ([*value[:index], flipped, *value[index + 1 :]] for flipped in _changed(element))


RUNS = 4
"""Runs with seeds of their own, an even number."""


_CLASSES = 6

Column = Ints
Pairs = tuple[Column, Column]


@dataclass(frozen=True)
class Suspicion:
    """Where noise could be used again."""

    test: str
    """In words."""
    comparisons: tuple[tuple[Pairs, Pairs], ...]
    """Pairs of reports that could share noise, each with pairs that cannot."""

    def finding(self, failure: float) -> Finding:
        """Return how reliably the two kinds of pairs could be distinguished, but with chance ``failure``."""
        sides = [sent for close, apart in self.comparisons for sent in _views(close, apart)]
        result = measured(sides, failure)
        by_chance = min(float(np.mean(one == other)) for _, (one, other) in self.comparisons)
        power = detection(1.0, by_chance, result.trials, 0.0, failure / 2)
        return Finding(self.test, "user", 0.0, result.at_least, None, exact=False, power=power)


def _views(close: Pairs, apart: Pairs) -> Iterator[tuple[Sent, Sent]]:
    """Yield both kinds of pairs: as they are, as agreement, and in a few classes each.

    Few pairs suffice to show how classes go together. Both kinds have the same classes.
    """
    yield Sent.of_rounds(close), Sent.of_rounds(apart)
    agree, chance = ((one == other).astype(np.int64) for one, other in (close, apart))
    yield Sent.of_rounds([agree]), Sent.of_rounds([chance])
    edges = [class_edges(learning(side), _CLASSES) for side in apart]
    classes = [
        [np.searchsorted(ends, column) for ends, column in zip(edges, pairs, strict=True)]
        for pairs in (close, apart)
    ]
    yield Sent.of_rounds(classes[0]), Sent.of_rounds(classes[1])


def suspicions(
    runs: Sequence[Overheard],
    variants: Mapping[str, Overheard],
    symbols: SentSymbols | None,
    *,
    alike: bool,
) -> Iterator[Suspicion]:
    """Yield where noise could be used again.

    ``runs``: runs with different seeds, of people who all have the same profile; `RUNS` of them.
    ``variants``: the first run with something else changed than the seed, by what is suspected of it.
    ``symbols``: what devices send about items, and how it depends on what they sent before.
    ``alike``: whether a first report has the same distribution in all runs.
    """
    draws_items, linked, once = (
        (symbols.drawn, symbols.linked, symbols.once) if symbols is not None else (False, False, False)
    )
    every_run = [*runs, *variants.values()]
    # By run, then by round: the symbols of the first item, or numbers that stand for whole reports.
    numbers: dict[bytes, int] = {}
    by_run = [[numbered(reports, numbers) for reports in run.reports] for run in every_run]
    if runs[0].symbols:
        by_run = [[symbols_of_round[:, 0] for symbols_of_round in run.symbols] for run in every_run]
    seeded, others = by_run[:RUNS], by_run[RUNS:]
    rounds = range(len(seeded[0]))
    yield Suspicion("noise of two users", tuple(_of_users(seeded, by, alike=alike) for by in (1, 2, 3, 5, 8)))
    if len(rounds) > 1 and not linked:
        by_round = [np.concatenate([columns[at] for columns in seeded]) for at in rounds]
        yield Suspicion("noise of two rounds", tuple(starmap(of_one_origin, pairwise(by_round))))
    if runs[0].symbols and runs[0].symbols[0].shape[1] > 1 and not once:
        one, other = (np.concatenate([run.symbols[0][:, item] for run in runs]) for item in (0, 1))
        # Only answers about both can be compared where devices draw which items they answer about.
        compared = (one > 0) & (other > 0) if draws_items else np.ones(one.size, dtype=np.bool_)
        if compared.any():
            yield Suspicion("noise of two items", (of_one_origin(one[compared], other[compared]),))
    halves = (
        [np.concatenate([columns[at] for columns in seeded[start::2]]) for start in (0, 1)] for at in rounds
    )
    yield Suspicion("noise of two runs", tuple(starmap(of_one_origin, halves)))
    for test, variant in zip(variants, others, strict=True):
        pairs = []
        for one, other in zip(seeded[0], variant, strict=True):
            answered = (one > 0) & (other > 0) if once else np.ones(one.size, dtype=np.bool_)
            pairs.append(of_one_origin(one[answered], other[answered]))
        yield Suspicion(test, tuple(pairs))


def of_one_origin(one: Column, other: Column) -> tuple[Pairs, Pairs]:
    """Compare pairs that belong to one user, or one item, with pairs of one and the next."""
    return (one, other), (one, np.roll(other, -1))


def of_neighbors(column: Column) -> tuple[Pairs, Pairs]:
    """Compare what lies side by side with what does not."""
    even = column.size // 2 * 2
    return of_one_origin(column[:even:2], column[1:even:2])


def _of_users(runs: Sequence[Sequence[Column]], distance: int, *, alike: bool) -> tuple[Pairs, Pairs]:
    """Compare users of one run at a distance with users who are far apart, in the first round.

    These are of two runs, so that noise that all users of a run share can show, if runs are alike.
    """
    firsts = [columns[0] for columns in runs]
    places = np.arange(firsts[0].size - distance)
    places = places[places % (2 * distance) < distance]
    one = np.concatenate([column[places] for column in firsts])
    other = [column[places + distance] for column in firsts]
    far = [*other[1:], other[0]] if alike else [np.roll(column, column.size // 2) for column in other]
    return (one, np.concatenate(other)), (one, np.concatenate(far))
