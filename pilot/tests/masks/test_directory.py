"""What devices sign with the keys of the directory, and whose signatures are accepted."""

from dataclasses import replace
from functools import cache

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dprec.secure_aggregation.messages import KEYS_BYTES, SIGNATURE_BYTES, SIGNED_BYTES
from dprec_pilot.masks.directory import Directory, SigningParty

KEYS = bytes(range(KEYS_BYTES))
ROUND, USER = 3, 1


@cache
def private(user: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(1234 + user, ec.SECP384R1())


def line(key: object) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()  # type: ignore[attr-defined]


DIRECTORY = Directory.of([line(private(0).public_key()), f"{line(private(1).public_key())} phone", None])
PARTY = SigningParty("f" * 64, "run1", DIRECTORY, private(USER))


def test_signed_keys_are_accepted_from_whom_they_are() -> None:
    signed = PARTY.signed(KEYS, USER, ROUND)
    assert len(signed) == SIGNED_BYTES == KEYS_BYTES + SIGNATURE_BYTES
    assert PARTY.keys_in(signed, USER, ROUND) == KEYS
    # The same again, for one that is asked again.
    assert PARTY.signed(KEYS, USER, ROUND) == signed


@pytest.mark.parametrize(
    "other",
    [
        replace(PARTY, protocol="e" * 64),
        replace(PARTY, run="run2"),
        replace(PARTY, directory=Directory((*DIRECTORY.keys, ""))),
        replace(PARTY, key=private(0)),
    ],
)
def test_keys_of_another_sum_or_device_are_refused(other: SigningParty) -> None:
    assert PARTY.keys_in(other.signed(KEYS, USER, ROUND), USER, ROUND) is None


def test_what_is_signed_is_the_round_the_number_and_every_byte() -> None:
    signed = PARTY.signed(KEYS, USER, ROUND)
    assert PARTY.keys_in(signed, USER, ROUND + 1) is None
    both = replace(PARTY, directory=Directory((DIRECTORY.keys[1], DIRECTORY.keys[1])))
    assert both.keys_in(both.signed(KEYS, 1, ROUND), 1, ROUND) == KEYS
    assert both.keys_in(both.signed(KEYS, 1, ROUND), 0, ROUND) is None
    for place in range(0, SIGNED_BYTES, 7):
        changed = bytearray(signed)
        changed[place] ^= 1
        assert PARTY.keys_in(bytes(changed), USER, ROUND) is None, place


@pytest.mark.parametrize("size", [0, 1, KEYS_BYTES, SIGNED_BYTES - 1, SIGNED_BYTES + 1])
def test_keys_of_another_size_are_refused(size: int) -> None:
    assert PARTY.keys_in((PARTY.signed(KEYS, USER, ROUND) + b"\0")[:size], USER, ROUND) is None


@pytest.mark.parametrize(
    "key",
    [
        "",
        "nonsense",
        "ecdsa-sha2-nistp384 AAAA",
        line(ec.derive_private_key(5, ec.SECP256R1()).public_key()),
        line(ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()),
    ],
)
def test_nobody_signs_with_a_line_that_is_no_key_of_the_curve(key: str) -> None:
    party = replace(PARTY, directory=Directory((DIRECTORY.keys[0], key)))
    assert party.keys_in(party.signed(KEYS, USER, ROUND), USER, ROUND) is None


def test_a_directory_comes_back_and_has_a_digest_of_its_own() -> None:
    assert Directory.read(DIRECTORY.text) == DIRECTORY
    assert [bool(key) for key in DIRECTORY.keys] == [True, True, False]
    swapped = Directory((DIRECTORY.keys[1], DIRECTORY.keys[0], ""))
    assert swapped.digest != DIRECTORY.digest
