"""The folder of a device: what it has agreed to, its secret, its files, and who may use them.

Both sides know the protocol by its fingerprint. A device answers a run only under the fingerprint of its own
copy, and takes every setting from the copy, whatever a server says. All its noise follows from its secret.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Self

import numpy as np

from clients.places import sync_folder
from dprec import components, exchange, formats
from dprec.arrays import AnyInts, Floats, Ints
from dprec.components import from_json, is_told_by_its_settings, to_json
from dprec.errors import InputError
from dprec.exchange import is_integer
from dprec.personalization import OrdinalProcess
from dprec.protocols.base import Protocol
from dprec.protocols.registry import AnyProtocol
from dprec.randomness import SECRET_BYTES, Draws, InstalledKeys, Key, MemoisedDraws, SecretDraws
from dprec.ratings import RatingScale
from dprec.schedules import RepeatedAnswers
from dprec_pilot import files
from dprec_pilot.computing import COMPUTES
from dprec_pilot.device.ledger import DeviceOptions, Limits
from dprec_pilot.device.node_key import public_line, read_node_key
from dprec_pilot.device.profile import Profile, State, profile_text, read_profile, write_state
from dprec_pilot.files import NamedFile, read_text, write_durably
from dprec_pilot.groups import group_of
from dprec_pilot.masks.directory import Directory, SigningParty

_DEVICE = "a folder of a device, as dprec-pilot prepare makes them"
_ACCEPTED = f"{SECRET_BYTES} random bytes that only their owner can read (mode 0600)"

_OPEN = 16
"""Agreements that a process holds: devices that agreed to the same share one."""


@dataclass(frozen=True, kw_only=True)
class Agreement(components.Options):
    """The protocol as a device knows it; the contents of protocol.json."""

    protocol: AnyProtocol = components.option("What the device does: mechanism, budget, rounds.")
    levels: tuple[float, ...] = components.option("Levels of the rating scale, ascending.")
    continuous: bool = components.option("Whether true ratings lie between the levels.")
    items: int = components.option("Items of the catalogue.", ge=1)
    catalogue: str = components.option(
        "Digest of the ids of the items, in their order: SHA-256 in hexadecimal digits."
    )
    public: Key = components.option("What devices and server share, 32 hexadecimal digits.")
    directory: str = components.option(
        "Digest of who takes part, by their public keys, where devices mask what they send: SHA-256 in "
        "hexadecimal digits; empty otherwise.",
        "",
    )
    process: OrdinalProcess = components.option(
        "What the device assumes about preferences when it predicts from a table of items.", OrdinalProcess()
    )
    computes: int = components.option(
        "Version of what devices compute, as dprec-pilot prepare writes it.", ge=1
    )

    @classmethod
    def of(
        cls,
        protocol: Protocol,
        scale: RatingScale,
        item_ids: Sequence[str],
        *,
        public: str,
        process: OrdinalProcess | None = None,
        directory: Directory | None = None,
    ) -> Self:
        """Return the agreement on a protocol.

        ``process``: where devices predict from a table of items; ``directory``: who takes part, where devices
        mask what they send. Raises InputError when it has user-defined classes that no file describes.
        """
        own = components.user_defined_classes(protocol)
        agreement = cls(
            protocol=protocol,
            levels=tuple(scale.values.tolist()),
            continuous=scale.continuous,
            items=len(item_ids),
            catalogue=_digest_of(item_ids),
            public=public,
            process=process or OrdinalProcess(),
            computes=COMPUTES,
            directory="" if directory is None else directory.digest,
        )
        if own and not (all(map(components.is_importable, own)) and is_told_by_its_settings(agreement)):
            found = " and ".join(map(components.reference_of, own))
            raise InputError("protocol", found, "on a device, classes of modules with settings for JSON")
        return agreement

    @property
    def classes(self) -> tuple[str, ...]:
        """The user-defined classes that the protocol names."""
        return tuple(map(components.reference_of, components.user_defined_classes(self.protocol)))

    @cached_property
    def text(self) -> str:
        """The agreement as JSON, written in one way only; without a directory where there is none."""
        values = components.as_values(self)
        if not self.directory:
            del values["directory"]
        return json.dumps(values, sort_keys=True, separators=(",", ":"))

    @cached_property
    def fingerprint(self) -> str:
        """What identifies the protocol: the SHA-256 of its text, 64 hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def group(self, run_key: str) -> str:
        """Return the group of every message of a run of this protocol."""
        return group_of(self.fingerprint, run_key)

    @cached_property
    def scale(self) -> RatingScale:
        """The rating scale."""
        return RatingScale(np.array(self.levels), self.continuous)

    @cached_property
    def memory(self) -> str:
        """What identifies the answers that every run repeats, 64 hexadecimal digits; empty if none are."""
        memory = None if self.repeated is None else self.protocol.memory(self.scale, exchange.REPORT)
        if memory is None:
            return ""
        return hashlib.sha256(_of_this_version(memory).encode()).hexdigest()

    @property
    def repeated(self) -> RepeatedAnswers | None:
        """What the protocol says of answers that every run repeats; None if none are."""
        answers = self.protocol.remembers
        return answers if isinstance(answers, RepeatedAnswers) else None


