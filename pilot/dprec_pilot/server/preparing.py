"""Prepares a pilot: keys, certificates, what the server is given, and a folder for each device."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dprec.accounting import PrivacyBudget
from dprec.components import Options, option
from dprec.errors import InputError, SettingError, within
from dprec.progress import Progress, silent
from dprec.protocols.base import Protocol, Public, check_suits
from dprec.randomness import ENTROPY_BYTES, RunKeys
from dprec.ratings import Ratings
from dprec_pilot.device.folder import Agreement, write_device
from dprec_pilot.device.joining import Invitation
from dprec_pilot.device.ledger import Limits
from dprec_pilot.device.node_key import NodeKeyPair, new_node_key
from dprec_pilot.files import IGNORED, OPEN, OWNER_ONLY, unusable, whole_folder, write_durably
from dprec_pilot.masks.directory import Directory
from dprec_pilot.server import server_folder
from dprec_pilot.server.certificates import DAYS, MOST_DAYS, Authority, check_host
from dprec_pilot.server.deadline_grid import check_quorum
from dprec_pilot.server.server_folder import Enrolled, prepared_device, write_enrolment
from simulation.configuration.models import RunConfig
from simulation.execution import SideData, load_ratings
from simulation.storage.summarise import given_scale

_SUPERLINK = """\
#!/bin/sh
# Starts the SuperLink: superlink.sh [HOST] [PORT]. From outside, only /v1/fleet may be reached.
cd "$(dirname "$0")" || exit 1
host="${1:-127.0.0.1}" port="${2:-AS_PREPARED}"
# Nobody else reads what it keeps, and after each run it forgets the messages.
umask 077
for kept in superlink.db*; do [ ! -f "$kept" ] || chmod 600 "$kept"; done
near="$host"
[ "$host" != 0.0.0.0 ] || near=127.0.0.1
dprec-pilot clean . --superlink "$near:$port" --every 10 &
export FLWR_HOME="$PWD/flwr" FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1
exec flower-superlink --ssl-ca-certfile ca.crt --ssl-certfile server.crt --ssl-keyfile server.key \\
    --enable-supernode-auth --disable-runtime-dependency-installation --database superlink.db \\
    --host "$host" --port "$port"
"""

_CONNECTION = """\
[superlink]
default = "pilot"

[superlink.pilot]
address = "{address}"
root-certificates = "{certificate}"
"""


@dataclass(frozen=True, kw_only=True)
class PilotOptions(Options):
    """How a pilot is prepared."""

    devices: int | None = option(
        "Devices, for the first users of the ratings; by default one for each; 0 where all join.", None, ge=0
    )
    host: str = option("Name or address under which the server is reached.", "localhost")
    port: int = option("Port of the SuperLink on its own machine.", 8000, ge=1, le=65535)
    days: int = option("How long the server's certificate is valid.", DAYS, ge=1, le=MOST_DAYS)
    authority_days: int = option("How long its authority is, which devices trust.", 3650, ge=1, le=36500)
    runs: int = option("Runs that a device pays for in its lifetime.", 1, ge=1)
    deadline: float = option("Seconds after which a round ends.", 600.0, gt=0)
    quorum: float = option("With what share of answers a round may end, or above 1 number.", 1.0, gt=0)
    seeded: bool = option("Devices and server draw from the seed, as in simulations: for tests.", False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_host(self.host)
        check_quorum(self.quorum)
        if self.seeded and self.devices == 0:
            raise SettingError("seeded", "true, without devices", "devices that are made here")


@dataclass(frozen=True, eq=False)
class _Pilot:
    """What is prepared, with the ratings of its users alone."""

    config: RunConfig
    options: PilotOptions
    train: Ratings
    keys: RunKeys
    agreement: Agreement
    node_keys: Sequence[NodeKeyPair]
    """One for each user's device; none where users join."""
    directory: Directory | None
    """All of them, where devices mask what they send."""

    @property
    def items(self) -> list[str]:
        """The ids of the items."""
        return [str(item) for item in self.train.item_ids.tolist()]

    @property
    def limits(self) -> Limits:
        """What a device may spend."""
        agreement, privacy = self.agreement, self.config.protocol.privacy
        each = 1 if agreement.repeated is None else agreement.repeated.per_rating
        return limits_of(privacy, self.options.runs, each, agreement.protocol.composed)


