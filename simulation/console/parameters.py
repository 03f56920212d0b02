"""Parameters that several commands share, and those that are long to declare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simulation.console.parameters import configurations, integer

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
Page = Annotated[
    bool, typer.Option("--page/--no-page", help="Whether to draw the page; dprec report draws it later.")
]
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
