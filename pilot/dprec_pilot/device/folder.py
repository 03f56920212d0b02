"""The folder of a device: what it has agreed to, its secret, its files, and who may use them.

Both sides know the protocol by its fingerprint. A device answers a run only under the fingerprint of its own
copy, and takes every setting from the copy, whatever a server says. All its noise follows from its secret.
"""

import fcntl
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

from dprec import components, formats
from dprec.arrays import AnyInts, Floats, Ints
from dprec.errors import InputError
from dprec.exchange import COMPUTES, AnySetup, Setup, from_json, group_of, is_integer, to_json
from dprec.exchange.setups import is_told_by_its_settings
from dprec.personalization import OrdinalProcess
from dprec.randomness import SECRET_BYTES, Draws, InstalledKeys, Key, MemoisedDraws, SecretDraws
from dprec.ratings import RatingScale
from dprec_pilot.device.ledger import DeviceOptions, Limits
from dprec_pilot.device.node_key import public_line, read_node_key
from dprec_pilot.device.profile import (
    OWNER_ONLY,
    PART,
    Profile,
    State,
    profile_text,
    read_profile,
    sync_folder,
    write_durably,
    write_state,
)
from dprec_pilot.masks.directory import Directory, SigningParty

_DEVICE = "a folder of a device, as dprec-pilot prepare makes them"
_ACCEPTED = f"{SECRET_BYTES} random bytes that only their owner can read (mode 0600)"

IGNORED = ".gitignore", b"*\n"
"""The name of a file, and what it says, by which Git adds nothing of its folder."""

_OPEN = 16
"""Agreements that a process holds: devices that agreed to the same share one."""


