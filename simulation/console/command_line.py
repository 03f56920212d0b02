"""The command line: dprec run, compare, attack, tune, audit, report, export, advise and smaller ones.

Every command imports what it needs when it is called, so that the help appears at once.
"""

import io
import json
import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import simulation
from dprec.errors import InputError
from simulation.console import parameters
from simulation.console.names import LISTINGS, named_in_words, print_listing, print_overview
from simulation.console.progress import progress_bar, watched
from simulation.console.terminal import exit_code, interrupts_explained

_RUNS = "Run and compare"
_TESTS = "Test what is promised"
_RESULTS = "Look at results"
_NAMES = "Write a configuration"

app = typer.Typer(
    cls=parameters.GroupedHelp,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    suggest_commands=False,  # Click suggests them already
)


@app.callback()
def options(
    version: Annotated[bool, parameters.version_option("dprec")] = False,
) -> None:
    """Private recommendation, simulated: how accurate, how private, how many bytes per person."""


@app.command(cls=parameters.PlainHelp, rich_help_panel=_RUNS)
def run(
    config: parameters.ConfigPath,
    output: parameters.Output = None,
    set_: parameters.Overrides = None,
    devices_dir: parameters.DevicesDir = None,
    resume: parameters.Resume = False,
    users_a_day: parameters.UsersADay = None,
    page: parameters.Page = True,
    png: parameters.Png = False,
    track: parameters.Track = None,
    save_split: parameters.SaveSplit = None,
    quiet: parameters.Quiet = False,
) -> None:
    """Run a configuration or a preset, and keep the result."""
    with interrupts_explained(), progress_bar(quiet) as progress:
        loaded = simulation.load(config, parameters.overrides_of(set_, devices_dir))
        folder = parameters.output_folder(output, loaded.name, resume, quiet)
        result = simulation.run(
            loaded,
            folder,
            resume=resume,
            users_a_day=users_a_day,
            page=page,
            png=png,
            track=track or (),
            save_split=save_split,
            progress=progress,
        )
    if not quiet:
        from simulation.console.results import print_run

        print_run(result, folder, users_a_day, save_split)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_RUNS)
def compare(
    config: Annotated[
        Path,
        typer.Argument(metavar="CONFIG", help="A YAML file, the name of a preset, or a file of ratings."),
    ],
    output: parameters.Output = None,
    set_: parameters.Overrides = None,
    devices_dir: parameters.DevicesDir = None,
    jobs: parameters.Jobs = None,
    resume: parameters.Resume = False,
    users_a_day: parameters.UsersADay = None,
    page: parameters.Page = True,
    png: parameters.Png = False,
    quick: parameters.Quick = False,
    only: parameters.Only = None,
    track: parameters.Track = None,
    watch: parameters.Watch = False,
    quiet: parameters.Quiet = False,
) -> None:
    """Run protocols on the same ratings, and put them in one table.

    Each runs at every epsilon, fold and seed. On a file of ratings, the published systems and ours are
    compared. A protocol that does not suit the ratings is left out with the reason, as it is where --set
    replaces the data set.
    """
    if watch and not page:
        raise InputError("--watch", "--no-page", "one of them")
    folder = parameters.output_folder(output, config.stem, resume, quiet)
    serving = watched(folder) if watch else nullcontext()
    with interrupts_explained(), serving as address, progress_bar(quiet) as progress:
        if address is not None:
            typer.echo(f"dprec: the page, while it runs: {address}", err=True)
        result = simulation.compare(
            config,
            folder,
            overrides=[*parameters.overrides_of(set_, devices_dir), *parameters.narrowed(only, quick)],
            jobs=jobs,
            resume=resume,
            users_a_day=users_a_day,
            page=page,
            png=png,
            track=track or (),
            progress=progress,
        )
    from simulation.console.results import check_complete, print_comparison

    if not quiet:
        print_comparison(result, users_a_day)
    check_complete(result)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_TESTS)