def _of_this_version(memory: str) -> str:
    """Return what repeated answers are bound to: from the same words, another version may say another."""
    return f"{memory} {COMPUTES}"


def _digest_of(item_ids: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(item_ids).encode()).hexdigest()


@lru_cache(maxsize=_OPEN)
def read_agreement(text: str, where: str, classes: tuple[str, ...]) -> Agreement:
    """Read an agreement, which may name some user-defined classes; no module of others is imported.

    Raises InputError naming ``where`` when it is damaged, or of another version.
    """
    try:
        with components.importing_only(classes):
            return from_json(Agreement, text, where)
    except InputError:
        # Another version may have had other settings.
        try:
            version = json.loads(text)["computes"]
        except (ValueError, KeyError, TypeError, RecursionError):
            version = COMPUTES
        check_version(version if is_integer(version) else COMPUTES, where)
        raise


def check_version(version: int, where: str) -> None:
    """Raise InputError naming a file of another version of what devices compute."""
    if version != COMPUTES:
        accepted = f"version {COMPUTES}, that of the installed dprec"
        raise InputError(where, f"version {version} of what devices compute", accepted)


@dataclass(frozen=True)
class SecretKeys:
    """What a device draws from in a run; see `Keys`.

    The same question in the same run gets the same answer, which costs nothing. In another run, under
    another protocol or from another profile all noise is independent, so nothing can be replayed. What is
    repeated in every run is bound to the ids of items: their positions change as the catalogue grows.
    """

    secret: bytes
    run: str
    """The run key, which the server chose."""
    fingerprint: str
    """Of the protocol."""
    public_seed: int
    """The seed of what devices and server share."""
    item_ids: Sequence[str]
    """The ids of the items."""
    network_seed: int = 0
    """Draws no faults: those of a real network happen."""

    def draws(
        self, first_user: int, indptr: Ints, items: AnyInts, values: Floats, purpose: str, protocol: str
    ) -> Draws:
        """Return the random words of the user in this run."""
        of = f"{purpose} {self.run} {self.fingerprint} {protocol}"
        return SecretDraws.of(self.secret, items, values, of)

    def memoised(
        self, first_user: int, indptr: Ints, items: AnyInts, values: Floats, purpose: str, memory: str
    ) -> Draws:
        """Return the random words of the user's ratings in all runs."""
        draws = SecretDraws.of_all_runs(self.secret, f"{purpose} {_of_this_version(memory)}")
        rated = zip(items.tolist(), values.tolist(), strict=True)
        return MemoisedDraws(items, [draws.of_rating(self.item_ids[item], value) for item, value in rated])

    def __repr__(self) -> str:
        return f"SecretKeys(run={self.run!r})"


def _new_secret() -> bytes:
    return os.urandom(SECRET_BYTES)


