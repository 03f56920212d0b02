"""What a SuperLink's control API is asked for: to register the keys of devices."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import httpx
from cryptography.hazmat.primitives import serialization
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

from dprec.errors import RunError, one_line


def registered_nodes(address: str, certificate: bytes, keys: Iterable[str]) -> dict[str, int]:
    """Register public keys, as lines of OpenSSH, that are not yet; return the node ids of all of them.

    ``certificate``: of the authority that signed the SuperLink's, as PEM. Raises RunError when the SuperLink
    cannot be reached, or refuses.
    """

    def pem(key: str) -> bytes:
        return serialization.load_ssh_public_key(key.encode()).public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

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
