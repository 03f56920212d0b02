"""What prepare writes: keys that only the owner reads, certificates that hold, devices that can be opened."""

import csv
import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dprec.accounting import PrivacyBudget
from dprec.errors import InputError, SettingError
from dprec.randomness import RunKeys
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.joining import join
from dprec_pilot.server.preparing import PilotOptions, limits_of, prepare
from dprec_pilot.server.server_folder import ServerFolder, read_enrolment
from pilot.tests.server.pilots import BLP, PG, USERS, WEEKLY, pilot
from pilot.tests.server.test_secure_sums import secure
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from tests.refusals import refused_at
from tests.simulation.conftest import presets


def test_a_pilot_holds_what_each_side_needs(tmp_path: Path) -> None:
    config, server = pilot(BLP, tmp_path / "pilot", devices=3)
    train, _ = load_ratings(config)
    folders = sorted((tmp_path / "pilot" / "devices").iterdir())
    assert [each.user for each in server.enrolled()] == [str(user) for user in train.user_ids[:3]]
    for user, folder in enumerate(folders):
        device = Device(DeviceFolder(folder), seeded=True)
        assert device.folder.agreement.fingerprint == server.deployment.fingerprint
        assert device.folder.options.user == user
        with device.folder.profile_file.open() as file:
            rated = {row["item"]: float(row["rating"]) for row in csv.DictReader(file)}
        own = train.users == user
        items = [str(item) for item in train.item_ids[train.items[own]]]
        assert rated == dict(zip(items, train.values[own].tolist(), strict=True))


def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    pilot(BLP, tmp_path / "pilot", devices=2)
    secret = {path for path in (tmp_path / "pilot").rglob("*") if path.suffix == ".key"}
    assert {path.name for path in secret} == {"ca.key", "server.key", "node.key", "secret.key"}
    device = tmp_path / "pilot" / "devices" / "000000"
    for path in {*secret, device / "profile.csv", tmp_path / "pilot" / "server" / "deployment.json"}:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((tmp_path / "pilot").stat().st_mode) == 0o700


@pytest.mark.parametrize(("arguments", "address"), [([], "127.0.0.1 8123"), (["::1", "9"], "::1 9")])
def test_the_superlink_is_started_on_the_port_that_was_prepared(
    tmp_path: Path, arguments: list[str], address: str
) -> None:
    _, server = pilot(BLP, tmp_path / "pilot", port=8123)
    for program in ("dprec", "flower-superlink"):
        (tmp_path / program).write_text('#!/bin/sh\n[ "$1" = deploy ] || echo "$@"\n')
        (tmp_path / program).chmod(0o700)
    command = [str(server.path / "superlink.sh"), *arguments]
    found = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run(command, env=found, check=True, capture_output=True, text=True).stdout
    host, port = address.split()
    assert said.endswith(f"--host {host} --port {port}\n")


def test_no_rating_is_in_the_servers_folder(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    assert {path.name for path in server.path.rglob("*") if path.is_file()} == {
        ".gitignore",
        "ca.crt",
        "catalogue.txt",
        "config.toml",
        "config.yaml",
        "deployment.json",
        "enrolment.csv",
        "invitation.json",
        "protocol.json",
        "server.crt",
        "server.key",
        "superlink.sh",
    }


def test_ids_may_have_marks_that_end_lines_elsewhere(tmp_path: Path) -> None:
    ids = ["a\x0bb", "a\x85b", "a\u2028b", *map(str, range(9))]
    rows = [f"{user},{item},{1 + user % 5}\n" for user in range(5) for item in ids]
    (tmp_path / "ratings.csv").write_text("".join(["user,item,rating\n", *rows]))
    dataset = {"kind": "csv", "path": str(tmp_path / "ratings.csv")}
    _, server = pilot({**BLP, "dataset": dataset}, tmp_path / "pilot")
    server.protocol()
    assert set(ids[:3]) <= set(server.item_ids)


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pilot").mkdir()
    with refused_at("pilot"):
        pilot(BLP, tmp_path / "pilot")
    assert list(tmp_path.iterdir()) == [tmp_path / "pilot"]


def test_nothing_is_left_of_a_preparation_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec_pilot.server.preparing.write_device", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pilot(BLP, tmp_path / "pilot")
    assert list(tmp_path.iterdir()) == []


def test_more_devices_than_users_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"at most {USERS}"):
        pilot(BLP, tmp_path / "pilot", devices=USERS + 1)


