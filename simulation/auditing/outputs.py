"""Audits what servers let out: completed matrices; and replacements, neighbours and similarities of X-Map."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from flwr.app import Message

from clients.faults import FaultOptions
from dprec import crossdomain
from dprec.arrays import Floats
from dprec.auditing import Sent, class_edges, learning
from dprec.completion import Observations
from dprec.exchange import REPLACE, REPLACEMENT_ROUND, ReplacementRequest
from dprec.protocols.base import Promise
from dprec.protocols.findings import Complete, Finding
from dprec.protocols.x_map import XMapProtocol
from dprec.randomness import RunKeys
from dprec.ratings import RatingScale
from simulation.auditing.experiments import Experiment, exact, sampled
from simulation.auditing.listening import Column, Suspicion, numbered, of_neighbors, of_one_origin
from simulation.engine.session import open_overheard_session
from strategies.roster import arrivals_of
from strategies.rounds import request_content

_TARGETS = 24
"""Items of the target domain, among which a replacement is drawn."""

_BINS, _PER_SCALE = 60, 4
"""Classes of a noisy similarity, and how many of them a scale of the noise is wide."""

_SENSITIVITY, _MIDDLE = 0.1, 0.4
"""How far a user moves a similarity, and what it is without that user."""


def output_findings(
    protocol: XMapProtocol, scale: RatingScale, trials: int, seed: int, failure: float
) -> Iterator[Finding]:
    """Yield how well what is let out tells values apart by as much as one user can move them.

    All bounds hold together but with probability ``failure``, for so many draws for each of two neighbours.
    """
    private = [protocol.replacement.private, protocol.recommendation.epsilon is not None]
    failure /= sum(private)
    if private[0]:
        yield from _of_replacements(protocol, scale, trials, seed, failure)
    if private[1]:
        yield from _of_neighbors(protocol, trials, seed, failure)


def _of_replacements(
    protocol: XMapProtocol, scale: RatingScale, trials: int, seed: int, failure: float
) -> Iterator[Finding]:
    """Yield the loss of a replacement: of the table, and of what devices send for two tables."""
    replacement, epsilon = protocol.replacement, protocol.replacement.epsilon
    assert epsilon is not None, "private replacement without a budget"
    low = -crossdomain.STEPS if crossdomain.LOWEST[protocol.graph.similarity] < 0 else 0
    tables, targets = [], np.arange(_TARGETS, dtype=np.int64)
    # X-Sim of one source item: a target as high as can be, the others as low, or the reverse. From one to the
    # other, every value moves as far as one user can move it.
    for first, others in ((crossdomain.STEPS, low), (low, crossdomain.STEPS)):
        steps = np.where(targets == 0, first, others)
        indptr = np.array([0, _TARGETS])
        tables.append(crossdomain.Candidates(np.zeros(1, dtype=np.int64), indptr, targets, steps))
    draws = [
        crossdomain.ReplacementDraws.prepare(
            table, epsilon, protocol.sensitivity, _TARGETS, whole_catalogue=replacement.whole_catalogue
        )
        for table in tables
    ]
    loss = draws[0].channel_beside(draws[1], 0).epsilon
    test = "replacement of an item, from the table"
    yield exact(test, "rating", epsilon, loss)
    before, after, again = _replaced(protocol, scale, [*tables, tables[0]], trials, seed)
    suspected = [
        Suspicion("replacements of two users", (of_neighbors(before),)),
        Suspicion("replacements of two runs", (of_one_origin(before, again),)),
    ]
    failure /= 1 + len(suspected)
    pair = Sent.of_rounds([before]), Sent.of_rounds([after])
    yield sampled("replacement of an item", "rating", epsilon, [pair], failure)
    yield from (suspicion.finding(failure) for suspicion in suspected)


def _replaced(
    protocol: XMapProtocol,
    scale: RatingScale,
    tables: list[crossdomain.Candidates],
    people: int,
    seed: int,
) -> list[Column]:
    """Return what devices of so many people send of an item, by the tables that they are sent."""
    profile = (scale.levels, *[0] * _TARGETS)
    population = Experiment((profile,), ()).population(people, scale)
    codec = crossdomain.RowCodec(
        1 + _TARGETS, _TARGETS, with_steps=True, with_means=protocol.replacement.deviations
    )
    numbers: dict[bytes, int] = {}
    columns = []
    with open_overheard_session() as heard:
        for run, table in enumerate(tables):
            group = heard.session.install(
                population,
                users_per_node=people,
                keys=RunKeys.derive(seed, f"table {run}").installed,
                faults=FaultOptions(),
                protocol=protocol.installed,
            )
            rows = codec.pack(table.items, codec.rows(table), np.zeros(1, dtype=np.int64))
            request = ReplacementRequest(REPLACEMENT_ROUND, 1, 1 + _TARGETS, rows)
            node = heard.session.node_ids[0]
            reply = heard.ask(Message(request_content(request), node, REPLACE, group_id=group))
            arrived = arrivals_of(reply, 0, np.arange(people))
            assert arrived is not None, "devices that do not replace items"
            columns.append(numbered(arrived.reports, numbers))
    return columns


Served = tuple[Column, Column]
"""Of each item the neighbours, as a number, and the similarity of the first, in classes."""


def _server(protocol: XMapProtocol, items: int, seed: int) -> Callable[..., Served]:
    """Return a server that predicts so many items, from as many similarities as are given to it."""
    options, kind, nobody = protocol.recommendation, protocol.graph.similarity, sp.csr_array((1, items))
    assert options.epsilon is not None, "predictions without a budget"
    rated = crossdomain.RatedItems.of(nobody, kind)
    width = crossdomain.SimilarityNoise.of(options.epsilon).unit.scale * _SENSITIVITY / _PER_SCALE

    def serve(neighbors: int, *similarities: float, user: int = 0) -> Served:
        recommender = crossdomain.ItemBasedRecommender(
            replace(options, neighbors=neighbors), kind, rated, nobody, seed
        )
        rows, moved = np.tile(np.array(similarities), (items, 1)), np.full(items, _SENSITIVITY)
        # Other neighbours have other noise, as those of another data set have.
        of_set = 2 * user + int(similarities[0] != _MIDDLE)
        chosen, weights = recommender.private_neighbors(of_set, np.arange(items), rows, moved)
        binned = np.clip(np.floor((weights[:, 0] - _MIDDLE) / width) + _BINS // 2, 0, _BINS).astype(np.int64)
        return chosen @ (len(similarities) ** np.arange(chosen.shape[1])), binned

    return serve


def _of_neighbors(protocol: XMapProtocol, trials: int, seed: int, failure: float) -> Iterator[Finding]:
    """Yield the loss of the neighbours of a prediction, of a similarity, and of a neighbour with its own."""
    server, reseeded, epsilon = (
        _server(protocol, trials, seed),
        _server(protocol, trials, seed + 1),
        protocol.recommendation.epsilon,
    )
    assert epsilon is not None, "predictions without a budget"
    up, down = _MIDDLE + _SENSITIVITY, _MIDDLE - _SENSITIVITY
    of_one, another = (server(1, _MIDDLE, user=user)[1] for user in (0, 1))
    suspected = [
        Suspicion("noise of two users", (of_one_origin(of_one, another),)),
        Suspicion("noise of two items", (of_neighbors(of_one),)),
        Suspicion("noise of two runs", (of_one_origin(of_one, reseeded(1, _MIDDLE)[1]),)),
    ]
    failure /= 3 + len(suspected)
    pairs = [
        chosen * (_BINS + 1) + weight for chosen, weight in (server(1, _MIDDLE, _MIDDLE), server(1, up, down))
    ]
    compared: list[tuple[str, float, Column, Column]] = [
        (
            "neighbours of a prediction",
            epsilon / 2,
            server(2, _MIDDLE, _MIDDLE, _MIDDLE)[0],
            server(2, up, down, down)[0],
        ),
        ("a similarity of a prediction", epsilon / 2, of_one, server(1, up)[1]),
        ("a neighbour and its similarity", epsilon, pairs[0], pairs[1]),
    ]
    for test, promised, one, other in compared:
        yield sampled(test, "rating", promised, [(Sent.of_rounds([one]), Sent.of_rounds([other]))], failure)
    yield from (suspicion.finding(failure) for suspicion in suspected)


MOST_RELEASES = 600
"""Largest number of completions of each data set; each takes milliseconds."""

_SHAPE = (2, 2)
_CLASSES = 12
_PROBES = (
    ("one sign, in the completed matrix", 1, (-1.0, 1.0, 1.0, 1.0)),
    ("both signs of a user, in the completed matrix", 2, (-1.0, -1.0, 1.0, 1.0)),
)
"""What differs from two users who like both of two items: in words, in how many signs, and the signs."""


def release_findings(
    complete: Complete, promise: Promise, scale: RatingScale, trials: int, seed: int, failure: float
) -> Iterator[Finding]:
    """Yield how well the completed matrices of neighbouring data sets could be distinguished.

    Each is completed ``trials`` times, at most `MOST_RELEASES`; one of the bounds may fail with ``failure``.
    """
    count, sets = min(trials, MOST_RELEASES), len(_PROBES) + 1
    base = _released(complete, (1.0, 1.0, 1.0, 1.0), scale, range(seed, seed + sets * count, sets))
    for place, (test, entries, signs) in enumerate(_PROBES, start=1):
        seeds = range(seed + place, seed + place + sets * count, sets)
        other = _released(complete, signs, scale, seeds)
        # As numbers, and in a few classes of each entry, the same for both data sets.
        edges = class_edges(np.concatenate([learning(base), learning(other)]), _CLASSES)
        sides = []
        for released in (base, other):
            classes = tuple(
                np.searchsorted(ends, entry) for ends, entry in zip(edges.T, released.T, strict=True)
            )
            nothing = np.zeros(len(released), dtype=np.int64)
            sides.append(Sent((nothing,), classes, released.astype(np.float32)))
        about = test, promise.unit_of(entries), promise.loss(entries)
        yield sampled(*about, [(sides[0], sides[1])], failure / len(_PROBES))


def _released(complete: Complete, signs: tuple[float, ...], scale: RatingScale, seeds: range) -> Floats:
    """Complete a data set with every seed; return all entries, shape (seeds, cells)."""
    users, items = np.divmod(np.arange(len(signs), dtype=np.int32), np.int32(_SHAPE[1]))
    observed = Observations.of(users, items, np.array(signs), _SHAPE, scale)
    return np.array([complete(observed, seed) for seed in seeds])
