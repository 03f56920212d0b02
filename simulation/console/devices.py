"""dprec device: serve devices, or make one that joins; the same as `dprec-device`."""

from pathlib import Path
from typing import Annotated

import click
import typer
from typer.core import TyperGroup

from clients.device import command, owner
from simulation.console.parameters import PlainHelp


class _ServingByDefault(TyperGroup):
    """Serves folders unless the first word is that of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words."""
        return super().parse_args(ctx, self._named(args) if args else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, and the words that are for it."""
        return super().resolve_command(ctx, self._named(args))

    def _named(self, args: list[str]) -> list[str]:
        return args if args[0] in {*self.commands, "--help"} else ["serve", *args]


device = typer.Typer(
    cls=_ServingByDefault,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Serve devices, which can be told without a command: dprec device DIR... Or make one that joins.",
)


@device.command(cls=PlainHelp, help=command.SUMMARY)
def serve(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help=command.HELP["folders"])],
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help=command.HELP["superlink"])],
    ca: Annotated[Path, typer.Option(metavar="FILE", help=command.HELP["ca"])],
    interval: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=command.SHORTEST_INTERVAL,
            max=command.LONGEST_INTERVAL,
            help=command.HELP["interval"],
        ),
    ] = command.INTERVAL,
    answer_after: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=command.SOONEST_ANSWER,
            max=command.LATEST_ANSWER,
            help=command.HELP["answer_after"],
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help=command.HELP["once"])] = False,
    seeded: Annotated[bool, typer.Option("--seeded", help=command.HELP["seeded"])] = False,
) -> None:
    """Serve devices until SIGTERM, or once."""
    command.Serving(
        folders=folders,
        superlink=superlink,
        ca=ca,
        interval=interval,
        answer_after=answer_after,
        once=once,
        seeded=seeded,
    ).run()


@device.command(cls=PlainHelp, help=owner.JOIN)
def join(
    invitation: Annotated[Path, typer.Argument(metavar="INVITATION", help=owner.HELP["invitation"])],
    ratings: Annotated[Path, typer.Argument(metavar="RATINGS", help=owner.HELP["ratings"])],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help=owner.HELP["folder"])],
    user: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=owner.MOST_USERS, help=owner.HELP["user"]),
    ],
    classes: Annotated[
        list[str] | None, typer.Option("--class", metavar="M:C", help=owner.HELP["classes"])
    ] = None,
) -> None:
    """Make the folder of a device."""
    owner.Joining(
        invitation=invitation, ratings=ratings, folder=folder, user=user, classes=classes or ()
    ).run()


@device.command(cls=PlainHelp, help=owner.ROTATE)
def rotate(folder: Annotated[Path, typer.Argument(metavar="DIR", help=owner.HELP["folder"])]) -> None:
    """Make the next key of a device."""
    owner.Rotating(folder=folder).run()
