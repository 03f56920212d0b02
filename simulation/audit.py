"""The verb "audit": a lower bound on the privacy loss at a protocol's devices, beside its promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from simulation.auditing import Audit
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
        Directory for config.yaml and audit.json.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    trials : int
        Number of people per profile.
    seed : int, optional
        Seed of the audit's runs; by default, that of the configuration.
    confidence : float
        Probability with which all lower bounds hold together; a promise that is kept fails by chance with
        at most the remaining probability.
    progress : callable, optional

    Raises
    ------
    InputError
        When the protocol's devices promise nothing, or an argument is out of range.
    """
    from simulation import auditing
    from simulation.configuration.loading import load

    loaded = load(config, overrides)
    return auditing.audit(loaded, output, trials=trials, seed=seed, confidence=confidence, progress=progress)
