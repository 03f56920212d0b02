"""`dprec describe --draw`: what leaves a device, as text and as SVG."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from simulation.console.command_line import main


def ended(*arguments: str) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as raised:
        main(["describe", *arguments])
    return int(raised.value.code or 0)


def test_a_configuration_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("blp-mf", "--draw", "--set", "dataset={kind: synthetic, items: 50, ratings: 9430}") == 0
    lines = capsys.readouterr().out.splitlines()
    arrows = [line for line in lines if line.startswith("  |") and ("->|" in line or "|<-" in line)]
    assert [arrow.endswith("->|") for arrow in arrows] == [False, True, False, True]
    assert max(map(len, lines)) <= 80
    file = tmp_path / "new" / "blp.svg"
    assert ended("blp-mf", "-o", str(file)) == 0
    assert ElementTree.fromstring(file.read_text()).tag == "{http://www.w3.org/2000/svg}svg"
