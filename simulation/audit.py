"""The verb "audit": a lower bound on the privacy loss at a protocol's devices, beside its promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from simulation.auditing import Audit, PresetAudit
    from simulation.configuration.models import RunConfig


def audit(
    config: RunConfig | Mapping[str, Any] | str | Path,
    output: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    trials: int = 100_000,
    seed: int | None = None,
    confidence: float = 0.99,
    progress: Progress = silent,
) -> Audit:
    """Audit the promise of a configuration's protocol.

    Parameters
    ----------
    config : RunConfig, mapping, str or Path
        A configuration, the values of one, the path of its file, or the name of a preset. Its data set
        determines the rating scale; the profiles are as small as possible.
    output : str or Path, optional
        Directory for config.yaml, audit.json and report.html.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    trials : int
        Number of people per profile.
    seed : int, optional
        Seed of the audit's runs; by default, that of the configuration.
    confidence : float
        Probability with which all lower bounds hold together; a promise that is kept fails by chance with
        at most the remaining probability.

    Raises
    ------
    InputError
        When the protocol's devices promise nothing, or an argument is out of range.
    """
    from simulation import auditing
    from simulation.configuration.loading import load

    loaded = load(config, overrides)
    return auditing.audit(loaded, output, trials=trials, seed=seed, confidence=confidence, progress=progress)


def audit_all(
    output: str | Path | None = None,
    *,
    trials: int | None = None,
    seed: int | None = None,
    confidence: float = 0.99,
    progress: Progress = silent,
) -> tuple[PresetAudit, ...]:
    """Audit all presets.

    Parameters
    ----------
    output : str or Path, optional
        New or empty directory for audit.json and report.html.
    trials : int, optional
        Number of people per profile; by default as many as all presets allow in a few minutes.
    seed, confidence, progress
        As `audit`.

    Raises
    ------
    InputError
        When an argument is out of range, or the directory holds something else.
    """
    from simulation.auditing.auditing import TRIALS, audit_all

    return audit_all(
        output,
        trials=TRIALS if trials is None else trials,
        seed=seed,
        confidence=confidence,
        progress=progress,
    )
