"""Certificates of a pilot: its authority, which devices trust, and the server's, which it signs.

The authority outlives the certificates that it signs. So a server's certificate is renewed, and devices
notice nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dprec.errors import InputError, SettingError
from dprec_pilot.device.node_key import as_pem
from dprec_pilot.files import OPEN, read_bytes, unusable, write_durably

_LABEL = re.compile("(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_LONGEST_NAME = 64
"""What fits into a certificate's common name."""

DAYS, MOST_DAYS = 365, 3650
"""How long a server's certificate is valid by default, and at most."""

_KEY = "ca.key of the pilot's authority, as dprec-pilot prepare made it"
_PEM = Encoding.PEM

_EARLY = timedelta(hours=1)
"""How long before its making a certificate is valid: the clocks of devices differ."""


@dataclass(frozen=True)
class Issued:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Who signs the certificates of a pilot's server; its own key is needed for nothing else."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate, self._key = certificate, key

    @classmethod
    def new(cls, days: int) -> Self:
        """Make an authority on the curve P-256, whose certificate is valid for some days."""
        key, name = ec.generate_private_key(ec.SECP256R1()), _name("dprec pilot authority")
        builder = _builder(name, name, key, datetime.now(UTC) + timedelta(days), signs=True)
        return cls(builder.sign(key, SHA256()), key)

    @classmethod
    def read(cls, certificate: Path, key: Path) -> Self:
        """Read an authority from its files; raises InputError when they cannot be used, or do not match."""
        pem = read_bytes(key, _KEY)
        try:
            signing = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise InputError(str(key), "no key", _KEY) from None
        read = read_certificate(certificate)
        if not isinstance(signing, ec.EllipticCurvePrivateKey) or signing.public_key() != read.public_key():
            raise InputError(str(key), f"the key of another certificate than {certificate}", _KEY)
        return cls(read, signing)

    @property
    def ends(self) -> datetime:
        """When what it has signed is no longer trusted."""
        return self._certificate.not_valid_after_utc

    @property
    def issued(self) -> Issued:
        """Its own certificate and key."""
        return Issued(self._certificate.public_bytes(_PEM), as_pem(self._key))

    def issue(self, hosts: Sequence[str], days: float) -> Issued:
        """Make the certificate of a server on the curve P-256, valid for some days, while the authority is.

        The first host is the common name.
        """
        key, ends = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC) + timedelta(days)
        builder = _builder(_name(hosts[0]), self._certificate.subject, key, min(ends, self.ends), signs=False)
        names = [x509.IPAddress(ip_address(at)) if _is_address(at) else x509.DNSName(at) for at in hosts]
        for extension in (
            x509.SubjectAlternativeName(names),
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
        ):
            builder = builder.add_extension(extension, critical=False)
        return Issued(builder.sign(self._key, SHA256()).public_bytes(_PEM), as_pem(key))


def read_certificate(path: Path) -> x509.Certificate:
    """Read a certificate; raises InputError when it cannot be read, or is none."""
    accepted = "a certificate, as PEM"
    pem = read_bytes(path, accepted)
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        raise InputError(str(path), "no certificate", accepted) from None


def hosts_of(certificate: x509.Certificate) -> list[str]:
    """Return the names and addresses that a certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def renew(
    server: Path, hosts: Sequence[str] = (), *, days: int = DAYS, authority: Path | None = None
) -> x509.Certificate:
    """Replace the key and the certificate in a server's folder; return the certificate.

    ``hosts``: what it is for, by default as the one before it; ``authority``: the folder with ca.key, by
    default the one that was prepared beside the server's. Raises InputError when a host, the days or a file
    cannot be used, or the authority has come to its end.
    """
    for host in hosts:
        check_host(host)
    if not 1 <= days <= MOST_DAYS:
        raise SettingError("days", str(days), f"1 to {MOST_DAYS}")
    certificate, private = server / "server.crt", server / "server.key"
    folder = server.absolute().parent / "authority" if authority is None else authority
    signing = Authority.read(server / "ca.crt", folder / "ca.key")
    if signing.ends <= datetime.now(UTC):
        found = f"valid until {signing.ends:%Y-%m-%d}"
        raise InputError(str(server / "ca.crt"), found, "an authority that is valid: a pilot prepared anew")
    named = list(dict.fromkeys(hosts)) or hosts_of(read_certificate(certificate))
    if not named:
        raise InputError(str(certificate), "for no host", "--host, the name or address of the server")
    issued = signing.issue(named, days)
    try:
        # A crash between the two leaves a pair that no server starts with, until this is done again.
        write_durably(private, issued.key)
        write_durably(certificate, issued.certificate, OPEN)
    except OSError as error:
        raise unusable(server, error) from None
    return read_certificate(certificate)


def check_host(text: str) -> None:
    """Raise SettingError for what no certificate can name: no address, nor labels of letters and digits."""
    is_name = len(text) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, text.split(".")))
    if not is_name and not _is_address(text):
        raise SettingError("host", repr(text), "a name such as recommend.example, or an address")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: datetime, *, signs: bool
) -> x509.CertificateBuilder:
    """Return what makes a certificate; ``signs``: whether its key signs others."""
    usage = x509.KeyUsage(not signs, False, False, False, False, signs, signs, False, False)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(datetime.now(UTC) - _EARLY).not_valid_after(ends)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    constraints = x509.BasicConstraints(ca=signs, path_length=0 if signs else None)
    return builder.add_extension(constraints, critical=True).add_extension(usage, critical=True)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
