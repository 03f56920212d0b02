"""What a SuperLink's control API is asked for: keys of devices, runs, and to start one with our app.

A run is started, or gone on with, as `flwr run` does it. The imports of Flower's internals are those of its
own command: its version is pinned.
"""

import hashlib
import os
import shutil
import ssl
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias, TypeVar

import click
import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from flwr.cli.build import build_fab_from_disk
from flwr.common.constant import HEARTBEAT_PATIENCE
from flwr.common.serde import fab_to_proto, user_config_to_proto
from flwr.proto import control_pb2 as control
from flwr.proto.node_pb2 import NodeInfo
from flwr.supercore.constant import NodeStatus
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

from dprec.errors import InputError, RunError, one_line
from dprec_pilot.device.fleet import certificate_error
from dprec_pilot.files import check_address, read_text, unusable, whole_folder
from dprec_pilot.server.server_folder import ServerFolder, check_new
from simulation.storage.directories import CONFIG

APP = Path(__file__).parents[1] / "app"
"""The folder of the app."""

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")


class NotRegisteredError(Exception):
    """Why the key of one device is not registered; others may be."""


def answer_of(method: Callable[[RequestT], AnswerT], request: RequestT) -> AnswerT:
    """Ask a SuperLink; raises RunError for an answer that is none of a SuperLink, and what httpx raises."""
    try:
        return method(request)
    except ValueError:
        raise RunError("what answers there is no SuperLink; another port, or a proxy?") from None


@dataclass(frozen=True)
class NodeSeen:
    """A device as the SuperLink knows it."""

    node_id: int
    status: str
    """registered, online, offline or unregistered."""
    last_seen: datetime | None
    """When it was heard of; None for one that never came."""

    @classmethod
    def of(cls, node: NodeInfo) -> "NodeSeen":
        """Return what is known of a node; one that was lost was seen up to two heartbeats before."""
        at = None
        with suppress(ValueError, OverflowError, OSError):  # of a time that is none
            if node.status == NodeStatus.ONLINE:
                beats = HEARTBEAT_PATIENCE * node.heartbeat_interval
                at = datetime.fromtimestamp(node.online_until - beats, UTC)
            elif node.last_deactivated_at:
                at = datetime.fromisoformat(node.last_deactivated_at)
        return cls(node.node_id, node.status, at)


class Registry:
    """The keys that a SuperLink knows."""

    def __init__(self, client: ControlHttpClient) -> None:
        self._client = client
        self.listed = answer_of(client.ListNodes, control.ListNodesRequest()).nodes_info
        self._nodes = {node.public_key: int(node.node_id) for node in self.listed}
        self._off = {node.public_key for node in self.listed if node.status == NodeStatus.UNREGISTERED}

    def node_of(self, key: str) -> int | None:
        """Return the node id of a public key, a line of OpenSSH; None of one that is not registered."""
        public = _pem(key)
        return None if public in self._off else self._nodes.get(public)

    def register(self, key: str) -> int:
        """Register a public key, unless it is already; return its node id, or raise NotRegisteredError."""
        public = _pem(key)
        if public in self._off:
            reason = "its key was unregistered, and a SuperLink takes none back; the device needs another one"
            raise NotRegisteredError(f"{reason}: dprec-pilot rotate, then dprec-pilot admit")
        if public not in self._nodes:
            request = control.RegisterNodeRequest(public_key=public)
            try:
                self._nodes[public] = int(answer_of(self._client.RegisterNode, request).node_id)
            except httpx.HTTPStatusError as error:
                if error.response.status_code != httpx.codes.PRECONDITION_FAILED:
                    raise
                detail = f"status {error.response.status_code}"
                with suppress(ValueError, KeyError, TypeError):
                    detail = str(error.response.json()["detail"])
                raise NotRegisteredError(f"the SuperLink refuses its key: {detail}") from None
        return self._nodes[public]

    def unregister(self, node_id: int) -> None:
        """Take a device off, unless the SuperLink does not know it."""
        try:
            answer_of(self._client.UnregisterNode, control.UnregisterNodeRequest(node_id=node_id))
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise


def seen_nodes(address: str, certificate: bytes) -> list[NodeSeen]:
    """Return the devices that a SuperLink knows; see `registry`."""
    with registry(address, certificate) as registered:
        return list(map(NodeSeen.of, registered.listed))


def seen_runs(address: str, certificate: bytes) -> list[int]:
    """Return the ids of the runs of a SuperLink, which deletes the messages of those that have ended."""
    with connected(address, certificate) as client:
        return [int(run) for run in answer_of(client.ListRuns, control.ListRunsRequest()).run_dict]


@contextmanager
def registry(address: str, certificate: bytes) -> Iterator[Registry]:
    """Open the registry of a SuperLink; see `connected`."""
    with connected(address, certificate) as client:
        yield Registry(client)


