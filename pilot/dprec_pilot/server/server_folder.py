"""The folder that the server of a deployment is given: who takes part, what else it knows, and no rating."""

import csv
import hashlib
import io
import json
import re
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from dprec import formats
from dprec.catalogue import Catalogue
from dprec.components import Options, as_values, from_json, option
from dprec.errors import InputError, SettingError, one_line, within
from dprec.protocols.base import Protocol
from dprec.randomness import Key
from dprec.ratings import RatingScale
from dprec_pilot.device.folder import Agreement, check_version
from dprec_pilot.device.joining import check_authority
from dprec_pilot.files import OPEN, NamedFile, read_bytes, read_text, write_durably
from dprec_pilot.masks.directory import Directory, SumParties
from dprec_pilot.masks.server import MaskedExchange
from dprec_pilot.server.deadline_grid import Patience, check_quorum
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.storage.directories import DEPLOYMENT
from strategies.releases import ExchangeOf

_PREPARED = "a file that dprec-pilot prepare made"

_NODE = re.compile("[0-9]{1,20}", re.ASCII)
_COLUMNS = ["user", "public_key", "node_id"]
_ENROLMENT = "an enrolment list, as dprec-pilot prepare makes it"


def prepared_device(folder: Path, place: int) -> Path:
    """Return where a device is prepared in a pilot; ``place``: on the enrolment list, from 0."""
    return folder / "devices" / f"{place:06d}"


@dataclass(frozen=True)
class Enrolled:
    """A user of a deployment."""

    user: str
    """The user's own identifier."""
    public_key: str | None
    """Key of the user's device, a line in the format of OpenSSH; None for a user without a device, who is
    invited or was removed.
    """
    node_id: int | None = None
    """How Flower calls the device; None before it is registered."""


