"""A TCP proxy that counts the bytes between devices and a SuperLink, and keeps them if asked to.

Bytes are those of TCP's payload, so what a proxy counts between two ends that speak TLS includes TLS. With a
certificate of its own, and a context for the way on, it keeps what they say in the clear.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Queue

_AT_ONCE = 1 << 16
_START_SECONDS = 10.0


@dataclass(eq=False)
class Passed:
    """How many bytes have passed a proxy from devices and to them, and those from them if they are kept."""

    port: int = 0
    up: int = 0
    down: int = 0
    connections: int = 0
    kept_up: bytearray = field(default_factory=bytearray)


@contextmanager
def counting_proxy(
    target: tuple[str, int],
    *,
    keep: bool = False,
    towards_devices: ssl.SSLContext | None = None,
    towards_server: ssl.SSLContext | None = None,
) -> Iterator[Passed]:
    """Start a proxy to a server in a thread, and yield what has passed it.

    With contexts, the TLS of the devices ends here, and bytes are those inside.
    """
    passed = Passed()
    started: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passed.connections += 1
        there, back = await asyncio.open_connection(*target, ssl=towards_server)
        kept = passed.kept_up if keep else None
        up, down = _pass(reader, back, passed, "up", kept), _pass(there, writer, passed, "down", None)
        with suppress(asyncio.CancelledError):  # the proxy ends before the connection does
            await asyncio.gather(up, down)

    async def listen() -> None:
        stop = asyncio.Event()
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=towards_devices)
        passed.port = server.sockets[0].getsockname()[1]
        started.put((asyncio.get_running_loop(), stop))
        await stop.wait()
        server.close()

    # Leaving the event loop cancels what is still open.
    thread = threading.Thread(target=lambda: asyncio.run(listen()), name="counting-proxy", daemon=True)
    thread.start()
    loop, stop = started.get(timeout=_START_SECONDS)
    try:
        yield passed
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _pass(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, passed: Passed, way: str, kept: bytearray | None
) -> None:
    """Pass bytes on in one direction until they end."""
    try:
        while data := await source.read(_AT_ONCE):
            setattr(passed, way, getattr(passed, way) + len(data))
            if kept is not None:
                kept += data
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()
        else:
            sink.close()
    except ConnectionError:
        sink.close()
