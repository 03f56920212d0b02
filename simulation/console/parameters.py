"""Parameters of commands, how they are completed and read; and the commands of a pilot."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import click
import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo

from dprec.errors import InputError
from simulation.console.progress import progress_bar


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
    from simulation.protocols import PROTOCOLS
    from simulation.protocols.components import COMPONENT_REGISTRIES

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
Population = Annotated[
    float | None,
    typer.Option("--population", metavar="N", help="Project the traffic of N users a day, such as 10e6."),
]
PopulationDir = Annotated[
    str | None, typer.Option(metavar="DIR", help="Directory or URL, seen by every node, for the population.")
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a run or a comparison.")]
MaxBytes = Annotated[
    float, typer.Option(metavar="B", show_default=False, help="Most bytes of a user's messages, both ways.")
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
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
Track = Annotated[
    list[str] | None,
    typer.Option(metavar="csv|mlflow|tensorboard|wandb", help="Record rounds there as they come."),
]


def results_of(overrides: list[str] | None, population_dir: str | None) -> list[str]:
    """Return all replacements of settings, among them that of the population's directory."""
    if population_dir is None:
        return overrides or []
    return [*(overrides or []), f"simulation.population_dir={json.dumps(population_dir)}"]


def output_folder(output: str | None, name: str, resume: bool, quiet: bool) -> Path:
    """Return the directory to write to; print a note if there is nothing to resume in it."""
    if output == "":
        raise InputError("-o", "an empty name", "a directory")
    if output is None:
        if resume:
            raise InputError("--resume", "no directory", "-o DIR, the one that was interrupted")
        from simulation.storage.run_directory import timestamped

        return timestamped(name)
    folder = Path(output)
    # Not an error: a command that is repeated until it succeeds may be killed before it writes anything.
    resumable = any(folder.iterdir()) if folder.is_dir() else folder.exists()
    if resume and not resumable and not quiet:
        typer.echo(f"dprec: {folder}: nothing to resume, starting a new one", err=True)
    return folder


class PlainHelp(TyperCommand):
    """A command whose help is printed as it is, and says what each argument means."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: Typer writes the arguments together with the options."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help."""
        # Click forgets what Typer's arguments say of themselves.
        for name, help_ in _help_of_arguments(self.callback):
            for parameter in self.params:
                if parameter.name == name:
                    parameter.help = help_
        return super().get_help(ctx).replace(r"\[", "[")


def _help_of_arguments(command: object) -> Iterator[tuple[str, str | None]]:
    if callable(command):
        for name, hint in get_type_hints(inspect.unwrap(command), include_extras=True).items():
            if get_origin(hint) is Annotated:
                yield from (
                    (name, argument.help) for argument in get_args(hint) if isinstance(argument, ArgumentInfo)
                )


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
        bool, typer.Option("--seeded", help="Devices draw from the seed: for tests alone.")
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
        where = {"server": server.path.absolute(), "folder": folder.absolute(), "host": host, "port": port}
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
    server: Annotated[Path, typer.Argument(metavar="SERVER", help="The server's folder: DIR/server.")],
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the SuperLink is.")],
    quiet: Quiet = False,
) -> None:
    """Register the devices of a pilot with its SuperLink; run it where the control API can be reached."""
    from simulation.verbs import enrol as enrol_devices

    enrolled = enrol_devices(server, superlink)
    if not quiet:
        typer.echo(f"{enrolled} devices are enrolled")


_Server = Annotated[Path, typer.Argument(metavar="SERVER", help="The server's folder: DIR/server.")]
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
    server: Annotated[Path, typer.Argument(metavar="SERVER", help="The server's folder: DIR/server.")],
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
    server: Annotated[Path, typer.Argument(metavar="SERVER", help="The server's folder: DIR/server.")],
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
    server: Annotated[Path, typer.Argument(metavar="SERVER", help="The server's folder: DIR/server.")],
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the SuperLink is.")],
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
