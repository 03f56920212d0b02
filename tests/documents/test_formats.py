"""docs/formats.md describes every file, column and key that runs and comparisons write, and no other."""

import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docs.extensions.generated import expand
from simulation import compare, run
from simulation.auditing import Audit, Finding
from simulation.configuration.strict_yaml import flatten
from simulation.storage.columns import column
from simulation.storage.run_files import line_of
from strategies import RoundRecord
from tests.documents.pages import PAGES
from tests.documents.sample import SMALL
from tests.simulation.attacking.games import SPYING

COMPARISON = {
    "name": "all-columns",
    "dataset": {"kind": "synthetic", "users": 30, "items": 20, "ratings": 300},
    "split": {"kind": "holdout"},
    "seeds": [1],
    "epsilons": [1.0],
    "protocols": [
        "blp-mf",
        "isgd",
        {"name": "one-bit-input", "panel": "signs"},
    ],
    "quick": True,
    "populations": {"users": [20], "protocols": ["blp-mf"]},
    "noise_samples": 10,
    "groups": ["activity"],
    "simulation": {"backend": "local"},
}
DRAWN_LATER = {"report.html", "report-single-file.html", "figures"}


@pytest.fixture(scope="module")
def page() -> str:
    """Return the page with what the site generates."""
    return expand(PAGES["docs/formats.md"].read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("formats") / "run"
    run(
        "blp-mf",
        directory,
        overrides=[
            SMALL,
            "simulation.backend=local",
            "evaluation.groups=[activity]",
            "evaluation.lists=3",
            f"attacks=[{{kind: '{SPYING}'}}]",
        ],
        page=False,
    )
    return directory


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compare(COMPARISON, tmp_path_factory.mktemp("formats") / "comparison", page=False).directory


def tables(page: str, heading: str) -> list[set[str]]:
    """Return what the first columns of the tables below a heading name."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert found, heading
    blocks = re.findall(r"(?:^\|.*\n)+", found[1] + "\n", flags=re.MULTILINE)
    return [
        {name for row in block.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
        for block in blocks
    ]


def header(path: Path) -> set[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        return set(next(csv.reader(file)))


def leaves(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of nested mappings and of the mappings in lists."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
            continue
        yield f"{prefix}{key}"
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from leaves(value[0], f"{prefix}{key}.")


def test_the_files(page: str, ran: Path, compared: Path) -> None:
    for folder, heading in ((ran, "A run directory"), (compared, "A comparison directory")):
        assert {path.name for path in folder.iterdir()} == tables(page, heading)[0] - DRAWN_LATER


def test_the_columns(page: str, ran: Path, compared: Path) -> None:
    of_run = (ran / name for name in ("traffic.csv", "predictions.csv.gz", "lists.csv.gz"))
    for path in (*of_run, compared / "noise.csv"):
        assert tables(page, path.name) == [header(path)]
    columns = {re.sub("^group_.*", "group_N", name) for name in header(ran / "users.csv")}
    assert tables(page, "users.csv") == [columns]
    (documented,) = tables(page, "groups.csv")
    assert documented == header(compared / "groups.csv")
    for name in ("ledger.npz", "channel.npz"):
        with np.load(ran / name) as arrays:
            assert tables(page, name) == [set(arrays)]


@pytest.mark.parametrize("name", ["comparison.csv", "timing.csv"])
def test_the_columns_of_a_comparison(name: str, page: str, compared: Path) -> None:
    (documented,) = tables(page, name)
    columns = header(compared / name)
    named = {
        each for each in columns if f"{column(each).family}{'_N' * bool(column(each).mapping)}" in documented
    }
    assert columns == named


def test_the_keys(page: str, ran: Path) -> None:
    line = line_of(RoundRecord(1, 9, 1, None, 1, 2, 3, 4, 0.1, {"late": 1}, 1.0, {"loss": 1.0}))
    free: tuple[str, ...] = "causes", "observed"
    written = {key.partition(".")[0] if key.startswith(free) else key for key in flatten(line)}
    assert tables(page, "rounds.jsonl") == [written]
    summary = json.loads((ran / "summary.json").read_text(encoding="utf-8"))
    free = "completion_diagnostics", "environment", "files", "groups"
    written = {key.partition(".")[0] if key.startswith(free) else key for key in flatten(summary)}
    named = {re.sub(r"^(attacks\.further)\..*", r"\1", key) for key in written}
    assert named <= tables(page, "summary.json")[0]
    found = Finding("value of one rating", "rating", 1.0, 0.9, 1.0, False, 1.0)
    values = Audit("a", "one-shot", "bounded-laplace", 1000, 0.99, (found,)).values()
    assert tables(page, "audit.json") == [set(leaves(values))]
