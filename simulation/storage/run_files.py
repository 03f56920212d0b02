"""The contents of a run directory: as a run makes them, and read back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dprec.accounting import PrivacyAccountant
from dprec.channel import Channel
from dprec.errors import InputError
from dprec.exchange import REPORT
from dprec.groups import MEANS, SUMS, Grouping
from dprec.predictions import NO_ITEM, Lists
from dprec.protocols.base import Protocol
from dprec.ratings import Ratings
from dprec.reports import DeviceChannel
from dprec.wire import NetworkOptions, network_bytes
from simulation.configuration.strict_yaml import at, read_yaml
from simulation.courses.base import course_of
from simulation.courses.domains import LearnedDomains
from simulation.courses.task import ServerOutcome
from simulation.storage import directories, files
from simulation.storage.summary import Summary, read_summary
from strategies.participation import RoundRecord

_BEGINNING = 16
"""Bytes of a payload that are stored."""

_MADE_UP = ("synthetic", "synthetic-domains", "one-bit-synthetic")
"""Data sets of nobody's ratings."""


class MessagesOfKind(files.Document):
    """Messages of one kind, one way."""

    kind: str = Field(
        description="Type of the request; `further`: keys and shares; `item set`: a set sent apart."
    )
    up: bool = Field(description="Whether the device sends them.")
    messages: Annotated[int, Field(ge=1)] = Field(description="How many there are, over all rounds.")
    payload_bytes: files.Count = Field(description="Encoded contents of all of them.")
    message_bytes: files.Count = Field(description="Whole messages, all of them.")
    begins: str = Field(
        pattern="^([0-9a-f]{2})*$",
        description="First bytes of the first, in hexadecimal; empty for real users, or where none was made.",
    )
    bits: dict[str, files.Count] = Field(description="Parts of the first, such as `item set` and `symbols`.")


class UserMessages(files.Document):
    """The messages of one user."""

    user: str = Field(description="The user's id: the first of traffic.csv.")
    ratings: files.Count = Field(description="Train ratings of the user.")
    messages: tuple[MessagesOfKind, ...] = Field(description="One entry for each kind, each way.")


def messages_of(
    protocol: Protocol, train: Ratings, outcome: ServerOutcome, seed: int, dataset: str
) -> UserMessages | None:
    """Return the messages of the first user of a simulation with some seed; None if there are none.

    Their contents only where the kind of the data set says that users are made up: a page is passed on, and
    of a person it would tell an item set, or ratings, that no epsilon covers.
    """
    if not outcome.traffic.first_user:
        return None
    device_ratings = course_of(protocol).held_ratings(train, seed)
    family = protocol.installed.family(device_ratings.scale, device_ratings.n_items)
    # A simulation draws no masks, so what it adds up is not what would be sent.
    masked, kinds = outcome.guarantee.trust == "secure-aggregation", []
    for (kind, up), exchanged in outcome.traffic.first_user.items():
        example = exchanged.example
        bits = family.parts(example) if family and up and kind == REPORT and example else {}
        kinds.append(
            MessagesOfKind(
                kind=kind,
                up=up,
                messages=exchanged.messages,
                payload_bytes=exchanged.payload_bytes,
                message_bytes=exchanged.message_bytes,
                begins="" if (masked and up) or dataset not in _MADE_UP else example[:_BEGINNING].hex(),
                # Another kind of report than the family's has other parts.
                bits=bits if 0 <= 8 * len(example) - sum(bits.values()) < 8 else {},
            )
        )
    return UserMessages(user=str(train.user_ids[0]), ratings=int(train.counts[0]), messages=tuple(kinds))


