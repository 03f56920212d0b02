"""What is written of runs and comparisons, by format, and what is refused in one line."""

import gzip
from pathlib import Path

import numpy as np
import polars
import pytest

from dprec.errors import InputError
from simulation import compare, export, run
from simulation.exporting.exporting import FORMATS
from simulation.exporting.tables import _are_integers
from simulation.storage.columns import read_rows
from tests import make
from tests.refusals import refused_at

CONFIG = make.small_run(
    {"kind": "one-shot", "mechanism": {"kind": "none"}, "completion": {"kind": "item-average"}},
    evaluation={"lists": 3, "groups": ["activity"]},
)
COMPARISON = {
    "name": "two",
    "dataset": CONFIG["dataset"],
    "split": CONFIG["split"],
    "epsilons": [1.0],
    "seeds": [1, 2],
    "protocols": ["blp-mf", {"name": "one-bit-input", "panel": "signs"}],
    "simulation": make.ON_THIS_MACHINE,
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exporting") / "run"
    run(CONFIG, folder, page=False)
    return folder


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compare(COMPARISON, tmp_path_factory.mktemp("exporting") / "two", page=False).directory


def test_a_run_is_tables_of_either_format(ran: Path, tmp_path: Path) -> None:
    names = ["predictions", "traffic", "lists", "users", "rounds"]
    written = {each: export(ran, each, tmp_path / each) for each in ("csv", "parquet")}
    assert [path.name for path in written["csv"]] == [f"{name}.csv" for name in names]
    for text, binary, name in zip(*written.values(), names, strict=True):
        table = polars.read_parquet(binary)
        read = polars.read_csv(text, schema=table.schema)
        assert read.to_dicts() == table.to_dicts()
        for source in ran.glob(f"{name}.csv*"):
            assert polars.read_csv(source).columns == table.columns
    lists = polars.read_parquet(written["parquet"][2])
    assert lists["rank"].max() == 3
    assert lists.schema["user"] == lists.schema["item"] == polars.Int64


@pytest.mark.parametrize(
    ("texts", "integers"),
    [(["7", "-8"], True), (["7", "08"], False), (["7", "9" * 19], False), (["7", ""], False)],
)
def test_identifiers_are_integers_if_nothing_is_lost(texts: list[str], integers: bool) -> None:
    assert _are_integers(polars.Series(texts)) == integers


def test_a_comparison_is_its_table(compared: Path, tmp_path: Path) -> None:
    (text,), (binary,) = export(compared, "csv"), export(compared, "parquet", tmp_path)
    rows = read_rows(compared / "comparison.csv")
    assert text == compared / "export" / "comparison.csv"
    assert read_rows(text) == rows
    assert polars.read_parquet(binary).to_dicts() == rows


def test_what_was_exported_is_replaced_and_no_other_file(ran: Path, tmp_path: Path) -> None:
    (first,) = export(ran, "bibtex", tmp_path)
    others = export(ran, "trec", tmp_path)
    words, times = first.read_bytes(), [path.stat().st_mtime_ns for path in others]
    assert export(ran, "bibtex", tmp_path) == [first]
    assert first.read_bytes() == words
    assert [path.stat().st_mtime_ns for path in others] == times
    assert {path.name for path in tmp_path.iterdir()} == {
        *(path.name for path in (first, *others)),
        "exported.sha256",
    }
    first.write_text("mine")
    with refused_at(str(first)) as refused:
        export(ran, "bibtex", tmp_path)
    assert refused.value.found == "a file that was not exported, or has changed since"
    assert first.read_text() == "mine"


def test_the_table_of_a_comparison_is_not_replaced(compared: Path) -> None:
    table = compared / "comparison.csv"
    before = table.read_bytes()
    with refused_at(str(table)):
        export(compared, "csv", compared)
    assert table.read_bytes() == before


@pytest.mark.parametrize("form", ["latex", "excel"])
def test_a_format_that_a_run_does_not_have_is_refused(ran: Path, form: str) -> None:
    with refused_at("format") as refused:
        export(ran, form)
    assert set(refused.value.accepted.split(";")[0].split(", ")) <= set(FORMATS)


def test_a_comparison_has_no_lists_of_its_own(compared: Path) -> None:
    with refused_at("format") as refused:
        export(compared, "trec")
    assert refused.value.accepted == "csv, parquet, latex, bibtex; trec of a run"


def test_without_lists_the_refusal_says_how_to_get_them(tmp_path: Path) -> None:
    run({**CONFIG, "evaluation": {}}, tmp_path, page=False)
    with refused_at("lists.csv.gz") as refused:
        export(tmp_path, "trec")
    assert "--set evaluation.lists=20" in refused.value.accepted


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())


DAMAGED = {
    "cut": packed("user,item,score,rank\n" + "1,2,3.0,1\n" * 9)[:-9],
    "empty": b"",
    "order": packed("user,item,score,rank\n1,2,3.0,2\n"),
    "words": packed("user,item,score,rank\n1,2,much,1\n"),
    "columns": packed("user,item\n1,2\n"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_lists_are_refused_and_nothing_is_written(tmp_path: Path, damage: str) -> None:
    run(CONFIG, tmp_path, page=False)
    (tmp_path / "lists.csv.gz").write_bytes(DAMAGED[damage])
    for form in ("trec", "csv"):
        with pytest.raises(InputError, match=r"lists\.csv\.gz"):
            export(tmp_path, form)
    assert not (tmp_path / "export").exists()


def test_directories_that_hold_nothing_or_cannot_be_written_are_refused(ran: Path, tmp_path: Path) -> None:
    with refused_at(str(tmp_path / "absent")):
        export(tmp_path / "absent", "csv")
    (tmp_path / "config.yaml").write_bytes((ran / "config.yaml").read_bytes())
    with pytest.raises(InputError, match="an unfinished run"):
        export(tmp_path, "csv")
    with refused_at(str(tmp_path / "config.yaml")):
        export(ran, "csv", tmp_path / "config.yaml")


def test_what_is_read_back_is_what_was_run(ran: Path) -> None:
    first, again = (run(CONFIG, *folder, resume=bool(folder), page=False) for folder in ((), (ran,)))
    assert first.lists is not None
    assert again.lists is not None
    for name, column in first.lists.items():
        np.testing.assert_array_equal(column, again.lists[name])
        assert column.dtype == again.lists[name].dtype
    np.testing.assert_array_equal(first.predictions["relevant"], again.predictions["relevant"])
    assert first.to_pandas("lists")["rank"].max() == 3
    with refused_at("table"):
        run({**CONFIG, "evaluation": {}}).to_pandas("lists")
