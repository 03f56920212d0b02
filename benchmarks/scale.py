"""One round of a whole population: up to ten million users, and against stock Flower.

    python benchmarks/scale.py [--users 100000 1000000 10000000] [--stock-users 10000] [--skip-stock]
    python benchmarks/scale.py --users 10000000 --shards 10 --skip-stock

dprec's round is what a one-shot protocol does before the completion: every user perturbs 20 ratings
(bounded Laplace, epsilon 1) and encodes the report, Flower carries it through Ray to the server,
which decodes it and charges every user's bytes and epsilon. The stock round is the plain Flower app
for the same population: one node per user, one message to each, 50 float32 back from each. Both run
on Flower's Ray simulation with the same workers, and starting up is outside both figures.

With shards, each population is followed by others of the same size, whose cells are kept no longer than
their round: the reports of a population that no machine holds at once, without a completion. What each took
is said when it ends.

Every population runs in its own processes. Processor time is that of the driver and of all its children.
Memory is that of the driver, Ray and its workers together (see `process_memory`), from generating the ratings
to the end of the rounds; the driver alone is shown per user.
Nothing is written; the exit code is 1 if a figure misses its requirement.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import shutil
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray
from process_memory import GIGABYTE, Peak, measured, processor_seconds
from threadpoolctl import threadpool_limits

from dprec.accounting import PrivacyBudget
from dprec.completion import MatrixFactorization
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.protocols.one_shot import OneShotProtocol
from dprec.randomness import RunKeys, generator
from dprec.ratings import Ratings, RatingScale
from dprec.wire import TrafficLedger
from simulation.configuration.models import SimulationOptions
from simulation.engine.session import open_session
from strategies.report_collection import Collected, ReportCollection

RATINGS_PER_USER, EPSILON = 20, 1.0
REQUIRED_RATIO, RATIO_USERS = 50, 10_000
REQUIRED = {1_000_000: (12.0, 2.0), 10_000_000: (30.0, 5.0)}
"""Seconds and gigabytes that a round may take, by users."""

LINEAR_WITHIN, LINEAR_FROM = 2.0, 100_000
"""Growth beyond linear that is attributed to caches and a shared machine; quadratic growth would be 10."""
ALIKE_WITHIN = 1.2
"""How much longer a shard may take than the first."""
_USERS_AT_ONCE = 1 << 18
_WAIT_SECONDS = 0.1


@dataclass(frozen=True)
class Rounds:
    """The rounds of one population, in seconds each."""

    startup: float
    seconds: list[float]
    payload_per_user: float
    processor: list[float]
    """The same in processor time; of stock Flower, nothing."""

    @property
    def best(self) -> float:
        """The time of the fastest round."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The median time of a round."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Fit:
    """The completion of what one round collected."""

    seconds: float
    sweeps: int


def population(users: int, items: int, profile: int = RATINGS_PER_USER, shard: int = 0) -> Ratings:
    """Generate some ratings of different items per user, with user and item biases."""
    random, scale = generator(shard, "benchmark"), RatingScale.evenly(1, 5, 1)
    rated = np.empty((users, profile), dtype=np.int32)
    levels = np.empty(rated.shape, dtype=np.uint8)
    item_biases = random.normal(0.0, 0.5, items).astype(np.float32)
    for first in range(0, users, _USERS_AT_ONCE):
        part = rated[first : first + _USERS_AT_ONCE]
        # Ascending draws with repetition become ascending draws without it when the k-th is moved by k.
        part[:] = random.integers(0, items - profile + 1, part.shape, dtype=np.int32)
        part.sort(axis=1)
        part += np.arange(profile, dtype=np.int32)
        values = random.standard_normal(part.shape, dtype=np.float32)
        values += random.normal(3.5, 0.4, (part.shape[0], 1)).astype(np.float32)
        values += item_biases[part]
        levels[first : first + _USERS_AT_ONCE] = np.clip(np.rint(values), scale.low, scale.high)
    return Ratings(
        indptr=np.arange(users + 1, dtype=np.int64) * profile,
        items=rated.reshape(-1),
        levels=levels.reshape(-1),
        scale=scale,
        user_ids=np.arange(users),
        item_ids=np.arange(items),
    )