def write_enrolment(path: Path, enrolled: list[Enrolled]) -> None:
    """Write the list; a user's number is its position."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([each.user, each.public_key or "", each.node_id or ""] for each in enrolled)
    write_durably(path, file.getvalue(), OPEN)


def read_enrolment(path: Path) -> list[Enrolled]:
    """Read the list; raises InputError naming a line with a node or key that is none or has one before."""
    try:
        rows = list(csv.reader(io.StringIO(read_text(path, _ENROLMENT))))
    except csv.Error as error:
        raise InputError(str(path), str(error), _ENROLMENT) from None
    if not rows or rows[0] != _COLUMNS:
        raise InputError(f"{path}:1", ",".join(rows[0]) if rows else "nothing", ",".join(_COLUMNS))
    enrolled: list[Enrolled] = []
    seen: set[str] = set()
    for number, row in enumerate(rows[1:], start=2):
        where = f"{path}:{number}"
        if len(row) != len(_COLUMNS) or not row[0]:
            raise InputError(where, ",".join(row), "a user, a public key or nothing, a node id or nothing")
        user, key, node = row
        if node and not (_NODE.fullmatch(node) and 1 < int(node) < 2**64):
            raise InputError(where, f"node {node}", "the node id that Flower gave the device")
        again = {entry for entry in (f"user {user}", key, node and f"node {node}") if entry} & seen
        if again:
            raise InputError(where, f"{min(again)} again", "every user, key and node once")
        seen |= {f"user {user}", key, f"node {node}"}
        enrolled.append(Enrolled(user, key or None, int(node) if node else None))
    return enrolled


@dataclass(frozen=True, kw_only=True)
class Deployment(Options):
    """The contents of deployment.json: what the server knows beside protocol, catalogue and enrolment."""

    fingerprint: str = option("Of the protocol, as devices have agreed to it.")
    levels: tuple[float, ...] = option("Levels of the rating scale, ascending.")
    continuous: bool = option("Whether true ratings lie between the levels.")
    cut: float | None = option("The rating above which a rating counts as +1, for signs.", None)
    public: Key = option("What devices and server share, 32 hexadecimal digits.")
    server: Key = option("What the server draws from, 32 hexadecimal digits: its secret, unless seeded.")
    seeded: bool = option("Whether devices and server draw from a seed, as in tests: all noise is known.")
    deadline: float = option("Seconds after which a round ends.", 600.0, gt=0)
    computes: int = option("Version of what devices compute, as dprec-pilot prepare writes it.", ge=1)
    grace: float = option("Seconds for which late answers are counted as such.", 10.0, ge=0)
    quorum: float = option("With what share of answers a round may end, or above 1 number.", 1.0, gt=0)
    ask_again: float = option("Seconds after which a silent device is asked again.", 90.0, gt=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_quorum(self.quorum)

    @property
    def patience(self) -> Patience:
        """How long the devices of a round are waited for."""
        return Patience(self.deadline, self.grace, self.quorum, self.ask_again)

    def server_seed(self, run_key: str) -> int:
        """Return what the server draws from in a run, of which no other run's noise is known.

        With the same noise, two runs would tell whether anything has changed between them. Where a deployment
        is seeded, it is the simulation's seed in every run.
        """
        if self.seeded:
            return int(self.server, 16)
        drawn = hashlib.blake2b(run_key.encode(), key=bytes.fromhex(self.server), digest_size=16)
        return int.from_bytes(drawn.digest(), "big")

    @property
    def scale(self) -> RatingScale:
        """The rating scale."""
        return RatingScale(np.array(self.levels), self.continuous, self.cut)


@dataclass(frozen=True)
class ServerFolder:
    """The files of a server."""

    path: Path

    enrolment_file = NamedFile("enrolment.csv")
    """Who takes part; see `read_enrolment`."""
    protocol_file = NamedFile("protocol.json")
    """What devices agree to, as in their own folders."""
    invitation_file = NamedFile("invitation.json")
    """What everybody may know who is to join; see `dprec_pilot.device.joining`."""
    database = NamedFile("superlink.db")
    """What the SuperLink remembers, once superlink.sh has started it."""
    _deployment_file = NamedFile(DEPLOYMENT)
    _catalogue_file = NamedFile("catalogue.txt")
    """The ids of the items, one a line, in the order of the catalogue."""
    _directory_file = NamedFile("directory.txt")
    """The public keys of all devices, where these mask what they send."""
    _public_data_file = NamedFile("catalogue.npz")
    """Public data about the items."""

    @property
    def certificate(self) -> bytes:
        """The authority's certificate, as PEM; raises InputError when it cannot be read, or is none."""
        path = self.path / "ca.crt"
        pem = read_text(path, _PREPARED)
        check_authority(pem, str(path))
        return pem.encode()

    @cached_property
    def config(self) -> RunConfig:
        """What was prepared; its data set is not read."""
        return load(self.path / "config.yaml")

    @cached_property
    def deployment(self) -> Deployment:
        """What the server knows beside protocol, catalogue and enrolment."""
        text = read_text(self._deployment_file, _PREPARED)
        where = str(self._deployment_file)
        return from_json(Deployment, formats.body(text, where), where)

    @cached_property
    def item_ids(self) -> list[str]:
        """The ids of the items."""
        # Ids may have characters at which str.splitlines cuts as well.
        return read_text(self._catalogue_file, _PREPARED).removesuffix("\n").split("\n")

    @property
    def closed(self) -> bool:
        """Whether nobody can join: devices that mask together know the keys of all others."""
        return self._directory_file.exists()

    def enrolled(self) -> list[Enrolled]:
        """Read who takes part; raises InputError when the list is damaged, or nobody does."""
        enrolled = read_enrolment(self.enrolment_file)
        if not enrolled:
            raise InputError(str(self.enrolment_file), "no user", "a line for each user")
        return enrolled

    def catalogue(self) -> Catalogue | None:
        """Read the public data about the items, if there are any."""
        path = self._public_data_file
        if not path.exists():
            return None
        try:
            with np.load(io.BytesIO(read_bytes(path, _PREPARED)), allow_pickle=False) as arrays:
                names = tuple(arrays["number_names"].tolist()), tuple(arrays["category_names"].tolist())
                return Catalogue(arrays["numbers"], arrays["categories"], *names)
        except (KeyError, ValueError, EOFError, BadZipFile) as error:
            raise InputError(str(path), one_line(error), _PREPARED) from None

    def protocol(self) -> Protocol:
        """Return the protocol, as prepared and agreed on; raises InputError when files were changed."""
        check_version(self.deployment.computes, str(self._deployment_file))
        protocol, found = deployable(self.config), self.agreement
        if found.fingerprint != self.deployment.fingerprint:
            where = f"{self.path}: config.yaml, catalogue.txt, directory.txt and deployment.json"
            raise InputError(where, f"protocol {found.fingerprint[:8]}", f"{self.deployment.fingerprint[:8]}")
        return protocol

    @property
    def agreement(self) -> Agreement:
        """What devices agree to, by these files."""
        known = self.deployment
        return agreement_of(self.config, known.scale, self.item_ids, known.public, self._directory)

    @cached_property
    def _directory(self) -> Directory | None:
        """The public keys of all devices; None where these mask nothing."""
        if not self.config.protocol.picked.installed.masks:
            return None
        return Directory.read(read_text(self._directory_file, _PREPARED))

    def exchange_of(self, run_key: str) -> ExchangeOf | None:
        """Return what makes what is asked around masked sums in a run; None where nothing is masked."""
        if self._directory is None:
            return None
        return partial(MaskedExchange, SumParties(self.deployment.fingerprint, run_key, self._directory))

    def write(
        self,
        config: RunConfig,
        deployment: Deployment,
        item_ids: list[str],
        catalogue: Catalogue | None,
        directory: Directory | None = None,
    ) -> None:
        """Write all files but the enrolment and what is about the server's keys."""
        write_durably(self.path / "config.yaml", config.to_yaml(), OPEN)
        write_durably(self._catalogue_file, "".join(f"{item}\n" for item in item_ids), OPEN)
        if catalogue is not None:
            file = io.BytesIO()
            np.savez(
                file,
                numbers=catalogue.numbers,
                categories=catalogue.categories,
                number_names=np.array(catalogue.number_names, dtype=np.str_),
                category_names=np.array(catalogue.category_names, dtype=np.str_),
            )
            write_durably(self._public_data_file, file.getvalue(), OPEN)
        if directory is not None:
            write_durably(self._directory_file, directory.text, OPEN)
        values = {**formats.STAMP, **as_values(deployment)}
        write_durably(self._deployment_file, json.dumps(values, indent=2) + "\n")


