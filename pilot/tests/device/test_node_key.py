"""The line by which a device makes its key public: what is one, and whose signature it bears."""

from base64 import b64encode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dprec_pilot.device.node_key import PublicLine, new_node_key, public_line, read_node_key
from tests.refusals import refused_at

KEY = new_node_key().public
P256 = ec.generate_private_key(ec.SECP256R1()).public_key()
OTHERS = [
    P256,
    rsa.generate_private_key(65537, 1024).public_key(),
    ed25519.Ed25519PrivateKey.generate().public_key(),
]


def openssh(key: object) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()  # type: ignore[attr-defined]


def private() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP384R1())


def test_a_line_is_read_as_it_was_written() -> None:
    signed = PublicLine.signed(7, KEY, private())
    for line in (PublicLine(0, KEY), signed):
        assert PublicLine.read(line.text, "LINE") == line
        assert PublicLine.read(f"  {line.text}\r\n".replace(" ", "\t"), "LINE") == line
    assert PublicLine(12, KEY).text == f"12 {KEY}"


def sized(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big") + part


def of_a_token() -> bytes:
    """Return a private key in OpenSSH's format that stays in a token, which nobody can read."""
    kind, check = sized(b"sk-ssh-ed25519@openssh.com"), bytes(8)
    names = sized(b"none") + sized(b"none") + sized(b"")
    key = b"openssh-key-v1\0" + names + bytes([0, 0, 0, 1]) + sized(kind) + sized(check + kind)
    return b"\n".join(
        [b"-----BEGIN OPENSSH PRIVATE KEY-----", b64encode(key), b"-----END OPENSSH PRIVATE KEY-----", b""]
    )


# OpenSSL made it, on secp160r1.
_ON_AN_OLD_CURVE = """-----BEGIN EC PRIVATE KEY-----
MFECAQEEFQCaeJbe66TQRepkAbbtsQ7XYANvbKAHBgUrgQQACKEsAyoABMOX/8hc
WLBXVtzXY4xmjXtvlIHuTJOSA/pB1IQxTR0AC1YEaYwTPOw=
-----END EC PRIVATE KEY-----
"""


@pytest.mark.parametrize("key", [b"", b"OPENSSH", of_a_token(), _ON_AN_OLD_CURVE.encode()])
def test_a_file_without_a_key_that_can_be_used_is_named(tmp_path: Path, key: bytes) -> None:
    (tmp_path / "node.key").write_bytes(key)
    with refused_at("node.key"):
        read_node_key(tmp_path / "node.key")


KIND, ENCODED = KEY.split()


@pytest.mark.parametrize(
    "text",
    [
        "",
        KEY,
        f"0 {KEY}\n1 {KEY}",
        f"0 \u2028{KEY}",
        f"-1 {KEY}",
        f"1.0 {KEY}",
        f"\N{SUPERSCRIPT TWO} {KEY}",
        f"\N{ARABIC-INDIC DIGIT TWO} {KEY}",
        f"{10**9} {KEY}",
        f"0 {KIND}",
        f"0 {KIND} {ENCODED[:-8]}",
        f"0 {KIND} {ENCODED} me@home",
        f"0 {KIND} {ENCODED} {b64encode(bytes(96)).decode()} more",
        f"0 {KIND} ../../etc/passwd",
        f'0 command="rm" {KEY}',
        f"0 {KIND} {openssh(P256).split()[1]}",
        *(f"0 {openssh(key)}" for key in OTHERS),
    ],
    ids=lambda text: "line",
)
def test_what_is_no_line_of_a_device_is_refused(text: str) -> None:
    with refused_at("LINE"):
        PublicLine.read(text, "LINE")


def test_a_signature_holds_for_one_user_one_key_and_the_next() -> None:
    before, after, other = private(), private(), private()
    old, new, else_ = (public_line(key.public_key()) for key in (before, after, other))
    line = PublicLine.signed(3, new, before)
    assert line.follows(old)
    assert not line.follows(else_)
    assert not line.follows(new)
    assert not PublicLine(4, new, line.signature).follows(old)
    assert not PublicLine(3, else_, line.signature).follows(old)
    assert not PublicLine(3, new).follows(old)
    assert not PublicLine.signed(3, new, other).follows(old)


@pytest.mark.parametrize("before", ["", "no key", *map(openssh, OTHERS)], ids=lambda key: "key")
def test_a_line_follows_no_key_that_is_none(before: str) -> None:
    assert not PublicLine.signed(3, KEY, private()).follows(before)
