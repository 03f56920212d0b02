"""The command `dprec tune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import simulation
from simulation.console.arguments import output_folder
from simulation.console.completion import configurations
from simulation.console.parameters import Output, Overrides, Quiet, Resume
from simulation.console.progress import progress_bar
from simulation.console.whole_numbers import whole_number

if TYPE_CHECKING:
    from rich.table import Table

    from simulation.tuning.running import Tuned


def tune(
    configs: Annotated[
        list[Path],
        typer.Argument(
            metavar="CONFIG...",
            help="YAML configurations, or names of presets.",
            autocompletion=configurations,
        ),
    ],
    trials: Annotated[
        int, typer.Option(metavar="N", parser=whole_number, help="Trials of every configuration.")
    ],
    output: Output = None,
    set_: Overrides = None,
    space: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML file of the settings that may be chosen.")
    ] = None,
    measure: Annotated[str | None, typer.Option(help="Column of comparison.csv to choose by.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", parser=whole_number, help="Seed of the choice.")] = 0,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Choose settings by trials on a validation part of the training ratings.

    The test ratings are not used. Every trial spends its privacy budget again.
    """
    folder = output_folder(output, "tuning", resume, quiet)
    with progress_bar(quiet) as progress:
        tuned = simulation.tune(
            configs,
            folder,
            trials,
            overrides=set_ or [],
            space=space,
            measure=measure,
            seed=seed,
            resume=resume,
            progress=progress,
        )
    if not quiet:
        from simulation.console.tables import wide_console

        wide_console().print(_table(tuned))
        for each in tuned:
            typer.echo(f"- {each.privacy_note}")
        typer.echo(f"tuning directory: {folder}")


def _table(tuned: list[Tuned]) -> Table:
    from rich import box
    from rich.table import Table

    from simulation.analysis.numbers import number

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("configuration", no_wrap=True)
    for column in ("trials", "could not run", "measure", "as it was", "best"):
        table.add_column(column, justify="right")
    table.add_column("best settings")
    for each in tuned:
        values = (None if trial is None else trial.judgement.value for trial in (each.start, each.best))
        figures = (number(value, each.measure.digits) for value in values)
        settings = {} if each.best is None else each.best.settings
        chosen = ", ".join(
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in settings.items()
        )
        counts = str(len(each.trials)), str(each.failed)
        table.add_row(each.config.name, *counts, each.measure.label, *figures, chosen)
    return table
