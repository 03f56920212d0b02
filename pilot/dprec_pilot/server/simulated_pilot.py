"""A pilot of made-up people, for whoever tries the app of `deployment/` in Flower's simulation runtime.

Server and nodes make the same ratings from the run configuration, with a public seed. A node holds those of
its part of the people, by the number that Flower gives it, and no others: nothing is read from its disk, so
there is no rating of anybody that a server could ask it for. All else is what `dprec run` does: the same
protocol, bytes and losses, and with the same settings the same bits.
"""

import math
import time
from collections.abc import Mapping
from functools import cache, lru_cache
from json import dumps
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid

from clients.app import answering
from clients.population import Partition, Population, partition_id_of
from clients.refusing import RefusingApp
from clients.shards import StoredProfiles
from dprec.errors import InputError, RunError
from dprec.exchange import IDENTIFY
from dprec.progress import silent
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import presets
from simulation.engine.grids import START_SECONDS, SupervisedGrid
from simulation.engine.session import Session
from simulation.execution import load_ratings, run_in, suited
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import RunRecord
from simulation.storage.summary import Summary
from strategies.roster import Roster, identify

_PRESET = "one-bit-on-device"

SETTINGS = (
    "seed",
    "dataset.users",
    "dataset.items",
    "dataset.ratings",
    "protocol.privacy.epsilon",
)
"""What the run configuration may set, by the keys of a configuration; no file and no class."""

_RUN = "00000001"
"""Run key: a node of the simulation runtime lives for one run."""

_POLL_SECONDS = 0.05


def configured(given: Mapping[str, Any]) -> RunConfig:
    """Return what a run configuration asks for; raises InputError naming the setting that cannot be."""
    settings = [f"{key}={dumps(given[key])}" for key in SETTINGS if key in given]
    try:
        return load(presets()[_PRESET], ["dataset.kind=synthetic", *settings])
    except InputError as error:
        # Where it was given: the file of the preset could not have it.
        where = f"--run-config {error.where.rpartition(': ')[2]}"
        raise InputError(where, error.found, error.accepted) from None


def _users_per_node(users: int, nodes: int) -> int:
    return math.ceil(users / nodes)


class _MadeUp:
    """Made-up ratings as devices hold them; see `clients.shards.HeldRatings`."""

    def __init__(self, made: Ratings) -> None:
        self.n_users, self.n_items, self.scale = made.n_users, made.n_items, made.scale
        self._whole = StoredProfiles(made.counts, made.items, made.levels, made.exact)

    def profiles(self, start: int, stop: int) -> StoredProfiles:
        """Return the ratings of the users from ``start`` to ``stop`` - 1."""
        return self._whole.part(start, stop)


@cache
def devices() -> RefusingApp:
    """Return the app of a node in Flower's simulation runtime, which hosts a part of the made-up people."""
    return answering(RefusingApp(), _partition)


def _partition(_message: Message, context: Context) -> Partition:
    given = tuple((key, context.run_config[key]) for key in SETTINGS if key in context.run_config)
    return _population(given, int(context.node_config["num-partitions"])).partition(partition_id_of(context))


@lru_cache(maxsize=1)
def _population(given: tuple[tuple[str, Any], ...], nodes: int) -> Population:
    """Make all people and their devices, as `run_in` installs them."""
    config = configured(dict(given))
    train, _ = load_ratings(config)
    protocol = suited(config, train, catalogue=None)
    return Population(
        ratings=_MadeUp(protocol.held_ratings(train, config.seed)),
        users_per_node=_users_per_node(train.n_users, nodes),
        individual_reports=False,
        keys=RunKeys.derive(config.seed, protocol.identity).installed,
        faults=config.simulation.faults,
        setup=protocol.setup(),
        key=_RUN,
    )


class _Hosted(Session):
    """A simulation that somebody else has started, on whose nodes everything is installed already."""

    def install(self, train: Ratings, **_installed: Any) -> str:
        """Return the run key."""
        return _RUN

    def roster(self, n_users: int, users_per_node: int) -> Roster:
        """Return which node hosts which users: they are divided among all nodes."""
        return super().roster(n_users, _users_per_node(n_users, len(self.node_ids)))


def serve_made_up(grid: Grid, given: Mapping[str, Any]) -> RunRecord:
    """Run a simulated pilot and print its figures; write the new directory ``output``, if there is one.

    Raises InputError when a setting cannot be, or the directory holds something, and RunError when a node
    fails.
    """
    from dprec.kernels.compilation import prepare
    from simulation.pages import report

    output = _output(given)
    config = configured(given)
    began = time.perf_counter()
    train, test = load_ratings(config)
    prepare(silent)
    nodes = _nodes(grid)
    directory = None if output is None else RunDirectory.claim(output, config)
    hosted = _Hosted(SupervisedGrid(grid), nodes, Path(), time.perf_counter() - began)
    record = run_in(hosted, config, train, test, directory, started=began)
    if directory is not None:
        record = directory.write(record)
        if given.get("page", True):
            report(directory.path)
    print("\n".join(in_words(record.summary, len(nodes), output)), flush=True)  # Flower puts it into its log
    return record


def _output(given: Mapping[str, Any]) -> Path | None:
    if folder := given.get("folder"):
        accepted = "nothing in Flower's simulation runtime, where everybody is made up"
        raise InputError("--run-config folder", repr(folder), accepted)
    output = str(given.get("output", ""))
    if output and not Path(output).is_absolute():
        raise InputError("--run-config output", repr(output), "an absolute path, or nothing")
    return Path(output) if output else None


def _nodes(grid: Grid) -> tuple[int, ...]:
    """Return the ids of all nodes, in the order of their partitions.

    The runtime begins to register nodes after the server has begun, and none of them answers before all are
    registered: so one of them is asked first.
    """
    deadline = time.monotonic() + START_SECONDS
    while not (known := list(grid.get_node_ids())):
        if time.monotonic() > deadline:
            raise RunError(f"Flower's simulation runtime had no node after {START_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
    supervised = SupervisedGrid(grid)
    supervised.send_and_receive([Message(RecordDict(), known[0], IDENTIFY)])
    return identify(supervised)


def in_words(summary: Summary, nodes: int, output: Path | None) -> list[str]:
    """Return what a simulated pilot has shown, as lines: accuracy, privacy, bytes."""
    data, privacy, accuracy = summary.dataset, summary.privacy, summary.accuracy
    up, down = summary.traffic.uplink, summary.traffic.downlink
    return [
        f"{data.users} made-up people, {data.train_ratings} ratings of {data.items} items, {nodes} nodes",
        f"accuracy: RMSE {accuracy.rmse:.3f} stars; {summary.nothing_sent:.3f} if nothing is sent",
        f"privacy: epsilon {privacy.epsilon_per_rating:.3g} per rating, {privacy.status}; "
        f"{privacy.epsilon_per_user.max:.3g} for all ratings of the most active person",
        f"bytes per person: {up.payload_mean_per_user:.0f} up, {down.payload_mean_per_user:.0f} down; "
        f"as messages of Flower {up.message_mean_per_user:.0f} and {down.message_mean_per_user:.0f}",
        *(f"- {note}" for note in summary.notes),
        *([] if output is None else [f"run directory: {output}"]),
    ]
