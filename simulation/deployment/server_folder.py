"""The folder that the server of a deployment is given: who takes part, what else it knows, and no rating."""

import csv
import io
import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from clients.device.folder import Agreement
from dprec.catalogue import Catalogue
from dprec.components import Options, as_values, option
from dprec.errors import InputError, SettingError, within
from dprec.exchange import from_json
from dprec.randomness import Key
from dprec.ratings import RatingScale
from dprec.schedules import Schedule
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.engine.grids import DeadlineGrid
from simulation.protocols.base import Protocol, with_declared_losses
from simulation.protocols.task import ServerOutcome, ServerTask
from simulation.storage.files import read_archive, read_text, write_archive, write_atomically
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import RANK, RunRecord, traffic_columns
from simulation.storage.summarise import summarise_deployed
from strategies.participation import RoundRecord
from strategies.roster import Roster

_COLUMNS = ["user", "public_key", "node_id"]
_ENROLMENT = "an enrolment list, as dprec deploy prepare makes it"


@dataclass(frozen=True)
class Enrolled:
    """A user of a deployment."""

    user: str
    """The user's own identifier."""
    public_key: str | None
    """Key of the user's device, a line in the format of OpenSSH; None for a user without a device."""
    node_id: int | None = None
    """How Flower calls the device; None before it is registered."""


def write_enrolment(path: Path, enrolled: list[Enrolled]) -> None:
    """Write the list; a user's number is its position."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([each.user, each.public_key or "", each.node_id or ""] for each in enrolled)
    write_atomically(path, file.getvalue())


def read_enrolment(path: Path) -> list[Enrolled]:
    """Read the list; raises InputError naming a line with a node or key that is none or has one before."""
    try:
        rows = list(csv.reader(io.StringIO(read_text(path, _ENROLMENT))))
    except csv.Error as error:
        raise InputError(str(path), str(error), _ENROLMENT) from None
    if not rows or rows[0] != _COLUMNS:
        raise InputError(f"{path}:1", ",".join(rows[0]) if rows else "nothing", ",".join(_COLUMNS))
    enrolled: list[Enrolled] = []
    seen: set[str] = set()
    for number, row in enumerate(rows[1:], start=2):
        where = f"{path}:{number}"
        if len(row) != len(_COLUMNS) or not row[0]:
            raise InputError(where, ",".join(row), "a user, a public key or nothing, a node id or nothing")
        user, key, node = row
        if node and not (node.isascii() and node.isdigit() and 1 < int(node) < 2**64):
            raise InputError(where, f"node {node}", "the node id that Flower gave the device")
        again = {entry for entry in (f"user {user}", key, node and f"node {node}") if entry} & seen
        if again:
            raise InputError(where, f"{min(again)} again", "every user, key and node once")
        seen |= {f"user {user}", key, f"node {node}"}
        enrolled.append(Enrolled(user, key or None, int(node) if node else None))
    if not enrolled:
        raise InputError(str(path), "no user", "a line for each user")
    return enrolled


def with_nodes(enrolled: list[Enrolled], nodes: dict[str, int]) -> list[Enrolled]:
    """Return the list with the node id of every key that has one."""
    return [replace(each, node_id=nodes.get(each.public_key or "", each.node_id)) for each in enrolled]


_PREPARED = "a file that dprec deploy prepare made"


@dataclass(frozen=True, kw_only=True)
class Deployment(Options):
    """The contents of deployment.json: what the server knows beside protocol, catalogue and enrolment."""

    fingerprint: str = option("Of the protocol, as devices have agreed to it.")
    levels: tuple[float, ...] = option("Levels of the rating scale, ascending.")
    continuous: bool = option("Whether true ratings lie between the levels.")
    cut: float | None = option("The rating above which a rating counts as +1, for signs.", None)
    public: Key = option("What devices and server share, 32 hexadecimal digits.")
    server: Key = option("What the server draws from, 32 hexadecimal digits.")
    seeded: bool = option("Whether devices draw from a seed, as in tests; their noise can be computed.")
    deadline: float = option("Seconds after which a round ends.", 600.0, gt=0)
    grace: float = option("Seconds for which late answers are counted as such.", 10.0, ge=0)

    @property
    def scale(self) -> RatingScale:
        """The rating scale."""
        return RatingScale(np.array(self.levels), self.continuous, self.cut)


@dataclass(frozen=True)
class ServerFolder:
    """The files of a server."""

    path: Path

    @property
    def enrolment_file(self) -> Path:
        """See `simulation.deployment.server_folder`."""
        return self.path / "enrolment.csv"

    @property
    def certificate(self) -> bytes:
        """The authority's certificate, as PEM; raises InputError when it cannot be read."""
        return read_text(self.path / "ca.crt", _PREPARED).encode()

    @property
    def _deployment_file(self) -> Path:
        return self.path / "deployment.json"

    @property
    def _catalogue_file(self) -> Path:
        """The ids of the items, one a line, in the order of the catalogue."""
        return self.path / "catalogue.txt"

    @property
    def _public_data_file(self) -> Path:
        """Public data about the items."""
        return self.path / "catalogue.npz"

    @cached_property
    def config(self) -> RunConfig:
        """What was prepared; its data set is not read."""
        return load(self.path / "config.yaml")

    @cached_property
    def deployment(self) -> Deployment:
        """What the server knows beside protocol, catalogue and enrolment."""
        text = read_text(self._deployment_file, _PREPARED)
        return from_json(Deployment, text, str(self._deployment_file))

    @cached_property
    def item_ids(self) -> list[str]:
        """The ids of the items."""
        return read_text(self._catalogue_file, _PREPARED).splitlines()

    def enrolled(self) -> list[Enrolled]:
        """Read who takes part."""
        return read_enrolment(self.enrolment_file)

    def catalogue(self) -> Catalogue | None:
        """Read the public data about the items, if there are any."""
        if not self._public_data_file.exists():
            return None
        arrays = read_archive(self._public_data_file, _PREPARED)
        try:
            names = tuple(arrays["number_names"].tolist()), tuple(arrays["category_names"].tolist())
            return Catalogue(arrays["numbers"], arrays["categories"], *names)
        except (KeyError, ValueError) as error:
            raise InputError(str(self._public_data_file), str(error), _PREPARED) from None

    def protocol(self) -> Protocol:
        """Return the protocol, as prepared and agreed on; raises InputError when files were changed."""
        protocol = deployable(self.config)
        found = agreement_of(self.config, self.deployment.scale, self.item_ids, self.deployment.public)
        if found.fingerprint != self.deployment.fingerprint:
            where = f"{self.path}: config.yaml, catalogue.txt and deployment.json"
            raise InputError(where, f"protocol {found.fingerprint[:8]}", f"{self.deployment.fingerprint[:8]}")
        return protocol

    def write(
        self, config: RunConfig, deployment: Deployment, item_ids: list[str], catalogue: Catalogue | None
    ) -> None:
        """Write all files but the enrolment and what is about keys."""
        write_atomically(self.path / "config.yaml", config.to_yaml())
        write_atomically(self._catalogue_file, "".join(f"{item}\n" for item in item_ids))
        if catalogue is not None:
            write_archive(self._public_data_file, _arrays(catalogue))
        text = json.dumps(as_values(deployment), indent=2) + "\n"
        write_atomically(self._deployment_file, text, mode=0o600)