def prepare(
    config: RunConfig, folder: Path, options: PilotOptions, progress: Progress = silent
) -> server_folder.ServerFolder:
    """Prepare a pilot of a configuration in a new folder, as a whole; return what its server is given.

    Raises InputError when the protocol does not deploy, the ratings cannot be used, or the folder exists.
    """
    if folder.exists():
        raise InputError(str(folder), "it exists", "a new directory")
    pilot = _pilot_of(config, options)
    try:
        with whole_folder(folder) as building:
            _write(pilot, building, folder.absolute(), progress)
    except OSError as error:
        raise unusable(folder, error) from None
    return server_folder.ServerFolder(folder / "server")


def _pilot_of(config: RunConfig, options: PilotOptions) -> _Pilot:
    if options.seeded and config.simulation.seed == "os":
        found = "'os', where devices and server are to draw from the seed"
        raise SettingError("simulation.seed", found, "'run' with --seeded, or no --seeded")
    server_folder.deployable(config)
    train, _ = load_ratings(config)
    _check_scale(config, train)
    if options.devices and options.devices > train.n_users:
        accepted = f"at most {train.n_users}, the users of the ratings"
        raise InputError("devices", str(options.devices), accepted)
    if options.devices and options.devices < train.n_users:
        train = train.of_users(np.arange(options.devices), train.user_ids[: options.devices])
    with within("protocol"):
        check_suits(config.protocol, train)
    # What follows from sizes is agreed on and written down: a server sees those who came, later, too.
    content = config.dataset.catalogue(train.item_ids) is not None
    suited = config.protocol.suited(Public.of(train, content=content))
    config = config.model_copy(update={"protocol": suited})
    protocol = server_folder.deployable(config)
    with within("protocol"):
        _check_trust(protocol, train)
    entropy = None if options.seeded else os.urandom(ENTROPY_BYTES)
    keys = RunKeys.derive(config.seed, suited.drawn_by, entropy)
    items = [str(item) for item in train.item_ids.tolist()]
    node_keys = [new_node_key() for _ in range(0 if options.devices == 0 else train.n_users)]
    masks = protocol.installed.masks
    if masks and not node_keys:
        raise SettingError("devices", "0", "devices of all who take part: they mask together")
    directory = Directory.of(key.public for key in node_keys) if masks else None
    agreement = server_folder.agreement_of(config, train.scale, items, keys.installed.public, directory)
    return _Pilot(config, options, train, keys, agreement, node_keys, directory)


def _check_scale(config: RunConfig, train: Ratings) -> None:
    """Refuse a scale that private ratings have decided: everybody who is invited is told it."""
    read_off = () if train.scale.implicit or config.binarization else config.dataset.read_off()
    if read_off:
        found = f"a scale read off private ratings ({', '.join(read_off)}), which no epsilon covers"
        accepted = f"one that is public: {given_scale(config.dataset, train.scale)}"
        raise SettingError("dataset", found, accepted)


def _check_trust(protocol: Protocol, train: Ratings) -> None:
    """Refuse a trust model for which somebody would have to be trusted: a deployment has a server alone.

    Devices protect what they send, or mask it. A protocol that promises nothing is not refused.
    """
    trust = protocol.guarantee((train.n_users, train.n_items)).trust
    if protocol.privacy is not None and trust != (
        "secure-aggregation" if protocol.installed.masks else "local"
    ):
        found = f"a budget whose trust model is {trust}"
        accepted = "a protocol whose devices protect or mask what they send, or no budget"
        raise SettingError("privacy", found, accepted)


