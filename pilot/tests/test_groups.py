"""The group of a message: its protocol, its run, and always eight characters."""

import pytest

from dprec.exchange import Refusal, RefusalCode
from dprec_pilot.groups import group_of, is_run_key, new_run_key, run_key_in

FINGERPRINT, OTHER = "0123456789abcdef" * 4, "0123466789abcdef" * 4


def test_a_group_has_eight_characters_and_names_the_run() -> None:
    keys = {new_run_key() for _ in range(100)}
    # 24 bits each: two of a hundred are the same with a probability of 3e-4, two pairs with 5e-8.
    assert len(keys) > 98
    for key in keys:
        assert is_run_key(key)
        group = group_of(FINGERPRINT, key)
        assert len(group) == 8
        assert run_key_in(group, FINGERPRINT) == key


def test_a_group_of_another_protocol_is_refused() -> None:
    for group in (group_of(OTHER, "AAAA"), "", "00000001"):
        with pytest.raises(Refusal) as refused:
            run_key_in(group, FINGERPRINT)
        assert refused.value.code == RefusalCode.CHANGED_SETUP
