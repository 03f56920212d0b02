"""Certificates of a pilot."""

import ssl
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from dprec.errors import SettingError
from dprec_pilot.device.node_key import as_pem
from dprec_pilot.server.certificates import (
    Authority,
    Issued,
    hosts_of,
    read_certificate,
    renew,
)
from pilot.tests.server.pilots import BLP, pilot
from tests.refusals import refused_at


def test_certificates_hold_for_the_host_and_no_other(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot", devices=2, host="pilot.example", days=30)
    there = served(server.path)
    for host in ("pilot.example", "127.0.0.1"):
        handshake(there, tmp_path / "pilot" / "ca.crt", host)
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        handshake(there, tmp_path / "pilot" / "ca.crt", "elsewhere.example")
    issued = read_certificate(server.path / "server.crt")
    valid = issued.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(days=29) < valid <= timedelta(days=30)


def served(folder: Path) -> ssl.SSLContext:
    there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    there.load_cert_chain(folder / "server.crt", folder / "server.key")
    return there


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a server, and its authority beside it."""
    authority, own = Authority.new(1000), tmp_path / "pilot" / "server"
    own.mkdir(parents=True)
    (tmp_path / "pilot" / "authority").mkdir()
    write(own, authority.issue(["pilot.example", "10.0.0.1", "::1"], 1))
    (own / "ca.crt").write_bytes(authority.issued.certificate)
    (own.parent / "authority" / "ca.key").write_bytes(authority.issued.key)
    return own


def write(folder: Path, issued: Issued) -> None:
    (folder / "server.crt").write_bytes(issued.certificate)
    (folder / "server.key").write_bytes(issued.key)


def test_an_authority_outlives_its_certificates_and_none_outlives_it(tmp_path: Path) -> None:
    pilot(BLP, tmp_path / "pilot", devices=2, days=30)
    ends = read_certificate(tmp_path / "pilot" / "ca.crt").not_valid_after_utc
    assert ends - datetime.now(UTC) > timedelta(days=3649)
    short = Authority.new(10)
    assert read_pem(tmp_path, short.issue(["a.example"], 365)).not_valid_after_utc == short.ends


def read_pem(folder: Path, issued: Issued) -> x509.Certificate:
    (folder / "one.crt").write_bytes(issued.certificate)
    return read_certificate(folder / "one.crt")


def test_a_renewed_certificate_is_for_the_same_hosts_and_devices_notice_nothing(
    folder: Path, tmp_path: Path
) -> None:
    before = {name: (folder / name).read_bytes() for name in ("ca.crt", "server.crt", "server.key")}
    renewed = renew(folder, days=30)
    assert hosts_of(renewed) == ["pilot.example", "10.0.0.1", "::1"]
    assert timedelta(days=29) < renewed.not_valid_after_utc - datetime.now(UTC) <= timedelta(days=30)
    assert stat.S_IMODE((folder / "server.key").stat().st_mode) == 0o600
    for host in ("pilot.example", "10.0.0.1"):
        handshake(served(folder), folder / "ca.crt", host)
    after = {name: (folder / name).read_bytes() for name in before}
    assert [name for name in before if before[name] != after[name]] == ["server.crt", "server.key"]


def test_an_authority_may_be_elsewhere_and_the_hosts_others(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "stick"
    (folder.parent / "authority").rename(elsewhere)
    with refused_at("authority/ca.key"):
        renew(folder)
    renewed = renew(folder, ["new.example", "new.example"], authority=elsewhere)
    assert hosts_of(renewed) == ["new.example"]
    handshake(served(folder), folder / "ca.crt", "new.example")
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(served(folder), folder / "ca.crt", "pilot.example")


def another_key(folder: Path) -> str:
    (folder.parent / "authority" / "ca.key").write_bytes(as_pem(ec.generate_private_key(ec.SECP256R1())))
    return "authority/ca.key"


def no_key(folder: Path) -> str:
    (folder.parent / "authority" / "ca.key").write_bytes(b"\xff\n\0")
    return "authority/ca.key"


def no_certificate(folder: Path) -> str:
    (folder / "server.crt").write_bytes(b"-----BEGIN CERTIFICATE-----\n")
    return "server.crt"


def no_authority(folder: Path) -> str:
    (folder / "ca.crt").unlink()
    return "ca.crt"


def ended(folder: Path) -> str:
    authority = Authority.new(0)
    (folder / "ca.crt").write_bytes(authority.issued.certificate)
    (folder.parent / "authority" / "ca.key").write_bytes(authority.issued.key)
    return "ca.crt"


def for_nobody(folder: Path) -> str:
    (folder / "server.crt").write_bytes((folder / "ca.crt").read_bytes())
    return "server.crt"


@pytest.mark.parametrize("spoil", [another_key, no_key, no_certificate, no_authority, ended, for_nobody])
def test_what_cannot_be_renewed_is_named_and_nothing_is_changed(
    folder: Path, spoil: Callable[[Path], str]
) -> None:
    where = spoil(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with refused_at(where):
        renew(folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"days": 0}, "days"),
        ({"days": 3651}, "days"),
        ({"hosts": ["a b"]}, "host"),
        ({"hosts": ["a.example", "x\ny"]}, "host"),
    ],
)
def test_dates_and_hosts_that_no_certificate_has_are_refused(
    folder: Path, options: dict[str, Any], key: str
) -> None:
    with pytest.raises(SettingError) as caught:
        renew(folder, **options)
    assert caught.value.key == key


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