@dataclass(frozen=True)
class ExampleUser:
    """The first user with at least five test ratings, and ten of them at most."""

    user: str
    predicted: tuple[tuple[str, float, float], ...]
    """Items with their true ratings and predictions."""


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What a run produces, and what its directory holds."""

    config: dict[str, Any]
    """As in config.yaml."""
    summary: Summary
    predictions: files.Table
    traffic: files.Columns
    """The columns of predictions.csv.gz and traffic.csv; those of numbers alone if they are read."""
    rounds: tuple[RoundRecord, ...]
    channel: DeviceChannel | None
    """The channel that the devices applied to their ratings; None if it adds no noise."""
    privacy: PrivacyAccountant
    """Every event, round by round."""
    messages: UserMessages | None = None
    """Those of one simulated user; None if nothing is sent, or devices are deployed."""
    users: files.Columns | None = None
    """The columns of users.csv; None without groups."""
    lists: files.Columns | None = None
    """The columns of lists.csv.gz; None unless lists are asked for."""
    example: ExampleUser | None = None
    """Some of a user's predictions, if they are read."""

    @property
    def made_up(self) -> bool:
        """Whether its ratings are nobody's."""
        return self.summary.dataset.kind in _MADE_UP

    def as_stored(self) -> RunRecord:
        """Return the record with NaN for every number that no file holds."""
        columns = [
            {name: files.finite(column) for name, column in files.whole(table).items()}
            for table in (self.predictions, self.traffic)
        ]
        return replace(self, predictions=columns[0], traffic=columns[1])

    @property
    def bytes_per_user(self) -> NDArray[np.float64]:
        """Bytes of every user's messages, both directions together."""
        return bytes_per_user(self.traffic)


RANK = "rank"
"""Column of the predictions of implicit data."""

RELEVANT = "relevant"
"""Column of the predictions of a run that writes lists."""


def prediction_columns(
    test: Ratings,
    predictions: NDArray[np.float64],
    ranks: NDArray[np.float64] | None = None,
    relevant: NDArray[np.float64] | None = None,
) -> files.Table:
    """Return the columns of predictions.csv.gz.

    ``ranks``, shape (test ratings,): of implicit data, whose predictions are scores: where each item stands
    in its user's list of `dprec.metrics.LONGEST_LIST`; NaN where it does not.
    ``relevant``, shape (test ratings,): where lists are written, 1 for a rating that makes its item relevant,
    else 0; NaN where they are not judged by it.
    """
    of_users, of_items = (test.user_ids, test.users), (test.item_ids, test.items)
    columns: dict[str, Any] = {"user": files.LookedUp(*of_users), "item": files.LookedUp(*of_items)}
    if ranks is not None:
        columns["rating"] = np.full(test.count, np.nan)
    else:
        # Levels begin at 1.
        levels = files.LookedUp(np.append(np.nan, test.scale.values), test.levels)
        columns["rating"] = levels if test.exact is None else test.exact
    columns |= {"prediction": predictions, RANK: ranks, RELEVANT: relevant}
    return {name: column for name, column in columns.items() if column is not None}


def _prediction_types(summary: Summary, *, relevant: bool) -> dict[str, type[np.generic]]:
    """Return the numeric columns of the predictions of a run."""
    further = (RANK, summary.dataset.scale is None), (RELEVANT, relevant)
    names = ("rating", "prediction", *(name for name, there in further if there))
    return dict.fromkeys(names, np.float64)


def read_predictions(directory: Path, summary: Summary, *, relevant: bool = False) -> files.Columns:
    """Read predictions.csv.gz, with the column `RELEVANT` if asked; raises InputError."""
    types: dict[str, type[np.generic]] = {"user": np.str_, "item": np.str_}
    types |= _prediction_types(summary, relevant=relevant)
    return files.read_columns(files.table_in(directory, directories.PREDICTIONS), types, files.FROM_RUN)


def list_columns(test: Ratings, lists: Lists | None, length: int | None) -> files.Columns | None:
    """Return the columns of lists.csv.gz: the first items of lists, by user and rank.

    ``length``: how many; None where none are asked for.
    """
    if lists is None or length is None:
        return None
    rows, places = np.nonzero(lists.items[:, :length] != NO_ITEM)
    return {
        "user": test.user_ids[lists.users[rows]],
        "item": test.item_ids[lists.items[rows, places]],
        "score": lists.scores[rows, places],
        RANK: places + 1,
    }


def writes_lists(config: Mapping[str, Any], summary: Summary) -> bool:
    """Return whether a run of a configuration writes lists: no deployment does."""
    return at(config, "evaluation", "lists") is not None and summary.devices == "simulated"


def read_lists(directory: Path) -> files.Columns:
    """Read lists.csv.gz; raises InputError."""
    path = files.table_in(directory, directories.LISTS)
    types = {"user": np.str_, "item": np.str_, "score": np.float64, RANK: np.int64}
    lists = files.read_columns(path, types, files.FROM_RUN)
    ranks = lists[RANK]
    follows = np.concatenate([[0], ranks[:-1]]) + 1
    if not np.all((ranks == 1) | (ranks == follows)):
        raise InputError(f"{path}: {RANK}", "ranks out of order", "1, 2, ... of every user")
    return lists


