"""Commands of an operator about who takes part: dprec deploy invite, admit and remove."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dprec.errors import InputError
from simulation.console.parameters import Quiet

Server = Annotated[Path, typer.Argument(metavar="SERVER", help="The server's folder: DIR/server.")]
Control = Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the SuperLink is.")]


def invite(
    server: Server,
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


def admit(
    server: Server,
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


def remove(
    server: Server,
    user: Annotated[str, typer.Argument(metavar="NAME", help="As in SERVER/enrolment.csv.")],
    superlink: Control,
    quiet: Quiet = False,
) -> None:
    """Take a user's device off the SuperLink, for good; run it where the control API can be reached."""
    from simulation.deployment import enrolling
    from simulation.deployment.server_folder import ServerFolder

    enrolling.remove(ServerFolder(server), superlink, user)
    if not quiet:
        typer.echo(f"removed {user}")
