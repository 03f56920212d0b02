"""Parameters of commands, and how they are completed and read."""

import inspect
import json
import traceback
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import click
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.models import ArgumentInfo

from dprec import __version__
from dprec.errors import InputError, escaped


def integer(text: str) -> int:
    """Return an integer written as 100000, 100_000 or 1e5; raises typer.BadParameter."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not value.is_integer():
        raise typer.BadParameter(f"{text!r} is not an integer, such as 100000 or 1e5")
    return int(value)


def version_option(program: str) -> Any:
    """Return the option that prints the version of a program and ends it."""

    def printed(requested: bool) -> None:
        if requested:
            typer.echo(f"{program} {__version__}")
            raise typer.Exit

    return typer.Option("--version", is_eager=True, callback=printed, help="Print the version.")


def configurations(incomplete: str) -> list[str]:
    """Return the presets and the YAML files whose names begin with what is typed."""
    from simulation.configuration.strict_yaml import presets

    folder = Path(incomplete).parent if incomplete.rpartition("/")[1] else Path()
    entries = sorted(folder.glob("*")) if folder.is_dir() else []
    files = [f"{entry}/" if entry.is_dir() else str(entry) for entry in entries]
    offered = [*presets(), *(file for file in files if file.endswith(("/", ".yaml", ".yml")))]
    return [name for name in offered if name.startswith(incomplete)]


def presets_and_kinds(incomplete: str) -> list[str]:
    """Return the configurations, and the kinds of every component."""
    from dprec.protocols.components import COMPONENT_REGISTRIES
    from dprec.protocols.registry import PROTOCOLS

    kinds = {kind for registry in (*COMPONENT_REGISTRIES, PROTOCOLS) for kind in registry.kinds}
    return [*configurations(incomplete), *sorted(kind for kind in kinds if kind.startswith(incomplete))]


_CONFIG = "A YAML configuration, or the name of a preset."

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help=_CONFIG, autocompletion=configurations)]
OptionalConfig = Annotated[
    str | None, typer.Argument(metavar="[CONFIG]", help=_CONFIG, autocompletion=configurations)
]
Output = Annotated[str | None, typer.Option("-o", "--output", metavar="DIR", help="Where to write.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace the value of a dotted key; VALUE is YAML."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue what was interrupted in DIR.")]
UsersADay = Annotated[
    float | None,
    typer.Option(metavar="N", help="Project the traffic of N users a day, such as 10e6."),
]
DevicesDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Directory or URL, seen by every node, for the devices' ratings."),
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a run or a comparison.")]
Kept = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="In place of DIR, a comparison kept with dprec: ml-100k, msweb or citeulike."
    ),
]
Per = Annotated[
    str | None,
    typer.Option(metavar="rating|user", help="Unit of epsilon; by default rating, and user for lists."),
]
MaxDelta = Annotated[
    float | None,
    typer.Option(metavar="D", help="Count losses per user as they compose, with this delta at most."),
]
MostTrust = Annotated[
    str,
    typer.Option(
        metavar="local|shuffle|secure-aggregation|central",
        help="Trust model; what needs less trust counts too.",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="shuffle|secure-aggregation|central",
        help="A trust model that cannot be had, as shuffle where nobody runs shufflers; may be repeated.",
    ),
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Show the page at an address of this machine while it runs.")
]
HideItems = Annotated[
    bool,
    typer.Option(
        "--hide-items",
        help="Only protocols with which nobody, the server included, sees which items a user rated: none of "
        "the central model.",
    ),
]
MaxBytes = Annotated[
    float, typer.Option(metavar="B", show_default=False, help="Most bytes of a user's messages, both ways.")
]
MaxBytesUp = Annotated[
    float, typer.Option(metavar="B", show_default=False, help="Most bytes of the messages that a user sends.")
]
MaxBytesDown = Annotated[
    float, typer.Option(metavar="B", show_default=False, help="Most bytes of those that a user receives.")
]
MaxNetworkBytes = Annotated[
    float,
    typer.Option(metavar="B", show_default=False, help="Most bytes on the network per user."),
]
MaxRecovered = Annotated[
    float, typer.Option(metavar="S", help="Largest share of ratings whose level an attack recovers.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")]
Page = Annotated[
    bool, typer.Option("--page/--no-page", help="Whether to draw the page; dprec report draws it later.")
]
Png = Annotated[bool, typer.Option("--png", help="Write the figures as PNG too, for slides.")]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", parser=integer, help="Cells at a time; by default one per core."),
]
Trials = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=integer,
        help="Number of people per profile, such as 1e6; by default 100000, or 20000 with --all.",
    ),
]
AuditSeed = Annotated[int | None, typer.Option(metavar="N", parser=integer, help="Seed of the audit's runs.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Run the first seed and fold and the middle epsilon only.")
]
Only = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME", help="Run only these protocols, named as in comparison.csv, and their baselines."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
Track = Annotated[
    list[str] | None,
    typer.Option(
        metavar="csv|mlflow|tensorboard|wandb|module:Class", help="Record rounds there as they come."
    ),
]
SaveSplit = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER", help="Write the train and the test ratings there, for --set dataset=FOLDER."
    ),
]


def overrides_of(overrides: list[str] | None, devices_dir: str | None) -> list[str]:
    """Return all replacements of settings, among them that of the devices' directory."""
    if devices_dir is None:
        return overrides or []
    return [*(overrides or []), f"simulation.devices_dir={json.dumps(devices_dir)}"]