def dprec_rounds(result: Connection, users: int, chosen: argparse.Namespace) -> None:
    """Send the rounds of dprec and then, if requested, a completion."""
    protocol = OneShotProtocol(
        privacy=PrivacyBudget(epsilon=EPSILON, per="rating"),
        mechanism=BoundedLaplace(),
        completion=MatrixFactorization(rank=5, iterations=max(1, chosen.sweeps), tolerance=0.0),
    )
    options = SimulationOptions(workers=chosen.workers)
    partition = options.partition_size(users)
    seconds, processor = [], []
    train = collected = None
    with open_session(options, -(-users // partition)) as session:
        roster = session.roster(users, partition)
        for shard in range(chosen.shards):
            train = collected = None  # frees the memory of the shard before
            train = population(users, chosen.items, shard=shard)
            calibrated = protocol.mechanism.family(protocol.privacy, train.scale, train.n_items)
            group = session.install(
                train,
                users_per_node=partition,
                keys=RunKeys.derive(shard).installed,
                faults=options.faults,
                protocol=protocol.installed,
            )
            collection = ReportCollection(calibrated, group)
            for _ in range(chosen.repeats):
                collected = None  # and of the round before
                started, started_cpu = time.perf_counter(), processor_seconds(os.getpid())
                collected = collection.collect(session.grid, roster)
                calibrated.accountant(train.counts, collected.sent)
                seconds.append(time.perf_counter() - started)
                processor.append(processor_seconds(os.getpid()) - started_cpu)
                _check(collected, train)
                if chosen.shards > 1:
                    each, busy = 1e6 * seconds[-1] / users, 1e6 * processor[-1] / users
                    print(f"shard {shard + 1}: {each:.2f} us/user, {busy:.2f} of processor time", flush=True)
            shutil.rmtree(session.root / group)
        startup = session.startup_seconds
    assert collected is not None
    result.send(Rounds(startup, seconds, float(collected.traffic.uplink_payload.mean()), processor))
    if chosen.sweeps:
        started = time.perf_counter()
        with threadpool_limits(limits=1):  # as in a run
            completed = protocol.completion.fit(collected.observations, 0)
        result.send(Fit(time.perf_counter() - started, completed.diagnostics["sweeps"]))


def _check(collected: Collected, train: Ratings) -> None:
    traffic: TrafficLedger = collected.traffic
    if not (
        collected.accepted.all()
        and np.array_equal(collected.observations.items, train.items)
        and (traffic.uplink_message > traffic.uplink_payload).all()
    ):
        raise RuntimeError("not every report arrived whole")


def stock_rounds(result: Connection, users: int, chosen: argparse.Namespace) -> None:
    """Send the rounds of the plain Flower app that has a node for every user."""
    from flwr.app import ArrayRecord, Context, Message, MessageType, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.simulation import run_simulation

    client, server = ClientApp(), ServerApp()
    began = time.perf_counter()
    startup, seconds, processor = 0.0, [], []

    @client.train()
    def train(message: Message, context: Context) -> Message:
        update = np.full(chosen.stock_floats, context.node_config["partition-id"], dtype=np.float32)
        return Message(RecordDict({"arrays": ArrayRecord([update])}), reply_to=message)

    def ask(grid: Grid, nodes: list[int]) -> NDArray[np.float32]:
        content = RecordDict()
        replies = grid.send_and_receive([Message(content, node, MessageType.TRAIN) for node in nodes])
        updates = [reply.content.array_records["arrays"].to_numpy_ndarrays()[0] for reply in replies]
        if len(updates) != len(nodes):
            raise RuntimeError(f"{len(updates)} of {len(nodes)} nodes replied")
        average: NDArray[np.float32] = np.mean(updates, axis=0)
        return average

    @server.main()
    def main(grid: Grid, _context: Context) -> None:
        nonlocal startup
        while len(nodes := list(grid.get_node_ids())) < users:
            time.sleep(_WAIT_SECONDS)
        ask(grid, nodes[: 4 * chosen.workers])  # workers import on their first message
        startup = time.perf_counter() - began
        for _ in range(chosen.stock_repeats):
            started, started_cpu = time.perf_counter(), processor_seconds(os.getpid())
            ask(grid, nodes)
            seconds.append(time.perf_counter() - started)
            processor.append(processor_seconds(os.getpid()) - started_cpu)

    logging.getLogger("flwr").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_simulation(
            server_app=server,
            client_app=client,
            num_supernodes=users,
            backend_config={
                "client_resources": {"num_cpus": 1.0, "num_gpus": 0.0},
                "init_args": {
                    "num_cpus": chosen.workers,
                    "logging_level": logging.ERROR,
                    "log_to_driver": False,
                    "include_dashboard": False,
                },
            },
        )
    result.send(Rounds(startup, seconds, chosen.stock_floats * 4, processor))


HEADER = f"{'':7}{'users':>11}{'nodes':>8}{'start-up s':>12}{'first s':>9}{'median s':>10}{'CPU s':>8}"
HEADER += f"{'us/user':>9}{'us/rating':>11}{'peak GB':>9}{'driver B/user':>15}{'sent B/user':>13}"
HEADER += f"{'MF s/sweep':>12}{'MF GB':>7}"


def _line(
    name: str, users: int, nodes: int, rounds: Rounds, peak: Peak, fits: Sequence[tuple[Fit, Peak]] = ()
) -> str:
    completion = "".join(
        f"{fit.seconds / fit.sweeps:>12.2f}{most.everything / GIGABYTE:>7.2f}" for fit, most in fits
    )
    each, processor = 1e6 * rounds.median / users, statistics.median(rounds.processor or [np.nan])
    return (
        f"{name:7}{users:>11,}{nodes:>8,}{rounds.startup:>12.1f}{rounds.seconds[0]:>9.2f}"
        f"{rounds.median:>10.2f}{processor:>8.1f}{each:>9.2f}{each / RATINGS_PER_USER:>11.3f}"
        f"{peak.everything / GIGABYTE:>9.2f}{peak.driver / users:>15,.0f}"
        f"{rounds.payload_per_user:>13.1f}{completion}"
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--users", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    arguments.add_argument("--items", type=int, default=2_000)
    arguments.add_argument("--repeats", type=int, default=1, help="rounds of dprec per population")
    arguments.add_argument("--shards", type=int, default=1, help="populations of each size, one by one")
    arguments.add_argument("--workers", type=int, default=2, help="Ray workers, of both")
    arguments.add_argument("--stock-users", type=int, default=10_000)
    arguments.add_argument("--stock-repeats", type=int, default=1, help="rounds of the stock app")
    arguments.add_argument("--stock-floats", type=int, default=50, help="that each of its nodes sends")
    arguments.add_argument("--skip-stock", action="store_true")
    arguments.add_argument("--sweeps", type=int, default=0, help="sweeps of the completion; 0 for none")
    chosen = arguments.parse_args()
    counted = [chosen.stock_users, chosen.repeats, chosen.stock_repeats, chosen.workers, chosen.shards]
    if min([*chosen.users, *counted]) < 1:
        arguments.error("users, repeats, shards and workers are at least 1")
    if chosen.items < RATINGS_PER_USER:
        arguments.error(f"--items is at least {RATINGS_PER_USER}")
    sizes = sorted({*chosen.users} | (set() if chosen.skip_stock else {chosen.stock_users}))
    print(HEADER, flush=True)
    results: dict[int, tuple[Rounds, Peak]] = {}
    for users in sizes:
        (rounds, peak), *fits = measured(dprec_rounds, users, chosen)
        results[users] = rounds, peak
        nodes = -(-users // SimulationOptions(workers=chosen.workers).partition_size(users))
        print(_line("dprec", users, nodes, rounds, peak, fits), flush=True)
    missed = _missed_at_scale(results)
    if not chosen.skip_stock:
        users = chosen.stock_users
        [(stock, peak)] = measured(stock_rounds, users, chosen)
        print(_line("stock", users, users, stock, peak))
        ratio = stock.best / results[users][0].median
        print(f"dprec is {ratio:.0f} times faster per round than stock Flower at {users:,} users")
        if users >= RATIO_USERS and ratio < REQUIRED_RATIO:
            missed.append(f"the ratio is below {REQUIRED_RATIO}")
    for miss in missed:
        print(f"MISSED: {miss}")
    return int(bool(missed))


def _missed_at_scale(results: dict[int, tuple[Rounds, Peak]]) -> list[str]:
    missed = []
    sizes = [users for users in sorted(results) if users >= LINEAR_FROM]
    for before, users in itertools.pairwise(sizes):
        growth = results[users][0].best / results[before][0].best / (users / before)
        if growth > LINEAR_WITHIN:
            missed.append(f"{users:,} users take {growth:.1f} times what growing linearly would")
    for users, (rounds, _) in results.items():
        if rounds.median > ALIKE_WITHIN * rounds.seconds[0]:
            missed.append(f"{users:,} users of a later shard take more than {ALIKE_WITHIN} times the first")
    for users, (seconds, gigabytes) in REQUIRED.items():
        if users not in results:
            continue
        rounds, peak = results[users]
        if rounds.median > seconds:
            missed.append(f"{users:,} users take more than {seconds:g} s")
        if peak.everything > gigabytes * GIGABYTE:
            missed.append(f"{users:,} users take more than {gigabytes:g} GB")
    return missed


if __name__ == "__main__":
    sys.exit(main())
