"""Commands of an operator: dprec deploy prepare, run, resume, status and others."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dprec.errors import InputError
from simulation.console.parameters import AsJson, ConfigPath, Overrides, PlainHelp, Quiet, integer
from simulation.console.progress import progress_bar

deploy = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Prepare a pilot on a SuperLink.")

_NEXT = """\
next, on the server, each in its own terminal (docs/deployment.md):
  {server}/superlink.sh
{enrol}
  dprec deploy run {server}
"""
_ENROL = "  dprec deploy enrol {server} --superlink 127.0.0.1:{port}"
_SERVE = """\
and where the devices are, with the port of the proxy if there is one:
  dprec device {folder}/devices --superlink {host}:{port} --ca {folder}/ca.crt{seeded}
Whoever keeps a copy of {folder}/devices has the ratings, and can compute the noise: a trial. In a pilot,
users make their devices themselves (--devices 0, docs/joining.md)."""
_INVITE = "  dprec deploy invite {server} NAME..."
_ADMIT = "  dprec deploy admit {server} -"
_JOIN = "and where the devices are, with {server}/invitation.json: dprec device join (docs/joining.md)"


def _next_steps(*, devices: bool, **where: object) -> str:
    enrol = [_ENROL] if devices else [_INVITE, _ADMIT, _ENROL]
    text = _NEXT.replace("{enrol}", "\n".join(enrol)) + (_SERVE if devices else _JOIN)
    return text.format(**where)


_Server = Annotated[Path, typer.Argument(metavar="SERVER", help="The server's folder: DIR/server.")]
_Control = Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the SuperLink is.")]


@deploy.command(cls=PlainHelp)
def prepare(
    config: ConfigPath,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory.")],
    devices: Annotated[
        int | None,
        typer.Option(
            metavar="N", parser=integer, help="Devices; by default one for every user; 0 where all join."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="H", help="Name or address under which devices reach the server.")
    ] = "localhost",
    port: Annotated[int, typer.Option(metavar="P", help="Port of the SuperLink.")] = 8000,
    days: Annotated[int, typer.Option(metavar="D", help="How long the server's certificate is valid.")] = 365,
    authority_days: Annotated[
        int, typer.Option(metavar="D", help="How long its authority is, which devices trust.")
    ] = 3650,
    runs: Annotated[int, typer.Option(metavar="R", help="Runs that a device pays for, ever.")] = 1,
    deadline: Annotated[float, typer.Option(metavar="S", help="Seconds after which a round ends.")] = 600.0,
    quorum: Annotated[
        float,
        typer.Option(metavar="Q", help="Share, or number, of devices with which a round may end before."),
    ] = 1.0,
    seeded: Annotated[
        bool, typer.Option("--seeded", help="Devices and server draw from the seed: for tests alone.")
    ] = False,
    set_: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Make keys, certificates, the server's folder and a folder for each device in DIR.

    Devices are made for the first users of CONFIG's ratings; the server is given none of their ratings.
    """
    from simulation.verbs import prepare as prepare_pilot

    at: dict[str, Any] = {"host": host, "port": port, "days": days, "authority_days": authority_days}
    those = {"devices": devices, "runs": runs, "deadline": deadline, "quorum": quorum, "seeded": seeded}
    with progress_bar(quiet) as progress:
        server = prepare_pilot(config, folder, overrides=set_ or [], progress=progress, **at, **those)
    if not quiet:
        typer.echo(f"protocol: {server.deployment.fingerprint}")
        # An address of version 6 stands in brackets where a port follows.
        named = f"[{host}]" if ":" in host else host
        where = {"server": server.path.absolute(), "folder": folder.absolute(), "host": named, "port": port}
        typer.echo(_next_steps(devices=devices != 0, **where, seeded=" --seeded" if seeded else ""))


@deploy.command(cls=PlainHelp)
def app(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory.")]) -> None:
    """Write the app that Flower runs to DIR: flwr run DIR.

    In Flower's simulation it plays a pilot of made-up people; on the SuperLink of a pilot it is its server.
    """
    from simulation.deployment.flower_app import write_app

    write_app(folder)


@deploy.command(cls=PlainHelp)
def enrol(
    server: _Server,
    superlink: _Control,
    quiet: Quiet = False,
) -> None:
    """Register the devices of a pilot with its SuperLink; run it where the control API can be reached."""
    from simulation.verbs import enrol as enrol_devices

    enrolled = enrol_devices(server, superlink)
    if not quiet:
        typer.echo(f"{enrolled} {'device is' if enrolled == 1 else 'devices are'} enrolled")


_App = Annotated[
    Path | None, typer.Option(metavar="APP", help="The app to send; by default the one of this dprec.")
]
_SuperLink = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where the SuperLink is; by default as prepared.")
]


@deploy.command(cls=PlainHelp)
def run(
    server: _Server,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="A new directory; by default in SERVER/runs."),
    ] = None,
    app: _App = None,
    superlink: _SuperLink = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Do not draw report.html.")] = False,
    quiet: Quiet = False,
) -> None:
    """Start a run of a pilot, on its SuperLink; the log in its directory says how it goes."""
    from simulation.deployment.starting import start_run

    number, directory = start_run(server, output, app=app, superlink=superlink, page=not no_page)
    if not quiet:
        typer.echo(f"run {number} has started: {directory}")


