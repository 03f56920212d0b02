""""""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.randomness import InstalledKeys, RunKeys, seed_for

ENTROPY = bytes(range(32))


def numbers(keys: RunKeys) -> dict[str, int]:
    installed = {field.name: int(getattr(keys.installed, field.name), 16) for field in fields(InstalledKeys)}
    return {**installed, "server": keys.server}


def test_no_two_domains_have_the_same_key() -> None:
    derived = [numbers(RunKeys.derive(seed, run)) for seed in (0, 1, 10**40) for run in ("", "a")]
    devices = {keys["devices"] for keys in derived}
    # A device keeps its secret from run to run; its draws differ by the run.
    assert len(devices) == 3
    assert len({keys["server"] for keys in derived}) == len({keys["run"] for keys in derived}) == 6
    everything = [number for keys in derived for number in set(keys.values())]
    assert len({*everything}) == 3 + 3 + 3 + 6 + 6


def test_no_key_of_the_server_leads_to_the_devices() -> None:
    """Deriving from what the server has, in place of the seed, yields no key of the devices."""
    keys = RunKeys.derive(7, "run")
    known = [keys.server, keys.installed.public_seed, keys.installed.network_seed]
    again = [RunKeys.derive(number, run).installed.devices for number in known for run in ("run", "")]
    raw = [RunKeys.derive(0, "run", number.to_bytes(16, "big")).installed.devices for number in known]
    assert keys.installed.devices not in again + raw
    assert RunKeys.derive(7, "another").installed.devices == keys.installed.devices


def test_entropy_replaces_the_seed_where_secrets_are_drawn() -> None:
    seeded, drawn = numbers(RunKeys.derive(1, "run")), numbers(RunKeys.derive(1, "run", ENTROPY))
    differing = {name for name in seeded if seeded[name] != drawn[name]}
    assert differing == {"devices", "server"}
    assert (
        RunKeys.derive(2, "run", ENTROPY).installed.devices
        == RunKeys.derive(1, "", ENTROPY).installed.devices
    )


@pytest.mark.parametrize("key", ["", "0" * 31, "0" * 33, "g" * 32, "A" * 32])
def test_malformed_keys_are_refused(key: str) -> None:
    with pytest.raises(SettingError):
        InstalledKeys(devices=key, public="0" * 32, network="0" * 32, run="0" * 32)


def test_a_seed_for_noise_changes_with_every_value() -> None:
    users, values = np.arange(5), np.ones(5)
    seeds = {
        seed_for(1, users, values),
        seed_for(2, users, values),
        seed_for(1, users, values + np.array([0, 0, 1e-9, 0, 0])),
        seed_for(1, users[::-1], values),
        seed_for(1, users[:4], values[:4]),
        seed_for(1, np.concatenate([users, values])),
    }
    assert len(seeds) == 6
    assert seed_for(1, users, values) == seed_for(1, users.copy(), values.copy())
