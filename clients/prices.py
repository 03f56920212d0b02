"""What an answer costs a user: what its own profile loses, and what any profile could lose.

The audit holds the ledger of a run against it; a device that stands by itself charges it.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from clients.iterative import turns_of
from clients.one_shot import held, installed_family, installed_follow_up
from clients.population import Partition
from dprec import exchange
from dprec.accounting import Loss
from dprec.exchange import UPDATE
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.protocols.rounds import BroadcastProtocol
from dprec.protocols.sums import SumsProtocol
from dprec.protocols.x_map import XMapProtocol


@dataclass(frozen=True)
class Price:
    """What an answer costs a profile, and what it could cost any profile."""

    round_index: int
    """The round that is answered, from 1."""
    paid: Loss
    """What the user's own profile loses."""
    most: Loss
    """What no profile loses more of. Limits are held against this: it follows from the protocol alone, so
    whether an answer is refused says nothing about the profile.
    """
    delta: float = 0.0
    """Probability beyond which both hold, added to those before."""


PriceOf = Callable[[Partition, exchange.Record, Collection[int]], Price]
"""From the partition of one user, a request, and the rounds of the run that were answered before to requests
of its type, to what the answer costs.
"""


def _of_report(partition: Partition, record: exchange.Record, _: Collection[int]) -> Price:
    """Return the price of a report: what its family says of the profile, and of any."""
    family = installed_family(partition.population)
    per_rating, per_user = family.report_losses(*held(partition))
    paid = Loss(0.0 if math.isnan(per_rating[0]) else float(per_rating[0]), float(per_user[0]))
    return Price(1, paid, Loss(*family.most_losses()))


def _of_counts(partition: Partition, record: exchange.Record, _: Collection[int]) -> Price:
    """Return the price of what follows a report, which was charged what any profile could lose by both."""
    profiles, draws = held(partition)
    lost = installed_follow_up(partition.population).losses(
        profiles, exchange.CountRequest.of(record).groups, draws
    )
    return Price(exchange.COUNT_ROUND, Loss(0.0, float(lost[0])), Loss(0.0, 0.0))


def _of_answer(partition: Partition, record: exchange.Record, _: Collection[int]) -> Price:
    """Return the price of an answer of which the sum is used: one round's share, per rating and per user."""
    round_index = exchange.GradientRequest.of(record).round_index
    loss = partition.population.installed(BroadcastProtocol).charge(round_index).per_rating
    return Price(round_index, Loss(_of_rated(partition, loss), loss), Loss(loss, loss))


def _of_slopes(partition: Partition, record: exchange.Record, _: Collection[int]) -> Price:
    """Return the price of slopes: each rating has one of its own."""
    loss = partition.population.installed(GradientPerturbationProtocol).channel.epsilon
    paid = _of_rated(partition, loss), _of_many(loss, int(partition.counts[0]))
    most = Loss(loss, _of_many(loss, partition.population.n_items))
    return Price(exchange.SlopesRequest.of(record).round_index, Loss(*paid), most)


def _of_contribution(partition: Partition, record: exchange.Record, answered: Collection[int]) -> Price:
    """Return the price of a contribution: by how much the loss of the run's contributions rises with it.

    A device that protects its report by itself has one turn, at no delta. What a server is trusted to do
    protects nothing as far as a device knows, so there is no end to the loss.
    """
    protocol, round_index = partition.population.installed(SumsProtocol), exchange.round_of(record)
    if not 1 <= round_index <= protocol.rounds:
        raise exchange.Refusal(
            exchange.RefusalCode.TOO_MANY_ROUNDS, f"round {round_index} of {protocol.rounds}"
        )
    aggregation = protocol.aggregation
    before = () if aggregation.by_itself else tuple(answered)
    silent = aggregation.by_itself and not aggregation.reporting(turns_of(partition), round_index)[0]
    total_loss = 0.0 if silent else protocol.loss_of((*before, round_index))
    loss = max(0.0, total_loss - protocol.loss_of(before)) if math.isfinite(total_loss) else math.inf
    delta = 0.0 if before else protocol.counted_at
    return Price(round_index, Loss(_of_rated(partition, loss), loss), Loss(loss, loss), delta)


def _of_replacement(partition: Partition, record: exchange.Record, _: Collection[int]) -> Price:
    """Return the price of replacements: each item outside the target domain has a draw of its own."""
    request = exchange.ReplacementRequest.of(record)
    replacement = partition.population.installed(XMapProtocol).replacement
    replaced = int(((partition.items < request.start) | (partition.items >= request.stop)).sum())
    loss = math.inf if replacement.epsilon is None else replacement.epsilon
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
    exchange.TRAIN: _of_answer,
    exchange.SLOPES: _of_slopes,
    exchange.STATISTICS: _of_contribution,
    UPDATE: _of_answer,
    exchange.REPLACE: _of_replacement,
}
"""By the type of the message."""
