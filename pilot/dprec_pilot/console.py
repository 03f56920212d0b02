"""The command line: dprec-pilot prepare, run, status and others of operators; device, join and rotate."""

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dprec.errors import InputError
from simulation.console.parameters import (
    AsJson,
    ConfigPath,
    Overrides,
    PlainHelp,
    Quiet,
    integer,
    version_option,
)
from simulation.console.progress import progress_bar
from simulation.console.terminal import exit_code

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, suggest_commands=False
)


def _option(metavar: str, help_: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=help_, **more)


def _argument(metavar: str, help_: str) -> Any:
    return typer.Argument(metavar=metavar, help=help_)


def _flag(name: str, help_: str) -> Any:
    return typer.Option(name, help=help_)


@app.callback()
def options(
    version: Annotated[bool, version_option("dprec-pilot")] = False,
) -> None:
    """Run a pilot on Flower's SuperLink: an operator's server that sees no ratings, and devices of users."""


_NEXT = """\
next, on the server, each in its own terminal (docs/deployment.md):
  {server}/superlink.sh
{enrol}
  dprec-pilot run {server}
"""
_ENROL = "  dprec-pilot enrol {server} --superlink 127.0.0.1:{port}"
_SERVE = """\
and where the devices are, with the port of the proxy if there is one:
  dprec-pilot device {folder}/devices --superlink {host}:{port} --ca {folder}/ca.crt{seeded}
Whoever keeps a copy of {folder}/devices has the ratings, and can compute the noise: a trial. In a pilot,
users make their devices themselves (--devices 0, docs/joining.md)."""
_INVITE = "  dprec-pilot invite {server} NAME..."
_ADMIT = "  dprec-pilot admit {server} -"
_JOIN = "and where the devices are, with {server}/invitation.json: dprec-pilot join (docs/joining.md)"


_Server = Annotated[Path, _argument("SERVER", "The server's folder: DIR/server.")]
_Control = Annotated[str, _option("HOST:PORT", "Where the SuperLink is.")]


