"""audit.json comes back as it was written, or is refused with the key that is wrong."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dprec import formats
from dprec.errors import InputError
from simulation import audit
from simulation.pages import report
from simulation.pages.audit_page import presets_page
from simulation.storage.directories import parse_audit
from tests.simulation.conftest import TINY


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit") / "tiny"
    audit(copy.deepcopy(TINY), folder, trials=200)
    return folder


def test_the_page_of_an_audit_is_rebuilt_from_its_file(audited: Path, tmp_path: Path) -> None:
    page = (audited / "report.html").read_text()
    (audited / "report.html").unlink()
    assert report(audited).read_text() == page
    values = json.loads((audited / "audit.json").read_text())
    presets = [
        {"name": "one", "audit": values, "reason": "", "same_as": None},
        {"name": "two", "audit": None, "reason": "promises nothing", "same_as": None},
    ]
    (tmp_path / "audit.json").write_text(json.dumps({"schema": formats.NUMBER, "presets": presets}))
    assert report(tmp_path, single_file=True).read_text() == presets_page(presets)


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        (("holds",), 1, "holds: 1"),
        (("schema",), 1, "schema: 1; accepted: "),
        (("findings", 0, "unit"), "month", r"findings\[0\].unit"),
        (("other",), 1, "other: an unknown key"),
    ],
)
def test_what_is_no_audit_is_named(audited: Path, key: tuple[str | int, ...], value: Any, found: str) -> None:
    values: Any = json.loads((audited / "audit.json").read_text())
    place = values
    for part in key[:-1]:
        place = place[part]
    place[key[-1]] = value
    for text in (
        json.dumps(values),
        json.dumps(
            {
                "schema": formats.NUMBER,
                "presets": [{"name": "one", "audit": values, "reason": "", "same_as": None}],
            }
        ),
    ):
        with pytest.raises(InputError, match=found) as caught:
            parse_audit(text, "audit.json")
        assert "\n" not in str(caught.value)
