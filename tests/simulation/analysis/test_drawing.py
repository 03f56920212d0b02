"""The drawing of one user's messages holds for every preset: its bytes are those that are charged."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dprec.datasets import Synthetic
from simulation import run
from simulation.analysis.drawing import Drawing, drawing_of
from simulation.demonstration import drawing_svg, sent_drawing
from simulation.storage.run_files import RunRecord, read_run
from tests.simulation.conftest import presets

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>"


def drawing_from(folder: Path) -> tuple[RunRecord, Drawing]:
    """Return a run as it is stored, and its drawing."""
    stored = read_run(folder)
    drawing = drawing_of(stored)
    assert drawing is not None
    return stored, drawing


def test_a_preset_is_drawn_with_the_bytes_that_are_charged(tmp_path: Path, preset: dict[str, Any]) -> None:
    run(preset, tmp_path, page=False)
    if preset["name"] in ("nothing-sent", "random-list", "content-list", "counted-negatives"):
        assert drawing_of(read_run(tmp_path)) is None
        return
    stored, drawing = drawing_from(tmp_path)
    assert stored.messages is not None
    for side, total, up in (("uplink", drawing.totals[0], True), ("downlink", drawing.totals[1], False)):
        own = [each for each in stored.messages.messages if each.up is up]
        for counted in ("payload_bytes", "message_bytes"):
            charged = int(stored.traffic[f"{side}_{counted}"][0])
            assert sum(getattr(each, counted) for each in own) == charged
            assert f"{charged:,}" in total
    assert sum(each.messages for each in stored.messages.messages) == int(stored.traffic["messages"][0])
    for each in stored.messages.messages:
        if each.bits and each.messages == 1:  # of several, these are the bits of the first
            assert 0 <= 8 * each.payload_bytes - sum(each.bits.values()) < 8
    assert {step.up for step in drawing.steps} == {True, False}
    assert all(step.title for step in drawing.steps)
    texts = [text.text for text in ElementTree.fromstring(drawing_svg(drawing)).iter(f"{SVG}text")]
    assert [text for text in texts if text in {step.title for step in drawing.steps}] == [
        step.title for step in drawing.steps
    ]
    assert drawing.server_sees in drawing.text


@pytest.mark.parametrize("name", ["pg-mf", "secagg-als", "shuffled-on-device", "x-map", "blp-mf"])
def test_messages_do_not_depend_on_who_shares_a_node(tmp_path: Path, name: str) -> None:
    messages = []
    for users_per_node in (1, "all"):
        values = presets()[name] | {"simulation": {"backend": "local", "users_per_node": users_per_node}}
        folder = tmp_path / str(users_per_node)
        run(values, folder, page=False)
        messages.append((folder / "messages.json").read_bytes())
    assert messages[0] == messages[1]


@pytest.mark.parametrize(("kind", "shown"), [("synthetic", True), ("csv", False)])
def test_of_real_people_no_contents_are_kept(tmp_path: Path, kind: str, shown: bool) -> None:
    values = presets()["plain-mf"]
    if kind == "csv":
        Synthetic(users=40, items=30, ratings=400).load().to_csv(tmp_path / "ratings.csv")
        values["dataset"] = {"kind": "csv", "path": str(tmp_path / "ratings.csv")}
    run(values, tmp_path / "run", page=False)
    stored, drawing = drawing_from(tmp_path / "run")
    assert stored.messages is not None
    assert any(each.begins for each in stored.messages.messages) is shown
    assert drawing.user.startswith("user 1, " if shown else "one user, ")
    assert drawing.steps[1].title == "report"


def test_hostile_names_are_text(tmp_path: Path, tiny: dict[str, Any]) -> None:
    ratings = tmp_path / "ratings.csv"
    users = (HOSTILE, "b", "c")
    lines = [f'"{user}",{item},{1 + item % 5}' for user in users for item in range(10)]
    ratings.write_text("\n".join(["user,item,rating", *lines]))
    run({**tiny, "dataset": {"kind": "csv", "path": str(ratings)}}, tmp_path / "run", page=False)
    _, drawing = drawing_from(tmp_path / "run")
    svg = drawing_svg(drawing)
    assert "prefers-color-scheme: dark" in svg
    assert "<script" not in svg
    assert drawing.user == "one user, 9 ratings"
    assert ElementTree.fromstring(svg).find(f".//{SVG}script") is None


def test_in_a_page_a_drawing_has_no_colours_of_its_own() -> None:
    assert "<style" not in sent_drawing("blp-mf")