@pytest.mark.parametrize("name", ["one-bit-output", "x-map", "nothing-sent", "one-bit-gradient"])
def test_a_protocol_whose_server_needs_more_is_refused(tmp_path: Path, name: str) -> None:
    config = parse_config(presets()[name])
    with refused_at("protocol.kind") as caught:
        prepare(config, tmp_path / "pilot", PilotOptions())
    assert "iterative" in caught.value.accepted
    assert list(tmp_path.iterdir()) == []


def test_a_trust_model_other_than_local_is_refused(tmp_path: Path) -> None:
    values = {**presets()["dp-item-effects"], "dataset": BLP["dataset"]}
    with refused_at("protocol.privacy") as caught:
        prepare(parse_config(values), tmp_path / "pilot", PilotOptions())
    assert "central" in caught.value.found
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"schedule": {"kind": "fresh"}}, "schedule.kind"),
        ({"protocol": PG["protocol"]}, "schedule.kind"),
        (
            {"protocol": {**BLP["protocol"], "privacy": {"epsilon": 1.0, "per": "user"}}},
            "protocol.privacy.per",
        ),
    ],
)
def test_a_schedule_of_which_no_device_knows_is_refused(
    tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    with refused_at(key):
        pilot({**WEEKLY, **changes}, tmp_path / "pilot")
    assert list(tmp_path.iterdir()) == []


def test_the_best_protocol_deploys_as_what_it_picks(tmp_path: Path) -> None:
    values = {**presets()["best-on-device"], "dataset": BLP["dataset"]}
    _, server = pilot(values, tmp_path / "pilot", devices=2)
    agreed = DeviceFolder(tmp_path / "pilot" / "devices" / "000000").agreement
    assert agreed.setup.kind == "one-shot"
    assert agreed.process is not None
    assert server.protocol().kind == "one-shot"


BUDGET = PrivacyBudget(epsilon=0.5, per="rating")


@pytest.mark.parametrize(
    ("privacy", "limits"),
    [
        (BUDGET, (0.5, 1.5, None, None)),
        (replace(BUDGET, per="cell"), (0.5, 1.5, None, None)),
        (replace(BUDGET, per="user"), (None, None, 0.5, 1.5)),
        (replace(BUDGET, per="user", composition="pld"), (None, None, None, None)),
        (None, (None, None, None, None)),
    ],
)
def test_limits_allow_the_runs_and_no_more(privacy: PrivacyBudget | None, limits: tuple[Any, ...]) -> None:
    allowed = limits_of(privacy, 3)
    found = allowed.per_rating, allowed.per_rating_lifetime, allowed.per_user, allowed.per_user_lifetime
    assert found == limits


def test_a_pilot_that_all_join_has_nobodys_ratings_and_the_protocol_of_one_with_devices(
    tmp_path: Path,
) -> None:
    _, empty = pilot(BLP, tmp_path / "empty", devices=0, seeded=False)
    _, full = pilot(BLP, tmp_path / "full", seeded=False)
    assert not (tmp_path / "empty" / "devices").exists()
    assert read_enrolment(empty.enrolment_file) == []
    assert empty.deployment.fingerprint == full.deployment.fingerprint
    assert empty.protocol_file.read_text() == full.protocol_file.read_text()
    with refused_at("enrolment.csv"):
        empty.enrolled()


def test_who_joins_agrees_to_the_same_as_those_whose_devices_were_made(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot", devices=2, runs=3, seeded=False)
    (tmp_path / "mine.csv").write_text(f"item,rating\n{server.item_ids[4]},5\n")
    joined = join(server.invitation_file, tmp_path / "mine.csv", tmp_path / "me", 2).folder
    made = DeviceFolder(tmp_path / "pilot" / "devices" / "000000")
    for name in ("protocol_file", "catalogue_file"):
        assert getattr(joined, name).read_bytes() == getattr(made, name).read_bytes()
    assert joined.options.limits == made.options.limits
    assert (joined.path / "ca.crt").read_bytes() == (tmp_path / "pilot" / "ca.crt").read_bytes()
    assert {path.name for path in joined.path.iterdir()} == {
        *(path.name for path in made.path.iterdir()),
        "ca.crt",
    }


def test_nobody_joins_devices_that_mask_together(tmp_path: Path) -> None:
    _, server = pilot(secure("best-secret-set"), tmp_path / "pilot", seeded=False)
    assert not server.invitation_file.exists()
    with pytest.raises(SettingError) as caught:
        pilot(secure("best-secret-set"), tmp_path / "other", devices=0, seeded=False)
    assert caught.value.key == "devices"


def secrets_of(server: ServerFolder) -> dict[str, bytes]:
    """Return all that nobody but its owner is to know of a pilot, and the key that the server draws from."""
    pilot_folder = server.path.parent
    keys = {str(path.relative_to(pilot_folder)): path.read_bytes() for path in pilot_folder.rglob("*.key")}
    return keys | {"what the server draws from": server.deployment.server.encode()}


def test_every_secret_comes_from_the_operating_system(tmp_path: Path) -> None:
    config, _ = pilot(BLP, tmp_path / "simulated")
    train, _ = load_ratings(config)
    identity = config.protocol.picked.suited_to(train).identity
    simulated = f"{RunKeys.derive(config.seed, identity).server:032x}"
    pilots = [pilot(BLP, tmp_path / name, seeded=False, devices=2)[1] for name in ("one", "other")]
    one, other = map(secrets_of, pilots)
    assert one.keys() == other.keys()
    assert {Path(name).name for name in one} >= {"ca.key", "server.key", "node.key", "secret.key"}
    assert not set(one.values()) & set(other.values())
    assert simulated.encode() not in {*one.values(), *other.values()}
    # What everybody knows is the same.
    assert pilots[0].deployment.fingerprint == pilots[1].deployment.fingerprint
    assert pilots[0].deployment.public == pilots[1].deployment.public


def test_the_server_draws_other_noise_in_every_run_unless_it_is_seeded(tmp_path: Path) -> None:
    runs = ["0Az_", "0Az-", "0Az_"]
    for seeded in (False, True):
        deployment = pilot(BLP, tmp_path / str(seeded), seeded=seeded)[1].deployment
        seeds = [deployment.server_seed(run) for run in runs]
        assert seeds[0] == seeds[2]
        assert (seeds[0] == seeds[1]) is seeded
        assert (int(deployment.server, 16) in seeds) is seeded


def test_a_seeded_pilot_draws_as_the_simulation_does_and_says_so(tmp_path: Path) -> None:
    config, server = pilot(BLP, tmp_path / "pilot")
    train, _ = load_ratings(config)
    keys = RunKeys.derive(config.seed, config.protocol.picked.suited_to(train).identity)
    assert server.deployment.seeded
    assert server.deployment.server == f"{keys.server:032x}"
    with refused_at("simulation.seed"):
        pilot({**BLP, "simulation": {"backend": "local", "seed": "os"}}, tmp_path / "other")


def test_a_pilot_that_all_join_is_not_seeded() -> None:
    with pytest.raises(SettingError) as caught:
        PilotOptions(devices=0, seeded=True)
    assert caught.value.key == "seeded"
