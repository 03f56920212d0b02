"""The verb "audit": what the devices of a protocol spend at least, beside what it promises."""

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
    confidence: float = 0.99,
    progress: Progress = silent,
) -> Audit:
    """Audit the promise of a configuration's protocol.

    Parameters
    ----------
    config : RunConfig, mapping, str or Path
        A configuration, its values, the path of its file, or the name of a preset. Its data set gives the
        rating scale; profiles are as small as they can be.
    output : str or Path, optional
        Directory for config.yaml and audit.json.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
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
    from simulation.configuration.loading import load

    loaded = load(config, overrides)
    return audit_protocol(loaded, output, trials=trials, confidence=confidence, progress=progress)