def attack(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG|COMPARISON",
            help="As of dprec run, or of dprec compare.",
            autocompletion=parameters.configurations,
        ),
    ],
    output: parameters.Output = None,
    set_: parameters.Overrides = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            metavar="KIND",
            help="An attack of dprec list attacks; by default those of the configuration, or all.",
        ),
    ] = None,
    devices_dir: parameters.DevicesDir = None,
    jobs: parameters.Jobs = None,
    resume: parameters.Resume = False,
    page: parameters.Page = True,
    quiet: parameters.Quiet = False,
) -> None:
    """Attack a run: what is recovered, and what malicious users move.

    CONFIG, which may be a comparison, is run first. Every figure stands beside what the same attack reaches
    with nothing sent, and, where that is proved, what epsilon allows.
    """
    folder = parameters.output_folder(output, f"{config.stem}-attack", resume, quiet)
    with interrupts_explained(), progress_bar(quiet) as progress:
        result = simulation.attack(
            config,
            folder,
            kinds=kinds or (),
            overrides=parameters.overrides_of(set_, devices_dir),
            jobs=jobs,
            resume=resume,
            page=page,
            progress=progress,
        )
    from simulation.console.results import conclude_attack

    conclude_attack(result, folder, quiet=quiet)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_TESTS)
def audit(
    config: parameters.OptionalConfig = None,
    output: parameters.Output = None,
    set_: parameters.Overrides = None,
    devices_dir: parameters.DevicesDir = None,
    every: Annotated[bool, typer.Option("--all", help="Audit all presets, in place of CONFIG.")] = False,
    trials: parameters.Trials = None,
    seed: parameters.AuditSeed = None,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Probability with which all bounds hold together.")
    ] = 0.99,
    json_: parameters.AsJson = False,
    quiet: parameters.Quiet = False,
) -> None:
    """Measure a lower bound on the privacy loss of a configuration.

    It compares what is sent for two profiles. Ends with exit code 1 if the bound contradicts what the
    configuration promises.
    """
    overrides = parameters.overrides_of(set_, devices_dir)
    if every == (config is not None) or (every and overrides):
        others = "CONFIG, --set or --devices-dir"
        found = f"--all with {others}" if every else "neither CONFIG nor --all"
        raise InputError("audit", found, "CONFIG, or --all alone")
    with progress_bar(quiet or json_) as progress:
        from simulation.auditing.auditing import audit_all
        from simulation.console.results import conclude, conclude_presets

        if config is None:
            folder = parameters.output_folder(output, "presets-audit", resume=False, quiet=quiet)
            presets = audit_all(folder, trials=trials, seed=seed, confidence=confidence, progress=progress)
        else:
            loaded = simulation.load(config, overrides)
            folder = parameters.output_folder(output, f"{loaded.name}-audit", resume=False, quiet=quiet)
            result = simulation.audit(
                loaded,
                folder,
                trials=100_000 if trials is None else trials,
                seed=seed,
                confidence=confidence,
                progress=progress,
            )
    if config is None:
        conclude_presets(presets, folder, as_json=json_, quiet=quiet)
    else:
        conclude(result, folder, as_json=json_, quiet=quiet)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_RESULTS)
def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of a run, a comparison or an audit.")
    ],
    users_a_day: parameters.UsersADay = None,
    png: parameters.Png = False,
    single_file: Annotated[
        bool,
        typer.Option(
            "--single-file",
            help="Write a page too that holds the pages of runs, and the table, that it links to.",
        ),
    ] = False,
    examples: Annotated[
        bool,
        typer.Option(
            "--examples", help="Show a user's ratings on the page of a run, which are personal data."
        ),
    ] = False,
    quiet: parameters.Quiet = False,
) -> None:
    """Draw the page of a run, a comparison or an audit anew.

    report.html and the figures are made from the files in DIR.
    """
    with progress_bar(quiet, "reading the files") as progress:
        from simulation.pages import report as build_report

        drawing_options = {"png": png, "single_file": single_file, "examples": examples}
        page = build_report(directory, users_a_day, progress, **drawing_options)
    if not quiet:
        from simulation.console.results import print_projection

        print_projection(directory, users_a_day)
        typer.echo(str(page))


