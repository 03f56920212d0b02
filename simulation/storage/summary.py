"""summary.json: the figures of a run, as typed models. It is written and read only here.

A key that does not apply is null; one that was not set is not written.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dprec import formats
from dprec.accounting import Status, Trust
from dprec.completion import FittedMixture
from dprec.errors import plural
from simulation.configuration.strict_yaml import flatten
from simulation.courses.domains import LearnedDomains
from simulation.storage.attacked import AttackSummary
from simulation.storage.column import HIGHER, IN_FILES, LOWER, TIMED, Amount, Column, better, loss, on_pages
from simulation.storage.directories import SUMMARY
from simulation.storage.files import (
    Count,
    Document,
    SchemaNumber,
    parse_document,
    read_text,
    write_atomically,
)


class DatasetSummary(Document):
    """The ratings of the run."""

    kind: Annotated[str, IN_FILES] = Field(description="Kind of the data set.")
    users: Annotated[Count, IN_FILES] = Field(
        description="Users in the train and test ratings, without cold ones, or those of the enrolment."
    )
    represents: Annotated[Count | None, IN_FILES] = Field(
        None,
        description="Users of the population that these represent, by tau; null where all are simulated.",
    )
    items: Annotated[Count, IN_FILES] = Field(description="Size of the catalogue.")
    train_ratings: Annotated[Count | None, IN_FILES] = Field(
        description="Number of train ratings; null if it is unknown."
    )
    test_ratings: Annotated[Count | None, IN_FILES] = Field(
        description="Number of test ratings; null if there are none."
    )
    scale: tuple[float, float] | None = Field(
        description="Lowest and highest rating; null of implicit data, which have none."
    )
    scale_read_off: tuple[str, ...] = Field(
        default=(),
        description="Settings of the scale that were not given, so that the private ratings decided them.",
    )
    levels: Annotated[tuple[float, ...], Field(min_length=2)] | None = Field(
        description="Ratings that a device can hold; a continuous scale is rounded to them.",
    )
    binarized_above: Annotated[float | None, IN_FILES] = Field(
        description="The rating above which a rating counts as +1."
    )
    users_only_in_test: Annotated[Count | None, IN_FILES] = Field(
        description="Users without a train rating, as cold ones are."
    )
    items_only_in_test: Annotated[Count | None, IN_FILES] = Field(description="Items without a train rating.")
    notes: tuple[str, ...] = Field(
        default=(), description="How somebody's own ratings were read; it holds of every protocol."
    )


class ReadSummary(Document):
    """What was read as ratings, from which columns, and what was left out of it."""

    source: str = Field(
        description="The file or files, what they are called in Python, or the kind of the data set."
    )
    users: str | None = Field(None, description="Column of the users; null where there are no columns.")
    items: str | None = Field(None, description="Column of the items.")
    ratings: str | None = Field(None, description="Column of the ratings; null of pairs without any.")
    times: str | None = Field(None, description="Column of the times; null where none was found.")
    scale: str = Field(description="The scale, and what it is known by.")
    left_out: dict[str, Count] = Field(
        default={}, description="Rows, pairs or ratings of either part that were left out, by the reason."
    )
    counts: tuple[Count, Count, Count] = Field(description="Users, items and ratings that were read.")

    @property
    def sentence(self) -> str:
        """All of it in a line."""
        users, items, ratings = self.counts
        unrated = self.ratings is None and self.users is not None
        pairs = f"{plural(ratings, 'pair')} without ratings" if unrated else plural(ratings, "rating")
        counted = (
            (plural(users, "user"), _in_brackets(self.users)),
            (plural(items, "item"), _in_brackets(self.items)),
            (pairs, _in_brackets(self.ratings, self.scale)),
        )
        columns = ", ".join(map("".join, counted))
        times = (
            ""
            if self.users is None
            else f", {'times' + _in_brackets(self.times) if self.times else 'no times'}"
        )
        left_out = ", ".join(f"{number:,} {reason}" for reason, number in self.left_out.items())
        return f"Read from {self.source}: {columns}{times}." + (f" Left out: {left_out}." if left_out else "")


def _in_brackets(*words: str | None) -> str:
    joined = "; ".join(filter(None, words))
    return f" ({joined})" if joined else ""


_ByCutoff = dict[int, Amount | None]


class _RankingFigures(Document):
    """How good lists from the catalogue are, by cutoff: means over the users with a relevant test rating."""

    users: Annotated[Count, IN_FILES] = Field(description="Users with a relevant test rating.")
    ndcg_at: Annotated[_ByCutoff, better("NDCG at {key}, {of}", HIGHER)] = Field(
        description="Normalised discounted cumulative gain."
    )
    hit_rate_at: Annotated[_ByCutoff, better("Hit rate at {key}, {of}", HIGHER, brief=False)] = Field(
        description="Share of the users with a relevant item."
    )
    mrr_at: Annotated[_ByCutoff, better("MRR at {key}, {of}", HIGHER, brief=False)] = Field(
        description="One over the rank of the first relevant item."
    )
    recall_at: Annotated[_ByCutoff, better("Recall at {key}, {of}", HIGHER)] = Field(
        description="Share of the relevant items that are listed."
    )
    precision_at: Annotated[_ByCutoff, better("Precision at {key}, {of}", HIGHER, brief=False)] = Field(
        description="Share of the list positions with a relevant item."
    )
    map_at: Annotated[_ByCutoff, better("MAP at {key}, {of}", HIGHER, brief=False)] = Field(
        default_factory=dict,
        description="Precisions at the ranks of relevant items, summed, over the number of all of the user.",
    )
    coverage_at: Annotated[_ByCutoff, better("Coverage at {key}, {of}", HIGHER, brief=False)] = Field(
        description="Share of the catalogue in anybody's list."
    )


class RankingSummary(_RankingFigures):
    """Lists of all items that a user has not rated."""

    graded_ndcg_at: Annotated[_ByCutoff, better("Graded NDCG at {key}, {of}", HIGHER, brief=False)] = Field(
        default_factory=dict,
        description="NDCG whose gain is the level of a test rating, 1 for the lowest of the scale: mean over "
        "users with a test rating; absent of signs and of implicit data.",
    )


class SampledRankingSummary(_RankingFigures):
    """Lists among sampled items, which no other sample's or full ranking's figures compare with."""

    negatives: Annotated[Count, IN_FILES] = Field(
        description="Items that were drawn for each user, or the most that a file gives for one."
    )
    seed: Annotated[int | None, IN_FILES] = Field(description="Seed of the draws; null of a file.")


NEARLY_ALL = 0.9
"""Share of users from which on it is said of nearly all of them."""


class Accuracy(Document):
    """How accurate the predictions are, in the metrics that suit the ratings.

    The first that a run has is its main one.
    """

    rmse: Annotated[Amount | None, better("RMSE", LOWER)] = Field(
        None, description="Root mean square error, in rating units."
    )
    relative_error: Annotated[Amount | None, better("Relative error", LOWER)] = Field(
        None, description="||M^ - M||_F^2 / ||M||_F^2 over the hidden matrix, if that is known."
    )
    sign_accuracy: Annotated[Amount | None, better("Sign accuracy", HIGHER)] = Field(
        None, description="Share of the signs predicted correctly."
    )
    ndcg_at_10: Annotated[Amount | None, better("NDCG at 10", HIGHER)] = Field(
        None,
        description="Of implicit data: normalised discounted cumulative gain of lists from all items that a "
        "user does not have, mean over users.",
    )
    recall_at_20: Annotated[Amount | None, better("Recall at 20", HIGHER)] = Field(
        None, description="Share of a user's test items that are in such a list of 20, mean over users."
    )
    hit_rate_at_10: Annotated[Amount | None, better("Hit rate at 10", HIGHER, brief=False)] = Field(
        None, description="Share of the users with a test item in the list."
    )
    mrr_at_10: Annotated[Amount | None, better("MRR at 10", HIGHER, brief=False)] = Field(
        None, description="One over the rank of the first test item, 0 beyond 10, mean over users."
    )
    map_at_10: Annotated[Amount | None, better("MAP at 10", HIGHER, brief=False)] = Field(
        None,
        description="Precisions at the ranks of test items up to 10, summed, over the number of all test "
        "items of the user (map_cut of trec_eval), mean over users.",
    )
    coverage: Annotated[Amount | None, better("Coverage", HIGHER)] = Field(
        None, description="Share of the catalogue in anybody's first ten."
    )
    popularity_lift: Annotated[float | None, Column("popularity lift", digits=4, where="page")] = Field(
        None,
        description="By how much the items of the first ten are more popular in training than users' own "
        "items, as a share of the latter; below 0 is less.",
    )
    tail_recall_at_20: Annotated[Amount | None, better("Tail recall at 20", HIGHER)] = Field(
        None,
        description="Recall of the test items outside the most popular fifth of the catalogue; null where "
        "there are none.",
    )
    mae: Annotated[Amount | None, better("MAE", LOWER)] = Field(
        None, description="Mean absolute error, in rating units."
    )
    f_score_at_k: Annotated[Amount | None, better("F-score", HIGHER)] = Field(
        None, description="Harmonic mean of precision and recall."
    )
    precision_at_k: Annotated[Amount | None, better("Precision", HIGHER, brief=False)] = Field(
        None, description="Share of the top k items that are relevant."
    )
    recall_at_k: Annotated[Amount | None, better("Recall", HIGHER, brief=False)] = Field(
        None, description="Share of the relevant items in the top k."
    )
    new_items: Annotated[Amount | None, better("RMSE, new items", LOWER, brief=False)] = Field(
        None, description="With a schedule: RMSE on items that nobody had rated before the period."
    )
    newcomers: Annotated[
        dict[int, Amount | None] | None, better("RMSE, newcomers with {key} own ratings", LOWER, brief=False)
    ] = Field(
        None,
        description="With a schedule: RMSE on what newcomers of the next period rate after so many ratings, "
        "which their devices hold.",
    )
    k: Annotated[int | None, IN_FILES] = Field(None, description="Length of the evaluated lists.")
    whole_lists: Annotated[Amount | None, IN_FILES] = Field(
        None, description="Share of the tested users whose candidates are at most k, so that all are listed."
    )
    errors: Annotated[dict[str, float] | None, better("{key}", LOWER)] = Field(
        None, description="User-defined metrics, less is better."
    )
    scores: Annotated[dict[str, float] | None, better("{key}", HIGHER)] = Field(
        None, description="User-defined metrics, more is better."
    )
    ranking: Annotated[RankingSummary | None, "catalogue"] = Field(
        None, description="Lists from all items a user has not rated."
    )
    sampled_ranking: Annotated[SampledRankingSummary | None, "sampled"] = Field(
        None, description="Lists from a sample of these items."
    )

    def metrics(self) -> dict[str, float | None]:
        """Return the metrics that suit the ratings, by key; those of rankings by their columns in tables."""
        return by_column(self.model_dump(mode="json", exclude_unset=True))


def by_column(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values of a summary by the names of their columns in tables."""
    return {key.replace(".", "_"): value for key, value in flatten(values).items()}


