"""What each kind of answer costs, from what is installed on the device alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from clients.device.limits import Loss
from clients.gradient_perturbation import installed_on
from clients.one_shot import installed_mechanism, perturbed
from clients.population import Cohort
from dprec.messages import (
    COUNT,
    COUNT_ROUND,
    DELIVER,
    IDENTIFY,
    PERSONALIZE,
    RECOMMEND,
    REPLACE,
    REPORT,
    SLOPES,
    STATISTICS,
    TRAIN,
    CountRequest,
    GradientRequest,
    Record,
    ReplacementRequest,
    SlopesRequest,
)
from dprec.privacy.calibrated_counts import CalibratedCounts
from dprec.setups import IterativeSetup, XMapSetup

LossOf = Callable[[Cohort, Record], tuple[int, Loss]]
"""From the cohort of one user and a request that was answered, to the round and what the answer costs."""


def _of_report(cohort: Cohort, record: Record) -> tuple[int, Loss]:
    """Return the loss of a report: that of its channel, for the ratings that are not left for counts."""
    calibrated, _ = installed_mechanism(cohort.population)
    counting = CalibratedCounts.of(calibrated)
    if counting is None:
        per_rating, per_user = calibrated.losses(cohort.counts)
        return 1, Loss(float(np.nan_to_num(per_rating[0], posinf=math.inf)), float(per_user[0]))
    bits = int((~counting.left(perturbed(cohort, calibrated))).sum())
    epsilon = float(counting.epsilons(cohort.counts)[0])
    return 1, Loss(_of_rated(cohort, epsilon), epsilon * bits)


def _of_counts(cohort: Cohort, record: Record) -> tuple[int, Loss]:
    """Return the loss of counts.

    A rating is in a bit or in a count and loses at most epsilon in either, which the report was charged; see
    `CHARGED_WITH`.
    """
    calibrated, _ = installed_mechanism(cohort.population)
    counting = CalibratedCounts.of(calibrated)
    assert counting is not None, "counts of devices that are not set up to count"
    _, groups = counting.group_codec.decode([CountRequest.of(record).groups])
    left = counting.left(perturbed(cohort, calibrated))
    sizes = counting.grouped(cohort.counts, groups[0, cohort.items], left)
    released = counting.releases(cohort.counts, sizes)
    assert released.added is not None, "releases of counts without their losses"
    return COUNT_ROUND, Loss(0.0, float(released.added[0]))


def _of_gradient(cohort: Cohort, record: Record) -> tuple[int, Loss]:
    """Return the loss of a gradient report: one round's share, per rating and per user alike."""
    setup = cohort.population.installed(IterativeSetup)
    share = math.inf if setup.epsilon_per_round is None else setup.epsilon_per_round
    loss = setup.gradient.exact_epsilon(share)
    return GradientRequest.of(record).round_index, Loss(_of_rated(cohort, loss), loss)


def _of_slopes(cohort: Cohort, record: Record) -> tuple[int, Loss]:
    """Return the loss of slopes: each rating has one of its own."""
    loss = installed_on(cohort.population).channel.epsilon
    per_user = float(cohort.counts[0] * loss) if cohort.counts[0] else 0.0
    return SlopesRequest.of(record).round_index, Loss(_of_rated(cohort, loss), per_user)


def _of_statistics(cohort: Cohort, record: Record) -> tuple[int, Loss]:
    """Return the loss of a contribution: others are to add the noise, the device protects nothing."""
    return GradientRequest.of(record).round_index, Loss(_of_rated(cohort, math.inf), math.inf)


def _of_replacement(cohort: Cohort, record: Record) -> tuple[int, Loss]:
    """Return the loss of replacements: each item outside the target domain has a draw of its own."""
    request, setup = ReplacementRequest.of(record), cohort.population.installed(XMapSetup).replacement
    replaced = int(((cohort.items < request.start) | (cohort.items >= request.stop)).sum())
    loss = math.inf if setup.epsilon is None else setup.epsilon
    return request.round_index, Loss(loss, loss * replaced) if replaced else Loss(0.0, 0.0)


def _of_rated(cohort: Cohort, loss: float) -> float:
    """Return the loss of a rating, 0 if there is none."""
    return loss if cohort.counts[0] else 0.0


LOSSES: Mapping[str, LossOf] = {
    REPORT: _of_report,
    COUNT: _of_counts,
    TRAIN: _of_gradient,
    SLOPES: _of_slopes,
    STATISTICS: _of_statistics,
    REPLACE: _of_replacement,
}
"""By the type of the message."""

CHARGED_WITH: Mapping[str, str] = {COUNT: REPORT}
"""Types of messages whose answer is paid in part with that to another one, which has to come first."""

FREE = frozenset({IDENTIFY, DELIVER, PERSONALIZE, RECOMMEND})
"""Types of messages whose answer says nothing about the profile. Other types are not answered."""
