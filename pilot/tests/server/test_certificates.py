"""Certificates of a pilot."""

import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from dprec_pilot.device.node_key import as_pem
from dprec_pilot.server.certificates import Authority, Issued, hosts_of, renew
from tests.refusals import refused_at


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


def test_a_renewed_certificate_is_for_the_same_hosts_and_devices_notice_nothing(
    folder: Path, tmp_path: Path
) -> None:
    before = {name: (folder / name).read_bytes() for name in ("ca.crt", "server.crt", "server.key")}
    renewed = renew(folder, days=30)
    assert hosts_of(renewed) == ["pilot.example", "10.0.0.1", "::1"]
    assert timedelta(days=29) < renewed.not_valid_after_utc - datetime.now(UTC) <= timedelta(days=30)
    assert stat.S_IMODE((folder / "server.key").stat().st_mode) == 0o600
    after = {name: (folder / name).read_bytes() for name in before}
    assert [name for name in before if before[name] != after[name]] == ["server.crt", "server.key"]


def another_key(folder: Path) -> str:
    (folder.parent / "authority" / "ca.key").write_bytes(as_pem(ec.generate_private_key(ec.SECP256R1())))
    return "authority/ca.key"


def no_certificate(folder: Path) -> str:
    (folder / "server.crt").write_bytes(b"-----BEGIN CERTIFICATE-----\n")
    return "server.crt"


@pytest.mark.parametrize("spoil", [another_key, no_certificate])
def test_what_cannot_be_renewed_is_named_and_nothing_is_changed(
    folder: Path, spoil: Callable[[Path], str]
) -> None:
    where = spoil(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with refused_at(where):
        renew(folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
