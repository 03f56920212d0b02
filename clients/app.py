"""The ClientApp: which message the devices answer in which way."""

from __future__ import annotations

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from clients import iterative, one_bit, one_shot, x_map
from clients.messages import asked_round, asked_users, reply_with_reports, request_of
from clients.population import cohort_of, partition_of


def client_app(root: str | None = None) -> ClientApp:
    """Return the app that every node runs.

    Parameters
    ----------
    root : str, optional
        Folder of the runs' populations; by default what the run configuration names.
    """
    app = ClientApp()

    @app.query("identify")
    def identify(message: Message, context: Context) -> Message:
        """Tell which partition this node hosts: node ids are random, partitions are not."""
        return Message(
            RecordDict({"node": ConfigRecord({"partition": partition_of(context)})}), reply_to=message
        )

    @app.query("report")
    def report(message: Message, context: Context) -> Message:
        """Send the perturbed profiles of the cohort."""
        cohort = cohort_of(root, message, context)
        return reply_with_reports(message, cohort, one_shot.reports(cohort), round_index=1)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        """Take part in a round: report something about the gradient."""
        cohort, request = cohort_of(root, message, context), request_of(message)
        asked, round_index = asked_users(cohort, request), asked_round(request)
        reports = iterative.round_reports(cohort, asked, round_index, request, context)
        return reply_with_reports(message, cohort, reports, round_index=round_index, asked=asked)

    @app.train("slopes")
    def slopes(message: Message, context: Context) -> Message:
        """Take part in a round: report how the entries at the rated items should move."""
        cohort, request = cohort_of(root, message, context), request_of(message)
        round_index = asked_round(request)
        reports = one_bit.slope_reports(cohort, round_index, request, context)
        return reply_with_reports(message, cohort, reports, round_index=round_index)

    @app.query("deliver")
    def deliver(message: Message, context: Context) -> Message:
        """Receive the final item factors, with which a device makes its own predictions."""
        cohort = cohort_of(root, message, context)
        iterative.receive_factors(cohort, request_of(message), context)
        return Message(RecordDict(), reply_to=message)

    @app.query("replace")
    def replace(message: Message, context: Context) -> Message:
        """Replace the source items of the cohort's profiles and send the AlterEgos."""
        cohort, request = cohort_of(root, message, context), request_of(message)
        asked, round_index = asked_users(cohort, request), asked_round(request)
        reports = x_map.reports(cohort, asked, request)
        return reply_with_reports(message, cohort, reports, round_index=round_index, asked=asked)

    return app


app = client_app()