class LossSpread(Document):
    """Proved privacy losses, of users' whole profiles or of single ratings."""

    max: Annotated[Amount | None, loss("{of}", "largest")] = Field(description="Largest loss.")
    mean: Annotated[Amount | None, IN_FILES] = Field(description="Mean loss.")
    median: Annotated[Amount | None, Column("{of}", "median", 1, where="page")] = Field(
        description="Median loss."
    )


class ClaimedLoss(Document):
    """Privacy loss that is claimed or declared without a proof; None where none is."""

    per_rating: Annotated[Amount | None, Column(averaged="largest", where="files")] = Field(
        description="Largest such loss of one rating, of any user."
    )
    per_user: Annotated[Amount | None, Column(averaged="largest", where="files")] = Field(
        description="Largest such loss of a whole profile."
    )


class OwnCode(Document):
    """A user-defined class, and which code it had."""

    component: str = Field(description="module:Class.")
    source: str = Field(description="Digest of its code, 16 hexadecimal digits.")


class PrivacySummary(Document):
    """What is promised, and against whom."""

    status: Annotated[Status, Column("privacy")] = Field(
        description="How far the promise carries: proved, claimed, declared by a user-defined class, or none."
    )
    declared_by: tuple[OwnCode, ...] = Field(
        (), description="The user-defined classes on whose word the promise rests."
    )
    trust: Annotated[Trust, Column("trust")] = Field(
        description="Trust model: central, secure-aggregation, shuffle or local."
    )
    epsilon_per_rating: Annotated[Amount | None, loss("ε per rating")] = Field(
        description="Largest proved loss of one rating, of any user."
    )
    epsilon_per_user: Annotated[LossSpread, "ε per user"] = Field(
        description="Sum of the proved losses of everything a user sends, for profiles of the same items if "
        "they are seen, and of what everybody is sent about it with noise (item_embeddings.epsilon, delta)."
    )
    epsilon_composed: Annotated[LossSpread, "ε per user, composed"] = Field(
        description="The same by composition: holds with delta, where the sum holds without."
    )
    epsilon_any_two: Annotated[Amount | None, loss("ε, any two profiles")] = Field(
        None,
        description="Largest proved loss between any two profiles of a user, of other items too, by "
        "composition with delta; null if none is proved.",
    )
    epsilon_per_rating_shuffled: Annotated[LossSpread | None, "ε per rating, shuffled"] = Field(
        None, description="Losses of single ratings if reports are shuffled one by one: hold with delta."
    )
    delta: Annotated[Amount, Column("δ", written="loss", averaged="largest", where="page")] = Field(
        description="Probability beyond which the composed losses hold."
    )
    composition: Annotated[Literal["sum", "pld"], IN_FILES] = Field(
        description="Whether losses were composed by their distributions, or only their sum is known."
    )
    noise: tuple[float, ...] = Field(
        (), description="Standard deviation of the noise of each sum, for contributions of a norm of 1."
    )
    tau: Annotated[Amount | None, Column("τ", "noise per user", written="loss", where="page")] = Field(
        None,
        description="Standard deviation of the noise of a sum that has the whole budget, over the users, of "
        "whom each contributes a vector of length 1; null where no sum has noise.",
    )
    epsilon_claimed: ClaimedLoss
    trusts_server: Annotated[bool, IN_FILES] = Field(description="Whether the server receives true ratings.")
    hides_rated_items: Annotated[bool, IN_FILES] = Field(description="Whether the item set is hidden.")
    unlinked: Annotated[bool, IN_FILES] = Field(
        False, description="Whether the server cannot tell whose reports it sees, or which are of one user."
    )
    influence_of_one: Annotated[Amount | None, Column("influence", "honest users", 1, where="page")] = Field(
        None,
        description="Largest evidence about an item in all that one malicious user can send, in units of the "
        "mean evidence of an honest user who rates it highest; null where nothing bounds it or is known.",
    )
    notes: tuple[str, ...] = Field(description="What a reader of the figures must know.")


