"""The command `dprec tune`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import simulation
from simulation.console.exit_codes import interrupts_explained
from simulation.console.parameters import (
    Output,
    Overrides,
    Quiet,
    Resume,
    configurations,
    integer,
    output_folder,
)
from simulation.console.progress import progress_bar
from simulation.console.terminal import print_lines

if TYPE_CHECKING:
    from simulation.console.terminal import Fitted
    from simulation.tuning.running import Tuned
    from simulation.tuning.trials import Trial


def tune(
    configs: Annotated[
        list[Path],
        typer.Argument(
            metavar="CONFIG...",
            help="YAML configurations, or names of presets.",
            autocompletion=configurations,
        ),
    ],
    trials: Annotated[int, typer.Option(metavar="N", parser=integer, help="Trials of every configuration.")],
    output: Output = None,
    set_: Overrides = None,
    space: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML file of the settings that may be chosen.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Column of comparison.csv to choose by.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", parser=integer, help="Seed of the choice.")] = 0,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Choose settings by trials on a validation part of the training ratings.

    The test ratings are not used. Every trial spends its privacy budget again.
    """
    folder = output_folder(output, "tuning", resume, quiet)
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
        from simulation.console.results import print_tables
        from simulation.tuning.trials import TABLE_OF_TRIALS

        print_tables(lambda width: [_table(tuned, width)], str(folder / TABLE_OF_TRIALS))
        print_lines(f"- {each.privacy_note}" for each in tuned)
        typer.echo(f"tuning directory: {folder}")


def _table(tuned: Sequence[Tuned], width: int | None) -> Fitted:
    from simulation.analysis.vocabulary import number
    from simulation.console.terminal import Column, fitted

    def values(trials: Iterable[Trial | None]) -> tuple[str, ...]:
        pairs = zip(tuned, trials, strict=True)
        return tuple(
            number(None if trial is None else trial.judgement.value, each.metric.digits)
            for each, trial in pairs
        )

    columns = [
        Column("configuration", tuple(each.config.name for each in tuned), numeric=False),
        Column("trials", tuple(str(len(each.trials)) for each in tuned), rank=1),
        Column("could not run", tuple(str(each.failed) for each in tuned), rank=1),
        Column("metric", tuple(each.metric.label for each in tuned), numeric=False),
        Column("as it was", values(each.start for each in tuned)),
        Column("best", values(each.best for each in tuned)),
        Column("best settings", tuple(map(_chosen, tuned)), numeric=False, wrapped=True),
    ]
    return fitted(columns, width)


def _chosen(tuned: Tuned) -> str:
    settings = {} if tuned.best is None else tuned.best.settings
    return ", ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in settings.items()
    )
