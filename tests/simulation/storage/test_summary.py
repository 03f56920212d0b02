"""summary.json: what is written comes back, and what is no summary is refused with the key."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import run
from simulation.storage.summary import read_summary, write_summary


@pytest.fixture
def written(tmp_path: Path, tiny: dict[str, Any]) -> dict[str, Any]:
    run(tiny, tmp_path, page=False)
    return dict(json.loads((tmp_path / "summary.json").read_text()))


def test_a_summary_comes_back_and_is_written_the_same(tmp_path: Path, written: dict[str, Any]) -> None:
    before = (tmp_path / "summary.json").read_bytes()
    summary = read_summary(tmp_path)
    assert summary.as_json() == written
    write_summary(tmp_path, summary)
    assert (tmp_path / "summary.json").read_bytes() == before
    assert next(iter(written)) == "schema"


def test_what_is_beyond_the_paper_follows_from_the_configuration(
    tmp_path: Path, tiny: dict[str, Any]
) -> None:
    tiny["protocol"]["completion"] = {"kind": "nuclear-norm", "center": "mean"}
    tiny["protocol"]["mechanism"] = {"kind": "zheng-randomized-response"}
    tiny["protocol"]["privacy"] = {"epsilon": 1.0, "per": "cell"}
    own = "completion.center is mean; published: middle (zheng2016, Definitions 2 and 3)"
    assert run(tiny, tmp_path, page=False).summary["beyond_the_paper"] == [own]
    summary = read_summary(tmp_path)
    assert summary.read is not None
    expected = summary.read.sentence, *summary.privacy.notes, f"Beyond the paper: {own}."
    assert summary.notes == expected


@pytest.mark.parametrize(
    ("keys", "value", "complaint"),
    [
        (["schema"], 1, "schema: 1; accepted: "),
        (["traffic", "rounds"], -1, "traffic.rounds: -1; accepted: at least 0"),
        (["accuracy", "rsme"], 1.0, "accuracy.rsme: an unknown key"),
        (["name"], None, "name: missing"),
    ],
)
def test_what_is_no_summary_is_named(
    tmp_path: Path, written: dict[str, Any], keys: list[str], value: Any, complaint: str
) -> None:
    changed = copy.deepcopy(written)
    place = changed
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    if complaint.endswith("missing"):
        del place[keys[-1]]
    (tmp_path / "summary.json").write_text(json.dumps(changed))
    with pytest.raises(InputError, match=rf"summary\.json: .*{complaint}"):
        read_summary(tmp_path)


@pytest.mark.parametrize("text", ["", "[]"])
def test_what_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "summary.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"summary\.json"):
        read_summary(tmp_path)
