"""The ClientApp: how devices answer each kind of message, and how they refuse.

None of their failures says more to the server than its code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from clients import (
    counting,
    delivery,
    federated,
    gradient_perturbation,
    iterative,
    one_shot,
    private_als,
    replacement,
)
from clients.population import Brought, Cohort, PopulationError, cohort_of, partition_of
from clients.replies import AddUp, reply_with_reports, reply_with_sums
from dprec.messages import (
    COUNT,
    COUNT_ROUND,
    DELIVER,
    IDENTIFY,
    MESSAGE_TYPES,
    NODE,
    PERSONALIZE,
    RECOMMEND,
    REPLACE,
    REPORT,
    REQUEST,
    SLOPES,
    STATISTICS,
    TRAIN,
    UPDATE,
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
from dprec.setups import FederatedSetup, PrivateAlsSetup, Setup

RequestT = TypeVar("RequestT")
AppT = TypeVar("AppT", bound=ClientApp)

CohortFor = Callable[[Message, Context], Cohort]
"""Returns the users that a message is for."""

Contribute = Callable[[Cohort, GradientRequest, Context], tuple[list[bytes], AddUp]]
"""Returns the reports of a cohort, and what validates and adds them up."""

_RECEIVERS: Mapping[type[Setup], Callable[[Cohort, FinalFactors, Context], object]] = {
    PrivateAlsSetup: private_als.receive_model,
    FederatedSetup: federated.receive_parameters,
}
"""What takes the final parameters, by what is installed; others take factors, or refuse."""


LOG = logging.getLogger("dprec.device")
"""What the owner of a device can read about requests that were not answered."""


class RefusingApp(ClientApp):
    """A `ClientApp` that answers what it refuses with an error: a `RefusalCode` and its name."""

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer a message.

        Raises
        ------
        PopulationError
            When the simulation did not provide the device with its ratings: that is no device's fault.
        """
        try:
            if message.metadata.message_type not in MESSAGE_TYPES:
                what = f"a message of type {message.metadata.message_type!r}"
                raise Refusal(RefusalCode.MALFORMED_REQUEST, what)
            return super().__call__(message, context)
        except PopulationError:
            raise
        except Refusal as refusal:
            LOG.warning("%s: %s", refusal.code.name, refusal.reason)
            code = refusal.code
        except Exception:  # whatever it is, the server must not read it
            code = RefusalCode.INTERNAL_FAILURE
            LOG.exception("%s", code.name)
        return Message(Error(int(code), code.name), reply_to=message)


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
        reports = counting.count_reports(cohort, request, context)
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
        receive = _RECEIVERS.get(type(cohort.population.setup), iterative.receive_factors)
        receive(cohort, _request(FinalFactors.of, message), context)
        return Message(RecordDict(), reply_to=message)

    @app.query(action_of(PERSONALIZE))
    def personalize(message: Message, context: Context) -> Message:
        """Receive what is known of the items, from which a device makes its own predictions."""
        cohort = cohort_for(message, context)
        delivery.receive_table(cohort, _request(Personalization.of, message))
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
        return _contribution(iterative.gradient_reports, message, cohort_for(message, context), context)

    @app.train(action_of(STATISTICS))
    def statistics(message: Message, context: Context) -> Message:
        """Contribute to the statistics of the items."""
        return _contribution(private_als.contributions, message, cohort_for(message, context), context)

    @app.train(action_of(UPDATE))
    def update(message: Message, context: Context) -> Message:
        """Send the updates of a model."""
        return _contribution(federated.update_reports, message, cohort_for(message, context), context)

    @app.train(action_of(SLOPES))
    def slopes(message: Message, context: Context) -> Message:
        """Report how the entries at the rated items should move."""
        cohort, request = cohort_for(message, context), _request(SlopesRequest.of, message)
        reports = gradient_perturbation.slope_reports(cohort, request, context)
        return reply_with_reports(message, cohort, reports, round_index=request.round_index)


def _contribution(contribute: Contribute, message: Message, cohort: Cohort, context: Context) -> Message:
    """Answer with reports of which the server needs the sum alone: with their sum, where a node adds up."""
    request = _request(GradientRequest.of, message)
    asked, round_index = _asked(request, cohort), request.round_index
    reports, add_up = contribute(cohort, request, context)
    if not cohort.population.adds_up:
        return reply_with_reports(message, cohort, reports, round_index=round_index, asked=asked)
    return reply_with_sums(message, cohort, reports, add_up, round_index=round_index, asked=asked)


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