def check_new(output: Path) -> None:
    """Raise InputError where a run is to begin in a directory that holds something."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        accepted = "a new directory; dprec-pilot resume goes on with a run"
        raise InputError(str(output), "it holds something", accepted)


def deployable(config: RunConfig) -> Protocol:
    """Return the protocol that is deployed, or raise SettingError if its server needs to know more."""
    protocol = config.protocol.picked
    with within("protocol"):
        protocol.check_deployed()
    if (schedule := config.schedule) is not None:
        from simulation.scheduled import check_kind

        # No device knows of days: whoever starts a run says when devices are asked.
        if schedule.draws_anew:
            accepted = (
                "increments; or no schedule, where --runs says in how many runs devices draw fresh noise"
            )
            raise SettingError("schedule.kind", f"{schedule.kind!r}, in a deployment", accepted)
        check_kind(schedule, protocol)
    return protocol


def agreement_of(
    config: RunConfig, scale: RatingScale, item_ids: list[str], public: str, directory: Directory | None
) -> Agreement:
    """Return what devices agree to; ``directory``: who they are, where they mask what they send."""
    protocol, schedule = config.protocol.picked, config.schedule
    if schedule is not None:
        protocol = replace(protocol.of_single_ratings, answers=schedule.answers)
    return Agreement.of(
        protocol.installed,
        scale,
        item_ids,
        public=public,
        process=protocol.facts.assumes,
        directory=directory,
    )