_CHARGED = ("uplink_payload", "uplink_message", "downlink_payload", "downlink_message")
"""Bytes of the traffic ledger that have a column each."""

_TRAFFIC_TYPES: dict[str, type[np.number[Any]]] = {
    "ratings": np.float64,
    **{f"{name}_bytes": np.int64 for name in (*_CHARGED, "uplink_network", "downlink_network")},
    "messages": np.int64,
    **dict.fromkeys(("epsilon_per_rating", "epsilon_per_user", "epsilon_composed"), np.float64),
}
"""The numeric columns of traffic.csv, as they are read."""


def traffic_columns(
    users: NDArray[Any],
    counts: NDArray[Any],
    outcome: ServerOutcome,
    composed: NDArray[np.float64],
    network: NetworkOptions,
) -> files.Columns:
    """Return the columns of traffic.csv; a number that does not apply is NaN or infinite.

    ``users``, ``counts``, shape (users,): the data set's own ids, and the ratings of each user; NaN where
    they are unknown.
    ``composed``, shape (users,): the users' losses by composition.
    """
    traffic, accountant = outcome.traffic, outcome.accountant
    up, down = network_bytes(traffic, network.contacts(traffic.requests))
    return {
        "user": users,
        "ratings": counts,
        **{f"{name}_bytes": getattr(traffic, name) for name in _CHARGED},
        "uplink_network_bytes": up,
        "downlink_network_bytes": down,
        "messages": traffic.messages.astype(np.int64),
        "epsilon_per_rating": accountant.get_epsilon(per="rating"),
        "epsilon_per_user": accountant.get_epsilon(),
        "epsilon_composed": composed,
    }


def bytes_per_user(traffic: files.Columns) -> NDArray[np.float64]:
    """Return the bytes of every user's messages, both directions together."""
    return (traffic["uplink_message_bytes"] + traffic["downlink_message_bytes"]).astype(np.float64)


def network_bytes_per_user(traffic: files.Columns) -> NDArray[np.float64]:
    """Return the bytes that a network would carry for every user, both directions together."""
    return (traffic["uplink_network_bytes"] + traffic["downlink_network_bytes"]).astype(np.float64)


def charged(traffic: files.Columns) -> files.Columns:
    """Return what a user is charged in the columns of `dprec.groups.MEANS`, given those of traffic.csv."""
    losses = {name: traffic[name] for name in ("epsilon_per_rating", "epsilon_per_user")}
    return {"message_bytes": bytes_per_user(traffic), **losses}


def read_traffic(directory: Path, summary: Summary, *, users: bool = False) -> files.Columns:
    """Read the numeric columns of traffic.csv, after that of users if asked; raises InputError."""
    path = files.table_in(directory, directories.TRAFFIC)
    types: dict[str, type[np.generic]] = {"user": np.str_} if users else {}
    types |= _TRAFFIC_TYPES
    traffic = files.read_columns(path, types, files.FROM_RUN)
    total = bytes_per_user(traffic).sum()
    if total != summary.traffic.total_message_bytes:
        accepted = f"{summary.traffic.total_message_bytes:,}, as in the summary"
        raise InputError(str(path), f"{total:,.0f} bytes of messages in all", accepted)
    return traffic


GROUP = "group_"
"""Beginning of the columns of users.csv that say in which group a user is."""


def user_columns(
    test: Ratings, groupings: Mapping[str, Grouping], columns: Mapping[str, NDArray[np.float64]]
) -> files.Columns:
    """Return the columns of users.csv, a line for each user with test ratings."""
    of_groups = {
        f"{GROUP}{name}": np.array(grouping.names)[grouping.members] for name, grouping in groupings.items()
    }
    return {"user": test.user_ids[np.flatnonzero(test.counts)], **of_groups, **columns}


def read_users(directory: Path, summary: Summary) -> files.Columns:
    """Read users.csv; raises InputError."""
    texts = ("user", *(f"{GROUP}{name}" for name in summary.groups))
    types: dict[str, type[np.generic]] = dict.fromkeys(texts, np.str_)
    types |= dict.fromkeys((*SUMS, *MEANS), np.float64)
    return files.read_columns(directory / directories.USERS, types, files.FROM_RUN)


class _Bytes(files.Document):
    payload_bytes: int = Field(description="Encoded contents.")
    message_bytes: int = Field(description="Whole messages.")