@contextmanager
def connected(
    address: str, certificate: bytes, *, where: str = "--superlink", fails: str = "refuses"
) -> Iterator[ControlHttpClient]:
    """Open a connection to a SuperLink's control API.

    ``certificate``: of the authority that signed the SuperLink's, as PEM; ``where``: what has named the
    address; ``fails``: what the SuperLink does when it answers with an error. Raises InputError when the
    address is none, and RunError when the SuperLink cannot be reached, or refuses.
    """
    check_address(address, where)
    client = ControlHttpClient.from_server_address(
        server_address=address,
        insecure=False,
        root_certificates=certificate,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr CLI")],
    )
    try:
        yield client
    except httpx.ConnectError as error:
        reason = f"{one_line(error)}; started, it takes some seconds until it answers"
        if isinstance(refused := certificate_error(error), ssl.SSLCertVerificationError):
            reason = (
                f"its certificate is refused, {refused.verify_message}; dprec-pilot renew makes another one"
            )
        raise RunError(f"the SuperLink at {address} cannot be reached: {reason}") from None
    except (httpx.HTTPError, OSError) as error:
        raise RunError(f"the SuperLink at {address} {fails}: {one_line(error)}") from None
    finally:
        client.close()


def _pem(key: str) -> bytes:
    """Return a public key, a line of OpenSSH, as PEM; raises NotRegisteredError."""
    try:
        public = serialization.load_ssh_public_key(key.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise NotRegisteredError("its public key is none, as a line of OpenSSH") from None
    return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


Settings: TypeAlias = dict[str, bool | float | int | str]
"""A run configuration of Flower."""

_CONNECTION = "a file that dprec-pilot prepare made, or --superlink HOST:PORT"


def start_run(
    server: Path,
    output: Path | None = None,
    *,
    app: Path | None = None,
    superlink: str | None = None,
    page: bool = True,
) -> tuple[int, Path]:
    """Start a run of the pilot of a server's folder; return Flower's number of it, and its directory.

    ``output``: a new directory; by default one in the folder, named by the number. ``app``: the folder of the
    app, by default that which comes with dprec-pilot; ``superlink``: HOST:PORT, by default as prepared;
    ``page``: whether the server draws the page at the end. Raises InputError when a file or folder cannot be
    used, and RunError when the SuperLink cannot be reached, or refuses.
    """
    folder = ServerFolder(server.absolute())
    settings: Settings = {"folder": str(folder.path), "page": page}
    if output is not None:
        check_new(output)
        settings["output"] = str(output.absolute())
    number = _started(folder, settings, app, superlink)
    return number, folder.path / "runs" / str(number) if output is None else output.absolute()


def resume_run(
    server: Path, output: Path, *, app: Path | None = None, superlink: str | None = None, page: bool = True
) -> int:
    """Go on with a run that was cut off, or deliver what one that is complete has for devices.

    Returns Flower's number of the run in which that happens; see `start_run` for parameters and errors.
    """
    folder, run = ServerFolder(server.absolute()), output.absolute()
    if not (run / CONFIG).exists():
        raise InputError(str(output), "no run", "the directory of a run of this server")
    settings: Settings = {"folder": str(folder.path), "output": str(run), "resume": True, "page": page}
    return _started(folder, settings, app, superlink)


def _started(folder: ServerFolder, settings: Settings, app: Path | None, superlink: str | None) -> int:
    """Start a run of the app, and return its number."""
    source, connection, address = app or APP, folder.path / "flwr" / "config.toml", superlink
    accepted = "a folder with the app, as dprec-pilot app writes it"
    if not (source / "pyproject.toml").is_file():
        raise InputError(str(source), "no pyproject.toml", accepted)
    try:
        content = build_fab_from_disk(source.absolute())
    except (click.ClickException, OSError, ValueError) as error:
        raise InputError(str(source), one_line(error), accepted) from None
    if address is None:
        try:
            known = tomllib.loads(read_text(connection, _CONNECTION))
            address = str(known["superlink"]["pilot"]["address"])
        except (tomllib.TOMLDecodeError, KeyError, TypeError):
            raise InputError(str(connection), "no superlink.pilot.address", _CONNECTION) from None
    where = "--superlink" if superlink else str(connection)
    fab = fab_to_proto(Fab(hashlib.sha256(content).hexdigest(), content, {}))
    request = control.StartRunRequest(fab=fab, override_config=user_config_to_proto(settings))
    with connected(address, folder.certificate, where=where, fails="starts no run") as client:
        started = answer_of(client.StartRun, request)
    if not started.HasField("run_id"):
        raise RunError(f"the SuperLink at {address} starts no run: {started.note or 'it does not say why'}")
    return int(started.run_id)


def write_app(folder: Path) -> None:
    """Write the app to a new folder, as a whole; raises InputError when that exists or cannot be written."""
    if os.path.lexists(folder):
        raise InputError(str(folder), "it exists", "a new directory")
    try:
        with whole_folder(folder) as building:
            shutil.copytree(APP, building, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    except OSError as error:
        raise unusable(folder, error) from None
