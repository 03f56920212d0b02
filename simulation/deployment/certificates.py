"""Keys and certificates of a pilot: its authority, its server's certificate, and the keys of devices."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LABEL = re.compile("(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_LONGEST_NAME = 64
"""What fits into a certificate's common name."""

_EARLY = timedelta(hours=1)
"""How long before its making a certificate is valid: the clocks of devices differ."""


@dataclass(frozen=True)
class Issued:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class NodeKeyPair:
    """The key by which the server knows a device, on the curve P-384."""

    private: bytes
    """As PEM."""
    public: str
    """A line in the format of OpenSSH, as Flower registers it."""


def new_node_key() -> NodeKeyPair:
    """Make the key of a device."""
    key = ec.generate_private_key(ec.SECP384R1())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return NodeKeyPair(as_pem(key), public.decode())


def issue(hosts: list[str], days: int) -> tuple[Issued, Issued]:
    """Make an authority and a server's certificate, valid for some days, both on the curve P-256.

    The authority's key is needed for nothing else but further certificates. The first host is the common
    name.
    """
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name("dprec pilot authority")
    builder = _builder(issuer, issuer, authority, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    own = _signed(builder.add_extension(_usage(signs_certificates=True), critical=True), authority)
    builder = _builder(_name(hosts[0]), issuer, server, days)
    builder = builder.add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    return Issued(own, as_pem(authority)), Issued(_signed(builder, authority), as_pem(server))


def is_host(text: str) -> bool:
    """Return whether a certificate can name it: an address, or labels of letters, digits and hyphens."""
    try:
        ip_address(text)
    except ValueError:
        return len(text) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, text.split(".")))
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + timedelta(days=days))
    )


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> bytes:
    return builder.sign(key, SHA256()).public_bytes(serialization.Encoding.PEM)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def as_pem(key: EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM, without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