def deployable(config: RunConfig) -> Protocol:
    """Return the protocol that is deployed, or raise SettingError if its server needs to know more."""
    protocol = config.protocol.picked
    with within("protocol"):
        protocol.check_deployed()
    if config.schedule is not None:
        _check_schedule(config.schedule, protocol)
    return protocol


def _check_schedule(schedule: Schedule, protocol: Protocol) -> None:
    """Refuse what no device knows of: in a deployment, whoever starts a run says when devices are asked."""
    from simulation.scheduled import check_kind

    if schedule.draws_anew:
        accepted = "increments; or no schedule, where --runs says in how many runs devices draw fresh noise"
        raise SettingError("schedule.kind", f"{schedule.kind!r}, in a deployment", accepted)
    check_kind(schedule, protocol)


def agreement_of(config: RunConfig, scale: RatingScale, item_ids: list[str], public: str) -> Agreement:
    """Return what devices agree to."""
    protocol, schedule = config.protocol.picked, config.schedule
    setup = protocol.setup() if schedule is None else schedule.installed(protocol.of_single_ratings.setup())
    return Agreement.of(setup, scale, item_ids, public=public, process=protocol.assumed)


def _arrays(catalogue: Catalogue) -> dict[str, NDArray[np.generic]]:
    return {
        "numbers": catalogue.numbers,
        "categories": catalogue.categories,
        "number_names": np.array(catalogue.number_names, dtype=np.str_),
        "category_names": np.array(catalogue.category_names, dtype=np.str_),
    }


