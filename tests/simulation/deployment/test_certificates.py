"""Certificates of a pilot."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.simulation.deployment.pilots import BLP, pilot


def test_certificates_hold_for_the_host_and_no_other(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot", devices=2, host="pilot.example", days=30)
    there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    there.load_cert_chain(server.path / "server.crt", server.path / "server.key")
    for host in ("pilot.example", "127.0.0.1"):
        handshake(there, tmp_path / "pilot" / "ca.crt", host)
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        handshake(there, tmp_path / "pilot" / "ca.crt", "elsewhere.example")
    from cryptography import x509

    issued = x509.load_pem_x509_certificate((server.path / "server.crt").read_bytes())
    valid = issued.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(days=29) < valid <= timedelta(days=30)


def handshake(there: ssl.SSLContext, certificate: Path, host: str) -> None:
    """Shake hands in memory."""
    here = ssl.create_default_context(cafile=str(certificate))
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [here.wrap_bio(down, up, server_hostname=host), there.wrap_bio(up, down, server_side=True)]
    for _ in range(10):
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not ends