def _write(pilot: _Pilot, building: Path, final: Path, progress: Progress) -> None:
    hosts = list(dict.fromkeys([pilot.options.host, "localhost", "127.0.0.1"]))
    signing = Authority.new(pilot.options.authority_days)
    authority, server = signing.issued, signing.issue(hosts, pilot.options.days)
    for name in ("authority", "server/flwr", *(["devices"] if pilot.node_keys else [])):
        (building / name).mkdir(mode=0o700, parents=True)
    name, everything = IGNORED
    # Where runs are started: on the machine of the SuperLink itself.
    address, certificate = f"127.0.0.1:{pilot.options.port}", final / "server" / "ca.crt"
    files: list[tuple[str, str | bytes, int]] = [
        # Those of devices are written with them.
        *((f"{part}/{name}", everything, OPEN) for part in (".", "server", "authority")),
        ("ca.crt", authority.certificate, OPEN),
        ("authority/ca.key", authority.key, OWNER_ONLY),
        ("server/ca.crt", authority.certificate, OPEN),
        ("server/server.crt", server.certificate, OPEN),
        ("server/server.key", server.key, OWNER_ONLY),
        ("server/superlink.sh", _SUPERLINK.replace("AS_PREPARED", str(pilot.options.port)), 0o755),
        ("server/flwr/config.toml", _CONNECTION.format(address=address, certificate=certificate), OPEN),
    ]
    for path, contents, mode in files:
        write_durably(building / path, contents, mode)
    folder = server_folder.ServerFolder(building / "server")
    _write_server(pilot, folder)
    write_durably(folder.protocol_file, pilot.agreement.text, OPEN)
    if pilot.directory is None:  # or devices know each other by their keys, and nobody joins
        invitation = Invitation(
            protocol=pilot.agreement.text,
            items=tuple(pilot.items),
            limits=pilot.limits,
            certificate=authority.certificate.decode(),
        )
        write_durably(folder.invitation_file, invitation.text, OPEN)
    _write_devices(pilot, building, progress)
    made = zip(pilot.train.user_ids.tolist(), pilot.node_keys, strict=False)
    write_enrolment(folder.enrolment_file, [Enrolled(str(user), key.public) for user, key in made])


def _write_server(pilot: _Pilot, folder: server_folder.ServerFolder) -> None:
    scale, keys, options = pilot.train.scale, pilot.keys, pilot.options
    deployment = server_folder.Deployment(
        fingerprint=pilot.agreement.fingerprint,
        levels=tuple(scale.values.tolist()),
        continuous=scale.continuous,
        cut=scale.cut,
        public=keys.installed.public,
        server=f"{keys.server:032x}",
        seeded=options.seeded,
        deadline=options.deadline,
        quorum=options.quorum,
        computes=pilot.agreement.computes,
    )
    catalogue = SideData.of(pilot.config.dataset, pilot.train).catalogue
    folder.write(pilot.config, deployment, pilot.items, catalogue, pilot.directory)


def _write_devices(pilot: _Pilot, folder: Path, progress: Progress) -> None:
    train, options = pilot.train, pilot.options
    items, limits = pilot.items, pilot.limits
    values = np.full(train.count, np.nan) if train.scale.implicit else train.values
    for user, key in enumerate(pilot.node_keys):
        own = slice(train.indptr[user], train.indptr[user + 1])
        write_device(
            prepared_device(folder, user),
            profile=(train.items[own], values[own]),
            user=user,
            limits=limits,
            agreement=pilot.agreement,
            item_ids=items,
            node_key=key.private,
            directory=pilot.directory,
            seeded=pilot.keys.installed if options.seeded else None,
        )
        progress("devices", user + 1, len(pilot.node_keys))


def limits_of(
    privacy: PrivacyBudget | None, runs: int, answers: int = 1, composed: tuple[float, float] | None = None
) -> Limits:
    """Return what a device may spend so that it can take part in so many runs of a budget.

    ``answers``: about one rating, each at the budget. All runs that repeat the same answers are one.
    ``composed``: epsilon and delta that devices count for a run whose rounds compose.

    Of other rounds they count the sum, which exceeds a budget that composed losses keep to: then, the number
    of runs is the limit, beside the rounds of each that a device has agreed to.
    """
    rating = user = delta = None
    if composed is not None:
        # Upwards: what is counted in parts is rounded in each.
        user, delta = math.ceil(composed[0] * (1 + 1e-9) * 1e4) / 1e4, runs * composed[1]
    elif privacy is not None and privacy.composition == "sum":
        rating, user = (None, privacy.epsilon) if privacy.per == "user" else (answers * privacy.epsilon, None)
    return Limits(
        per_rating=rating,
        per_rating_lifetime=None if rating is None else runs * rating,
        per_user=user,
        per_user_lifetime=None if user is None else runs * user,
        delta_lifetime=delta,
        runs=runs,
    )
