"""The commands of a pilot: `dprec deploy prepare`, `dprec deploy enrol` and `dprec device`."""

import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from dprec.errors import InputError
from simulation.console.parameters import ConfigPath, Overrides, PlainHelp, Quiet, integer
from simulation.console.progress import progress_bar

deploy = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Prepare a pilot on a SuperLink.")

_NEXT = """\
next, on the server, each in its own terminal, the last one in a checkout of dprec (docs/deployment.md):
  {server}/superlink.sh
  dprec deploy enrol {server} --superlink 127.0.0.1:{port}
  FLWR_HOME={server}/flwr flwr run deployment pilot --run-config 'folder="{server}"'
and where the devices are, with the port of the proxy if there is one:
  dprec device {folder}/devices --superlink {host}:{port} --ca {folder}/ca.crt{seeded}"""


@deploy.command(cls=PlainHelp)
def prepare(
    config: ConfigPath,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory.")],
    devices: Annotated[
        int | None,
        typer.Option(metavar="N", parser=integer, help="Devices; by default one for every user."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="H", help="Name or address under which devices reach the server.")
    ] = "localhost",
    port: Annotated[int, typer.Option(metavar="P", help="Port of the SuperLink.")] = 8000,
    days: Annotated[int, typer.Option(metavar="D", help="How long certificates are valid.")] = 365,
    runs: Annotated[int, typer.Option(metavar="R", help="Runs that a device pays for, ever.")] = 1,
    deadline: Annotated[float, typer.Option(metavar="S", help="Seconds after which a round ends.")] = 600.0,
    seeded: Annotated[
        bool, typer.Option("--seeded", help="Devices draw from the seed: for tests alone.")
    ] = False,
    set_: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Make keys, certificates, the server's folder and a folder for each device in DIR.

    Devices are made for the first users of CONFIG's ratings; the server is given none of their ratings.
    """
    from simulation.verbs import prepare as prepare_pilot

    with progress_bar(quiet) as progress:
        server = prepare_pilot(
            config,
            folder,
            overrides=set_ or [],
            progress=progress,
            devices=devices,
            host=host,
            port=port,
            days=days,
            runs=runs,
            deadline=deadline,
            seeded=seeded,
        )
    if not quiet:
        typer.echo(f"protocol: {server.deployment.fingerprint}")
        where = {"server": server.path.absolute(), "folder": folder.absolute(), "host": host, "port": port}
        typer.echo(_NEXT.format(**where, seeded=" --seeded" if seeded else ""))


@deploy.command(cls=PlainHelp)
def enrol(
    server: Annotated[Path, typer.Argument(metavar="SERVER", help="The server's folder: DIR/server.")],
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the SuperLink is.")],
    quiet: Quiet = False,
) -> None:
    """Register the devices of a pilot with its SuperLink; run it where the control API can be reached."""
    from simulation.verbs import enrol as enrol_devices

    enrolled = enrol_devices(server, superlink)
    if not quiet:
        typer.echo(f"{enrolled} devices are enrolled")


_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""A device speaks to its server alone."""


def device(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of devices, or folders of such folders.")
    ],
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help="The server.")],
    ca: Annotated[Path, typer.Option(metavar="FILE", help="Certificate of the server's authority, as PEM.")],
    interval: Annotated[
        float, typer.Option(metavar="S", min=0.05, max=1800, help="Seconds from one visit to the next.")
    ] = 30.0,
    answer_after: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.01, max=600, help="Seconds from a question to its answer, always."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Answer what waits, and leave.")] = False,
    seeded: Annotated[
        bool, typer.Option("--seeded", help="For tests: noise that follows from the seed in seeded.json.")
    ] = False,
) -> None:
    """Serve one device or many: answer the server within the limits of each user, and fetch predictions."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    from clients.device.fleet import Fleet
    from clients.device.service import Service, opened_devices

    _check_address(superlink)
    _log_to_standard_error()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with opened_devices(folders, seeded=seeded) as served:
        service = Service(Fleet(superlink, ca), served, stopped, answer_after)
        if seeded:
            typer.echo("seeded: the noise of these devices follows from a seed and protects nobody", err=True)
        if once:
            service.run_once()
        else:
            service.run(interval)


def _check_address(superlink: str) -> None:
    host, _, port = superlink.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InputError("--superlink", superlink, "HOST:PORT, such as recommend.example:443")


def _log_to_standard_error() -> None:
    """Give the owner of the devices a line for each event."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    log = logging.getLogger("dprec.device")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    # What Flower and its HTTP client say is said by the devices, in their own words.
    for name in ("flwr", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


class _OneLine(logging.Formatter):
    """Escapes what a server might have a terminal obey."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
        line = super().format(record)
        return "".join(mark if mark.isprintable() or mark == "\n" else repr(mark)[1:-1] for mark in line)
