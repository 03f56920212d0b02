"""The verb "tune": settings chosen by trials on a validation part of the training ratings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dprec.errors import interrupts_noted
from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulation.configuration.models import RunConfig
    from simulation.tuning.running import Tuned


def tune(
    configs: Sequence[RunConfig | Mapping[str, Any] | str | Path],
    output: str | Path,
    trials: int,
    *,
    overrides: Sequence[str] = (),
    space: str | Path | None = None,
    metric: str | None = None,
    seed: int = 0,
    resume: bool = False,
    progress: Progress = silent,
) -> list[Tuned]:
    """Choose settings of configurations, each by the same number of trials; the test ratings are not used.

    Parameters
    ----------
    configs : sequence of RunConfig, mapping, str or Path
        Configurations of runs, as `simulation.load` takes them, with different names.
    output : str or Path
        Directory for the trials and for the configurations with the chosen settings.
    trials : int
        Trials of each configuration; the first has the settings as they are, where the space has them.
    overrides : sequence of str
        ``dotted.key=value`` replacements in all of them.
    space : str or Path, optional
        YAML file of what may be chosen; by default, ranges around the numbers of the components.
    measure : str, optional
        Column of comparison.csv to choose by; by default RMSE, or the sign accuracy.
    seed : int
        Of the choice, and of the validation part.
    resume : bool
        Continue an interrupted tuning, or one with fewer trials.

    Raises
    ------
    InputError
        When something that is asked for cannot be used, or Optuna is not installed.
    KeyboardInterrupt
        When interrupted; its note says how to go on.
    """
    from simulation.configuration.loading import load
    from simulation.tuning.running import Tuning, tune_configurations
    from simulation.tuning.trials import TUNING

    tuning = Tuning(trials, space, metric, seed)
    loaded = [load(config, overrides) for config in configs]
    with interrupts_noted(lambda: _how_to_go_on(Path(output), TUNING)):
        return tune_configurations(loaded, output, tuning, resume=resume, progress=progress)


def _how_to_go_on(directory: Path, claimed: str) -> str:
    """Say how to go on, if the directory holds the file by which it was claimed."""
    if not (directory / claimed).exists():
        return ""
    return f"{directory} holds the trials that are finished; --resume -o {directory} goes on"
