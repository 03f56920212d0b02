"""The commands `dprec deploy prepare` and `dprec deploy enrol`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