@app.command(cls=parameters.PlainHelp, rich_help_panel=_RESULTS)
def advise(
    epsilon: Annotated[float, typer.Option(metavar="E", help="Largest privacy loss of any user.")],
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="The directory of a comparison, or --data.")
    ] = None,
    data: parameters.Kept = None,
    max_bytes: parameters.MaxBytes = math.inf,
    max_bytes_up: parameters.MaxBytesUp = math.inf,
    max_bytes_down: parameters.MaxBytesDown = math.inf,
    max_network_bytes: parameters.MaxNetworkBytes = math.inf,
    max_recovered: parameters.MaxRecovered = 1.0,
    per: parameters.Per = None,
    delta: parameters.MaxDelta = None,
    metric: Annotated[str | None, typer.Option(help="Column of comparison.csv to compare by.")] = None,
    trust: parameters.MostTrust = "central",
    untrusted: Annotated[
        bool, typer.Option("--untrusted", help="Only protocols whose server sees no true ratings.")
    ] = False,
    without: parameters.Without = None,
    hide_items: parameters.HideItems = False,
    claimed: Annotated[
        bool,
        typer.Option(
            "--claimed", help="Count an epsilon that is claimed or declared like one that is proved."
        ),
    ] = False,
) -> None:
    """Name the most accurate protocol of a comparison within limits.

    Also says what the next better one costs. A protocol that is not better than nothing sent by more than
    its uncertainty is never named.
    """
    from dprec.accounting import COMPARABLE_UNITS, LEAST_TRUST_FIRST
    from simulation.analysis.advice import AdviceLimits, advice_lines, one_of, usual_unit
    from simulation.analysis.advice import advise as advice
    from simulation.analysis.kept import given_or_kept
    from simulation.analysis.protocol_results import declared_lines
    from simulation.console.terminal import print_lines

    folder = given_or_kept(directory, data)
    most_trust = "secure-aggregation" if untrusted and trust == "central" else trust
    trusted = one_of("--trust", most_trust, LEAST_TRUST_FIRST)
    unit = usual_unit(folder) if per is None else one_of("--per", per, COMPARABLE_UNITS)
    absent = tuple(one_of("--without", model, LEAST_TRUST_FIRST[1:]) for model in without or ())
    conditions = (trusted, hide_items, claimed, delta)
    ways = max_bytes_up, max_bytes_down
    limits = AdviceLimits(
        epsilon, unit, max_bytes, *conditions, max_network_bytes, max_recovered, absent, *ways
    )
    print_lines([*advice_lines(advice(folder, limits, metric)), *declared_lines(folder)])


@app.command(cls=parameters.PlainHelp, rich_help_panel=_RESULTS)
def ls(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder; by default, this one.")
    ] = Path(),
    as_json: parameters.AsJson = False,
) -> None:
    """List the runs, comparisons, audits and tunings in a folder.

    Each with when it changed, how far it is, and its best figure; what changed last comes first. Folders are
    searched to a depth of three; links are not followed.
    """
    from simulation.console.listing import print_found

    if not folder.is_dir() and (kind := named_in_words(str(folder))):
        raise InputError(str(folder), kind, f"a folder of results, or dprec describe {folder}")
    print_found(simulation.ls(folder), folder, as_json=as_json)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_RESULTS)
def diff(
    first: parameters.Directory,
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Another of the same kind.")],
    as_json: parameters.AsJson = False,
) -> None:
    """Say in what two runs, or two comparisons, differ.

    In settings and figures; of two runs on the same test ratings, also how much better OTHER predicts, and
    the interval over users.
    """
    from simulation.console.listing import print_difference

    print_difference(simulation.diff(first, second), as_json=as_json)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_RESULTS)
def export(
    directory: parameters.Directory,
    format_: Annotated[
        str,
        typer.Option("--format", metavar="trec|csv|parquet|latex|bibtex", help="What other programs read."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where to write; by default DIR/export."),
    ] = None,
) -> None:
    """Write a run or a comparison as other programs read it.

    Of a run: lists and test ratings for trec_eval and ranx (trec), all tables (csv, parquet), the papers of
    its parts (bibtex). Of a comparison: its table (csv, parquet), the main one for a paper (latex), papers.
    """
    for path in simulation.export(directory, format_, output):
        typer.echo(str(path))


@app.command("list", cls=parameters.PlainHelp, rich_help_panel=_NAMES)
def list_names(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHAT]", help=f"One of {', '.join(LISTINGS)}.", autocompletion=lambda: list(LISTINGS)
        ),
    ] = None,
) -> None:
    """List what a configuration can name: presets and components.

    Without WHAT, the presets in groups, one line each, and what else can be listed. What one of them is says
    dprec describe; which results are in a folder, dprec ls.
    """
    if what is None:
        print_overview()
    else:
        print_listing(what)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_NAMES)