Devices = Literal["simulated", "deployed"]
"""Whose devices a run was of: simulated ones, or those of real users."""

REPETITIONS = 52
"""Collections of a year, one a week."""


class Terms(Document):
    """What the promise takes for granted, and what it costs to ask again."""

    colluders: Count | None = Field(
        None, description="Devices that may tell the server all they know; null for any number."
    )
    dropouts: Amount | None = Field(
        None, description="Largest share of the devices that may drop out; null for any."
    )
    shufflers: Count = Field(0, description="Servers that mix messages, of which one has to be honest.")
    embeddings_epsilon: Amount | None = Field(
        None, description="Loss of an item set by what all devices are sent; null where it has no noise."
    )
    embeddings_any_two: Amount | None = Field(None, description="The same between any two item sets.")
    uncovered: str = Field(
        "", description="What devices are sent that follows from item sets without that noise."
    )
    proxy: bool = Field(False, description="Whether a proxy strips the senders of reports.")
    named_sets: bool = Field(
        False, description="Whether item sets are sent under users' names, although reports carry no sender."
    )
    budgets_seen: bool = Field(False, description="Whether the server sees which epsilon each user has.")
    repetitions: Count | None = Field(
        None,
        description="How often everything is collected anew for the next figure; null with a schedule, whose "
        "losses are those of all its collections.",
    )
    collections: Count | None = Field(None, description="Collections of the schedule; null without one.")
    increments: bool = Field(False, description="Whether a schedule may have everything answered once only.")
    epsilon_repeated: Amount | None = Field(
        None,
        description="What that costs the user who loses most in one run, by composition with delta; null if "
        "none is proved.",
    )
    any_two_repeated: Amount | None = Field(
        None, description="The same between any two profiles; null if none is proved."
    )