@app.command(cls=PlainHelp)
def prepare(
    config: ConfigPath,
    folder: Annotated[Path, _argument("DIR", "A new directory.")],
    devices: Annotated[int | None, _option("N", "By default one each; 0: all join.", parser=integer)] = None,
    host: Annotated[str, _option("H", "Name or address under which devices reach the server.")] = "localhost",
    port: Annotated[int, _option("P", "Port of the SuperLink.")] = 8000,
    days: Annotated[int, _option("D", "How long the server's certificate is valid.")] = 365,
    authority_days: Annotated[int, _option("D", "How long its authority is, which devices trust.")] = 3650,
    runs: Annotated[int, _option("R", "Runs that a device pays for, ever.")] = 1,
    deadline: Annotated[float, _option("S", "Seconds after which a round ends.")] = 600.0,
    quorum: Annotated[float, _option("Q", "Share or number of devices with which a round may end.")] = 1.0,
    seeded: Annotated[bool, _flag("--seeded", "Devices and server draw from the seed: for tests.")] = False,
    set_: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Make keys, certificates, the server's folder and a folder for each device in DIR.

    Devices are made for the first users of CONFIG's ratings; the server is given none of their ratings.
    """
    from dprec_pilot.server import preparing, visible
    from simulation.configuration.loading import load

    at: dict[str, Any] = {"host": host, "port": port, "days": days, "authority_days": authority_days}
    of: dict[str, Any] = {"devices": devices, "runs": runs, "deadline": deadline, "quorum": quorum}
    options = preparing.PilotOptions(**at, **of, seeded=seeded)
    with progress_bar(quiet) as progress:
        server = preparing.prepare(load(config, set_ or []), folder, options, progress)
    if not quiet:
        typer.echo(f"protocol: {server.deployment.fingerprint}")
        typer.echo(visible.in_words(server.agreement))
        # An address of version 6 stands in brackets where a port follows.
        named = f"[{host}]" if ":" in host else host
        where = {"server": server.path.absolute(), "folder": folder.absolute(), "host": named, "port": port}
        enrol, then = ([_INVITE, _ADMIT, _ENROL], _JOIN) if devices == 0 else ([_ENROL], _SERVE)
        text = _NEXT.replace("{enrol}", "\n".join(enrol)) + then
        typer.echo(text.format(**where, seeded=" --seeded" if seeded else ""))


@app.command("app", cls=PlainHelp)
def write_app(folder: Annotated[Path, _argument("DIR", "A new directory.")]) -> None:
    """Write the app that the SuperLink of a pilot runs to DIR: flwr run DIR."""
    from dprec_pilot.server import superlink

    superlink.write_app(folder)


@app.command(cls=PlainHelp)
def enrol(server: _Server, superlink: _Control, quiet: Quiet = False) -> None:
    """Register the devices of a pilot with its SuperLink; run it where the control API can be reached."""
    from dprec_pilot.server import enrolling
    from dprec_pilot.server.server_folder import ServerFolder

    enrolled = enrolling.enrol(ServerFolder(server), superlink)
    if not quiet:
        typer.echo(f"{enrolled} {'device is' if enrolled == 1 else 'devices are'} enrolled")


_Page = Annotated[bool, _flag("--no-page", "Do not draw report.html.")]
_App = Annotated[Path | None, _option("APP", "The app to send; by default the one of this dprec.")]
_SuperLink = Annotated[str | None, _option("HOST:PORT", "Where the SuperLink is; by default as prepared.")]


@app.command(cls=PlainHelp)
def run(
    server: _Server,
    output: Annotated[Path | None, _option("DIR", "By default in SERVER/runs.", "-o", "--output")] = None,
    app: _App = None,
    superlink: _SuperLink = None,
    no_page: _Page = False,
    quiet: Quiet = False,
) -> None:
    """Start a run of a pilot, on its SuperLink; the log in its directory says how it goes."""
    from dprec_pilot.server.superlink import start_run

    number, directory = start_run(server, output, app=app, superlink=superlink, page=not no_page)
    if not quiet:
        typer.echo(f"run {number} has started: {directory}")


@app.command(cls=PlainHelp)
def resume(
    server: _Server,
    output: Annotated[Path, _argument("OUTPUT", "The directory of the run.")],
    forget: Annotated[bool, _flag("--forget", "Delete what a run has for devices that were away.")] = False,
    app: _App = None,
    superlink: _SuperLink = None,
    no_page: _Page = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was cut off: nobody who has answered is asked again, and nobody pays twice.

    A run that is complete delivers its lists or its table to devices that were away.
    """
    from dprec_pilot.server import journal
    from dprec_pilot.server.superlink import resume_run

    if forget:
        said = f"deleted what there was for {journal.forget(output)} devices"
    else:
        complete = (output / "summary.json").exists()
        number = resume_run(server, output, app=app, superlink=superlink, page=not no_page)
        said = f"{'delivers' if complete else 'goes on'} as run {number}: {output}"
    if not quiet:
        typer.echo(said)


@app.command(cls=PlainHelp)
def renew(
    server: _Server,
    host: Annotated[list[str] | None, _option("H", "Names or addresses; by default as before.")] = None,
    days: Annotated[int, _option("D", "How long the new certificate is valid.")] = 365,
    authority: Annotated[Path | None, _option("DIR", "With ca.key; by default beside SERVER.")] = None,
    quiet: Quiet = False,
) -> None:
    """Give the server a new key and certificate; devices keep ca.crt, and notice nothing."""
    from dprec_pilot.server import certificates

    renewed = certificates.renew(server, host or (), days=days, authority=authority)
    if not quiet:
        named = ", ".join(certificates.hosts_of(renewed))
        typer.echo(f"valid until {renewed.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, for {named}")
        typer.echo("start the SuperLink again, and the proxy before it, if there is one")


@app.command(cls=PlainHelp)
def status(
    server: _Server,
    superlink: Annotated[str | None, _option("HOST:PORT", "Where to see which devices are online.")] = None,
    run: Annotated[list[Path] | None, _option("DIR", "A run that is not in SERVER/runs, each time.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show whose devices are enrolled and online, and who answered in which run, and who did not, and why."""
    from dprec_pilot.server.server_folder import ServerFolder
    from dprec_pilot.server.status import status_of
    from dprec_pilot.server.superlink import seen_nodes
    from dprec_pilot.status_table import print_status

    folder = ServerFolder(server)
    nodes = [] if superlink is None else seen_nodes(superlink, folder.certificate)
    print_status(status_of(folder, nodes, superlink, run or ()), as_json=as_json)


@app.command(cls=PlainHelp)
def clean(
    server: _Server,
    superlink: _Control,
    every: Annotated[float | None, _option("S", "Look every S seconds, as superlink.sh.", min=0.1)] = None,
) -> None:
    """Have the SuperLink forget the messages of runs that have ended; superlink.sh does it by itself."""
    from dprec_pilot.server import retention
    from dprec_pilot.server.server_folder import ServerFolder
    from dprec_pilot.server.superlink import seen_runs

    folder = ServerFolder(server)

    def delete() -> None:
        # A SuperLink deletes them when it lists runs.
        seen_runs(superlink, folder.certificate)

    if every is not None:
        retention.keep_clean(
            folder.database, delete, every, lambda text: typer.echo(f"dprec-pilot: {text}", err=True)
        )
    elif not retention.clean(folder.database, delete):
        typer.echo("a run goes on: its messages are kept until it has ended")


@app.command(cls=PlainHelp)
def invite(
    server: _Server,
    names: Annotated[list[str], _argument("NAME...", "Names of users, as the operator knows them.")],
) -> None:
    """Give users numbers; with SERVER/invitation.json, which is for everybody, they can join.

    Prints a line for each: number and name.
    """
    from dprec_pilot.server import enrolling
    from dprec_pilot.server.server_folder import ServerFolder

    for number, name in zip(enrolling.invite(ServerFolder(server), names), names, strict=True):
        typer.echo(f"{number} {name}")


@app.command(cls=PlainHelp)
def admit(
    server: _Server,
    line: Annotated[str, _argument("LINE", "What dprec-pilot join or rotate printed; - reads such lines.")],
    quiet: Quiet = False,
) -> None:
    """Take in the public key of a device whose user was invited, or its next one; then enrol."""
    from dprec_pilot.server import enrolling
    from dprec_pilot.server.server_folder import ServerFolder

    lines = [("LINE", line)]
    if line == "-":
        try:
            typed = sys.stdin.read().splitlines()
        except UnicodeDecodeError:
            raise InputError("standard input", "no UTF-8", "lines of dprec-pilot join") from None
        lines = [
            (f"standard input, line {place}", text) for place, text in enumerate(typed, 1) if text.strip()
        ]
    for name in enrolling.admit(ServerFolder(server), lines):
        if not quiet:
            typer.echo(f"admitted {name}")


@app.command(cls=PlainHelp)
def remove(
    server: _Server,
    user: Annotated[str, _argument("NAME", "As in SERVER/enrolment.csv.")],
    superlink: _Control,
    quiet: Quiet = False,
) -> None:
    """Take a user's device off the SuperLink, for good; run it where the control API can be reached."""
    from dprec_pilot.server import enrolling
    from dprec_pilot.server.server_folder import ServerFolder

    enrolling.remove(ServerFolder(server), superlink, user)
    if not quiet:
        typer.echo(f"removed {user}")


@app.command(cls=PlainHelp)
def device(
    folders: Annotated[list[Path], _argument("DIR...", "Folders of devices, or folders of such folders.")],
    superlink: Annotated[str, _option("HOST:PORT", "The server.")],
    ca: Annotated[Path, _option("FILE", "Certificate of the server's authority, as PEM.")],
    interval: Annotated[float, _option("S", "Seconds from one visit to the next.")] = 30.0,
    answer_after: Annotated[float | None, _option("S", "Seconds from any question to its answer.")] = None,
    once: Annotated[bool, _flag("--once", "Answer what waits, and leave.")] = False,
    seeded: Annotated[bool, _flag("--seeded", "For tests: noise that follows from seeded.json.")] = False,
) -> None:
    """Serve one device or many: answer the server within each user's limits, and fetch predictions."""
    from dprec_pilot.device.service import serve

    serve(folders, superlink, ca, interval=interval, answer_after=answer_after, once=once, seeded=seeded)


_MOST_USERS = 2**31 - 1


@app.command(cls=PlainHelp)
def join(
    invitation: Annotated[Path, _argument("INVITATION", "invitation.json, from whoever runs the server.")],
    ratings: Annotated[Path, _argument("RATINGS", "One's own ratings: a table with named columns.")],
    folder: Annotated[Path, _argument("DIR", "The folder of the device.")],
    user: Annotated[int, _option("N", "The number that came with the invitation.", min=0, max=_MOST_USERS)],
    classes: Annotated[
        list[str] | None, _option("M:C", "A class that the protocol may import: module:Class.", "--class")
    ] = None,
) -> None:
    """Make the folder of a device from an invitation and one's ratings; print its line, for the server."""
    from dprec_pilot.device import joining

    joined = joining.join(invitation, ratings, folder, user, classes or ())
    for line in joined.in_words:
        _say(line)
    _say("for the server's operator, this line, and nothing else of the folder:")
    typer.echo(joined.line.text)


@app.command(cls=PlainHelp)
def rotate(folder: Annotated[Path, _argument("DIR", "The folder of the device.")]) -> None:
    """Make the next key by which the server is to know a device; print what the server is told."""
    from dprec_pilot.device import joining

    line = joining.rotate(folder)
    _say("the device goes over to its next key once the server knows it; for the server's operator:")
    typer.echo(line.text)


def _say(line: str) -> None:
    typer.echo("".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in line), err=True)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(exit_code(lambda: app(args=arguments, standalone_mode=False), "dprec-pilot"))