class RoundLine(files.Document):
    """A line of rounds.jsonl."""

    round: int = Field(description="Its number, from 1.")
    replies: int = Field(description="Users whose report was accepted.")
    failures: int = Field(description="Users who were asked and had none accepted.")
    accuracy: dict[str, float | None] | None = Field(
        description="Keys of `accuracy` in summary.json; null if the round was not evaluated. With a "
        "schedule, of users present in the period after the collection, with `newcomers_N`, `new_items`, "
        "`nothing_sent`, and `recovered`, the share of reported ratings whose likeliest level, given all "
        "reports so far, is true."
    )
    uplink: _Bytes = Field(description="From all users in this round.")
    downlink: _Bytes = Field(description="To all users in this round.")
    seconds: float = Field(description="Elapsed.")
    causes: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict,
        description="Failures by reason: `absent`, `late`, `malformed`, or a device's code.",
    )
    asked: int | None = Field(default=None, exclude=True, description="Users who were asked.")
    epsilon: float | None = Field(
        default=None,
        description="Largest loss per user up to this round, at `privacy.delta`; null if infinite, declared, "
        "or of a period before the last.",
    )
    observed: dict[str, float] = Field(
        default_factory=dict,
        description="What only a simulation knows: `norm` (median of updates before clipping), `clip`, "
        "`loss`, `not_finite` (how many updates are not).",
    )


def ended_with(rounds: Sequence[RoundRecord], composed: NDArray[np.float64]) -> tuple[RoundRecord, ...]:
    """Return the rounds of a run, of which the last one says what everybody has lost in the end at most."""
    largest = float(composed.max())
    loss = largest if math.isfinite(largest) else None
    return (*rounds[:-1], *(replace(last_round, epsilon=loss) for last_round in rounds[-1:]))


def line_of(record: RoundRecord) -> dict[str, Any]:
    """Return the contents of a round's line."""
    return {
        "round": record.round,
        "asked": record.asked,
        "replies": record.replies,
        "failures": record.failures,
        **({"causes": record.causes} if record.causes else {}),
        "accuracy": record.accuracy,
        "epsilon": record.epsilon,
        **({"observed": record.observed} if record.observed else {}),
        **{
            side: {name: getattr(record, f"{side}_{name}") for name in _Bytes.model_fields}
            for side in ("uplink", "downlink")
        },
        "seconds": record.seconds,
    }


def written_rounds(records: Sequence[RoundRecord]) -> Iterator[str]:
    """Yield the lines of rounds.jsonl."""
    return (json.dumps(line_of(record)) + "\n" for record in records)


def parse_rounds(text: str, where: str) -> tuple[RoundRecord, ...]:
    """Parse the lines of rounds.jsonl; raises InputError naming the line."""
    records = []
    for position, line in enumerate(text.splitlines(), start=1):
        values = files.parse_document(RoundLine, line, f"{where}, line {position}").model_dump()
        for side in ("uplink", "downlink"):
            values |= {f"{side}_{name}": sent for name, sent in values.pop(side).items()}
        records.append(RoundRecord(**values))
    return tuple(records)


def read_rounds(directory: Path, summary: Summary) -> tuple[RoundRecord, ...]:
    """Read rounds.jsonl; raises InputError."""
    path = directory / directories.ROUNDS
    rounds = parse_rounds(files.read_text(path), str(path))
    if len(rounds) != summary.traffic.rounds:
        raise InputError(str(path), f"{len(rounds)} rounds", f"{summary.traffic.rounds}, as in the summary")
    return rounds


def write_channel(directory: Path, device: DeviceChannel) -> None:
    """Write channel.npz: the arrays of the channel, and what it is calibrated to."""
    arrays = {name: getattr(device.channel, name) for name in ("weights", "inputs", "values")}
    arrays |= {"cells": np.array(device.cells, dtype=np.int64), "per_user": np.array(device.per_user)}
    files.write_archive(directory / directories.CHANNEL, arrays)


def read_device_channel(directory: Path) -> DeviceChannel | None:
    """Read channel.npz; None if the devices of the run had no channel. Raises InputError."""
    path = directory / directories.CHANNEL
    if not path.exists():
        return None

    def device(arrays: dict[str, NDArray[Any]]) -> DeviceChannel:
        channel = Channel(arrays["weights"], arrays["inputs"], arrays["values"])
        return DeviceChannel(channel, int(arrays["cells"]), bool(arrays["per_user"]))

    return files.read_archive(path, device, "the channel that `dprec run` wrote")