class DirectionSummary(Document):
    """Bytes one way, summed over the rounds."""

    payload_bytes: Annotated[Count, IN_FILES] = Field(description="Encoded reports or broadcasts, all users.")
    message_bytes: Annotated[Count, IN_FILES] = Field(description="Whole messages, all users.")
    payload_mean_per_user: Annotated[Amount, IN_FILES] = Field(description="Mean payload of a user.")
    payload_max_per_user: Annotated[Count, IN_FILES] = Field(description="Largest payload of any user.")
    message_mean_per_user: Annotated[Amount, Column("bytes {of}", "per user, mean")] = Field(
        description="Mean message bytes of a user."
    )
    message_p95_per_user: Annotated[Amount, on_pages("bytes {of}", "per user, 95th percentile")] = Field(
        description="95th percentile of the users' message bytes."
    )
    message_max_per_user: Annotated[Count, on_pages("bytes {of}", "per user, largest")] = Field(
        description="Largest message bytes of any user."
    )
    network_bytes: Annotated[Count | None, IN_FILES] = Field(
        description="What a network would carry this way in a deployment, all users; null if nothing is sent."
    )
    network_mean_per_user: Annotated[Amount | None, Column("network {of}", "per user, mean")] = Field(
        description="Mean network bytes of a user."
    )
    network_max_per_user: Annotated[Count | None, IN_FILES] = Field(
        description="Largest network bytes of any user."
    )


