"""`dprec describe --draw`: what leaves a device, as text and as SVG."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree


def test_a_configuration_is_drawn(tmp_path: Path, dprec: Any) -> None:
    finished = dprec(
        "describe", "blp-mf", "--draw", "--set", "dataset={kind: synthetic, items: 50, ratings: 9430}"
    )
    lines = finished.out.splitlines()
    arrows = [line for line in lines if line.startswith("  |") and ("->|" in line or "|<-" in line)]
    assert [arrow.endswith("->|") for arrow in arrows] == [False, True, False, True]
    assert max(map(len, lines)) <= 80
    file = tmp_path / "new" / "blp.svg"
    assert dprec("describe", "blp-mf", "-o", file).code == 0
    assert ElementTree.fromstring(file.read_text()).tag == "{http://www.w3.org/2000/svg}svg"
