"""What each kind of answer costs, from what is installed on the device alone."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from clients.device.ledger import Price
from clients.device.profile import emptied
from clients.gradient_perturbation import installed_on
from clients.one_shot import installed_mechanism, perturbed
from clients.population import Partition
from dprec.accounting import Loss
from dprec.exchange import (
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
    IterativeSetup,
    Record,
    ReplacementRequest,
    SlopesRequest,
    XMapSetup,
)
from dprec.exchange.messages import UPDATE
from dprec.privacy.calibrated_counts import CalibratedCounts
from dprec.privacy.calibration import CalibratedMechanism

LOG = logging.getLogger("dprec.device")

_ROUNDING = 1 + 1e-9
"""What losses of profiles of different sizes may differ by when they are rounded."""

PriceOf = Callable[[Partition, Record], Price]
"""From the partition of one user and a request that was answered, to what the answer costs."""


def _of_report(partition: Partition, record: Record) -> Price:
    """Return the price of a report: that of its channel, for the ratings that are not left for counts."""
    calibrated, _ = installed_mechanism(partition.population)
    counting, most = CalibratedCounts.of(calibrated), of_any(calibrated)
    if counting is None:
        return Price(1, calibrated.accountant(partition.counts, np.ones(1, dtype=np.bool_)).loss_of(0), most)
    bits = int((~counting.left(perturbed(partition, calibrated))).sum())
    epsilon = float(counting.epsilons(partition.counts)[0])
    return Price(1, Loss(_of_rated(partition, epsilon), epsilon * bits), most)


def _of_counts(partition: Partition, record: Record) -> Price:
    """Return the price of counts.

    A rating is in a bit or in a count and loses at most epsilon in either, which the report was charged; see
    `CHARGED_WITH`. A whole profile loses no more by its bits and counts than by bits alone, which is what the
    report could have cost any profile.
    """
    calibrated, _ = installed_mechanism(partition.population)
    counting = CalibratedCounts.of(calibrated)
    assert counting is not None, "counts of devices that are not set up to count"
    _, groups = counting.group_codec.decode([CountRequest.of(record).groups])
    left = counting.left(perturbed(partition, calibrated))
    sizes = counting.grouped(partition.counts, groups[0, partition.items], left)
    drawn = counting.drawn(partition.counts, sizes)
    assert drawn.added is not None, "counts without their losses"
    return Price(COUNT_ROUND, Loss(0.0, float(drawn.added[0])), Loss(0.0, 0.0))


def _of_gradient(partition: Partition, record: Record) -> Price:
    """Return the price of a gradient report: one round's share, per rating and per user alike."""
    setup = partition.population.installed(IterativeSetup)
    share = math.inf if setup.epsilon_per_round is None else setup.epsilon_per_round
    loss = setup.gradient.exact_epsilon(share)
    round_index = GradientRequest.of(record).round_index
    return Price(round_index, Loss(_of_rated(partition, loss), loss), Loss(loss, loss))


def _of_slopes(partition: Partition, record: Record) -> Price:
    """Return the price of slopes: each rating has one of its own."""
    loss = installed_on(partition.population).channel.epsilon
    paid = _of_rated(partition, loss), _of_many(loss, int(partition.counts[0]))
    most = Loss(loss, _of_many(loss, partition.population.n_items))
    return Price(SlopesRequest.of(record).round_index, Loss(*paid), most)


def _of_statistics(partition: Partition, record: Record) -> Price:
    """Return the price of a contribution: without a delta, nothing is protected, whoever adds the noise."""
    paid = Loss(_of_rated(partition, math.inf), math.inf)
    return Price(GradientRequest.of(record).round_index, paid, Loss(math.inf, math.inf))


def _of_replacement(partition: Partition, record: Record) -> Price:
    """Return the price of replacements: each item outside the target domain has a draw of its own."""
    request, setup = ReplacementRequest.of(record), partition.population.installed(XMapSetup).replacement
    replaced = int(((partition.items < request.start) | (partition.items >= request.stop)).sum())
    loss = math.inf if setup.epsilon is None else setup.epsilon
    sources = partition.population.n_items - (request.stop - request.start)
    paid = Loss(loss if replaced else 0.0, _of_many(loss, replaced))
    return Price(request.round_index, paid, Loss(loss, _of_many(loss, sources)))


def of_any(calibrated: CalibratedMechanism) -> Loss:
    """Return what a report costs no profile more than.

    Between the shortest and the longest profile, the share of a rating only falls and their sum only rises,
    but for rounding. A budget that is divided is exceeded by neither.
    """
    budget = calibrated.budget
    if budget is not None and budget.per == "user" and budget.composition == "sum":
        return Loss(budget.epsilon, budget.epsilon)
    per_rating, per_user = calibrated.losses(np.array([1, calibrated.n_items]))
    rounding = 1.0 if budget is None or budget.per != "user" else _ROUNDING
    return Loss(float(per_rating.max()) * rounding, float(per_user.max()) * rounding)


def _of_rated(partition: Partition, loss: float) -> float:
    """Return the loss of a rating, 0 if there is none."""
    return loss if partition.counts[0] else 0.0


def _of_many(loss: float, draws: int) -> float:
    """Return what so many draws lose together."""
    return draws * loss if draws else 0.0


PRICES: Mapping[str, PriceOf] = {
    REPORT: _of_report,
    COUNT: _of_counts,
    TRAIN: _of_gradient,
    SLOPES: _of_slopes,
    STATISTICS: _of_statistics,
    UPDATE: _of_statistics,
    REPLACE: _of_replacement,
}
"""By the type of the message."""


def price_of(kind: str, partition: Partition, record: Record, name: str) -> Price:
    """Return what an answer costs.

    Should a defect keep that from being known for some profiles, it must not be seen: the user is charged
    what the answer could cost any profile.

    Parameters
    ----------
    kind : str
        The type of the message that is answered.
    partition : Partition
        Of one user.
    record : Record
        What the message asks for.
    name : str
        Of the device, for its owner.
    """
    try:
        return PRICES[kind](partition, record)
    except Exception:
        LOG.exception("%s: a defect; charged what the answer could cost any profile", name)
    price = PRICES[kind](emptied(partition), record)
    return replace(price, paid=price.most)


CHARGED_WITH: Mapping[str, str] = {COUNT: REPORT}
"""Types of messages whose answer is paid in part with that to another one, which has to come first."""

DELIVERIES = frozenset({DELIVER, PERSONALIZE, RECOMMEND})
"""Types of messages from which a device predicts, once its answer is on its way."""

FREE = DELIVERIES | {IDENTIFY}
"""Types of messages whose answer says nothing about the profile. Other types are not answered."""
