"""Whole populations: a one-shot round, and rounds of pg-mf, of up to a hundred million users.

A one-shot round is what a one-shot protocol does before the completion: every user perturbs 20 ratings
(bounded Laplace, epsilon 1) and encodes the report, Flower carries it through Ray to the server, which
decodes it and charges every user's bytes and epsilon. Shards are populations of the same size, one by one,
of which nothing is kept. A stock round is the plain Flower app for a population: one node per user, one
message to each, 50 float32 back from each. Both run on Ray with two workers, and starting up is outside.

pg-mf runs two rounds and evaluates; its seconds leave out, and its processor seconds include, the generation
of ratings. Memory is that of all processes, from generating the ratings on.
"""

import logging
import os
import shutil
import statistics
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from measuring import CPU, ELAPSED, MEMORY, Figures, Line, Peer, job, main
from numpy.typing import NDArray
from process_memory import processor_seconds

from dprec.accounting import PrivacyBudget
from dprec.completion import ItemAverage
from dprec.datasets import Synthetic
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.protocols.one_shot import OneShotProtocol
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from simulation.configuration.models import SimulationOptions
from simulation.engine.session import open_session
from strategies.report_collection import ReportCollection

RATINGS_PER_USER, EPSILON, ITEMS, WORKERS = 20, 1.0, 2_000, 2
PG_MF_ITEMS, PG_MF_ROUNDS = 100, 2
STOCK_FLOATS, EACH = 50, "µs a rating"
_GENERATED, _TESTED_EVERY, _WAIT_SECONDS = 100_000, 2_000, 0.1


def population(users: int, items: int = ITEMS, seed: int = 0) -> Ratings:
    return Synthetic(users=users, items=items, ratings=RATINGS_PER_USER * users, seed=seed).load()


def one_shot(users: int, shards: int = 1) -> Figures:
    budget = PrivacyBudget(epsilon=EPSILON, per="rating")
    protocol = OneShotProtocol(privacy=budget, mechanism=BoundedLaplace(), completion=ItemAverage())
    options, taken = SimulationOptions(workers=WORKERS), np.zeros(2)
    partition = options.partition_size(users)
    train = collected = None
    with open_session(options, -(-users // partition)) as session:
        roster = session.roster(users, partition)
        for shard in range(shards):
            train = collected = None  # frees the memory of the shard before
            train = population(users, seed=shard)
            calibrated = protocol.mechanism.family(budget, train.scale, train.n_items)
            given: Any = {"keys": RunKeys.derive(shard).installed, "protocol": protocol.installed}
            group = session.install(train, users_per_node=partition, faults=options.faults, **given)
            started = np.array([time.perf_counter(), processor_seconds(os.getpid())])
            collected = ReportCollection(calibrated, group).collect(session.grid, roster)
            calibrated.accountant(train.counts, collected.sent)
            taken += np.array([time.perf_counter(), processor_seconds(os.getpid())]) - started
            if not (collected.accepted.all() and np.array_equal(collected.observations.items, train.items)):
                raise RuntimeError("not every report arrived whole")
            shutil.rmtree(session.root / group)
    elapsed, processor = taken.tolist()
    return {ELAPSED: elapsed, CPU: processor, EACH: 1e6 * processor / users / shards / RATINGS_PER_USER}


def stock_rounds(users: int, floats: int) -> Figures:
    """Return what a round of the plain Flower app takes that has a node for every user."""
    from flwr.app import ArrayRecord, Context, Message, MessageType, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.simulation import run_simulation

    client, server = ClientApp(), ServerApp()
    seconds, processor = list[float](), list[float]()

    @client.train()
    def train(message: Message, context: Context) -> Message:
        update = np.full(floats, context.node_config["partition-id"], dtype=np.float32)
        return Message(RecordDict({"arrays": ArrayRecord([update])}), reply_to=message)

    def ask(grid: Grid, nodes: list[int]) -> NDArray[np.float32]:
        content = RecordDict()
        replies = grid.send_and_receive([Message(content, node, MessageType.TRAIN) for node in nodes])
        updates = [reply.content.array_records["arrays"].to_numpy_ndarrays()[0] for reply in replies]
        if len(updates) != len(nodes):
            raise RuntimeError(f"{len(updates)} of {len(nodes)} nodes replied")
        return np.mean(updates, axis=0)

    @server.main()
    def main(grid: Grid, _context: Context) -> None:
        while len(nodes := list(grid.get_node_ids())) < users:
            time.sleep(_WAIT_SECONDS)
        ask(grid, nodes[: 4 * WORKERS])  # workers import on their first message
        for _ in range(2):
            started, started_cpu = time.perf_counter(), processor_seconds(os.getpid())
            ask(grid, nodes)
            seconds.append(time.perf_counter() - started)
            processor.append(processor_seconds(os.getpid()) - started_cpu)

    logging.getLogger("flwr").setLevel(logging.ERROR)
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False, "include_dashboard": False}
    resources = {"num_cpus": 1.0, "num_gpus": 0.0}
    backend: Any = {"client_resources": resources, "init_args": {"num_cpus": WORKERS, **quiet}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_simulation(server, client, num_supernodes=users, backend_config=backend)
    busy = statistics.median(processor)
    return {ELAPSED: statistics.median(seconds), CPU: busy, "µs a user": 1e6 * busy / users}


def pg_mf(users: int) -> Figures:
    """Return what a run on 20 ratings of each user takes; after 100,000 users, the profiles begin again."""
    from simulation import load
    from simulation.execution import run_prepared

    some, cells = population(min(users, _GENERATED), PG_MF_ITEMS), users * RATINGS_PER_USER
    profiles: Any = {"items": np.resize(some.items, cells), "levels": np.resize(some.levels, cells)}
    indptr = np.arange(users + 1) * RATINGS_PER_USER
    train = replace(some, indptr=indptr, user_ids=np.arange(users), **profiles)
    tested = np.zeros(cells, dtype=np.bool_)
    tested[::_TESTED_EVERY] = True
    test = train.select(tested)
    config = load("pg-mf", [f"protocol.rounds={PG_MF_ROUNDS}", f"simulation.workers={WORKERS}"])
    started = time.perf_counter()
    run_prepared(config, train, test, None)
    return {ELAPSED: time.perf_counter() - started}


TAKEN, LARGE = (ELAPSED, CPU, MEMORY), 10_000_000
SIZES = 100_000, 1_000_000, LARGE
STOCK = f"Flower: a node per user, {STOCK_FLOATS} numbers from each"
FLOWER = Peer("flwr", job(__file__, "stock_rounds", 10_000, STOCK_FLOATS), here=True)
ROUNDS = [(f"one-shot round, {n:,} users", (n,)) for n in SIZES]
SHARDS = (f"one-shot reports in ten shards, {10 * LARGE:,} users", (LARGE, 10))
LINES = (
    Line("one-shot round, 10,000 users", job(__file__, "one_shot", 10_000), (), FLOWER, STOCK, TAKEN),
    *(Line(what, job(__file__, "one_shot", *of), (), units=(*TAKEN, EACH)) for what, of in (*ROUNDS, SHARDS)),
    *(Line(f"two rounds of `pg-mf`, {n:,} users", job(__file__, "pg_mf", n), (), units=TAKEN) for n in SIZES),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {each.__name__: each for each in (one_shot, stock_rounds, pg_mf)})
