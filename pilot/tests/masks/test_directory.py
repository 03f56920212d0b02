"""What devices sign with the keys of the directory, and whose signatures are accepted."""

from dataclasses import replace
from functools import cache

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
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
