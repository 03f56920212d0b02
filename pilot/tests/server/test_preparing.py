"""What prepare writes: keys that only the owner reads, certificates that hold, devices that can be opened."""

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dprec.accounting import PrivacyBudget
from dprec.protocols.base import Public
from dprec.randomness import RunKeys
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.joining import join
from dprec_pilot.server.preparing import PilotOptions, limits_of, prepare
from dprec_pilot.server.server_folder import ServerFolder
from dprec_pilot.server.visible import in_words
from pilot.tests.make import BLP, GRAM, PG, WEEKLY, pilot
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from tests.refusals import refused_at
from tests.simulation.conftest import presets

CLEAR = {"kind": "one-shot", "mechanism": {"kind": "none"}, "completion": {"kind": "mf"}}
MASKED = {
    **GRAM["protocol"],
    "privacy": {"epsilon": 2.0, "per": "user", "composition": "pld"},
    "aggregation": {"kind": "secure-aggregation", "colluders": 0},
}


def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    pilot(BLP, tmp_path / "pilot", devices=2)
    secret = {path for path in (tmp_path / "pilot").rglob("*") if path.suffix == ".key"}
    assert {path.name for path in secret} == {"ca.key", "server.key", "node.key", "secret.key"}
    device = tmp_path / "pilot" / "devices" / "000000"
    for path in {*secret, device / "profile.csv", tmp_path / "pilot" / "server" / "deployment.json"}:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((tmp_path / "pilot").stat().st_mode) == 0o700


def test_no_rating_is_in_the_servers_folder(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    files = {path.name for path in server.path.rglob("*") if path.is_file()} - {".gitignore", "superlink.sh"}
    known = {"config.toml", "config.yaml", "protocol.json", "deployment.json", "catalogue.txt"}
    assert files == known | {"enrolment.csv", "invitation.json", "ca.crt", "server.crt", "server.key"}


def test_a_trust_model_other_than_local_is_refused(tmp_path: Path) -> None:
    values = {**presets()["dp-item-effects"], "dataset": BLP["dataset"]}
    with refused_at("protocol.privacy") as caught:
        prepare(parse_config(values), tmp_path / "pilot", PilotOptions())
    assert "central" in caught.value.found
    assert list(tmp_path.iterdir()) == []


BUDGET = PrivacyBudget(epsilon=0.5, per="rating")


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


def test_a_proxy_that_nobody_runs_is_refused(tmp_path: Path) -> None:
    values = {**presets()["fmf-ldp-sets"], "dataset": GRAM["dataset"]}
    with refused_at("protocol.gradient.proxy"):
        prepare(parse_config(values), tmp_path / "pilot", PilotOptions())


@pytest.mark.parametrize("given", [{}, {"low": 1, "high": 5, "step": 1, "scale_is_public": False}])
def test_a_scale_read_off_private_ratings_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    """Everybody who is invited would be told it."""
    table = tmp_path / "ratings.csv"
    rows = [f"{user},{item},{1 + (user * item) % 5}" for user in range(6) for item in range(8)]
    table.write_text("\n".join(["user,item,rating", *rows]))
    dataset = {"kind": "csv", "path": str(table)}
    with refused_at("dataset") as caught:
        pilot({**BLP, "dataset": {**dataset, **given}}, tmp_path / "pilot")
    assert "(low, high, step), which no epsilon covers" in caught.value.found
    assert "--set dataset.low=1 --set dataset.high=5 --set dataset.step=1" in caught.value.accepted
    assert not (tmp_path / "pilot").exists()
    public = {"low": 1, "high": 5, "step": 1}
    _, server = pilot({**BLP, "dataset": {**dataset, **public}}, tmp_path / "pilot")
    assert server.deployment.levels == (1, 2, 3, 4, 5)


def secrets_of(server: ServerFolder) -> dict[str, bytes]:
    """Return all that nobody but its owner is to know of a pilot, and the key that the server draws from."""
    pilot_folder = server.path.parent
    keys = {str(path.relative_to(pilot_folder)): path.read_bytes() for path in pilot_folder.rglob("*.key")}
    return keys | {"what the server draws from": server.deployment.server.encode()}


def test_every_secret_comes_from_the_operating_system(tmp_path: Path) -> None:
    config, _ = pilot(BLP, tmp_path / "simulated")
    train, _ = load_ratings(config)
    identity = config.protocol.suited(Public.of(train, content=False)).drawn_by
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


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (BLP, "which items each user rated, in clear, and how, with noise; epsilon 1 per rating in each run"),
        (PG, "reports with noise, which hide what was rated and how; epsilon 1.6 per user in each run"),
        (GRAM, "each user's set of items, in clear; no epsilon: nothing protects what it sees"),
        (
            {**BLP, "protocol": CLEAR},
            "what each user rated, and how, in clear; no epsilon: nothing protects what it sees",
        ),
        (
            {**BLP, "protocol": presets()["sets-only"]["protocol"]},
            "which items each user rated, in clear, and nothing of how; "
            "no epsilon: nothing protects what it sees",
        ),
        (
            {**GRAM, "protocol": MASKED},
            "sums over devices that mask what they send, with noise; "
            "epsilon 2 per user with delta 1e-06 in each run",
        ),
        (
            WEEKLY,
            "which items each user rated, in clear, and how, with noise; "
            "epsilon 1 per rating in all runs together, as answers repeat",
        ),
    ],
)
def test_what_the_server_sees_and_the_budget_are_said(
    tmp_path: Path, values: dict[str, Any], line: str
) -> None:
    _, server = pilot(values, tmp_path / "pilot")
    assert in_words(server.agreement) == f"the server sees {line}"
