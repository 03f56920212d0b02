"""What is reached from outside: the fleet API through the proxy, and nothing else."""

import re
from typing import Any

import pytest
import yaml

from tests.paths import ROOT

DEPLOYMENT = ROOT / "pilot/operating"


@pytest.fixture
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOYMENT / "compose.yaml").read_text(encoding="utf-8")))


def locations() -> dict[str, str]:
    """Return what nginx does with each path."""
    text = re.sub(r"#.*", "", (DEPLOYMENT / "nginx.conf").read_text(encoding="utf-8"))
    return dict(re.findall(r"location\s+(\S+)\s*\{([^}]*)\}", text))


def test_only_the_proxy_publishes_a_port(compose: dict[str, Any]) -> None:
    published = {
        name: service["ports"] for name, service in compose["services"].items() if "ports" in service
    }
    assert published == {"proxy": ["${PORT:-8443}:8443"]}
    assert compose["networks"]["inside"] == {"internal": True}
    assert compose["services"]["superlink"]["networks"] == ["inside"]
    assert not any(service.get("network_mode") for service in compose["services"].values())


def test_the_proxy_passes_the_fleet_api_alone() -> None:
    passed = {path: body for path, body in locations().items() if "proxy_pass" in body}
    assert list(passed) == ["/v1/fleet/"]
    assert "proxy_pass https://superlink:8000;" in passed["/v1/fleet/"]
    assert locations()["/"].split() == ["return", "404;"]
    text = (DEPLOYMENT / "nginx.conf").read_text(encoding="utf-8")
    assert text.count("proxy_pass") == 1
    assert re.findall(r"listen .*;", text) == ["listen 8443 ssl;"]
    assert "proxy_ssl_verify on;" in text


def test_devices_are_given_no_keys_of_the_server(compose: dict[str, Any]) -> None:
    mounted = " ".join(compose["services"]["devices"]["volumes"])
    assert "/server" not in mounted
    assert "/authority" not in str(compose)


def test_the_superlink_asks_devices_for_their_keys_and_speaks_tls() -> None:
    from dprec_pilot.server.preparing import _SUPERLINK

    for option in ("--enable-supernode-auth", "--ssl-certfile", "--ssl-keyfile", "--database"):
        assert option in _SUPERLINK
    assert "--insecure" not in _SUPERLINK


def test_every_file_that_the_page_names_is_there() -> None:
    page = (ROOT / "pilot" / "docs" / "deployment.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(pilot/operating/[\w./]+)`", page))
    assert {f"pilot/operating/{name}" for name in ("compose.yaml", "nginx.conf", "Dockerfile")} <= named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_service_is_confined(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["user"].startswith("${PILOT_USER:?"), name
        assert service["read_only"] is True, name
        assert service["tmpfs"] == ["/tmp"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "cap_add", "devices"} & service.keys(), name


def test_the_image_is_made_of_locked_packages_and_runs_as_nobody_in_particular() -> None:
    lines = (DEPLOYMENT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    commands = [step[1] for step in steps if step[0] == "RUN"]
    assert all("--require-hashes" in command or "--no-deps" in command for command in commands)
    names = [step[0] for step in steps]
    assert names.index("USER") > max(place for place, name in enumerate(names) if name in ("RUN", "COPY"))
    (user,) = (step[1] for step in steps if step[0] == "USER")
    assert int(user.split(":")[0]) > 0
    assert "HEALTHCHECK" in names
    # A command that starts among the sources refuses to: it would import them.
    built, worked = (step[1] for step in steps if step[0] == "WORKDIR")
    assert built != worked == "/tmp"


def test_nothing_but_the_sources_is_sent_to_the_builder() -> None:
    """What the image is made of has a line each; ratings, pilots and results have none."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    kept = {rule[1:] for rule in rules if rule.startswith("!")}
    assert all((ROOT / path).exists() for path in kept)
    packaged = {"clients", "dprec", "simulation", "strategies", "configs", "pilot/dprec_pilot"}
    assert kept == packaged | {
        "pilot/pyproject.toml",
        "pilot/README.md",
        "LICENSE",
        "README.md",
        "constraints.txt",
        "pyproject.toml",
        "requirements/run.txt",
    }
