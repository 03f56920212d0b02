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
from clients.population import Brought, Cohort, cohort_of, partition_of
from clients.refusing_app import RefusingApp
from clients.replies import reply_with_reports, reply_with_sums
from dprec.messages import (
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
    Personalization,
    Recommendations,
    Record,
    ReplacementRequest,
    SlopesRequest,
    action_of,
    asked_users,
)
from dprec.refusals import Refusal, RefusalCode, refusing_malformed
from dprec.replies import Identity
from dprec.setups import PrivateAlsSetup

RequestT = TypeVar("RequestT")
AppT = TypeVar("AppT", bound=ClientApp)

CohortFor = Callable[[Message, Context], Cohort]
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
    return answering(RefusingApp(), lambda message, context: cohort_of(root, message, context, runs))


def answering(app: AppT, cohort_for: CohortFor) -> AppT:
    """Register with an app how devices answer each kind of message."""
    _answer_queries(app, cohort_for)
    _receive(app, cohort_for)
    _take_part_in_rounds(app, cohort_for)
    return app


def _answer_queries(app: ClientApp, cohort_for: CohortFor) -> None:
    """Register the handlers of what is asked once per run."""

    @app.query(action_of(IDENTIFY))
    def identify(message: Message, context: Context) -> Message:
        """Report which partition this node hosts: node ids are random, partitions are not."""
        answer = ConfigRecord(Identity(partition_of(context)).entries())
        return Message(RecordDict({NODE: answer}), reply_to=message)

    @app.query(action_of(REPORT))
    def report(message: Message, context: Context) -> Message:
        """Send the perturbed profiles of the cohort."""
        cohort = cohort_for(message, context)
        return reply_with_reports(message, cohort, one_shot.reports(cohort), round_index=1)

    @app.query(action_of(COUNT))
    def count(message: Message, context: Context) -> Message:
        """Send noisy counts of the ratings that the cohort's reports left out."""
        cohort, request = cohort_for(message, context), _request(CountRequest.of, message)
        asked = _asked(request, cohort)
        reports = one_shot.count_reports(cohort, request, context)
        return reply_with_reports(message, cohort, reports, round_index=COUNT_ROUND, asked=asked)

    @app.query(action_of(REPLACE))
    def replace(message: Message, context: Context) -> Message:
        """Replace the source items of the cohort's profiles and send the AlterEgos."""
        cohort, request = cohort_for(message, context), _request(ReplacementRequest.of, message)
        asked = _asked(request, cohort)
        reports = replacement.alter_ego_reports(cohort, request, context)
        return reply_with_reports(message, cohort, reports, round_index=request.round_index, asked=asked)


def _receive(app: ClientApp, cohort_for: CohortFor) -> None:
    """Register the handlers of what is sent to devices and asks for no report."""

    @app.query(action_of(DELIVER))
    def deliver(message: Message, context: Context) -> Message:
        """Receive what was learned of the items, from which a device makes its own predictions."""
        cohort = cohort_for(message, context)
        final = _request(FinalFactors.of, message)
        if isinstance(cohort.population.setup, PrivateAlsSetup):
            private_als.receive_model(cohort, final)
        else:
            iterative.receive_factors(cohort, final, context)
        return Message(RecordDict(), reply_to=message)

    @app.query(action_of(PERSONALIZE))
    def personalize(message: Message, context: Context) -> Message:
        """Receive what is known of the items, from which a device makes its own predictions."""
        cohort = cohort_for(message, context)
        personalization.receive_table(cohort, _request(Personalization.of, message))
        return Message(RecordDict(), reply_to=message)

    @app.query(action_of(RECOMMEND))
    def recommend(message: Message, context: Context) -> Message:
        """Receive the best items, which the server predicts."""
        cohort = cohort_for(message, context)
        delivery.receive_lists(cohort, _request(Recommendations.of, message))
        return Message(RecordDict(), reply_to=message)


def _take_part_in_rounds(app: ClientApp, cohort_for: CohortFor) -> None:
    """Register the handlers of what is asked in every round."""

    @app.train(action_of(TRAIN))
    def train(message: Message, context: Context) -> Message:
        """Report on the gradient of the item factors."""
        cohort, request = cohort_for(message, context), _request(GradientRequest.of, message)
        asked = _asked(request, cohort)
        reports = iterative.gradient_reports(cohort, request, context)
        round_index = request.round_index
        if not cohort.population.adds_up:
            return reply_with_reports(message, cohort, reports, round_index=round_index, asked=asked)
        add_up = iterative.adding_up(cohort.population)
        return reply_with_sums(message, cohort, reports, add_up, round_index=round_index, asked=asked)

    @app.train(action_of(STATISTICS))
    def statistics(message: Message, context: Context) -> Message:
        """Contribute to the statistics of the items."""
        cohort, request = cohort_for(message, context), _request(GradientRequest.of, message)
        asked, round_index = _asked(request, cohort), request.round_index
        reports, add_up = private_als.contributions(cohort, request, context)
        if not cohort.population.adds_up:
            return reply_with_reports(message, cohort, reports, round_index=round_index, asked=asked)
        return reply_with_sums(message, cohort, reports, add_up, round_index=round_index, asked=asked)

    @app.train(action_of(SLOPES))
    def slopes(message: Message, context: Context) -> Message:
        """Report how the entries at the rated items should move."""
        cohort, request = cohort_for(message, context), _request(SlopesRequest.of, message)
        reports = gradient_perturbation.slope_reports(cohort, request, context)
        return reply_with_reports(message, cohort, reports, round_index=request.round_index)


def _request(read: Callable[[Record], RequestT], message: Message) -> RequestT:
    """Return what a message asks for."""
    record = message.content.get(REQUEST)
    if not isinstance(record, ConfigRecord):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "a request without a record")
    with refusing_malformed():
        return read(record)


def _asked(request: CountRequest | GradientRequest | ReplacementRequest, cohort: Cohort) -> NDArray[np.bool_]:
    """Return which users of a cohort a request asks."""
    with refusing_malformed():
        return asked_users(request.asked, cohort.size)
