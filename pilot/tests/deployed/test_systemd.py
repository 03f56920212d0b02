"""The units for systemd: what they start exists, with rights to nothing but its own folder."""

import configparser
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from typer.main import get_command

from dprec_pilot.console import app
from tests.paths import ROOT

UNITS = sorted((ROOT / "pilot/operating" / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]


def read(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(unit.read_text(encoding="utf-8"))
    return parser


def test_the_units_are_those_of_the_page() -> None:
    page = (ROOT / "pilot" / "docs" / "operating.md").read_text(encoding="utf-8")
    assert [unit.name for unit in UNITS if unit.name.split(".")[0].rstrip("@") not in page] == []


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_a_service_is_confined(unit: Path) -> None:
    service = read(unit)["Service"]
    assert service["User"] == "dprec"
    assert service["UMask"] == "0077"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    assert service["NoNewPrivileges"] == "yes"
    written = service.get("ReadWritePaths", service.get("RuntimeDirectory", ""))
    assert written in ("/srv/pilot/server", "dprec-proxy", "/var/lib/dprec/%i")


@pytest.mark.parametrize(
    "unit", [unit for unit in SERVICES if "%i" in unit.read_text()], ids=lambda unit: unit.name
)
def test_a_device_is_started_by_a_command_that_exists(unit: Path) -> None:
    program, *arguments = read(unit)["Service"]["ExecStart"].split()
    assert program == "/opt/dprec/bin/dprec-pilot"
    group = get_command(app)
    assert isinstance(group, click.Group)
    group.commands[arguments[0]].make_context("device", arguments[1:])
    assert ("--once" in arguments) is (read(unit)["Service"].get("Type") == "oneshot")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.thorough
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    """Programs and users that this machine lacks are put in place of those of a pilot."""
    for each in UNITS:
        lines = each.read_text(encoding="utf-8").splitlines()
        told = ["ExecStart=/bin/true" if line.startswith("ExecStart=") else line for line in lines]
        (tmp_path / each.name.replace("@.", "@one.")).write_text(
            "\n".join(told).replace("User=dprec", "User=root")
        )
    path = tmp_path / unit.name.replace("@.", "@one.")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if str(tmp_path) in line] == []
