"""Random messages to devices of five protocols, and what must hold whatever a server sends.

    python -m benchmarks.fuzz_devices [--seconds 1200] [--seed 1]

An honest run of a small pilot is recorded. Then, again and again, a device and a twin with the same secret
and another profile are sent what was recorded, in any order: repeated, cut, changed, of other types, sizes,
rounds, runs and times. In between, profiles change, devices are opened anew, and processes die while they
write. Prints for each protocol how many messages were answered and refused, by which code, and every breach
of this:

- no exception leaves a device, and no error but a code and its name;
- device and twin answer or refuse alike, by the same times, in as many bytes where rated items are hidden;
- what costs something is answered in one way in a run and a round, charged once, and not repeated in others;
- a refusal costs nothing, the ledger on disk is that in memory, and no limit is exceeded.

Fails if there is any. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from clients.device import DeviceFolder, Limits
from clients.device.device import Device
from clients.device.ledger import PRICES, most_lost
from dprec import formats
from dprec.exchange import IDENTIFY, MESSAGE_TYPES, REQUEST, RefusalCode, to_json
from simulation.deployment.serving import serve
from tests.clients.device.devices import UNLIMITED, DeviceGrid, key_of, request
from tests.clients.device.test_folder import MOMENTS, Disk, Killed
from tests.simulation.deployment import pilots

COUNTS = {**pilots.BLP, "name": "counts-and-bits"}
COUNTS["protocol"] = {
    **pilots.BLP["protocol"],
    "mechanism": {"kind": "bits-and-counts"},
    "completion": {"kind": "calibrated"},
}

PROTOCOLS: dict[str, tuple[dict[str, Any], bool]] = {
    "reports": (pilots.BLP, False),
    "reports and counts": (COUNTS, False),
    "rounds": (pilots.PG, True),
    "sums of protected reports": (pilots.GRAM_LOCAL, True),
    "masked sums": (pilots.GRAM_SECURE, True),
}
"""Configurations, and whether devices hide how much they hold."""

STEPS = 40
"""Messages of an episode."""

LONG_ENOUGH = 24
"""Bytes from which on two equal answers are no coincidence."""

Question = tuple[str, dict[str, Any]]


class Recording(DeviceGrid):
    """A grid that keeps what its first device is asked."""

    def __init__(self, devices: list[Device]) -> None:
        super().__init__(devices)
        self.heard: list[Message] = []

    def answer(self, message: Message) -> Message:
        """Answer a message, and keep it."""
        if message.metadata.dst_node_id == min(self.get_node_ids()):
            self.heard.append(message)
        return super().answer(message)


@dataclass(frozen=True)
class Recorded:
    """The first device of a pilot before an honest run, and what it was then asked."""

    folder: Path
    group: str
    asked: list[Question]
    profiles: list[str]
    """Of all devices, and of one that holds nothing."""

    @classmethod
    def of(cls, values: dict[str, Any], folder: Path) -> Recorded:
        """Prepare a pilot, run it, and record it."""
        _, server = pilots.pilot(values, folder / "pilot", runs=99, seeded=False)
        pilots.grid_of(server)
        paths = sorted((folder / "pilot" / "devices").iterdir())
        shutil.copytree(paths[0], folder / "before")
        grid = Recording([Device(DeviceFolder(path)) for path in paths])
        serve(grid, server, folder / "out")
        profiles = [(path / "profile.csv").read_text() for path in paths]
        group = next(each.metadata.group_id for each in grid.heard if each.metadata.group_id)
        asked = [
            (each.metadata.message_type, dict(each.content[REQUEST]) if each.content else {})
            for each in grid.heard
        ]
        return cls(folder / "before", group, asked, [*profiles, profiles[0].splitlines()[0] + "\n"])


@dataclass
class Counted:
    """What has happened with a protocol."""

    episodes: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    breaches: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    """Of each kind of breach, how it came about."""

    def breach(self, kind: str, how: object) -> None:
        """Count a breach."""
        self.breaches[kind] += 1
        self.first.setdefault(kind, str(how)[:300])


def changed(value: object, chance: random.Random) -> object:
    """Return something else in the place of an entry: nearly the same, or of another size or type."""
    if isinstance(value, bytes) and value and chance.random() < 0.7:
        place = chance.randrange(len(value))
        flipped = value[:place] + bytes([value[place] ^ 1 << chance.randrange(8)]) + value[place + 1 :]
        return chance.choice([flipped, value[:place], value + value[:place], bytes(len(value)), value * 40])
    if isinstance(value, int) and chance.random() < 0.8:
        return chance.choice([value - 1, value + 1, 0, -1, 2**31, 2**62, -(2**63)])
    strange = [0, 1, 1.5, float("nan"), True, "", "1", b"", b"\x80", b"\0" * 9, [b""], [1, 2], ["a"], [0.5]]
    return chance.choice(strange)


def question_of(recorded: Recorded, number: int, chance: random.Random) -> Message:
    """Return a message: what comes next, or anything like it."""
    kind, entries = recorded.asked[number % len(recorded.asked)]
    entries, run, group = dict(entries), 0, recorded.group
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
        match chance.randrange(9):
            case 0 | 1 | 2 if entries:
                name = chance.choice(sorted(entries))
                entries[name] = changed(entries[name], chance)
            case 3 if entries:
                del entries[chance.choice(sorted(entries))]
            case 4:
                name = chance.choice(["asked", "round", "shares", "told", "groups", "rows", "table", "more"])
                entries[name] = changed(None, chance)
            case 5:
                kind = chance.choice([*sorted(MESSAGE_TYPES), "query.other", "train.other", "evaluate"])
            case 6 | 7:
                run = chance.randrange(1, 4)
            case 8:
                group = chance.choice(["", group[:7], group[1:], "AAAAAAAA", group[:4] + "AA/A", group + "A"])
    asked = request(kind, group, **entries)
    asked.metadata.__dict__["_group_id"] = group[:-4] + key_of(run) if run else group
    if chance.random() < 0.05:
        name = chance.choice(["_created_at", "_ttl"])
        asked.metadata.__dict__[name] = chance.choice([0.0, -1.0, 1e18, float("nan"), float("inf")])
    if chance.random() < 0.05:
        parts = range(chance.choice([0, 1, 2, 40]))
        asked.content = RecordDict({f"r{part}": ConfigRecord(entries) for part in parts})
    return asked


@dataclass
class Episode:
    """A device, its twin, and what they have answered."""

    recorded: Recorded
    counted: Counted
    chance: random.Random
    disk: Disk
    hidden: bool
    devices: list[Device]
    limits: Limits
    said: list[dict[tuple[str, str, object], object]] = field(default_factory=lambda: [{}, {}])
    alike: bool = True
    """Whether the devices have been through the same."""
    unwritten: bool = False
    """Whether the last message may have left a charge that is written with the next one."""

    def play(self) -> None:
        """Send messages, and let things happen in between."""
        number = self.chance.choice([0, self.chance.randrange(len(self.recorded.asked))])
        for _ in range(STEPS):
            happening = self.chance.random()
            if happening < 0.1:
                self._change_profile(self.chance.randrange(2))
            elif happening < 0.2:
                self._reopen()
            elif happening < 0.3:
                number = self.chance.randrange(len(self.recorded.asked))
            self._ask(question_of(self.recorded, number, self.chance))
            number += self.chance.random() < 0.7
        for place in range(2):
            self._check_account(place)

    def _change_profile(self, place: int) -> None:
        self.counted.events["changed profiles"] += 1
        text = self.chance.choice([*self.recorded.profiles, "item,rating\n1,no stars\n", ""])
        self.devices[place].folder.profile_file.write_text(text)

    def _reopen(self) -> None:
        self.counted.events["restarts"] += 1
        for place, device in enumerate(self.devices):
            before = device.charges
            self._open(place)
            if self.alike and self.devices[place].charges != before:
                self.counted.breach("another ledger after a restart", before)

    def _open(self, place: int) -> None:
        folder = DeviceFolder(self.devices[place].folder.path)
        try:
            self.devices[place] = Device(folder)
        except Exception as error:
            # A profile that the owner has to correct keeps a device from starting.
            folder.profile_file.write_text(self.recorded.profiles[0])
            self.counted.events[f"{type(error).__name__} at the start"] += 1
            self.devices[place] = Device(DeviceFolder(folder.path))

    def _ask(self, asked: Message) -> None:
        failing = self.chance.random() < 0.03
        if failing:
            self.alike = False
        replies = []
        for place in range(2):
            if failing:
                self.disk.left, self.disk.after = self.chance.randrange(MOMENTS), self.chance.random() < 0.5
                full = OSError(28, "No space left on device")
                self.disk.error = Killed if self.chance.random() < 0.5 else full
            replies.append(self._answer(place, asked, failing))
            self.disk.left = -1
        self.unwritten = failing
        one, other = replies
        if not self.alike or one is None or other is None:
            return
        if outcome(one) != outcome(other) or times(one) != times(other):
            found = asked.metadata.message_type, outcome(one), outcome(other)
            self.counted.breach("outcomes of two profiles", found)
        elif self.hidden and not one.has_error() and len(spoken(one)) != len(spoken(other)):
            self.counted.breach("sizes of two profiles", asked.metadata.message_type)

    def _answer(self, place: int, asked: Message, failing: bool) -> Message | None:
        """Ask a device; None if it died."""
        device, kind = self.devices[place], asked.metadata.message_type
        before, requested = device.charges, asked.content
        try:
            reply = device.answer(asked)
        except Killed:
            self.counted.events["killed"] += 1
            self._open(place)
            return None
        except Exception as error:
            self.counted.breach(f"crash: {type(error).__name__}", (kind, error))
            return None
        finally:
            asked.content = requested
            self.disk.left = -1
        self.counted.outcomes[outcome(reply)] += 1
        if reply.has_error():
            if outcome(reply) == "INTERNAL_FAILURE" and not failing:
                self.counted.breach("internal failure", kind)
            if reply.error.reason != RefusalCode(reply.error.code).name:
                self.counted.breach("an error that says more", reply.error)
            if device.charges != before and not self.unwritten:
                self.counted.breach("a refusal that costs", kind)
        else:
            self._keep(place, asked, reply)
        if (work := device.take_work()) is not None:
            work()
        return reply

    def _keep(self, place: int, asked: Message, reply: Message) -> None:
        """Remember what cost something, and check that it is said once and charged once."""
        metadata, device, told = asked.metadata, self.devices[place], self.said[place]
        if metadata.message_type not in PRICES:
            if metadata.message_type != IDENTIFY:
                self.counted.events["answers that are free"] += 1
            return
        run, record = metadata.group_id[-4:], asked.content.get(REQUEST, ConfigRecord())
        round_index = {"query.report": 1, "query.count": 2}.get(metadata.message_type) or record["round"]
        key, said = (run, metadata.message_type, round_index), spoken(reply)
        if key in told:
            self.counted.events["answers repeated"] += 1
        if told.setdefault(key, said) != said:
            self.counted.breach("two answers", key)
        elsewhere = [each for each, what in told.items() if what == said and each != key]
        if len(said) >= LONG_ENOUGH and elsewhere:
            self.counted.breach("an answer of another run or round", (key, elsewhere))
        charged = [
            each
            for each in device.charges
            if (each.run, each.question, each.round) == (run, metadata.message_type, round_index)
        ]
        if len(charged) != 1:
            self.counted.breach("charged never" if not charged else "charged twice", key)
        self.counted.events["answers charged"] += 1

    def _check_account(self, place: int) -> None:
        device, bounds = self.devices[place], self.limits
        onto_disk = Device(DeviceFolder(device.folder.path)) if readable(device) else device
        if self.alike and onto_disk.charges != device.charges:
            self.counted.breach("a ledger that is not on disk", device.charges)
        lost, paid = most_lost(onto_disk.charges), set(self.said[place])
        for one, limit in (
            (lost.per_user, bounds.per_user_lifetime),
            (len({each.run for each in onto_disk.charges}), bounds.runs),
        ):
            if limit is not None and one > limit * (1 + 1e-9):
                self.counted.breach("beyond a limit", (one, limit))
        found = [(each.run, each.question, each.round) for each in onto_disk.charges]
        if len(found) != len(set(found)):
            self.counted.breach("charged twice", found)
        if missing := paid - set(found):
            self.counted.breach("charged never", missing)
        if self.alike and set(found) - paid:
            self.counted.breach("charged without an answer", set(found) - paid)


def readable(device: Device) -> bool:
    """Return whether the owner has nothing to correct."""
    try:
        device.folder.profile()
    except Exception:
        return False
    return True


def outcome(reply: Message) -> str:
    """Return "answered", or the name of the code of an error."""
    return RefusalCode(reply.error.code).name if reply.has_error() else "answered"


def times(reply: Message) -> str:
    """Return when a reply was made and expires."""
    return f"{reply.metadata.created_at} {reply.metadata.ttl}"


def spoken(reply: Message) -> bytes:
    """Return the report of a reply; nothing if it has none."""
    record = reply.content.get("reply")
    return b"".join(record["reports"]) if isinstance(record, ConfigRecord) else b""  # type: ignore[arg-type]


@contextmanager
def an_episode(
    recorded: Recorded, counted: Counted, hidden: bool, folder: Path, chance: random.Random, disk: Disk
) -> Iterator[Episode]:
    """Yield a new episode, in a folder that is removed."""
    limits = replace(
        UNLIMITED,
        per_user_lifetime=chance.choice([None, None, 0.5, 2.5, 40.0]),
        runs=chance.choice([None, 1, 2]),
    )
    devices = []
    for place in range(2):
        shutil.copytree(recorded.folder, folder / f"u{place}")
        device = DeviceFolder(folder / f"u{place}")
        options = replace(device.options, limits=limits)
        device.options_file.write_text(formats.stamped(to_json(options)))
        device.profile_file.write_text(chance.choice(recorded.profiles))
        devices.append(Device(DeviceFolder(device.path)))
    yield Episode(recorded, counted, chance, disk, hidden, devices, limits)
    shutil.rmtree(folder)


def told(name: str, counted: Counted) -> str:
    """Return what is printed of a protocol."""
    of = ", ".join(f"{what} {number:,}" for what, number in counted.outcomes.most_common())
    more = ", ".join(f"{what} {number:,}" for what, number in sorted(counted.events.items()))
    lines = [f"{name}: {counted.outcomes.total():,} replies in {counted.episodes:,} episodes: {of}", more]
    lines += [
        f"BREACH {kind}, {times:,} times: {counted.first[kind]}" for kind, times in counted.breaches.items()
    ]
    return "\n    ".join(lines)


def main() -> int:
    """Play episodes for so long; return 1 if anything was breached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1200.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    shared = Path("/dev/shm")
    counts = {name: Counted() for name in PROTOCOLS}
    with (
        tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as scratch,
        pytest.MonkeyPatch.context() as patched,
    ):
        recorded = {
            name: Recorded.of(values, Path(scratch) / name) for name, (values, _) in PROTOCOLS.items()
        }
        disk, began, said = Disk(patched), time.process_time(), 0.0
        while time.process_time() - began < given.seconds:
            for name, (_, hidden) in PROTOCOLS.items():
                counted = counts[name]
                chance = random.Random(f"{given.seed} {name} {counted.episodes}")
                place = Path(scratch) / "episode"
                with an_episode(recorded[name], counted, hidden, place, chance, disk) as episode:
                    episode.play()
                counted.episodes += 1
            if (spent := time.process_time() - began) > said + 60 or spent >= given.seconds:
                said = spent
                print(f"after {spent:.0f} s", *(told(*each) for each in counts.items()), sep="\n", flush=True)
    return int(any(counted.breaches for counted in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