@dataclass(frozen=True, kw_only=True)
class Agreement(components.Options):
    """The protocol as a device knows it; the contents of protocol.json."""

    setup: AnySetup = components.option("What the device does: mechanism, budget, rounds.")
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
        setup: Setup,
        scale: RatingScale,
        item_ids: Sequence[str],
        *,
        public: str,
        process: OrdinalProcess | None = None,
        directory: Directory | None = None,
    ) -> Self:
        """Return the agreement on a protocol.

        ``process``: where devices predict from a table of items; ``directory``: who takes part, where devices
        mask what they send. Raises InputError when the setup has
        user-defined classes that no file describes.
        """
        own = components.user_defined_classes(setup)
        agreement = cls(
            setup=setup,
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
        return tuple(map(components.reference_of, components.user_defined_classes(self.setup)))

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
        memory = self.setup.memory(self.scale)
        return "" if memory is None else hashlib.sha256(_of_this_version(memory).encode()).hexdigest()


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
            agreement = from_json(Agreement, text, where)
    except InputError:
        # Another version may have had other settings.
        check_version(_version_in(text), where)
        raise
    return agreement


def _version_in(text: str) -> int:
    """Return the version that an agreement names; this one if it names none."""
    try:
        version = json.loads(text)["computes"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return COMPUTES
    return version if is_integer(version) else COMPUTES


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


def _read_secret(path: Path) -> bytes:
    """Read secret.key; refuse it if others can read it too."""
    try:
        mode, secret = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise InputError(str(path), str(error.strerror), _ACCEPTED) from None
    if stat.S_IMODE(mode) & 0o077:
        raise InputError(str(path), f"mode {stat.S_IMODE(mode):04o}", _ACCEPTED)
    if len(secret) != SECRET_BYTES:
        raise InputError(str(path), f"{len(secret)} bytes", _ACCEPTED)
    return secret


@dataclass(frozen=True)
class DeviceFolder:
    """The files of a device."""

    path: Path

    @property
    def profile_file(self) -> Path:
        """The ratings of the user: profile.csv, with the columns item and rating."""
        return self.path / "profile.csv"

    @property
    def options_file(self) -> Path:
        """`DeviceOptions`, as JSON; written last, so a folder that has it is complete."""
        return self.path / "device.json"

    @property
    def protocol_file(self) -> Path:
        """The `Agreement`, as JSON."""
        return self.path / "protocol.json"

    @property
    def catalogue_file(self) -> Path:
        """The ids of the items, one a line, in the order of the catalogue."""
        return self.path / "catalogue.txt"

    @property
    def directory_file(self) -> Path:
        """The public keys of all devices, where these mask what they send; see `Directory`."""
        return self.path / "directory.txt"

    @property
    def node_key_file(self) -> Path:
        """The private key by which the server knows the device: an EC key, as PEM or in OpenSSH's format."""
        return self.path / "node.key"

    @property
    def next_node_key_file(self) -> Path:
        """The key that takes its place once the server knows it; see `dprec_pilot.device.joining.rotate`."""
        return self.path / "node.key.next"

    @property
    def secret_file(self) -> Path:
        """32 bytes, from which the noise follows."""
        return self.path / "secret.key"

    @property
    def seeded_file(self) -> Path:
        """`InstalledKeys`, as JSON: what a device of a test draws from instead of its secret."""
        return self.path / "seeded.json"

    @property
    def ledger_file(self) -> Path:
        """What was spent; see `dprec_pilot.device.ledger`."""
        return self.path / "ledger.jsonl"

    @property
    def state_file(self) -> Path:
        """What the device remembers; see `dprec_pilot.device.profile`."""
        return self.path / "state"

    def kept_profile_file(self, digest: str) -> Path:
        """Return the file of ratings with which runs were answered, named by their digest in the ledger."""
        return self.path / "profiles" / f"{digest}.csv"

    @property
    def predictions_file(self) -> Path:
        """What the user is predicted to rate; see `dprec_pilot.device.profile`."""
        return self.path / "predictions.csv"

    @cached_property
    def options(self) -> DeviceOptions:
        """How the device is enrolled, and what it may spend."""
        where = str(self.options_file)
        return from_json(DeviceOptions, formats.body(self._text(self.options_file), where), where)

    @cached_property
    def agreement(self) -> Agreement:
        """What the device has agreed to."""
        return read_agreement(self._text(self.protocol_file), str(self.protocol_file), self.options.classes)

    @cached_property
    def item_ids(self) -> list[str]:
        """The ids of the items; raises InputError when the catalogue is not that of the agreement."""
        *item_ids, rest = self._text(self.catalogue_file).split("\n")
        agreed = self.agreement
        if rest or _digest_of(item_ids) != agreed.catalogue or len(item_ids) != agreed.items:
            found = f"{len(item_ids)} items that are not those of {self.protocol_file.name}"
            raise InputError(str(self.catalogue_file), found, f"its {agreed.items} items")
        return item_ids

    @cached_property
    def _directory(self) -> Directory:
        """The public keys of all devices; raises InputError when they are not those of the agreement."""
        directory = Directory.read(self._text(self.directory_file))
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
        """The secret."""
        return _read_secret(self.secret_file)

    @cached_property
    def seeded(self) -> InstalledKeys | None:
        """What a device of a test draws from; None for a real one."""
        if not self.seeded_file.exists():
            return None
        return from_json(InstalledKeys, self._text(self.seeded_file), str(self.seeded_file))

    def profile(self) -> Profile:
        """Read the ratings, which the user may have changed."""
        return read_profile(self.profile_file, self._positions, self.agreement.scale)

    def keep_profile(self, profile: Profile) -> None:
        """Write the ratings with which a run is answered, if they are not kept already."""
        file = self.kept_profile_file(profile.digest)
        if not file.exists():
            file.parent.mkdir(mode=0o700, exist_ok=True)
            rated = [self.item_ids[position] for position in profile.items.tolist()]
            write_durably(file, profile_text(rated, profile.values, profile.scale).encode())
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

    def _text(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(str(path), str(error.strerror), _DEVICE) from None
        except UnicodeDecodeError:
            raise InputError(str(path), "no UTF-8", _DEVICE) from None

    def take_next_node_key(self) -> None:
        """Replace the key by which the server knows the device by the next one."""
        os.replace(self.next_node_key_file, self.node_key_file)
        sync_folder(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from using the folder; raises InputError when another one does."""
        path = self.path / "lock"
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        except OSError as error:
            raise InputError(str(path), str(error.strerror), _DEVICE) from None
        # The lock ends with the process, however it ends.
        with os.fdopen(lock):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found = "in use by another process"
                raise InputError(str(self.path), found, "a device that no other process serves") from None
            for unfinished in self.path.rglob(f"{PART}*"):
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
    Raises InputError when the folder cannot be used, or
    the items are not those of the agreement.
    """
    check_catalogue(item_ids, agreement)
    device, (items, values) = DeviceFolder(folder), profile
    rated = [item_ids[position] for position in items.tolist()]
    name, everything = IGNORED
    files = {
        folder / name: everything,
        device.profile_file: profile_text(rated, values, agreement.scale).encode(),
        device.protocol_file: agreement.text.encode(),
        device.catalogue_file: "".join(f"{item}\n" for item in item_ids).encode(),
        device.node_key_file: node_key,
        device.secret_file: _new_secret(),
    }
    seeds = {} if seeded is None else {device.seeded_file: to_json(seeded).encode()}
    if directory is not None:
        files[device.directory_file] = directory.text.encode()
    options = DeviceOptions(user=user, limits=limits, classes=agreement.classes)
    _write_files(device, {**files, **seeds, device.options_file: formats.stamped(to_json(options)).encode()})
    return device


def check_catalogue(item_ids: Sequence[str], agreement: Agreement, where: str = "item_ids") -> None:
    """Raise InputError unless the items are those of an agreement, each on a line of its own."""
    if _digest_of(item_ids) != agreement.catalogue or len(item_ids) != agreement.items:
        found = f"{len(item_ids)} items of another catalogue"
        raise InputError(where, found, f"the {agreement.items} of the agreement")
    if any("\n" in item or "\r" in item for item in item_ids):
        raise InputError(where, "an id of several lines", "ids of one line")


def _write_files(device: DeviceFolder, files: Mapping[Path, bytes]) -> None:
    """Write the files of a new device, and a memory of nothing."""
    folder = device.path
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(str(folder), "a folder that is not empty", "a new folder")
        write_state(device.state_file, State())
        for path, contents in files.items():
            write_durably(path, contents)
        sync_folder(folder.parent)
    except OSError as error:
        raise InputError(str(folder), str(error.strerror), "a folder that can be written") from None
