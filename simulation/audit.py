"""The verb "audit": what the devices of a protocol spend at least, beside what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from pathlib import Path

    from simulation.auditing import Audit
    from simulation.configuration.models import RunConfig


def audit(
    config: RunConfig,
    output: str | Path | None = None,
    *,
    trials: int = 100_000,
    confidence: float = 0.99,
    progress: Progress = silent,
) -> Audit:
    """Audit the promise of a configuration's protocol.

    Parameters
    ----------
    config : RunConfig
        Its data set gives the rating scale; profiles are as small as they can be.
    output : str or Path, optional
        Directory for config.yaml and audit.json.
    trials : int
        People per profile.
    confidence : float
        Probability with which each lower bound holds; a promise that is kept fails by chance with
        the remaining probability.
    progress : callable, optional

    Raises
    ------
    InputError
        When devices of the protocol promise nothing, or an argument is out of range.
    """
    from simulation.auditing import audit_protocol

    return audit_protocol(config, output, trials=trials, confidence=confidence, progress=progress)
