"""Trials of one configuration: what is tried next, and what each has shown.

Optuna chooses (Akiba et al. [akiba2019]): the first trial has the configured settings, nine follow at random,
and a tree-structured Parzen estimator chooses the others. The same seed and figures give the same trials, so
that an interrupted study is continued by telling a new one what the old one has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprec.errors import InputError
from simulation.tuning.space import Choices, Range, Scalar, Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Judge = Callable[[dict[str, Scalar]], "Judgement"]
"""Runs a configuration with some settings."""


@dataclass(frozen=True)
class Judgement:
    """What a trial has shown."""

    value: float | None
    """Its accuracy on the validation ratings; None if it could not be run."""
    reason: str = ""
    """Why it could not be run; empty otherwise."""
    epsilon_per_rating: float | None = None
    epsilon_per_user: float | None = None
    """Largest proved losses of its run; None where there is no bound."""


@dataclass(frozen=True)
class Trial:
    """One trial."""

    settings: dict[str, Scalar]
    """By dotted key."""
    judgement: Judgement


def check_installed() -> None:
    """Refuse to tune without Optuna.

    Raises
    ------
    InputError
    """
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise InputError("tune", "Optuna is not installed", "pip install 'dprec[tune]'") from None


class Study:
    """Chooses the settings of one configuration's trials.

    Parameters
    ----------
    start : dict
        Settings of the first trial.
    """

    def __init__(self, space: Space, start: dict[str, Scalar], *, lower_is_better: bool, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._failed = optuna.trial.TrialState.FAIL
        self._distributions = {key: _distribution(part) for key, part in space.items()}
        self._study = optuna.create_study(
            direction="minimize" if lower_is_better else "maximize",
            sampler=optuna.samplers.TPESampler(seed=seed % 2**32),
        )
        self._study.enqueue_trial(start)

    def trial(self, judge: Judge) -> Trial:
        """Carry out the next trial."""
        asked = self._study.ask(self._distributions)
        settings = dict(asked.params)
        judgement = judge(settings)
        state = self._failed if judgement.value is None else None
        self._study.tell(asked, judgement.value, state=state)
        return Trial(settings, judgement)


def _distribution(part: Range | Choices) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(part, Choices):
        return CategoricalDistribution(part.values)
    if isinstance(part.low, int) and isinstance(part.high, int):
        return IntDistribution(part.low, part.high, log=part.log)
    return FloatDistribution(part.low, part.high, log=part.log)


def best_trial(trials: Sequence[Trial], *, lower_is_better: bool) -> Trial | None:
    """Return the best trial, of equal ones the first; None if none could be run."""
    judged: list[tuple[float, Trial]] = [
        (trial.judgement.value, trial) for trial in trials if trial.judgement.value is not None
    ]
    sign = 1 if lower_is_better else -1
    return min(judged, key=lambda pair: sign * pair[0])[1] if judged else None
