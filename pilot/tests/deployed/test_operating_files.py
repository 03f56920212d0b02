"""The files for operators: what is reached from outside is the fleet API, and services are confined."""

import configparser
import re
from pathlib import Path

import click
import pytest
import yaml
from typer.main import get_command

from dprec_pilot.console import app
from dprec_pilot.server.preparing import _SUPERLINK
from tests.paths import ROOT

OPERATING = ROOT / "pilot" / "operating"
SERVICES = sorted((OPERATING / "systemd").glob("*.service"))


def text_of(name: str) -> str:
    return (OPERATING / name).read_text(encoding="utf-8")


def test_containers_are_confined_and_the_proxy_alone_publishes_a_port() -> None:
    compose = yaml.safe_load(text_of("compose.yaml"))
    services = compose["services"]
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"proxy": ["${PORT:-8443}:8443"]}
    assert compose["networks"]["inside"] == {"internal": True}
    assert services["superlink"]["networks"] == ["inside"]
    for name, service in services.items():
        assert service["user"].startswith("${PILOT_USER:?"), name
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "cap_add", "devices", "network_mode"} & service.keys(), name
    # Devices are given no keys of the server.
    assert "/server" not in " ".join(services["devices"]["volumes"])
    assert "/authority" not in str(compose)


def test_the_proxy_passes_the_fleet_api_alone_to_a_superlink_that_asks_for_keys() -> None:
    text = re.sub(r"#.*", "", text_of("nginx.conf"))
    locations = dict(re.findall(r"location\s+(\S+)\s*\{([^}]*)\}", text))
    assert [path for path, body in locations.items() if "proxy_pass" in body] == ["/v1/fleet/"]
    assert locations["/"].split() == ["return", "404;"]
    assert text.count("proxy_pass https://superlink:8000;") == text.count("proxy_pass ") == 1
    assert re.findall(r"listen .*;", text) == ["listen 8443 ssl;"]
    assert "proxy_ssl_verify on;" in text
    for option in ("--enable-supernode-auth", "--ssl-certfile", "--ssl-keyfile", "--database"):
        assert option in _SUPERLINK
    assert "--insecure" not in _SUPERLINK


def test_the_image_is_made_of_locked_packages_and_of_the_sources_alone() -> None:
    commands = re.findall(r"^RUN (.*)", text_of("Dockerfile").replace("\\\n", " "), re.MULTILINE)
    assert all("--require-hashes" in command or "--no-deps" in command for command in commands)
    rules = re.findall(r"^[^#\n].*", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert rules[0] == "*"
    kept = [rule[1:] for rule in rules if rule.startswith("!")]
    assert [path for path in kept if not (ROOT / path).exists()] == []
    packages = {"clients", "dprec", "simulation", "strategies", "configs", "pilot/dprec_pilot"}
    assert {path for path in kept if (ROOT / path).is_dir()} == packages


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_a_service_is_confined_and_starts_a_command_that_exists(unit: Path) -> None:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(unit.read_text(encoding="utf-8"))
    service = parser["Service"]
    assert (service["User"], service["UMask"]) == ("dprec", "0077")
    assert (service["ProtectSystem"], service["NoNewPrivileges"]) == ("strict", "yes")
    assert service["CapabilityBoundingSet"] == ""
    written = service.get("ReadWritePaths", service.get("RuntimeDirectory", ""))
    assert written in ("/srv/pilot/server", "dprec-proxy", "/var/lib/dprec/%i")
    program, *arguments = service["ExecStart"].split()
    if program == "/opt/dprec/bin/dprec-pilot":
        group = get_command(app)
        assert isinstance(group, click.Group)
        group.commands[arguments[0]].make_context(arguments[0], arguments[1:])