class TrafficSummary(Document):
    """What went over the wire."""

    rounds: Annotated[Count, on_pages("rounds")] = Field(description="Rounds of the protocol.")
    users: Count = Field(description="Users in the population.")
    payload_bits_per_rating: Annotated[Amount | None, Column("bits per value", "payload up", 2)] = Field(
        None, description="Bits of all reports by the number of train ratings; null if that is unknown."
    )
    uplink: Annotated[DirectionSummary, "up"]
    downlink: Annotated[DirectionSummary, "down"]

    @property
    def total_message_bytes(self) -> int:
        """Bytes of all messages, both ways."""
        return self.uplink.message_bytes + self.downlink.message_bytes


class DistanceSummary(Document):
    """Root mean square difference between the reports and the ratings (Zheng, Theorem 3)."""

    shown_cells: Annotated[Count | None, IN_FILES] = Field(
        None, description="Cells that reports show as rated."
    )
    rated_cells: Annotated[Count | None, IN_FILES] = Field(
        None, description="Those of them that are truly rated."
    )
    bound: Annotated[float | None, IN_FILES] = Field(
        None, description="Bound over all cells shown, in rating units."
    )
    measured: Annotated[float | None, IN_FILES] = Field(
        None, description="Measured on the rated cells, in rating units."
    )
    tolerance: Annotated[float | None, IN_FILES] = Field(None, description="The theorem's tolerance.")
    rating_noise: Annotated[float | None, IN_FILES] = Field(
        None, description="The theorem's noise of true ratings."
    )


class TimeSummary(Document):
    """Where the time went, in seconds."""

    total_s: Annotated[float, TIMED] = Field(description="The whole run.")
    startup_s: Annotated[float, TIMED] = Field(description="Starting Flower.")
    clients_s: Annotated[float, TIMED] = Field(description="The rounds, in which the devices work.")
    server_s: Annotated[float, TIMED] = Field(description="The protocol outside its rounds.")


class GroupSummary(Document):
    """The figures of a group of users, of those with test ratings."""

    group: str = Field(description="Name of the group.")
    users: Count = Field(description="Users in it.")
    test_ratings: Count = Field(description="Their test ratings, or test items.")
    rmse: Amount | None = Field(description="Root mean squared error; null of lists.")
    mae: Amount | None = Field(description="Mean absolute error; null of lists.")
    rmse_alone: Amount | None = Field(description="RMSE of devices that neither send nor receive anything.")
    gain_p: Amount | None = Field(
        description="Probability that chance in who is in the group makes errors differ as much from those."
    )
    worse: Amount | None = Field(description="Share of the users with larger errors than alone.")
    worse_by_chance: Amount | None = Field(
        description="Share that luck would make worse off if everybody in the group gained the same."
    )
    worse_p: Amount | None = Field(description="Probability of at least as many worse off if so.")
    ndcg_at_10: Amount | None = Field(description="NDCG at 10 of lists, mean over users; null of ratings.")
    recall_at_20: Amount | None = Field(description="Recall at 20, likewise.")
    popularity_lift: float | None = Field(
        description="By how much what is listed is more popular than what users have, as a share of that."
    )
    coverage: Amount | None = Field(description="Share of the catalogue among the first ten of their lists.")
    message_bytes: Amount | None = Field(description="Bytes of messages both ways, mean over users.")
    epsilon_per_rating: Amount | None = Field(
        description="Loss per rating, mean over users; null if unbounded."
    )
    epsilon_per_user: Amount | None = Field(description="Loss per user, likewise.")


