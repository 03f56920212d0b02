"""The proxy, as a real nginx: a household of 200 devices passes, and slow connections keep nobody out."""

import asyncio
import shutil
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dprec_pilot.server.certificates import Authority
from pilot.tests.deployed.kills import listens
from pilot.tests.deployed.wire import free_port
from tests.paths import ROOT
from tests.waiting import wait_until

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
]

CONFIGURATION = (ROOT / "pilot/operating" / "nginx.conf").read_text(encoding="utf-8")
HOUSEHOLD, REQUESTS = 200, 8
"""Devices behind one address, and requests of each at once: more than pass without waiting."""
SLOW, OF_THEM_IN_TLS = 1500, 500
PATH = b"/v1/fleet/pull-messages"


@dataclass
class Proxied:
    """An nginx before a server that answers everything."""

    port: int
    trusted: ssl.SSLContext
    reached: Counter[str] = field(default_factory=Counter)
    """Requests that reached the server, by their path."""

    async def connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.trusted, server_hostname="localhost", ssl_handshake_timeout=60
        )

    async def visit(self, requests: int, path: bytes = PATH) -> list[int]:
        """Make some requests through one connection, as a device does; return the statuses."""
        reader, writer = await self.connected()
        statuses = []
        for _ in range(requests):
            writer.write(b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi")
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            statuses.append(int(head.split()[1]))
            length = next(
                int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length")
            )
            await reader.readexactly(length)
        writer.close()
        return statuses


async def _answer(reached: Counter[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            reached[head.split()[1].decode()] += 1
            await reader.readexactly(2)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


@contextmanager
def proxied(folder: Path, **changes: str) -> Iterator[Proxied]:
    """Start nginx with the configuration of the deployment, but for paths, ports and what is changed."""
    authority = Authority.new(10)
    issued = authority.issue(["localhost"], 5)
    for name, content in (
        ("ca.crt", authority.issued.certificate),
        ("server.crt", issued.certificate),
        ("server.key", issued.key),
    ):
        (folder / name).write_bytes(content)
    port, behind = free_port(), free_port()
    text = CONFIGURATION.replace("superlink:8000", f"127.0.0.1:{behind}").replace(
        "/etc/nginx/pilot", str(folder)
    )
    for old, new in {"listen 8443": f"listen {port}", **changes}.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "nginx.conf").write_text(text)
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(folder / "server.crt", folder / "server.key")
    proxy = Proxied(port, ssl.create_default_context(cafile=str(folder / "ca.crt")))
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    server = asyncio.run_coroutine_threadsafe(
        asyncio.start_server(
            lambda reader, writer: _answer(proxy.reached, reader, writer),
            "127.0.0.1",
            behind,
            ssl=inside,
            backlog=4096,
        ),
        loop,
    ).result()
    assert NGINX is not None
    nginx = subprocess.Popen([NGINX, "-e", "stderr", "-p", f"{folder}/", "-c", str(folder / "nginx.conf")])
    try:
        wait_until(lambda: listens(port), nginx)
        yield proxy
    finally:
        nginx.terminate()
        nginx.wait()
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)


def test_a_household_that_is_asked_all_at_once_is_served_and_a_flood_is_not(tmp_path: Path) -> None:
    async def visits(proxy: Proxied, devices: int, requests: int) -> Counter[int]:
        each = await asyncio.gather(*(proxy.visit(requests) for _ in range(devices)))
        return Counter(status for statuses in each for status in statuses)

    with proxied(tmp_path) as proxy:
        began = time.monotonic()
        assert asyncio.run(visits(proxy, HOUSEHOLD, REQUESTS)) == {200: HOUSEHOLD * REQUESTS}
        # The longest that a device waits for an answer is 30 s; here it is for all of them together.
        assert time.monotonic() - began < 30
        assert asyncio.run(proxy.visit(1, b"/v1/control/list-runs")) == [404]
        assert set(proxy.reached) == {PATH.decode()}
    with proxied(tmp_path, **{"burst=2200 delay=1000": "burst=20 nodelay"}) as proxy:
        assert 429 in asyncio.run(visits(proxy, 20, REQUESTS))


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _slow(proxy: Proxied, silent: int, begun: int) -> list[Connection]:
    """Open slow connections: most say nothing, others begin a request inside TLS and leave it at that."""
    mute = [await asyncio.open_connection("127.0.0.1", proxy.port) for _ in range(silent)]
    speaking = [await proxy.connected() for _ in range(begun)]
    for _, writer in speaking:
        writer.write(b"POST " + PATH + b" HTTP/1.1\r\nHost: local")
        await writer.drain()
    return [*mute, *speaking]


async def _has_ended(connection: Connection) -> bool:
    """Return whether the other side has ended a connection on which it has nothing more to say."""
    reader, writer = connection
    try:
        return b"200" not in await asyncio.wait_for(reader.read(), 2)
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    finally:
        writer.transport.abort()


def test_slow_connections_keep_no_device_out_and_are_ended(tmp_path: Path) -> None:
    async def served(proxy: Proxied) -> tuple[list[int], float, int]:
        slow = await _slow(proxy, SLOW - OF_THEM_IN_TLS, OF_THEM_IN_TLS)
        began = time.monotonic()
        statuses = await asyncio.wait_for(proxy.visit(REQUESTS), 10)
        took = time.monotonic() - began
        await asyncio.sleep(4.5)
        return statuses, took, sum(await asyncio.gather(*map(_has_ended, slow)))

    with proxied(tmp_path, **{"client_header_timeout 10s": "client_header_timeout 4s"}) as proxy:
        statuses, took, ended = asyncio.run(served(proxy))
    assert statuses == [200] * REQUESTS
    assert took < 2
    assert ended == SLOW


def test_slow_bodies_of_one_address_leave_room(tmp_path: Path) -> None:
    async def refused(proxy: Proxied) -> int:
        """Return how many of some connections are refused whose requests never end."""
        begun = [await proxy.connected() for _ in range(20)]
        for _, writer in begun:
            writer.write(b"POST " + PATH + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n")
            await writer.drain()
        await asyncio.sleep(0.5)
        heads = [reader._buffer.startswith(b"HTTP/1.1 429") for reader, _ in begun]  # type: ignore[attr-defined]
        for _, writer in begun:
            writer.transport.abort()
        return sum(heads)

    with proxied(tmp_path, **{"limit_conn connections 400": "limit_conn connections 15"}) as proxy:
        assert asyncio.run(refused(proxy)) == 5


def test_a_proxy_without_room_for_them_would_be_closed_to_devices(tmp_path: Path) -> None:

    async def kept_out(proxy: Proxied) -> bool:
        slow = list[Connection]()
        try:
            slow += await _slow(proxy, 0, 90)
            slow += await _slow(proxy, 0, 10)
            await asyncio.wait_for(proxy.visit(1), 2)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            return True
        finally:
            for _, writer in slow:
                writer.transport.abort()
        return False

    with proxied(tmp_path, **{"worker_connections 8192": "worker_connections 102"}) as proxy:
        assert asyncio.run(kept_out(proxy))
