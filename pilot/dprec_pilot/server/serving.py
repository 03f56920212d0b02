"""The server of a deployment: the app that a SuperLink runs, and one run of the protocol of a folder."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from threadpoolctl import threadpool_limits

from dprec.errors import InputError, within
from dprec.ratings import RatingScale
from dprec_pilot.server.journal import JOURNAL, Begun, Journal, JournalGrid, deliver, keep_deliveries
from dprec_pilot.server.run_log import LOG, FollowedGrid, RunLog, followed, handled_by
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, check_new
from simulation.configuration.models import RunConfig
from simulation.courses.base import course_of, with_declared_losses
from simulation.courses.task import ServerOutcome, ServerTask
from simulation.storage.directories import CONFIG, REPORT, SUMMARY
from simulation.storage.files import Columns
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import RANK, RunRecord, ended_with, traffic_columns
from simulation.storage.summarise import notes_on_composition, summary_of, values_of_scale
from simulation.storage.summary import Accuracy, DatasetSummary, Summary
from strategies.roster import Roster


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


_CONTENTS_SECONDS = 10.0
"""How long the contents of a reply may take after it was announced."""


def server_app() -> ServerApp:
    """Return the app that a SuperLink runs; its run configuration is that of `app/`."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        from simulation.pages import report

        given = context.run_config
        own, named = str(given.get("folder", "")), str(given.get("output", ""))
        for key, path in (("folder", own), ("output", named or own)):
            if not Path(path).is_absolute():
                raise InputError(f"--run-config {key}", repr(path), "an absolute path, on the server")
        folder, output = ServerFolder(Path(own)), Path(named or f"{own}/runs/{context.run_id}")
        with handled_by(sys.stdout), bounded_pulls(_CONTENTS_SECONDS):
            if given.get("resume", False):
                resume(grid, folder, output)
            else:
                serve(grid, folder, output)
        if given.get("page", True) and not (output / REPORT).exists():
            report(output)

    return app


def serve(grid: Grid, folder: ServerFolder, output: Path) -> RunRecord:
    """Run the protocol of a folder with the enrolled devices, and write the new run directory.

    Until it is complete, it has the journal of the run. Raises InputError when a file of the folder is
    damaged, or the directory holds something, and RunError when no usable report came.
    """
    check_new(output)
    return _served(grid, folder, output)


def resume(grid: Grid, folder: ServerFolder, output: Path) -> None:
    """Go on with a run that was cut off, from its journal; deliver what one that is complete has for devices.

    Raises InputError when the directory has no run of this folder, or its journal is damaged, and RunError as
    `serve`.
    """
    if not (output / CONFIG).exists():
        raise InputError(str(output), "no run", "the directory of a run that dprec-pilot run started")
    if not (output / SUMMARY).exists() or (output / JOURNAL).exists():
        _served(grid, folder, output)
        return
    delivered, missing = deliver(grid, output, folder.deployment.patience)
    LOG.info("delivered to %d devices, %d are missing", delivered, missing)


def _served(grid: Grid, folder: ServerFolder, output: Path) -> RunRecord:
    """Run a protocol, or go on where its journal ends, and write the run directory."""
    began, fingerprint = time.perf_counter(), folder.deployment.fingerprint
    directory = RunDirectory.claim(output, folder.config, resume=True)
    with Journal.opened(output / JOURNAL, fingerprint, folder.enrolled()) as journal:
        begun, reaching = journal.begun, JournalGrid(grid, journal, folder.deployment.patience)
        with followed(output, begun.enrolled) as log:
            outcome = _outcome(reaching, folder, begun, log)
            keep_deliveries(output, reaching.undelivered)
            written = directory.write(_record(folder, begun.enrolled, outcome, began))
            # Reports are in it.
            journal.delete()
    return written


def _record(
    folder: ServerFolder, enrolled: Sequence[Enrolled], outcome: ServerOutcome, began: float
) -> RunRecord:
    known = folder.deployment
    composed = outcome.accountant.get_epsilon(folder.config.protocol.delta)
    traffic = traffic_columns(
        np.array([each.user for each in enrolled]),
        np.full(len(enrolled), np.nan),
        outcome,
        composed,
        folder.config.simulation.network,
    )
    columns = ["user", "item", "rating", "prediction", *([RANK] if known.scale.implicit else [])]
    return RunRecord(
        config=folder.config.written_values(),
        summary=summarise_deployed(
            folder.config,
            known.scale,
            len(folder.item_ids),
            outcome,
            traffic,
            seeded=known.seeded,
            total_seconds=time.perf_counter() - began,
        ),
        predictions={name: np.empty(0) for name in columns},
        traffic=traffic,
        rounds=ended_with(outcome.rounds, composed),
        channel=outcome.channel,
        privacy=outcome.accountant,
    )


def _outcome(grid: JournalGrid, folder: ServerFolder, begun: Begun, log: RunLog) -> ServerOutcome:
    protocol, known, items = folder.protocol(), folder.deployment, folder.item_ids
    nodes = tuple(each.node_id for each in begun.enrolled)
    task = ServerTask(
        roster=Roster(nodes, len(nodes), users_per_node=1),
        n_items=len(items),
        scale=known.scale,
        catalogue=folder.catalogue(),
        server_seed=known.server_seed(begun.run_key),
        public_seed=int(known.public, 16),
        group=folder.agreement.group(begun.run_key),
        exchange_of=folder.exchange_of(begun.run_key),
        progress=log.progress,
        ended=log.note_round,
    )
    began, course = time.perf_counter(), course_of(protocol)
    with within("protocol"), threadpool_limits(limits=1):
        protocol.check(task)
        outcome = with_declared_losses(
            course.served(task, course.serve(FollowedGrid(grid, log), task)),
            protocol,
            folder.config.schedule,
        )
    reached = grid.reached
    never = np.array([node not in reached for node in nodes])
    outcome.traffic.clear(never)
    schedule = folder.config.schedule
    notes = () if schedule is None else schedule.notes(1)
    return replace(outcome, notes=notes + outcome.notes, seconds=time.perf_counter() - began)


_DEPLOYED = {
    True: "A test: devices and server drew from the seed of the configuration. All noise can be computed "
    "again, so it protects nobody.",
    False: "Every device drew its noise from a secret of its own, and the server from its key, which prepare "
    "took from the operating system: whoever has deployment.json can compute what the server drew.",
}
"""What is said of the noise of a deployed run, by whether devices and server drew from a seed."""


def summarise_deployed(
    config: RunConfig,
    scale: RatingScale,
    n_items: int,
    outcome: ServerOutcome,
    traffic: Columns,
    *,
    seeded: bool,
    total_seconds: float,
) -> Summary:
    """Return the summary of a deployed run that is not stored yet.

    ``traffic``: as for `summary_of`.
    ``seeded``: whether devices and server drew from a seed.
    """
    dataset = DatasetSummary(
        kind="deployed",
        users=traffic["user"].size,
        items=n_items,
        train_ratings=None,
        test_ratings=None,
        **values_of_scale(scale),
        users_only_in_test=None,
        items_only_in_test=None,
    )
    ledgers = (
        "Deployed: losses are those that follow from what the server was sent. What a device has spent is in "
        "its own ledger, with answers that came to nothing."
    )
    notes = ledgers, _DEPLOYED[seeded], *notes_on_composition(config, dataset.users)
    accuracy, seconds = Accuracy.model_validate({"rmse": None, "mae": None}), (0.0, total_seconds)
    summary = summary_of(config, dataset, accuracy, outcome, traffic, notes, seconds)
    return summary.model_copy(update={"devices": "deployed"})