def write_ledger(directory: Path, accountant: PrivacyAccountant) -> None:
    """Write ledger.npz: the accountant's history, which determines its sums."""
    files.write_archive(directory / directories.LEDGER, accountant.to_arrays())


def read_ledger(directory: Path) -> PrivacyAccountant:
    """Read ledger.npz; raises InputError when the file cannot be read or holds no ledger."""
    path, accepted = directory / directories.LEDGER, "the privacy ledger that `dprec run` wrote"
    return files.read_archive(path, PrivacyAccountant.from_arrays, accepted)


_LEAST_RATINGS, _MOST_RATINGS = 5, 10
"""Test ratings that the user of the example has at least, and of which more are not shown."""

_SEARCHED = 10_000
"""Predictions among which such a user is looked for."""


def read_example(path: Path) -> ExampleUser | None:
    """Read the example from the beginning of predictions.csv.gz; None without such a user, or ratings."""
    types: dict[str, type[np.generic]] = {"user": np.str_, "item": np.str_}
    types |= {"rating": np.float64, "prediction": np.float64}
    columns = files.read_columns(path, types, files.FROM_RUN, _SEARCHED)
    rows = zip(*(columns[name].tolist() for name in types), strict=True)
    for user, user_rows in groupby(rows, key=itemgetter(0)):
        predicted = [row[1:] for row in user_rows]
        if np.isnan(predicted[0][1]):
            return None
        if len(predicted) >= _LEAST_RATINGS:
            return ExampleUser(user, tuple(predicted[:_MOST_RATINGS]))
    return None


def shown_names(names: Mapping[str, str], test: Ratings, domains: LearnedDomains | None) -> dict[str, str]:
    """Return the names of the items that a page shows: those of the example and of an AlterEgo.

    ``names``: those of all items, by identifier.
    """
    item_ids: list[str] = []
    users = np.flatnonzero(test.counts >= _LEAST_RATINGS)
    if users.size:
        start = test.indptr[users[0]]
        stop = min(test.indptr[users[0] + 1], start + _MOST_RATINGS)
        item_ids += map(str, test.item_ids[test.items[start:stop]].tolist())
    ego = None if domains is None else domains.alter_ego
    item_ids += [] if ego is None else [item for item, _ in (*ego.before, *ego.after)]
    return {item: names[item] for item in item_ids if item in names}


def holds_comparison(directory: Path) -> bool:
    """Return whether a directory holds a comparison; False if it holds a run.

    Raises
    ------
    InputError
        When it holds neither, or an unfinished one.
    """
    accepted = "the directory of a finished run or comparison"
    if not directory.is_dir():
        raise InputError(str(directory), "no such directory", accepted)
    if (directory / directories.TABLE).is_file() or (directory / directories.SUMMARY).is_file():
        return (directory / directories.TABLE).is_file()
    if (directory / directories.COMPARISON).is_file():
        raise InputError(str(directory), "a comparison without a finished cell", accepted)
    if (directory / directories.CONFIG).is_file():
        raise InputError(str(directory), "an unfinished run", accepted)
    raise InputError(str(directory), f"neither {directories.SUMMARY} nor {directories.TABLE}", accepted)


def read_run(directory: Path) -> RunRecord:
    """Read a run directory.

    Raises
    ------
    InputError
        Naming the file that is damaged, or does not fit the summary.
    """
    summary, config = read_summary(directory), read_yaml(directory / directories.CONFIG)
    path, messages_path = files.table_in(directory, directories.PREDICTIONS), directory / directories.MESSAGES
    listed = writes_lists(config, summary)
    return RunRecord(
        config=config,
        summary=summary,
        rounds=read_rounds(directory, summary),
        traffic=read_traffic(directory, summary),
        predictions=files.read_columns(path, _prediction_types(summary, relevant=listed), files.FROM_RUN),
        channel=read_device_channel(directory),
        privacy=read_ledger(directory),
        messages=(
            files.parse_document(UserMessages, files.read_text(messages_path), str(messages_path))
            if messages_path.exists()
            else None
        ),
        users=read_users(directory, summary) if summary.groups else None,
        lists=read_lists(directory) if listed else None,
        example=read_example(path),
    )
