"""summary.json: what a run came to, as typed models. It is written and read here alone.

A key that does not apply is None; one that was not set is not written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from simulation.storage.atomic import write_atomically
from simulation.storage.documents import Document, parse_document, read_text
from simulation.storage.names import SUMMARY

Count = Annotated[int, Field(ge=0)]


class DatasetSummary(Document):
    """The ratings of the run."""

    kind: str = Field(description="Kind of the data set.")
    users: Count = Field(description="Users in the train and test ratings.")
    items: Count = Field(description="Size of the catalogue.")
    train_ratings: Count = Field(description="Ratings that the devices hold.")
    test_ratings: Count = Field(description="Ratings that are predicted.")
    scale: tuple[float, float] = Field(description="Lowest and highest rating.")
    levels: tuple[float, ...] = Field(
        min_length=2, description="The ratings that a device can hold; for a continuous scale, the ladder."
    )
    binarized_above: float | None = Field(description="The rating above which a rating counts as +1.")
    users_only_in_test: Count = Field(description="Users without a train rating.")
    items_only_in_test: Count = Field(description="Items without a train rating.")


class Accuracy(Document):
    """How good the predictions are, in the measures that suit the ratings."""

    rmse: float | None = Field(None, description="Root mean square error, in rating units.")
    mae: float | None = Field(None, description="Mean absolute error, in rating units.")
    precision_at_k: float | None = Field(None, description="Share of the top k that is relevant.")
    recall_at_k: float | None = Field(None, description="Share of what is relevant that is in the top k.")
    f_score_at_k: float | None = Field(None, description="Harmonic mean of precision and recall.")
    k: int | None = Field(None, description="Length of the lists that are judged.")
    sign_accuracy: float | None = Field(None, description="Share of the signs that are predicted.")
    relative_error: float | None = Field(
        None, description="||M^ - M||_F^2 / ||M||_F^2 over the hidden matrix, where that is known."
    )

    def measures(self) -> dict[str, float | None]:
        """Return the measures that suit the ratings, by their names here."""
        return self.model_dump(exclude_unset=True)


class LossPerUser(Document):
    """Privacy loss of whole profiles, over the users."""

    max: float | None = Field(description="The largest.")
    mean: float | None = Field(description="The mean.")
    median: float | None = Field(description="The median.")


class PrivacySummary(Document):
    """What is promised, and to whom."""

    epsilon_per_rating: float | None = Field(description="Largest loss of one rating, of any user.")
    epsilon_per_user: LossPerUser
    trusts_server: bool = Field(description="Whether the server receives true ratings.")
    hides_rated_items: bool = Field(description="Whether it is hidden which items a user rated.")
    notes: tuple[str, ...] = Field(description="What a reader of the figures must know.")


class DirectionSummary(Document):
    """Bytes one way, summed over the rounds."""

    payload_bytes: Count = Field(description="Encoded reports or broadcasts, all users.")
    message_bytes: Count = Field(description="Whole messages, all users.")
    payload_mean_per_user: float = Field(description="Payload of the mean user.")
    payload_max_per_user: Count = Field(description="Payload of the user with most.")
    message_mean_per_user: float = Field(description="Messages of the mean user.")
    message_p95_per_user: float = Field(description="What the messages of 95 % of the users stay below.")
    message_max_per_user: Count = Field(description="Messages of the user with most.")


class TrafficSummary(Document):
    """What went over the wire."""

    rounds: Count = Field(description="Rounds of the protocol.")
    users: Count = Field(description="Users who took part.")
    uplink: DirectionSummary
    downlink: DirectionSummary
    deployed_factor: float | None = Field(
        description="Bytes that the deployment engine moves per byte of a message; None without messages."
    )

    @property
    def total_message_bytes(self) -> int:
        """Bytes of all messages, both ways."""
        return self.uplink.message_bytes + self.downlink.message_bytes


class DistanceSummary(Document):
    """Root mean square difference between what is shown and the ratings (Zheng, Theorem 3)."""

    shown_cells: Count | None = Field(None, description="Cells that reports show as rated.")
    rated_cells: Count | None = Field(None, description="Of these, cells that are truly rated.")
    bound: float | None = Field(None, description="Bound over all cells shown, in rating units.")
    measured: float | None = Field(None, description="Measured on the rated cells, in rating units.")
    tolerance: float | None = Field(None, description="The theorem's tolerance.")
    rating_noise: float | None = Field(None, description="The theorem's noise of true ratings.")


class TimeSummary(Document):
    """Where the time went, in seconds."""

    total_s: float = Field(description="From the ratings to the result.")
    startup_s: float = Field(description="To start Flower.")
    clients_s: float = Field(description="Until the devices had answered, all rounds.")
    server_s: float = Field(description="For the server's work.")


class FileSummary(Document):
    """A file beside the summary, as it was written."""

    rows: Count | None = Field(description="Lines without the header; None for a file without lines.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Digest of its bytes, in hexadecimal.")


class Summary(Document):
    """What a run came to."""

    schema_version: Literal[1] = Field(
        default=1, alias="schema", description="Raised when a key changes its meaning or goes."
    )
    name: str = Field(description="Name of the configuration.")
    protocol: str = Field(description="Kind of the protocol.")
    mechanism: str = Field(description="What protects the users.")
    completion: str = Field(description="What completes the matrix.")
    dataset: DatasetSummary
    accuracy: Accuracy
    privacy: PrivacySummary
    traffic: TrafficSummary
    distance: DistanceSummary
    completion_diagnostics: dict[str, Any] = Field(description="What the completion learned.")
    time: TimeSummary
    peak_memory_mb: float = Field(description="Most memory that this process held, in MiB.")
    environment: dict[str, Any] = Field(description="Versions, platform and simulation settings.")
    files: dict[str, FileSummary] = Field(description="The files beside it; none for a run kept nowhere.")

    def as_json(self) -> dict[str, Any]:
        """Return the contents of summary.json."""
        dumped = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {"schema": self.schema_version, **dumped}


def write_summary(directory: Path, summary: Summary) -> None:
    """Write summary.json."""
    content = json.dumps(summary.as_json(), indent=2, allow_nan=False) + "\n"
    write_atomically(directory / SUMMARY, content)


def read_summary(directory: Path) -> Summary:
    """Read summary.json.

    Raises
    ------
    InputError
        Naming the first key that is missing, unknown or of another type.
    """
    path = directory / SUMMARY
    return parse_document(Summary, read_text(path), str(path))