@contextmanager
def bounded_pulls(seconds: float) -> Iterator[None]:
    """Give up a reply whose contents do not follow within so many seconds, as long as the context lasts."""
    from flwr.superlink.grid import http_grid

    name = "pull_objects"
    unbounded = getattr(http_grid, name)
    setattr(http_grid, name, partial(unbounded, max_time=seconds, initial_backoff=0.1, backoff_cap=1.0))
    try:
        yield
    finally:
        setattr(http_grid, name, unbounded)


LOG = logging.getLogger("dprec.server")

_CONTENTS_SECONDS = 10.0
"""How long the contents of a reply may take after it was announced."""


def server_app() -> ServerApp:
    """Return the app that a SuperLink runs; its run configuration is that of `deployment/`."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        from simulation.pages import report

        given = context.run_config
        folder, output = _places(given, context.run_id)
        with bounded_pulls(_CONTENTS_SECONDS):
            serve(grid, folder, output)
        if given.get("page", True):
            report(output)

    return app


def _places(given: Mapping[str, Any], run_id: int) -> tuple[ServerFolder, Path]:
    """Return the folder of the server, and that of the run."""
    folder, output = str(given.get("folder", "")), str(given.get("output", ""))
    for key, path in (("folder", folder), ("output", output or folder)):
        if not Path(path).is_absolute():
            raise InputError(f"--run-config {key}", repr(path), "an absolute path, on the server")
    return ServerFolder(Path(folder)), Path(output or f"{folder}/runs/{run_id}")


def serve(grid: Grid, folder: ServerFolder, output: Path) -> RunRecord:
    """Run the protocol of a folder with the enrolled devices, and write the new run directory.

    Raises InputError when a file of the folder is damaged, or the directory holds something, and RunError
    when no usable report came.
    """
    began = time.perf_counter()
    known, enrolled = folder.deployment, folder.enrolled()
    directory = RunDirectory.claim(output, folder.config)
    reaching = DeadlineGrid(grid, known.deadline, known.grace)
    outcome = _outcome(reaching, folder, enrolled)
    composed = outcome.accountant.get_epsilon(folder.config.protocol.delta)
    columns = ["user", "item", "rating", "prediction", *([RANK] if known.scale.implicit else [])]
    record = RunRecord(
        config=folder.config,
        summary=summarise_deployed(
            folder.config,
            known.scale,
            len(folder.item_ids),
            outcome,
            composed,
            seeded=known.seeded,
            total_seconds=time.perf_counter() - began,
        ),
        predictions={name: np.empty(0) for name in columns},
        traffic=traffic_columns(
            np.array([each.user for each in enrolled]),
            np.full(len(enrolled), np.nan),
            outcome,
            composed,
            folder.config.simulation.network,
        ),
        rounds=outcome.rounds,
        channel=outcome.channel,
        privacy=outcome.accountant,
    )
    return directory.write(record)


def _outcome(grid: DeadlineGrid, folder: ServerFolder, enrolled: list[Enrolled]) -> ServerOutcome:
    protocol, known, items = folder.protocol(), folder.deployment, folder.item_ids
    nodes = tuple(each.node_id for each in enrolled)
    task = ServerTask(
        roster=Roster(nodes, len(nodes), users_per_node=1),
        n_items=len(items),
        scale=known.scale,
        catalogue=folder.catalogue(),
        server_seed=int(known.server, 16),
        public_seed=int(known.public, 16),
        group=agreement_of(folder.config, known.scale, items, known.public).group,
        progress=lambda what, done, total: LOG.info("%s: %d of %d", what, done, total),
        ended=_log_round,
    )
    began = time.perf_counter()
    with within("protocol"), threadpool_limits(limits=1):
        protocol.check(task)
        outcome = with_declared_losses(protocol.served(task, protocol.serve(grid, task)), protocol)
    never = np.array([node not in grid.reached for node in nodes])
    outcome.traffic.clear(never)
    schedule = folder.config.schedule
    notes = () if schedule is None else schedule.notes(1)
    return replace(outcome, notes=notes + outcome.notes, seconds=time.perf_counter() - began)


def _log_round(record: RoundRecord) -> None:
    causes = ", ".join(f"{count} {cause}" for cause, count in record.causes.items())
    LOG.info("round %d: %d answered%s", record.round, record.replies, f"; {causes}" if causes else "")
