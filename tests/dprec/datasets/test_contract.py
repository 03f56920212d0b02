"""What every registered data set promises, on a small file in its own layout."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from dprec.datasets import DATASETS, Dataset
from dprec.datasets.base import FileDataset
from dprec.errors import InputError
from dprec.ratings import Ratings
from dprec.registry import kind_of, summary_of


@dataclasses.dataclass(frozen=True)
class Sample:
    """A file of one rating per line; `row` lays out a user, an item and a rating."""

    file: str
    row: Callable[[Any, Any, Any], str]
    low: float
    high: float
    levels: int
    header: str | None = None
    users: tuple[Any, ...] = (3, 10, 7)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def triples(self) -> list[tuple[Any, int, float]]:
        a, b, c = self.users
        return [
            (a, 50, self.high),
            (a, 8, self.low),
            (b, 50, self.low),
            (c, 900, self.high),
            (b, 8, self.high),
        ]

    @property
    def first_line(self) -> int:
        return 1 if self.header is None else 2

    def lines(self) -> list[str]:
        rows = [self.row(user, item, f"{value:g}") for user, item, value in self.triples]
        return rows if self.header is None else [self.header, *rows]


def tabs(user: Any, item: Any, rating: Any) -> str:
    return f"{user}\t{item}\t{rating}"


def timed_tabs(user: Any, item: Any, rating: Any) -> str:
    return f"{user}\t{item}\t{rating}\t881250949"


def colons(user: Any, item: Any, rating: Any) -> str:
    return f"{user}::{item}::{rating}::978300760"


def commas(user: Any, item: Any, rating: Any) -> str:
    return f"{user},{item},{rating}"


def timed_commas(user: Any, item: Any, rating: Any) -> str:
    return f"{user},{item},{rating},1147880044"


MOVIELENS_HEADER = "userId,movieId,rating,timestamp"
SAMPLES = {
    "movielens-100k": Sample("u.data", timed_tabs, 1, 5, 5),
    "movielens-1m": Sample("ratings.dat", colons, 1, 5, 5),
    "movielens-10m": Sample("ratings.dat", colons, 0.5, 5, 10),
    "movielens-20m": Sample("ratings.csv", timed_commas, 0.5, 5, 10, MOVIELENS_HEADER),
    "movielens-25m": Sample("ratings.csv", timed_commas, 0.5, 5, 10, MOVIELENS_HEADER),
    "jester": Sample("jester_ratings.dat", lambda *row: "\t\t".join(map(str, row)), -10, 10, 41),
    "libimseti": Sample("ratings.dat", commas, 1, 10, 10),
    "rc": Sample(
        "rating_final.csv",
        lambda *row: f"{commas(*row)},2,1",
        0,
        2,
        3,
        "userID,placeID,rating,food_rating,service_rating",
        users=("U1077", "U1103", "U1068"),
    ),
    "douban": Sample("music.dat", tabs, 1, 5, 5, settings={"domain": "music"}),
    "csv": Sample(
        "mine.txt",
        lambda user, item, rating: f"{rating};ignored;{user};{item}",
        1,
        4,
        4,
        "stars;comment;who;what",
        settings={
            "user_column": "who",
            "item_column": "what",
            "rating_column": 1,
            "separator": ";",
            "low": 1.0,
            "high": 4.0,
            "step": 1.0,
        },
    ),
}

TWO_DOMAINS = {"movielens-genres", "csv-domains"}
"""Read several files each, and have tests of their own."""

ALL = [kind_of(dataset) for dataset in DATASETS if kind_of(dataset) not in TWO_DOMAINS]
READ = [kind for kind in ALL if issubclass(DATASETS[kind], FileDataset)]


def sample_of(kind: str) -> Sample:
    assert kind in SAMPLES, f"a data set that reads files needs a sample here: {kind}"
    return SAMPLES[kind]


def build(kind: str, path: Path, **settings: Any) -> Dataset:
    dataset: Callable[..., Dataset] = DATASETS[kind]
    return dataset(path=str(path), **{**sample_of(kind).settings, **settings})


def write(kind: str, folder: Path, lines: list[str]) -> Path:
    path = folder / sample_of(kind).file
    path.write_text("\n".join(lines) + "\n")
    return path


def refused(kind: str, path: Path, **settings: Any) -> str:
    with pytest.raises(InputError) as caught:
        build(kind, path, **settings).load()
    message = str(caught.value)
    assert "\n" not in message
    assert "; accepted: " in message
    assert str(path.name) in message
    return message


def triples_of(ratings: Ratings) -> set[tuple[Any, Any, float]]:
    return set(
        zip(
            ratings.user_ids[ratings.users].tolist(),
            ratings.item_ids[ratings.items].tolist(),
            ratings.values.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("kind", ALL)
def test_describes_itself(kind: str) -> None:
    dataset = DATASETS[kind]
    assert summary_of(dataset).endswith(".")
    assert dataclasses.fields(dataset)[0].name == "kind"
    for field in dataclasses.fields(dataset)[1:]:
        assert field.metadata["description"]


@pytest.mark.parametrize("kind", ALL)
def test_is_read_strictly_from_a_configuration(kind: str) -> None:
    adapter: TypeAdapter[Dataset] = TypeAdapter(DATASETS[kind])
    needed = '"path": "here"' if kind in READ else '"seed": 3'
    assert isinstance(adapter.validate_json(f'{{"kind": "{kind}", {needed}}}'), DATASETS[kind])
    with pytest.raises(ValueError, match="nonsense"):
        adapter.validate_json(f'{{"kind": "{kind}", {needed}, "nonsense": 1}}')
    assert adapter.json_schema()["properties"]["kind"]["const"] == kind


@pytest.mark.parametrize("kind", ALL)
def test_refuses_a_fold_it_does_not_have(kind: str, tmp_path: Path) -> None:
    dataset = (
        build(kind, write(kind, tmp_path, sample_of(kind).lines())) if kind in READ else DATASETS[kind]()
    )
    with pytest.raises(InputError, match=r"fold: 'u9'.*accepted: "):
        dataset.load_fold("u9")


@pytest.mark.parametrize("kind", READ)
def test_loads_what_the_file_says(kind: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    path = write(kind, tmp_path, sample.lines())
    ratings = build(kind, path).load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (3, 3, 5)
    assert triples_of(ratings) == set(sample.triples)
    assert ratings.user_ids.tolist() == sorted(sample.users)
    assert ratings.item_ids.tolist() == [8, 50, 900]
    assert ratings.user_ids.dtype.kind == ("U" if isinstance(sample.users[0], str) else "i")
    assert (ratings.scale.low, ratings.scale.high) == (sample.low, sample.high)
    assert ratings.scale.levels == sample.levels
    assert ratings.scale.continuous == (kind == "jester")


@pytest.mark.parametrize("kind", READ)
def test_a_folder_stands_for_the_file_in_it(kind: str, tmp_path: Path) -> None:
    path = write(kind, tmp_path, sample_of(kind).lines())
    if kind == "csv":
        assert "a folder" in refused(kind, tmp_path)
    else:
        assert build(kind, tmp_path).load().count == build(kind, path).load().count == 5


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("style", ["windows", "byte order mark", "no last line end", "empty last lines"])
def test_styles_of_text_make_no_difference(kind: str, style: str, tmp_path: Path) -> None:
    text = "\n".join(sample_of(kind).lines())
    path = tmp_path / sample_of(kind).file
    path.write_bytes(
        {
            "windows": text.replace("\n", "\r\n") + "\r\n",
            "byte order mark": "\ufeff" + text + "\n",
            "no last line end": text,
            "empty last lines": text + "\n\n \r\n\n",
        }[style].encode()
    )
    assert triples_of(build(kind, path).load()) == set(sample_of(kind).triples)


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize(
    ("rating", "found"),
    [("99.5", "99.5"), ("-99", "-99"), ("nan", "nan"), ("inf", "inf"), ("good", "good"), ("1_0", "1_0")],
)
def test_a_bad_rating_is_found_on_its_line(kind: str, rating: str, found: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    lines = sample.lines()
    lines[-2] = sample.row(sample.users[2], 900, rating)
    message = refused(kind, write(kind, tmp_path, lines))
    assert f"{sample.file}, line {len(lines) - 1}:" in message
    assert found in message


@pytest.mark.parametrize("kind", READ)
def test_a_rating_between_the_levels_needs_a_continuous_scale(kind: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    lines = [*sample.lines(), sample.row(sample.users[0], 900, "1.27")]
    path = write(kind, tmp_path, lines)
    if kind == "jester":
        assert 1.27 in build(kind, path).load().values
    else:
        assert f"line {len(lines)}: rating 1.27" in refused(kind, path)


@pytest.mark.parametrize("kind", READ)
def test_a_second_rating_of_an_item(kind: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    lines = [*sample.lines(), sample.row(sample.users[0], 50, f"{sample.low:g}")]
    path = write(kind, tmp_path, lines)
    assert f"line {len(lines)}: user {sample.users[0]} rates item 50 a second time" in refused(kind, path)
    last = build(kind, path, duplicates="last").load()
    assert (sample.users[0], 50, sample.low) in triples_of(last)
    assert last.count == 5
    with pytest.raises(InputError, match="duplicates: 'first'"):
        build(kind, path, duplicates="first").load()


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("cut", ["", "5", "5 6"])
def test_an_incomplete_line(kind: str, cut: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    lines = sample.lines()
    place = sample.first_line + 1
    lines[place - 1] = cut
    message = refused(kind, write(kind, tmp_path, lines))
    assert f"{sample.file}, line {place}:" in message
    assert "column" in message


@pytest.mark.parametrize("kind", READ)
def test_a_line_with_a_column_too_many(kind: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    lines = sample.lines()
    # Together with a shorter line, so that counting separators in the whole file finds nothing.
    separator = next(mark for mark in ("::", "\t\t", "\t", ";", ",") if mark in lines[-1])
    head, _, tail = lines[-1].rpartition(separator)
    lines[-2:] = [lines[-2] + separator + tail, head]
    assert f"{sample.file}, line {len(lines) - 1}:" in refused(kind, write(kind, tmp_path, lines))


@pytest.mark.parametrize("kind", READ)
def test_files_that_are_not_there(kind: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    assert "no such file" in refused(kind, tmp_path / "absent" / sample.file)
    refused(kind, tmp_path)
    (tmp_path / sample.file).mkdir()
    assert "a folder" in refused(kind, tmp_path / sample.file)


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file(kind: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / sample_of(kind).file
    path.write_bytes(content)
    assert "empty" in refused(kind, path)


@pytest.mark.parametrize("kind", READ)
def test_not_a_text_file(kind: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    good = "\n".join(sample.lines()).encode()
    place = len(sample.lines()) + 1
    path = tmp_path / sample.file
    path.write_bytes(good + b"\nPK\x03\x04\x00\x00")
    assert f"{sample.file}, line {place}: a zero byte" in refused(kind, path)
    path.write_bytes(good + b"\n" + sample.row("caf\xe9", 1, 2).encode("latin-1"))
    assert f"{sample.file}, line {place}: byte 0xe9" in refused(kind, path)


@pytest.mark.parametrize("kind", [kind for kind in READ if sample_of(kind).header])
def test_a_header_without_the_column(kind: str, tmp_path: Path) -> None:
    sample = sample_of(kind)
    assert sample.header is not None
    lines = sample.lines()
    path = write(
        kind, tmp_path, [sample.header.replace("ser", "nknown").replace("who", "nobody"), *lines[1:]]
    )
    assert f"{sample.file}, line 1: no column" in refused(kind, path)
    assert "nothing below" in refused(kind, write(kind, tmp_path, lines[:1]))


def test_synthetic_needs_no_file() -> None:
    ratings = DATASETS["synthetic"]().load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (943, 1682, 100_000)
    assert np.bincount(ratings.levels)[1:].tolist() == [6110, 11370, 27145, 34174, 21201]
