"""HTTP answers of bounded size: a server cannot fill the memory of a device."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import httpx

LARGEST_BODY = 64 << 20
"""Bytes of the largest answer that is read."""


class TooLargeError(httpx.TransportError):
    """An answer that is larger than a device reads, or compressed, so that nobody knows how large it is."""


class BoundedTransport(httpx.HTTPTransport):
    """Reads no answer beyond `LARGEST_BODY`.

    Parameters
    ----------
    verify : ssl.SSLContext
        Says whose certificates are trusted.
    """

    def __init__(self, verify: ssl.SSLContext) -> None:
        super().__init__(verify=verify)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        request.headers["accept-encoding"] = "identity"
        response = super().handle_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            response.close()
            raise TooLargeError("a compressed answer")
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > LARGEST_BODY:
                raise TooLargeError(f"an answer of more than {LARGEST_BODY} bytes")
            yield chunk

    def close(self) -> None:
        self._stream.close()
