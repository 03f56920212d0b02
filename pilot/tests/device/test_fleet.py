"""What a device makes of a server's certificate, in real handshakes with planted dates and names."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

import pytest

from dprec.errors import InputError
from dprec_pilot.device.fleet import Fleet, NodeKey, NotAdmittedError, ServerAwayError
from dprec_pilot.device.node_key import new_node_key, read_node_key
from dprec_pilot.server import certificates
from dprec_pilot.server.certificates import Authority, Issued

HERE = "127.0.0.1"
NO_ANSWER = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@contextmanager
def dated(monkeypatch: pytest.MonkeyPatch, days: float) -> Iterator[None]:
    """Issue certificates some days later, or earlier."""

    class Shifted(datetime):
        @classmethod
        def now(cls, zone: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=days)

    with monkeypatch.context() as planted:
        planted.setattr(certificates, "datetime", Shifted)
        yield


def whole_request(tls: ssl.SSLSocket) -> bytes:
    """Read a request to its end: what is left unread would cut off the answer."""
    with tls.makefile("rb") as stream:
        head = b"".join(takewhile(bytes.strip, stream))
        stream.read(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0))
    return head


class Listener:
    """A server whose certificate can be changed, and which answers 404 to whoever accepts it."""

    def __init__(self, folder: Path, issued: Issued) -> None:
        self._folder, self._socket = folder, socket.create_server((HERE, 0))
        self.address = f"{HERE}:{self._socket.getsockname()[1]}"
        self.heard = b""
        self.show(issued)
        threading.Thread(target=self._serve, daemon=True).start()

    def show(self, issued: Issued) -> None:
        """Use another certificate from now on."""
        (self._folder / "server.crt").write_bytes(issued.certificate)
        (self._folder / "server.key").write_bytes(issued.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "server.crt", self._folder / "server.key")
        self._context = context

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._socket.accept()
                with (
                    suppress(OSError),
                    accepted,
                    self._context.wrap_socket(accepted, server_side=True) as tls,
                ):
                    self.heard += whole_request(tls)
                    tls.sendall(NO_ANSWER)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority.new(3650)
    (tmp_path / "ca.crt").write_bytes(made.issued.certificate)
    return made


@pytest.fixture
def key(tmp_path: Path) -> NodeKey:
    (tmp_path / "node.key").write_bytes(new_node_key().private)
    return read_node_key(tmp_path / "node.key")


@pytest.mark.parametrize(
    ("issued", "line"),
    [
        (-100.0, "its certificate has expired; by this clock, it is 20"),
        (+100.0, "its certificate is not valid yet; by this clock, it is 20"),
        ("127.0.0.2", "its certificate is not for 127.0.0.1, but for another address"),
        ("other.example", "its certificate is not for 127.0.0.1, but for another address"),
    ],
)
def test_a_certificate_that_may_be_mended_counts_as_a_server_that_is_away(
    tmp_path: Path,
    authority: Authority,
    key: NodeKey,
    monkeypatch: pytest.MonkeyPatch,
    issued: float | str,
    line: str,
) -> None:
    if isinstance(issued, str):
        made = authority.issue([issued], 1)
    else:
        with dated(monkeypatch, issued):
            made = authority.issue([HERE], 1)
    with closing(Listener(tmp_path, made)) as listener:
        fleet = Fleet(listener.address, tmp_path / "ca.crt")
        with pytest.raises(ServerAwayError) as caught:
            fleet.activate(key, 30.0)
        assert line in str(caught.value)
        assert listener.heard == b""
        listener.show(authority.issue([HERE], 1))
        with pytest.raises(NotAdmittedError, match="404"):
            fleet.activate(key, 30.0)


def test_another_authority_is_refused_at_first_and_waited_out_later(
    tmp_path: Path, authority: Authority, key: NodeKey
) -> None:
    strangers = Authority.new(1).issue([HERE], 1)
    with closing(Listener(tmp_path, strangers)) as listener:
        fleet = Fleet(listener.address, tmp_path / "ca.crt")
        with pytest.raises((InputError, ServerAwayError)) as caught:
            fleet.activate(key, 30.0)
        assert isinstance(caught.value, InputError)
        listener.show(authority.issue([HERE], 1))
        with pytest.raises(NotAdmittedError, match="404"):
            fleet.activate(key, 30.0)
        heard = listener.heard
        listener.show(strangers)
        with pytest.raises(ServerAwayError, match="of another authority"):
            fleet.activate(key, 30.0)
        assert listener.heard == heard
