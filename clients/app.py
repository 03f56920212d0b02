"""The ClientApp: how devices answer each kind of message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from clients import (
    delivery,
    gradient_perturbation,
    iterative,
    one_shot,
    personalization,
    private_als,
    replacement,
)
from clients.population import Brought, Partition, partition_id_of, partition_of
from clients.refusing_app import RefusingApp
from clients.replies import reply_with_reports, reply_with_sums
from dprec.exchange import (
    COUNT,
    COUNT_ROUND,
    DELIVER,
    IDENTIFY,
    NODE,
    PERSONALIZE,
    RECOMMEND,
    REPLACE,
    REPORT,
    REQUEST,
    SLOPES,
    STATISTICS,
    TRAIN,
    CountRequest,
    FinalFactors,
    GradientRequest,
    Identity,
    Personalization,
    PrivateAlsSetup,
    Recommendations,
    Record,
    Refusal,
    RefusalCode,
    ReplacementRequest,
    SlopesRequest,
    action_of,
    asked_users,
    refusing_malformed,
)

RequestT = TypeVar("RequestT")
AppT = TypeVar("AppT", bound=ClientApp)

PartitionFor = Callable[[Message, Context], Partition]
"""Returns the users that a message is for."""


def client_app(root: str, brought: Mapping[str, Brought] | None = None) -> ClientApp:
    """Return the app that every node runs.

    Parameters
    ----------
    root : str
        Folder of the runs' populations.
    brought : mapping, optional
        What runs need from outside dprec, by run key; Ray carries it to its workers with every message.
    """
    runs = {} if brought is None else brought
    return answering(RefusingApp(), lambda message, context: partition_of(root, message, context, runs))


def answering(app: AppT, partition_for: PartitionFor) -> AppT:
    """Register with an app how devices answer each kind of message."""
    _answer_queries(app, partition_for)
    _receive(app, partition_for)
    _take_part_in_rounds(app, partition_for)
    return app


def _answer_queries(app: ClientApp, partition_for: PartitionFor) -> None:
    """Register the handlers of what is asked once per run."""

    @app.query(action_of(IDENTIFY))
    def identify(message: Message, context: Context) -> Message:
        """Report which partition this node hosts: node ids are random, partitions are not."""
        answer = ConfigRecord(Identity(partition_id_of(context)).entries())
        return Message(RecordDict({NODE: answer}), reply_to=message)

    @app.query(action_of(REPORT))
    def report(message: Message, context: Context) -> Message:
        """Send the perturbed profiles of the partition."""
        partition = partition_for(message, context)
        return reply_with_reports(message, partition, one_shot.reports(partition), round_index=1)

    @app.query(action_of(COUNT))
    def count(message: Message, context: Context) -> Message:
        """Send noisy counts of the ratings that the partition's reports left out."""
        partition, request = partition_for(message, context), _request(CountRequest.of, message)
        asked = _asked(request, partition)
        reports = one_shot.count_reports(partition, request, context)
        return reply_with_reports(message, partition, reports, round_index=COUNT_ROUND, asked=asked)

    @app.query(action_of(REPLACE))
    def replace(message: Message, context: Context) -> Message:
        """Replace the source items of the partition's profiles and send the AlterEgos."""
        partition, request = partition_for(message, context), _request(ReplacementRequest.of, message)
        asked = _asked(request, partition)
        reports = replacement.alter_ego_reports(partition, request, context)
        return reply_with_reports(message, partition, reports, round_index=request.round_index, asked=asked)


def _receive(app: ClientApp, partition_for: PartitionFor) -> None:
    """Register the handlers of what is sent to devices and asks for no report."""

    @app.query(action_of(DELIVER))
    def deliver(message: Message, context: Context) -> Message:
        """Receive what was learned of the items, from which a device makes its own predictions."""
        partition = partition_for(message, context)
        final = _request(FinalFactors.of, message)
        if isinstance(partition.population.setup, PrivateAlsSetup):
            private_als.receive_model(partition, final)
        else:
            iterative.receive_factors(partition, final, context)
        return Message(RecordDict(), reply_to=message)

    @app.query(action_of(PERSONALIZE))
    def personalize(message: Message, context: Context) -> Message:
        """Receive what is known of the items, from which a device makes its own predictions."""
        partition = partition_for(message, context)
        personalization.receive_table(partition, _request(Personalization.of, message))
        return Message(RecordDict(), reply_to=message)

    @app.query(action_of(RECOMMEND))
    def recommend(message: Message, context: Context) -> Message:
        """Receive the best items, which the server predicts."""
        partition = partition_for(message, context)
        delivery.receive_lists(partition, _request(Recommendations.of, message))
        return Message(RecordDict(), reply_to=message)


def _take_part_in_rounds(app: ClientApp, partition_for: PartitionFor) -> None:
    """Register the handlers of what is asked in every round."""

    @app.train(action_of(TRAIN))
    def train(message: Message, context: Context) -> Message:
        """Report on the gradient of the item factors."""
        partition, request = partition_for(message, context), _request(GradientRequest.of, message)
        asked = _asked(request, partition)
        reports = iterative.gradient_reports(partition, request, context)
        round_index = request.round_index
        if not partition.population.adds_up:
            return reply_with_reports(message, partition, reports, round_index=round_index, asked=asked)
        add_up = iterative.adding_up(partition.population)
        return reply_with_sums(message, partition, reports, add_up, round_index=round_index, asked=asked)

    @app.train(action_of(STATISTICS))
    def statistics(message: Message, context: Context) -> Message:
        """Contribute to the statistics of the items."""
        partition, request = partition_for(message, context), _request(GradientRequest.of, message)
        asked, round_index = _asked(request, partition), request.round_index
        reports, add_up = private_als.contributions(partition, request, context)
        if not partition.population.adds_up:
            return reply_with_reports(message, partition, reports, round_index=round_index, asked=asked)
        return reply_with_sums(message, partition, reports, add_up, round_index=round_index, asked=asked)

    @app.train(action_of(SLOPES))
    def slopes(message: Message, context: Context) -> Message:
        """Report how the entries at the rated items should move."""
        partition, request = partition_for(message, context), _request(SlopesRequest.of, message)
        reports = gradient_perturbation.slope_reports(partition, request, context)
        return reply_with_reports(message, partition, reports, round_index=request.round_index)


def _request(read: Callable[[Record], RequestT], message: Message) -> RequestT:
    """Return what a message asks for."""
    record = message.content.get(REQUEST)
    if not isinstance(record, ConfigRecord):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "a request without a record")
    with refusing_malformed():
        return read(record)


def _asked(
    request: CountRequest | GradientRequest | ReplacementRequest, partition: Partition
) -> NDArray[np.bool_]:
    """Return which users of a partition a request asks."""
    with refusing_malformed():
        return asked_users(request.asked, partition.size)
