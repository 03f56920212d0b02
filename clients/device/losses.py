"""What each kind of answer costs, from what is installed on the device alone."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from clients.device.ledger import Price
from clients.device.profile import emptied
from clients.gradient_perturbation import installed_on
from clients.one_shot import held, installed_family, installed_follow_up
from clients.population import Partition
from dprec import exchange
from dprec.accounting import Loss
from dprec.exchange.messages import UPDATE

LOG = logging.getLogger("dprec.device")

PriceOf = Callable[[Partition, exchange.Record], Price]
"""From the partition of one user and a request that was answered, to what the answer costs."""


def _of_report(partition: Partition, record: exchange.Record) -> Price:
    """Return the price of a report: what its family says of the profile, and of any."""
    family = installed_family(partition.population)
    per_rating, per_user = family.report_losses(*held(partition))
    paid = Loss(0.0 if math.isnan(per_rating[0]) else float(per_rating[0]), float(per_user[0]))
    return Price(1, paid, Loss(*family.most_losses()))


def _of_counts(partition: Partition, record: exchange.Record) -> Price:
    """Return the price of what follows a report, which was charged what any profile could lose by both."""
    profiles, draws = held(partition)
    lost = installed_follow_up(partition.population).losses(
        profiles, exchange.CountRequest.of(record).groups, draws
    )
    return Price(exchange.COUNT_ROUND, Loss(0.0, float(lost[0])), Loss(0.0, 0.0))


def _of_gradient(partition: Partition, record: exchange.Record) -> Price:
    """Return the price of a gradient report: one round's share, per rating and per user alike."""
    setup = partition.population.installed(exchange.IterativeSetup)
    share = math.inf if setup.epsilon_per_round is None else setup.epsilon_per_round
    loss = setup.gradient.exact_epsilon(share)
    round_index = exchange.GradientRequest.of(record).round_index
    return Price(round_index, Loss(_of_rated(partition, loss), loss), Loss(loss, loss))


def _of_slopes(partition: Partition, record: exchange.Record) -> Price:
    """Return the price of slopes: each rating has one of its own."""
    loss = installed_on(partition.population).channel.epsilon
    paid = _of_rated(partition, loss), _of_many(loss, int(partition.counts[0]))
    most = Loss(loss, _of_many(loss, partition.population.n_items))
    return Price(exchange.SlopesRequest.of(record).round_index, Loss(*paid), most)


def _of_statistics(partition: Partition, record: exchange.Record) -> Price:
    """Return the price of a contribution: without a delta, nothing is protected, whoever adds the noise."""
    paid = Loss(_of_rated(partition, math.inf), math.inf)
    return Price(exchange.GradientRequest.of(record).round_index, paid, Loss(math.inf, math.inf))


def _of_replacement(partition: Partition, record: exchange.Record) -> Price:
    """Return the price of replacements: each item outside the target domain has a draw of its own."""
    request, setup = (
        exchange.ReplacementRequest.of(record),
        partition.population.installed(exchange.XMapSetup).replacement,
    )
    replaced = int(((partition.items < request.start) | (partition.items >= request.stop)).sum())
    loss = math.inf if setup.epsilon is None else setup.epsilon
    sources = partition.population.n_items - (request.stop - request.start)
    paid = Loss(loss if replaced else 0.0, _of_many(loss, replaced))
    return Price(request.round_index, paid, Loss(loss, _of_many(loss, sources)))


def _of_rated(partition: Partition, loss: float) -> float:
    return loss if partition.counts[0] else 0.0


def _of_many(loss: float, draws: int) -> float:
    return draws * loss if draws else 0.0


PRICES: Mapping[str, PriceOf] = {
    exchange.REPORT: _of_report,
    exchange.COUNT: _of_counts,
    exchange.TRAIN: _of_gradient,
    exchange.SLOPES: _of_slopes,
    exchange.STATISTICS: _of_statistics,
    UPDATE: _of_statistics,
    exchange.REPLACE: _of_replacement,
}
"""By the type of the message."""


def price_of(kind: str, partition: Partition, record: exchange.Record, name: str) -> Price:
    """Return what an answer to a message of a kind costs the user of a partition.

    Should a defect keep that from being known for some profiles, it must not be seen: the user is charged
    what the answer could cost any profile.
    """
    try:
        return PRICES[kind](partition, record)
    except Exception:
        LOG.exception("%s: a defect; charged what the answer could cost any profile", name)
    price = PRICES[kind](emptied(partition), record)
    return replace(price, paid=price.most)


CHARGED_WITH: Mapping[str, str] = {exchange.COUNT: exchange.REPORT}
"""Types of messages whose answer is paid in part with that to another one, which has to come first."""

DELIVERIES = frozenset({exchange.DELIVER, exchange.PERSONALIZE, exchange.RECOMMEND})
"""Types of messages from which a device predicts, once its answer is on its way."""

FREE = DELIVERIES | {exchange.IDENTIFY}
"""Types of messages whose answer says nothing about the profile. Other types are not answered."""