class Summary(Document):
    """The figures of a run.

    A field that is marked with a `Column` is one of comparison.csv, or of timing.csv.
    """

    schema_version: SchemaNumber = Field(
        default=formats.NUMBER, alias="schema", description="Number of the format."
    )
    name: str = Field(description="Name of the configuration.")
    protocol: Annotated[str, IN_FILES] = Field(description="Kind of the protocol.")
    mechanism: Annotated[str, IN_FILES] = Field(description="What protects the users.")
    completion: Annotated[str, IN_FILES] = Field(description="What completes the matrix.")
    beyond_the_paper: tuple[str, ...] = Field(
        default=(), description="Settings and components that differ from the paper's, with their source."
    )
    devices: Annotated[Devices, IN_FILES] = Field(
        default="simulated", description="Whether devices were simulated, or are those of real users."
    )
    dataset: DatasetSummary
    read: ReadSummary | None = Field(
        default=None, description="What was read as ratings; absent in a deployment."
    )
    accuracy: Accuracy
    item_names: dict[str, str] = Field(
        default={}, description="What the items that the page names are called; empty without names."
    )
    nothing_sent: float | None = Field(
        default=None,
        description="RMSE, or sign accuracy, of devices that predict alone; null in a deployment.",
    )
    groups: dict[str, tuple[GroupSummary, ...]] = Field(
        default={}, description="Figures of groups of users, by what divides them; empty without groups."
    )
    privacy: PrivacySummary
    terms: Terms | None = Field(
        default=None,
        description="What it assumes, and what repetition costs; absent where a simulation did not state it.",
    )
    attacks: AttackSummary | None = Field(
        default=None, description="What attacks have reached; absent without any."
    )
    traffic: TrafficSummary
    distance: DistanceSummary
    completion_diagnostics: dict[str, Any] = Field(description="What the completion learned.")
    mixture: FittedMixture | None = Field(
        default=None, description="The mixture it took the noise for; absent without one."
    )
    domains: LearnedDomains | None = Field(
        default=None, description="What was learned of two domains; absent of one."
    )
    time: TimeSummary
    peak_memory_mb: Annotated[float, TIMED] = Field(description="Peak memory of this process, in MiB.")
    environment: dict[str, Any] = Field(description="Versions, platform and simulation settings.")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures must know, of the ratings and what is beyond the paper included."""
        beyond = (f"Beyond the paper: {deviation}." for deviation in self.beyond_the_paper)
        read = () if self.read is None else (self.read.sentence,)
        return (*read, *self.privacy.notes, *self.dataset.notes, *beyond)

    def as_json(self) -> dict[str, Any]:
        """Return the contents of summary.json."""
        dumped = self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"schema_version"})
        return {formats.SCHEMA: formats.NUMBER, **dumped}


def write_summary(directory: Path, summary: Summary) -> None:
    """Write summary.json."""
    content = json.dumps(summary.as_json(), indent=2, allow_nan=False) + "\n"
    write_atomically(directory / SUMMARY, content)


def attack_file(summary: Summary) -> dict[str, Any]:
    """Return the contents of attack.json: every figure under its own key, as in comparison.csv."""
    assert summary.attacks is not None, "a run without attacks"
    return {
        **formats.STAMP,
        "name": summary.name,
        "protocol": summary.protocol,
        "epsilon_per_rating": summary.privacy.epsilon_per_rating,
        "epsilon_per_user": summary.privacy.epsilon_per_user.max,
        "epsilon_any_two": summary.privacy.epsilon_any_two,
        "delta": summary.privacy.delta,
        "influence_of_one": summary.privacy.influence_of_one,
        **summary.attacks.flat(),
        "attacks": [attack.model_dump(mode="json") for attack in summary.attacks.performed],
    }


def read_summary(directory: Path) -> Summary:
    """Read summary.json.

    Raises
    ------
    InputError
        Naming the first key that is missing, unknown or of another type.
    """
    path = directory / SUMMARY
    return parse_document(Summary, read_text(path), str(path))