def narrowed(only: str | None, quick: bool) -> list[str]:
    """Return the settings of a comparison of which only a part runs."""
    names = [] if only is None else [name.strip() for name in only.split(",")]
    return [f"only={json.dumps(names)}"] * (only is not None) + ["quick=true"] * quick


def output_folder(output: str | None, name: str, resume: bool, quiet: bool) -> Path:
    """Return the directory to write to; print a note if there is nothing to resume in it."""
    if output == "":
        raise InputError("-o", "an empty name", "a directory")
    if output is None:
        if resume:
            raise InputError("--resume", "no directory", "-o DIR, the one that was interrupted")
        folder = first = Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
        numbers = count(2)
        while folder.exists():
            folder = first.with_name(f"{first.name}-{next(numbers)}")
        return folder
    folder = Path(output)
    # Not an error: a command that is repeated until it succeeds may be killed before it writes anything.
    resumable = any(folder.iterdir()) if folder.is_dir() else folder.exists()
    if resume and not resumable and not quiet:
        typer.echo(f"dprec: {folder}: nothing to resume, starting a new one", err=True)
    return folder


_RENAMED = {"--population": "--users-a-day", "--population-dir": "--devices-dir"}
"""What old options are called now."""


class PlainHelp(TyperCommand):
    """A command whose help is printed as it is, and says what each argument means.

    With --debug, it prints the whole traceback of what it raises.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        words = "Print the whole traceback of what goes wrong."
        self.params.append(TyperOption(param_decls=["--debug"], is_flag=True, help=words))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        debug = ctx.params.pop("debug")
        try:
            return super().invoke(ctx)
        except Exception as error:
            if debug:
                typer.echo(escaped("".join(traceback.format_exception(error))), err=True)
            raise

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option under its old name is refused with the new one."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            now = _RENAMED.get(error.option_name, "")
            if any(now in parameter.opts for parameter in self.params):
                raise InputError(error.option_name, "an old name", now) from None
            raise

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: Typer writes the arguments together with the options."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help."""
        # Click forgets what Typer's arguments say of themselves.
        command = inspect.unwrap(self.callback) if self.callback else None
        hints = get_type_hints(command, include_extras=True) if command else {}
        for parameter in self.params:
            for argument in get_args(hints.get(parameter.name or "")):
                if isinstance(argument, ArgumentInfo):
                    parameter.help = argument.help
        return super().get_help(ctx).replace(r"\[", "[")


class GroupedHelp(TyperGroup):
    """Commands whose help has them in groups, by what one does with them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section per group, in the order in which their first commands were added."""
        room = formatter.width - 6 - max(map(len, self.commands))
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            words = command.get_short_help_str(room)
            groups.setdefault(str(getattr(command, "rich_help_panel", "Commands")), []).append((name, words))
        for group, lines in groups.items():
            with formatter.section(group):
                formatter.write_dl(lines)