@deploy.command(cls=PlainHelp)
def resume(
    server: _Server,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The directory of the run.")],
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Delete what a complete run has for devices that were away instead."),
    ] = False,
    app: _App = None,
    superlink: _SuperLink = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Do not draw report.html.")] = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was cut off: nobody who has answered is asked again, and nobody pays twice.

    A run that is complete delivers its lists or its table to devices that were away.
    """
    from simulation.deployment import starting

    if forget:
        said = f"deleted what there was for {starting.forget(output)} devices"
    else:
        complete = (output / "summary.json").exists()
        number = starting.resume_run(server, output, app=app, superlink=superlink, page=not no_page)
        said = f"{'delivers' if complete else 'goes on'} as run {number}: {output}"
    if not quiet:
        typer.echo(said)


@deploy.command(cls=PlainHelp)
def renew(
    server: _Server,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="H", help="Name or address of the server, each time one; by default as before."),
    ] = None,
    days: Annotated[int, typer.Option(metavar="D", help="How long the new certificate is valid.")] = 365,
    authority: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder with ca.key; by default authority/ beside SERVER."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Give the server a new key and certificate; devices keep ca.crt, and notice nothing."""
    from simulation.deployment import certificates

    renewed = certificates.renew(server, host or (), days=days, authority=authority)
    if not quiet:
        named = ", ".join(certificates.hosts_of(renewed))
        typer.echo(f"valid until {renewed.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, for {named}")
        typer.echo("start the SuperLink again, and the proxy before it, if there is one")


@deploy.command(cls=PlainHelp)
def status(
    server: _Server,
    superlink: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The SuperLink, to see which devices are online.")
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A run that is not in SERVER/runs; as often as there are some."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show whose devices are enrolled and online, and who answered in which run, and who did not, and why."""
    from simulation.console.status import print_status
    from simulation.verbs import status as status_of_pilot

    print_status(status_of_pilot(server, superlink, runs=run or ()), as_json=as_json)


@deploy.command(cls=PlainHelp)
def clean(
    server: _Server,
    superlink: _Control,
    every: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=0.1,
            help="Go on, with a look every S seconds, until the caller ends: superlink.sh.",
        ),
    ] = None,
) -> None:
    """Have the SuperLink forget the messages of runs that have ended; superlink.sh does it by itself."""
    from simulation.deployment import retention
    from simulation.deployment.registering import seen_runs
    from simulation.deployment.server_folder import ServerFolder

    folder = ServerFolder(server)

    def delete() -> None:
        # A SuperLink deletes them when it lists runs.
        seen_runs(superlink, folder.certificate)

    if every is not None:
        retention.keep_clean(
            folder.database, delete, every, lambda text: typer.echo(f"dprec: {text}", err=True)
        )
    elif not retention.clean(folder.database, delete):
        typer.echo("a run goes on: its messages are kept until it has ended")


@deploy.command(cls=PlainHelp)
def invite(
    server: _Server,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Names of users, as the operator knows them.")
    ],
) -> None:
    """Give users numbers; with SERVER/invitation.json, which is for everybody, they can join.

    Prints a line for each: number and name.
    """
    from simulation.deployment import enrolling
    from simulation.deployment.server_folder import ServerFolder

    for number, name in zip(enrolling.invite(ServerFolder(server), names), names, strict=True):
        typer.echo(f"{number} {name}")


@deploy.command(cls=PlainHelp)
def admit(
    server: _Server,
    line: Annotated[
        str,
        typer.Argument(
            metavar="LINE",
            help="What dprec device join or rotate printed; - reads such lines, one for each device.",
        ),
    ],
    quiet: Quiet = False,
) -> None:
    """Take in the public key of a device whose user was invited, or its next one; then enrol."""
    from simulation.deployment import enrolling
    from simulation.deployment.server_folder import ServerFolder

    lines = [("LINE", line)] if line != "-" else _typed()
    for name in enrolling.admit(ServerFolder(server), lines):
        if not quiet:
            typer.echo(f"admitted {name}")


def _typed() -> list[tuple[str, str]]:
    try:
        lines = sys.stdin.read().splitlines()
    except UnicodeDecodeError:
        raise InputError("standard input", "no UTF-8", "lines of dprec device join") from None
    return [(f"standard input, line {place}", text) for place, text in enumerate(lines, 1) if text.strip()]


@deploy.command(cls=PlainHelp)
def remove(
    server: _Server,
    user: Annotated[str, typer.Argument(metavar="NAME", help="As in SERVER/enrolment.csv.")],
    superlink: _Control,
    quiet: Quiet = False,
) -> None:
    """Take a user's device off the SuperLink, for good; run it where the control API can be reached."""
    from simulation.deployment import enrolling
    from simulation.deployment.server_folder import ServerFolder

    enrolling.remove(ServerFolder(server), superlink, user)
    if not quiet:
        typer.echo(f"removed {user}")