def describe(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A YAML configuration, the name of a preset, the kind of a component, or module:Class.",
            autocompletion=parameters.presets_and_kinds,
        ),
    ] = None,
    set_: parameters.Overrides = None,
    as_json: parameters.AsJson = False,
    draw: Annotated[
        bool, typer.Option("--draw", help="Draw what one made-up user sends and is sent, in bytes.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the drawing there, as SVG.")
    ] = None,
) -> None:
    """Say what a preset, a configuration or a component is.

    Of a configuration, or a run's directory: protocol, channel, guarantee, every setting, and what is beyond
    the paper. Of a component: its settings, what they accept, and their defaults; mechanisms/KIND is the
    mechanism alone.
    """
    if name is None:
        raise InputError("describe", "no NAME", "a configuration or a component: dprec list has them")
    from simulation.console.describing import describe_named, draw_named

    if draw or output:
        draw_named(name, set_ or [], output)
    else:
        describe_named(name, set_ or [], as_json=as_json)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_TESTS)
def contract(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="module:Class, or the kind of a federated model.")
    ],
    set_: parameters.Overrides = None,
) -> None:
    """Test whether a federated model keeps its contract.

    Of each rule, says what breaks it and what to change. --set gives the model settings. Ends with exit code
    1 if a rule is broken.
    """
    from simulation.console.contracting import held_to_contract

    held_to_contract(model, set_ or [])


@app.command(cls=parameters.PlainHelp, rich_help_panel=_RUNS)
def tune(
    configs: Annotated[
        list[Path],
        typer.Argument(
            metavar="CONFIG...",
            help="YAML configurations, or names of presets.",
            autocompletion=parameters.configurations,
        ),
    ],
    trials: Annotated[
        int, typer.Option(metavar="N", parser=parameters.integer, help="Trials of every configuration.")
    ],
    output: parameters.Output = None,
    set_: parameters.Overrides = None,
    space: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML file of the settings that may be chosen.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Column of comparison.csv to choose by.")] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", parser=parameters.integer, help="Seed of the choice.")
    ] = 0,
    resume: parameters.Resume = False,
    quiet: parameters.Quiet = False,
) -> None:
    """Choose settings by trials on a part of the train ratings.

    The test ratings are not used. Every trial spends its privacy budget again.
    """
    folder = parameters.output_folder(output, "tuning", resume, quiet)
    with interrupts_explained(), progress_bar(quiet) as progress:
        tuned = simulation.tune(
            configs,
            folder,
            trials,
            overrides=set_ or [],
            space=space,
            metric=metric,
            seed=seed,
            resume=resume,
            progress=progress,
        )
    if not quiet:
        from simulation.console.results import print_tuning

        print_tuning(tuned, folder)


@app.command(cls=parameters.PlainHelp, rich_help_panel=_NAMES)
def schema(
    comparison: Annotated[bool, typer.Option("--comparison", help="That of a comparison.")] = False,
) -> None:
    """Print the JSON Schema of configurations, for editors."""
    if comparison:
        from simulation.comparison import ComparisonConfig

        values = ComparisonConfig.model_json_schema()
    else:
        values = simulation.RunConfig.model_json_schema()
    typer.echo(json.dumps(values, indent=2))


@app.command(cls=parameters.PlainHelp, rich_help_panel=_NAMES)
def fetch(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Kind of the data set.")],
    cache: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to keep it.")] = None,
    url: Annotated[str | None, typer.Option(help="A mirror to download from.")] = None,
) -> None:
    """Download a data set from its distributor and check it."""
    from dprec.datasets.fetch import fetch as fetch_dataset

    with progress_bar(False, "downloading") as progress:
        folder = fetch_dataset(dataset, cache or Path.home() / ".cache" / "dprec", url=url, progress=progress)
    typer.echo(str(folder))


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot encode is shown as a question mark rather than ending a run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(exit_code(lambda: app(args=arguments, standalone_mode=False)))