@dataclass(frozen=True)
class DeviceFolder:
    """The files of a device."""

    path: Path

    profile_file = NamedFile("profile.csv")
    """The ratings of the user, with the columns item and rating."""
    options_file = NamedFile("device.json")
    """`DeviceOptions`, as JSON; written last, so a folder that has it is complete."""
    protocol_file = NamedFile("protocol.json")
    """The `Agreement`, as JSON."""
    catalogue_file = NamedFile("catalogue.txt")
    """The ids of the items, one a line, in the order of the catalogue."""
    directory_file = NamedFile("directory.txt")
    """The public keys of all devices, where these mask what they send; see `Directory`."""
    node_key_file = NamedFile("node.key")
    """The private key by which the server knows the device: an EC key, as PEM or in OpenSSH's format."""
    next_node_key_file = NamedFile("node.key.next")
    """The key that takes its place once the server knows it; see `dprec_pilot.device.joining.rotate`."""
    secret_file = NamedFile("secret.key")
    """32 bytes, from which the noise follows."""
    seeded_file = NamedFile("seeded.json")
    """`InstalledKeys`, as JSON: what a device of a test draws from instead of its secret."""
    ledger_file = NamedFile("ledger.jsonl")
    """What was spent; see `dprec_pilot.device.ledger`."""
    state_file = NamedFile("state")
    """What the device remembers; see `dprec_pilot.device.profile`."""
    predictions_file = NamedFile("predictions.csv")
    """What the user is predicted to rate; see `dprec_pilot.device.profile`."""

    def kept_profile_file(self, digest: str) -> Path:
        """Return the file of ratings with which runs were answered, named by their digest in the ledger."""
        return self.path / "profiles" / f"{digest}.csv"

    @cached_property
    def options(self) -> DeviceOptions:
        """How the device is enrolled, and what it may spend."""
        text, where = read_text(self.options_file, _DEVICE), str(self.options_file)
        return from_json(DeviceOptions, formats.body(text, where), where)

    @cached_property
    def agreement(self) -> Agreement:
        """What the device has agreed to."""
        text, where = read_text(self.protocol_file, _DEVICE), str(self.protocol_file)
        return read_agreement(text, where, self.options.classes)

    @cached_property
    def item_ids(self) -> list[str]:
        """The ids of the items; raises InputError when the catalogue is not that of the agreement."""
        *item_ids, rest = read_text(self.catalogue_file, _DEVICE).split("\n")
        agreed = self.agreement
        if rest or _digest_of(item_ids) != agreed.catalogue or len(item_ids) != agreed.items:
            found = f"{len(item_ids)} items that are not those of {self.protocol_file.name}"
            raise InputError(str(self.catalogue_file), found, f"its {agreed.items} items")
        return item_ids

    @cached_property
    def _directory(self) -> Directory:
        """The public keys of all devices; raises InputError when they are not those of the agreement."""
        directory = Directory.read(read_text(self.directory_file, _DEVICE))
        if directory.digest != self.agreement.directory:
            found = f"{len(directory.keys)} keys that are not those of {self.protocol_file.name}"
            raise InputError(str(self.directory_file), found, "the keys of all who have agreed to it")
        return directory

    def party(self, run: str) -> SigningParty | None:
        """Return the device in the secure sums of a run; None if the protocol has none.

        Raises InputError when the directory is not that of the agreement, or has another key for the device.
        """
        if not self.agreement.directory:
            return None
        key, user, directory = read_node_key(self.node_key_file), self.options.user, self._directory
        if directory.keys[user : user + 1] != (public_line(key.public_key()),):
            found = f"another key than that of {self.node_key_file.name} in line {user + 1}"
            raise InputError(str(self.directory_file), found, "the key of this device")
        return SigningParty(self.agreement.fingerprint, run, directory, key)

    @cached_property
    def secret(self) -> bytes:
        """The secret, which nobody else can read."""
        path = self.secret_file
        secret, mode = files.read_bytes(path, _ACCEPTED), stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise InputError(str(path), f"mode {mode:04o}", _ACCEPTED)
        if len(secret) != SECRET_BYTES:
            raise InputError(str(path), f"{len(secret)} bytes", _ACCEPTED)
        return secret

    @cached_property
    def seeded(self) -> InstalledKeys | None:
        """What a device of a test draws from; None for a real one."""
        if not self.seeded_file.exists():
            return None
        return from_json(InstalledKeys, read_text(self.seeded_file, _DEVICE), str(self.seeded_file))

    def profile(self) -> Profile:
        """Read the ratings, which the user may have changed."""
        return read_profile(self.profile_file, self._positions, self.agreement.scale)

    def keep_profile(self, profile: Profile) -> None:
        """Write the ratings with which a run is answered, if they are not kept already."""
        file = self.kept_profile_file(profile.digest)
        if not file.exists():
            file.parent.mkdir(mode=0o700, exist_ok=True)
            rated = [self.item_ids[position] for position in profile.items.tolist()]
            write_durably(file, profile_text(rated, profile.values, profile.scale))
            sync_folder(self.path)

    def kept_profile(self, digest: str) -> Profile:
        """Read the ratings with which a run was answered; raises InputError without them."""
        file = self.kept_profile_file(digest)
        profile = read_profile(file, self._positions, self.agreement.scale)
        if profile.digest != digest:
            raise InputError(str(file), "changed", "the file as the device wrote it")
        return profile

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {item: position for position, item in enumerate(self.item_ids)}

    def take_next_node_key(self) -> None:
        """Replace the key by which the server knows the device by the next one."""
        os.replace(self.next_node_key_file, self.node_key_file)
        sync_folder(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from using the folder; raises InputError when another one does."""
        with files.locked(self.path / "lock", self.path, "a device that no other process serves"):
            for unfinished in self.path.rglob(f"{files.PART}*"):
                unfinished.unlink(missing_ok=True)
            yield


def write_device(
    folder: Path,
    *,
    profile: tuple[AnyInts, Floats],
    user: int,
    limits: Limits,
    agreement: Agreement,
    item_ids: Sequence[str],
    node_key: bytes,
    seeded: InstalledKeys | None = None,
    directory: Directory | None = None,
) -> DeviceFolder:
    """Make the folder of a device, with a new secret.

    It must not exist, or be empty. ``profile``: the positions of the rated items in the catalogue, and their
    true ratings; ``node_key``: the private key by which the server knows the device; ``seeded``: what a
    device of a test draws from, as the simulation would; ``directory``: that of the agreement, if it has one.
    Raises InputError when the folder cannot be used, or the items are not those of the agreement.
    """
    check_catalogue(item_ids, agreement)
    device, (items, values) = DeviceFolder(folder), profile
    rated = [item_ids[position] for position in items.tolist()]
    options = DeviceOptions(user=user, limits=limits, classes=agreement.classes)
    name, everything = files.IGNORED
    contents = {
        folder / name: everything,
        device.profile_file: profile_text(rated, values, agreement.scale),
        device.protocol_file: agreement.text,
        device.catalogue_file: "".join(f"{item}\n" for item in item_ids),
        device.node_key_file: node_key,
        device.secret_file: _new_secret(),
        device.seeded_file: None if seeded is None else to_json(seeded),
        device.directory_file: None if directory is None else directory.text,
        device.options_file: formats.stamped(to_json(options)),
    }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(str(folder), "a folder that is not empty", "a new folder")
        write_state(device.state_file, State())
        for path, content in contents.items():
            if content is not None:
                write_durably(path, content)
        sync_folder(folder.parent)
    except OSError as error:
        raise InputError(str(folder), str(error.strerror), "a folder that can be written") from None
    return device


def check_catalogue(item_ids: Sequence[str], agreement: Agreement, where: str = "item_ids") -> None:
    """Raise InputError unless the items are those of an agreement, each on a line of its own."""
    if _digest_of(item_ids) != agreement.catalogue or len(item_ids) != agreement.items:
        found = f"{len(item_ids)} items of another catalogue"
        raise InputError(where, found, f"the {agreement.items} of the agreement")
    if any("\n" in item or "\r" in item for item in item_ids):
        raise InputError(where, "an id of several lines", "ids of one line")
