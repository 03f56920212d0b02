"""Registers devices with a SuperLink; all that uses the client of Flower's control API is here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dprec.errors import RunError, one_line

if TYPE_CHECKING:
    from flwr.supercore.control import ControlHttpClient


def registered_nodes(address: str, certificate: bytes, keys: Iterable[str]) -> dict[str, int]:
    """Register public keys that are not registered yet; return the node ids of all of them.

    Parameters
    ----------
    address : str
        Host and port of the SuperLink.
    certificate : bytes
        Of the authority that signed the SuperLink's, as PEM.
    keys : iterable of str
        Lines in the format of OpenSSH.

    Raises
    ------
    RunError
        When the SuperLink cannot be reached, or refuses.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key
    from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest

    def pem(key: str) -> bytes:
        return load_ssh_public_key(key.encode()).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    with _connected(address, certificate) as client:
        listed = client.ListNodes(ListNodesRequest()).nodes_info
        known = {node.public_key: node.node_id for node in listed if node.status != "unregistered"}
        nodes = {}
        for key in keys:
            public = pem(key)
            if public not in known:
                known[public] = client.RegisterNode(RegisterNodeRequest(public_key=public)).node_id
            nodes[key] = int(known[public])
    return nodes


@contextmanager
def _connected(address: str, certificate: bytes) -> Iterator[ControlHttpClient]:
    import httpx
    from flwr.supercore.control import ControlHttpClient
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

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
        raise RunError(f"the SuperLink at {address} cannot be reached: {reason}") from None
    except (httpx.HTTPError, OSError) as error:
        raise RunError(f"the SuperLink at {address} does not register devices: {one_line(error)}") from None
    finally:
        client.close()
