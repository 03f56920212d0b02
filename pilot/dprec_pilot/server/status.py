"""How a pilot is doing: whose device is enrolled and online, and who answered what in which run.

It is read from the enrolment list, the directories of runs, and the SuperLink's list of nodes; so it has
nothing about anybody that the server does not know.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np

from dprec.errors import InputError
from dprec_pilot.server.journal import JOURNAL, waited_for
from dprec_pilot.server.run_log import ENDED, began_at, how_it_ended, is_written
from dprec_pilot.server.server_folder import ServerFolder, prepared_device
from dprec_pilot.server.superlink import NodeSeen
from simulation.storage.directories import CONFIG, SUMMARY, TRAFFIC
from simulation.storage.exchanges import Exchange, read_exchanges
from simulation.storage.files import FROM_RUN, read_columns, table_in

GOES_ON, KILLED = "the run goes on", "the run was killed"
"""Of runs whose log does not say how they ended."""

_FATES = ("answered", "late", "absent")


@dataclass(frozen=True)
class InRun:
    """What became of a user's device in a run; what costs a device nothing is in no round."""

    answered: tuple[int, ...] = ()
    """Rounds that were answered in time."""
    late: tuple[int, ...] = ()
    """Rounds that were answered in the grace period."""
    absent: tuple[int, ...] = ()
    """Rounds that were not answered."""
    refused: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Rounds that the device refused, by its reason."""
    received: int = 0
    """Deliveries that arrived."""
    epsilon_per_user: float | None = None
    """What the server knows to be paid; None before a run has ended, and for an infinite loss."""


@dataclass(frozen=True)
class UserStatus:
    """A user of a pilot."""

    user: str
    folder: str | None
    """Name of the device's folder, where `prepare` made one and it is there."""
    has_key: bool
    """Whether the enrolment list has a key of the user's device."""
    node_id: int | None
    """How Flower calls the device; None before it is registered."""
    device: str | None
    """registered, online, offline or unregistered; None if the SuperLink was not asked, or knows no such."""
    last_seen: datetime | None
    """When the SuperLink heard of it."""
    runs: Mapping[str, InRun]
    """What it did, by the name of the run."""


@dataclass(frozen=True)
class RunStatus:
    """A run of a pilot."""

    name: str
    """That of its directory, or the whole path where another run has that name."""
    directory: str
    began: str | None
    state: str
    """That it goes on, or how it ended, with the reason of a failure."""
    questions: int
    """How many exchanges are over."""
    rounds: int
    answers: int
    """In time, over all rounds."""
    causes: Mapping[str, int]
    """Why others are missing."""
    waited_for: tuple[int, int] | None
    """Of a question that is open: how many devices were asked, and how many have answered."""


@dataclass(frozen=True)
class PilotStatus:
    """A pilot."""

    name: str
    protocol: str
    """Its fingerprint."""
    superlink: str | None
    """The SuperLink that was asked."""
    users: tuple[UserStatus, ...]
    runs: tuple[RunStatus, ...]
    """From the oldest to the newest."""


def status_of(
    folder: ServerFolder,
    nodes: Iterable[NodeSeen] = (),
    superlink: str | None = None,
    elsewhere: Sequence[Path] = (),
) -> PilotStatus:
    """Return how a pilot is doing.

    ``nodes``: what the SuperLink knows of devices, if it was asked; ``elsewhere``: directories of runs that
    are not in ``runs/`` of the server's folder. Raises InputError when a file is damaged, or a directory is
    no run's.
    """
    for path in elsewhere:
        if not (path / CONFIG).exists():
            raise InputError(str(path), f"no {CONFIG}", "the directory of a run")
    inside = [path.parent for path in folder.path.glob(f"runs/*/{CONFIG}")]
    directories = {path.resolve(): path for path in (*elsewhere, *inside)}.values()
    known, fingerprint = {node.node_id: node for node in nodes}, folder.deployment.fingerprint
    runs, did = list[RunStatus](), dict[str, Mapping[str, InRun]]()
    for directory in sorted(directories, key=lambda path: ((path / CONFIG).stat().st_mtime, path)):
        exchanges = read_exchanges(directory)
        name = str(directory) if directory.name in did else directory.name
        runs.append(_run(name, directory, exchanges, waited_for(directory / JOURNAL, fingerprint)))
        did[name] = _by_user(exchanges, directory)
    users = []
    for place, each in enumerate(folder.enrolled()):
        node = known.get(each.node_id or 0)
        device, seen = (None, None) if node is None else (node.status, node.last_seen)
        own = {name: by_user[each.user] for name, by_user in did.items() if each.user in by_user}
        made = prepared_device(folder.path.parent, place)
        has_key, named = each.public_key is not None, made.name if made.is_dir() else None
        users.append(UserStatus(each.user, named, has_key, each.node_id, device, seen, own))
    return PilotStatus(folder.config.name, fingerprint, superlink, tuple(users), tuple(runs))


def _run(
    name: str, directory: Path, exchanges: Sequence[Exchange], open_question: tuple[int, int] | None
) -> RunStatus:
    asked = [each for each in exchanges if each.round is not None]
    causes = sum((Counter(each.causes) for each in asked), Counter[str]())
    ended = how_it_ended(directory) or (ENDED if (directory / SUMMARY).exists() else KILLED)
    return RunStatus(
        name=name,
        directory=str(directory),
        began=began_at(directory),
        state=GOES_ON if is_written(directory) else ended,
        questions=len(exchanges),
        rounds=len({each.round for each in asked}),
        answers=sum(len(each.answered) for each in asked),
        causes=dict(sorted(causes.items())),
        waited_for=open_question,
    )


def _by_user(exchanges: Sequence[Exchange], directory: Path) -> Mapping[str, InRun]:
    """Return what became of each user's device in a run, and of a finished one what is known to be paid."""
    losses: dict[str, float] = {}
    if (directory / SUMMARY).exists():
        paid = {"user": np.str_, "epsilon_per_user": np.float64}
        traffic = read_columns(table_in(directory, TRAFFIC), paid, FROM_RUN)
        pairs = zip(traffic["user"].tolist(), traffic["epsilon_per_user"].tolist(), strict=True)
        losses = {str(user): loss for user, loss in pairs if math.isfinite(loss)}
    rounds: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    received = Counter[str]()
    for each in exchanges:
        if each.round is None:
            received.update(each.answered + each.late)
            continue
        for fate, users in [*((fate, getattr(each, fate)) for fate in _FATES), *each.refused.items()]:
            for user in users:
                rounds[user][fate].add(each.round)
    told = {}
    for user in rounds.keys() | received.keys():
        own = {fate: tuple(sorted(numbers)) for fate, numbers in rounds[user].items()}
        known = {fate: own.pop(fate, ()) for fate in _FATES}
        told[user] = InRun(**known, refused=own, received=received[user], epsilon_per_user=losses.get(user))
    return told
