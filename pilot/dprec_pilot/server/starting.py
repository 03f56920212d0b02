"""Starts a run on the SuperLink of a pilot, or goes on with one, as `flwr run` with our app does.

The imports of Flower's internals are those of its own command: its version is pinned.
"""

import hashlib
import tomllib
from pathlib import Path
from typing import TypeAlias

import click
from flwr.cli.build import build_fab_from_disk
from flwr.common.serde import fab_to_proto, user_config_to_proto
from flwr.proto.control_pb2 import StartRunRequest
from flwr.supercore.fab import Fab

from dprec.errors import InputError, RunError, one_line
from dprec_pilot.files import read_text
from dprec_pilot.server import deliveries
from dprec_pilot.server.flower_app import APP
from dprec_pilot.server.registering import answer_of, connected
from dprec_pilot.server.server_folder import ServerFolder, check_new
from simulation.storage.directories import CONFIG, SUMMARY

Settings: TypeAlias = dict[str, bool | float | int | str]
"""A run configuration of Flower."""

_CONNECTION = "a file that dprec-pilot prepare made, or --superlink HOST:PORT"


def start_run(
    server: Path,
    output: Path | None = None,
    *,
    app: Path | None = None,
    superlink: str | None = None,
    page: bool = True,
) -> tuple[int, Path]:
    """Start a run; return Flower's number of it, and its directory.

    Parameters
    ----------
    server : Path
        The folder of the server.
    output : Path, optional
        A new directory; by default one in the folder, named by the number.
    app : Path, optional
        The folder of the app, by default that which comes with dprec.
    superlink : str, optional
        Host and port of the SuperLink, by default those with which the pilot was prepared.
    page : bool
        Whether the server draws the page at the end.

    Raises
    ------
    InputError, RunError
        When a file or folder cannot be used; when the SuperLink cannot be reached, or refuses.
    """
    folder = ServerFolder(server.absolute())
    if output is not None:
        check_new(output)
    settings: Settings = {"folder": str(folder.path), "page": page}
    if output is not None:
        settings["output"] = str(output.absolute())
    number = _started(folder, settings, app, superlink)
    return number, folder.path / "runs" / str(number) if output is None else output.absolute()


def resume_run(
    server: Path,
    output: Path,
    *,
    app: Path | None = None,
    superlink: str | None = None,
    page: bool = True,
) -> int:
    """Go on with a run that was cut off, or deliver what one that is complete has for devices.

    Returns Flower's number of the run in which that happens; see `start_run` for parameters and errors.
    """
    folder, run = ServerFolder(server.absolute()), output.absolute()
    if not (run / CONFIG).exists():
        raise InputError(str(output), "no run", "the directory of a run of this server")
    settings: Settings = {"folder": str(folder.path), "output": str(run), "resume": True, "page": page}
    return _started(folder, settings, app, superlink)


def forget(output: Path) -> int:
    """Delete what a complete run has for devices that were away; return for how many that was.

    Raises InputError when the run is not complete.
    """
    if not (output / SUMMARY).exists():
        raise InputError(str(output), "no complete run", "the directory of a run that has ended")
    return deliveries.forget(output)


def _started(folder: ServerFolder, settings: Settings, app: Path | None, superlink: str | None) -> int:
    """Start a run of the app, and return its number."""
    bundle = _bundle(app or APP)
    address = superlink or _address(folder)
    where = "--superlink" if superlink else str(_connection_file(folder))
    request = StartRunRequest(fab=fab_to_proto(bundle), override_config=user_config_to_proto(settings))
    with connected(address, folder.certificate, where=where, fails="starts no run") as client:
        started = answer_of(client.StartRun, request)
    if not started.HasField("run_id"):
        raise RunError(f"the SuperLink at {address} starts no run: {started.note or 'it does not say why'}")
    return int(started.run_id)


def _bundle(app: Path) -> Fab:
    """Return an app as Flower sends it."""
    accepted = "a folder with the app, as dprec-pilot app writes it"
    if not (app / "pyproject.toml").is_file():
        raise InputError(str(app), "no pyproject.toml", accepted)
    try:
        content = build_fab_from_disk(app.absolute())
    except (click.ClickException, OSError, ValueError) as error:
        raise InputError(str(app), one_line(error), accepted) from None
    return Fab(hashlib.sha256(content).hexdigest(), content, {})


def _address(folder: ServerFolder) -> str:
    """Return where the SuperLink of a pilot is, as Flower's own commands are told."""
    path = _connection_file(folder)
    try:
        return str(tomllib.loads(read_text(path, _CONNECTION))["superlink"]["pilot"]["address"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        raise InputError(str(path), "no superlink.pilot.address", _CONNECTION) from None


def _connection_file(folder: ServerFolder) -> Path:
    return folder.path / "flwr" / "config.toml"
