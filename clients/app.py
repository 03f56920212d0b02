"""How devices answer each kind of message.

The app of a simulation is Flower's, and in `clients.refusing`; a device that stands by itself has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from flwr.app import ConfigRecord, Context, Message, RecordDict

from clients import delivery, federated, iterative, one_shot
from clients.iterative import ReportsToSum, reply_with_reports, reply_with_sum
from clients.population import Brought, Partition, partition_id_of, partition_of
from dprec import exchange
from dprec.arrays import Bools
from dprec.exchange import Refusal, RefusalCode

if TYPE_CHECKING:
    from flwr.clientapp import ClientApp

RequestT = TypeVar("RequestT")

Answer = Callable[[Message, Context], Message]
"""Returns the answer to a message."""


class Answering(Protocol):
    """What passes each message on to the function that is registered for it; `ClientApp` is one."""

    def query(self, action: str, /) -> Callable[[Answer], Answer]:
        """Return what registers a function for "query." and the action."""

    def train(self, action: str, /) -> Callable[[Answer], Answer]:
        """Return the same for "train." and the action."""


AppT = TypeVar("AppT", bound=Answering)

PartitionFor = Callable[[Message, Context], Partition]
"""Returns the users that a message is for."""

Contribute = Callable[[Partition, exchange.GradientRequest, Context], ReportsToSum]
"""Returns the reports of a partition."""


def client_app(root: str, brought: Mapping[str, Brought] | None = None) -> ClientApp:
    """Return the app that every node runs, for populations in a folder.

    ``brought``: what runs need from outside dprec, by run key; Ray carries it to its workers with every
    message.
    """
    from clients.refusing import RefusingApp

    runs = {} if brought is None else brought

    def hosted(message: Message, context: Context) -> Partition:
        return partition_of(root, message, context, runs)

    app = answering(RefusingApp(), hosted)

    @app.query(exchange.action_of(exchange.TELL))
    def tell(message: Message, context: Context) -> Message:
        """Tell what only a simulation is told."""
        return federated.tell(message, hosted(message, context), context)

    return app


def answering(app: AppT, partition_for: PartitionFor) -> AppT:
    """Register with an app how devices answer each kind of message."""
    _answer_queries(app, partition_for)
    _deliver(app, partition_for)
    _take_part_in_rounds(app, partition_for)
    return app


def _answer_queries(app: Answering, partition_for: PartitionFor) -> None:
    @app.query(exchange.action_of(exchange.IDENTIFY))
    def identify(message: Message, context: Context) -> Message:
        """Report which partition this node hosts: node ids are random, partitions are not."""
        answer = ConfigRecord(exchange.Identity(partition_id_of(context)).entries())
        return Message(RecordDict({exchange.NODE: answer}), reply_to=message)

    @app.query(exchange.action_of(exchange.REPORT))
    def report(message: Message, context: Context) -> Message:
        """Send the perturbed profiles of the partition."""
        partition = partition_for(message, context)
        bitmap = request_in(exchange.ReportRequest.of, message).asked if message.content else None
        asked = _asked(bitmap, partition)
        reports = one_shot.reports(partition)
        return reply_with_reports(message, partition, reports, round_index=1, asked=asked)

    @app.query(exchange.action_of(exchange.COUNT))
    def count(message: Message, context: Context) -> Message:
        """Send noisy counts of the ratings that the partition's reports left out."""
        partition, request = partition_for(message, context), request_in(exchange.CountRequest.of, message)
        asked = _asked(request.asked, partition)
        reports = one_shot.count_reports(partition, request, context)
        return reply_with_reports(message, partition, reports, round_index=exchange.COUNT_ROUND, asked=asked)

    @app.query(exchange.action_of(exchange.REPLACE))
    def replace(message: Message, context: Context) -> Message:
        """Replace the source items of the partition's profiles and send the AlterEgos."""
        partition = partition_for(message, context)
        request = request_in(exchange.ReplacementRequest.of, message)
        asked = _asked(request.asked, partition)
        reports = delivery.alter_ego_reports(partition, request, context)
        return reply_with_reports(message, partition, reports, round_index=request.round_index, asked=asked)


def _deliver(app: Answering, partition_for: PartitionFor) -> None:
    def receive_learned(partition: Partition, message: Message, context: Context) -> None:
        iterative.receive_learned(partition, request_in(exchange.FinalFactors.of, message), context)

    def receive_table(partition: Partition, message: Message, context: Context) -> None:
        delivery.receive_table(partition, request_in(exchange.Personalization.of, message))

    def receive_lists(partition: Partition, message: Message, context: Context) -> None:
        delivery.receive_lists(partition, request_in(exchange.Recommendations.of, message))

    def register(kind: str, receive: Callable[[Partition, Message, Context], None]) -> None:
        @app.query(exchange.action_of(kind))
        def received(message: Message, context: Context) -> Message:
            receive(partition_for(message, context), message, context)
            return Message(RecordDict(), reply_to=message)

    register(exchange.DELIVER, receive_learned)
    register(exchange.PERSONALIZE, receive_table)
    register(exchange.RECOMMEND, receive_lists)


def _take_part_in_rounds(app: Answering, partition_for: PartitionFor) -> None:
    def register(kind: str, contribute: Contribute) -> None:
        @app.train(exchange.action_of(kind))
        def answer(message: Message, context: Context) -> Message:
            return answer_with_sum(contribute, message, partition_for(message, context), context)

    register(exchange.TRAIN, iterative.answers)
    register(exchange.STATISTICS, iterative.contributions)
    register(exchange.UPDATE, federated.updates)

    @app.train(exchange.action_of(exchange.SLOPES))
    def slopes(message: Message, context: Context) -> Message:
        """Report how the entries at the rated items should move."""
        partition, request = partition_for(message, context), request_in(exchange.SlopesRequest.of, message)
        reports = one_shot.slope_reports(partition, request, context)
        return reply_with_reports(message, partition, reports, round_index=request.round_index)


def answer_with_sum(
    contribute: Contribute, message: Message, partition: Partition, context: Context
) -> Message:
    """Answer with reports of which the server needs the sum alone: with their sum, where a node adds up."""
    request = request_in(exchange.GradientRequest.of, message)
    asked, round_index = _asked(request.asked, partition), request.round_index
    answers = contribute(partition, request, context)
    if partition.population.adds_up:
        return reply_with_sum(message, partition, answers, round_index, asked)
    return reply_with_reports(message, partition, answers.reports(), round_index=round_index, asked=asked)


def request_in(read: Callable[[exchange.Record], RequestT], message: Message) -> RequestT:
    """Read what a message asks for; raises Refusal when it is malformed."""
    record = message.content.get(exchange.REQUEST)
    if not isinstance(record, ConfigRecord):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "a request without a record")
    with exchange.refusing_malformed():
        return read(record)


def _asked(bitmap: bytes | None, partition: Partition) -> Bools:
    with exchange.refusing_malformed():
        return exchange.asked_users(bitmap, partition.size)
