"""The verb "compare": protocols x epsilons x folds x seeds, from their file to their table and page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from simulation.comparison.running import ComparisonResult


def compare(
    config: str | Path,
    output: str | Path,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    resume: bool = False,
    population: float | None = None,
    progress: Progress = silent,
) -> ComparisonResult:
    """Run every cell of a comparison that is not finished yet, write the table and the page.

    Parameters
    ----------
    config : str or Path
        The path of its file, or the name of a preset.
    output : str or Path
        The comparison's directory.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    jobs : int, optional
        Cells at a time; by default one per core.
    resume : bool
        Go on with what an interrupted comparison finished.
    population : float, optional
        Users of a deployment whose traffic the report projects.
    progress : callable, optional

    Raises
    ------
    InputError
        When configuration, data or output cannot be used; nothing has run then.
    """
    from simulation.analysis.projection import check_population
    from simulation.comparison.planning import load_comparison
    from simulation.comparison.running import run_comparison

    check_population(population)
    comparison = load_comparison(config, overrides)
    result = run_comparison(comparison, output, jobs=jobs, resume=resume, progress=progress)
    if result.rows:
        from simulation.pages import report

        report(result.directory, population)
    return result
