"""Every data set that reads one file of ratings, on a small file in its layout."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dprec.components import kind_of
from dprec.datasets import DATASETS
from dprec.datasets.table import FileDataset
from dprec.errors import InputError
from dprec.ratings import Ratings


@dataclasses.dataclass(frozen=True)
class Sample:
    """A small file of one rating per line, in the layout of a data set."""

    file: str
    """The name that the distributor gives the file."""
    row: Callable[[Any, Any, Any], str]
    """Lays out a user, an item and a rating."""
    low: float
    high: float
    """Ends of the scale."""
    levels: int
    """Levels of the scale."""
    continuous: bool = False
    """Whether ratings may lie between the levels."""
    header: str | None = None
    """The first line, if it names the columns."""
    renamed_header: str | None = None
    """The same without one of the columns that are read."""
    users: tuple[Any, ...] = (3, 10, 7)
    """Three identifiers, as in the file."""
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the data set, in addition to its path."""
    found_in_folder: bool = True
    """Whether the path may be the folder that holds the file."""

    @property
    def triples(self) -> list[tuple[Any, int, float]]:
        """The ratings in the file."""
        a, b, c = self.users
        return [
            (a, 50, self.high),
            (a, 8, self.low),
            (b, 50, self.low),
            (c, 900, self.high),
            (b, 8, self.high),
        ]

    def lines(self) -> list[str]:
        """Return the lines of the file."""
        rows = [self.row(user, item, f"{value:g}") for user, item, value in self.triples]
        return rows if self.header is None else [self.header, *rows]


Load = Callable[..., Ratings]
"""From a path, and settings that differ from the sample's, to the ratings in the file."""

Refused = Callable[..., str]
"""From the same arguments to the message that refuses the file."""

TIMED = "userId,movieId,rating,timestamp"
RATED = "userID,placeID,rating,food_rating,service_rating"
SAMPLES = {
    "movielens-100k": Sample("u.data", "{}\t{}\t{}\t881250949".format, 1, 5, 5),
    "movielens-1m": Sample("ratings.dat", "{}::{}::{}::978300760".format, 1, 5, 5),
    "movielens-10m": Sample("ratings.dat", "{}::{}::{}::978300760".format, 0.5, 5, 10),
    **dict.fromkeys(
        ["movielens-20m", "movielens-25m"],
        Sample(
            "ratings.csv",
            "{},{},{},1147880044".format,
            *(0.5, 5, 10),
            header=TIMED,
            renamed_header=TIMED.replace("user", "unknown"),
        ),
    ),
    "jester": Sample("jester_ratings.dat", "{}\t\t{}\t\t{}".format, -10, 10, 41, continuous=True),
    "libimseti": Sample("ratings.dat", "{},{},{}".format, 1, 10, 10),
    "rc": Sample(
        "rating_final.csv",
        "{},{},{},2,1".format,
        *(0, 2, 3),
        header=RATED,
        renamed_header=RATED.replace("user", "unknown"),
        users=("U1077", "U1103", "U1068"),
    ),
    "douban": Sample("music.dat", "{}\t{}\t{}".format, 1, 5, 5, settings={"domain": "music"}),
    "csv": Sample(
        "mine.txt",
        "{2};ignored;{0};{1}".format,
        *(1, 4, 4),
        header="stars;comment;who;what",
        renamed_header="stars;comment;nobody;what",
        found_in_folder=False,
        settings={
            **{"user_column": "who", "item_column": "what", "rating_column": 1, "separator": ";"},
            **{"low": 1.0, "high": 4.0, "step": 1.0},
        },
    ),
}

TWO_FILES = {"movielens-genres", "csv-domains"}
"""Read several files each, and have tests of their own for what these hold."""


@pytest.fixture(params=sorted(SAMPLES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sample(kind: str) -> Sample:
    return SAMPLES[kind]


@pytest.fixture
def load(kind: str, sample: Sample) -> Load:
    def load_from(path: Path, **settings: Any) -> Ratings:
        return DATASETS[kind](**{"path": str(path), **sample.settings, **settings}).load()

    return load_from


@pytest.fixture
def refused(load: Load) -> Refused:
    def message(path: Path, **settings: Any) -> str:
        with pytest.raises(InputError) as caught:
            load(path, **settings)
        line = str(caught.value)
        assert "\n" not in line
        assert "; accepted: " in line
        assert str(path.name) in line
        return line

    return message


def triples_of(ratings: Ratings) -> set[tuple[Any, ...]]:
    columns = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items], ratings.values
    return {*zip(*(column.tolist() for column in columns), strict=True)}


def _written(folder: Path, sample: Sample, lines: list[str]) -> Path:
    path = folder / sample.file
    path.write_text("\n".join(lines) + "\n")
    return path


def test_every_data_set_that_reads_one_file_has_a_sample() -> None:
    reading = {kind_of(dataset) for dataset in DATASETS if issubclass(dataset, FileDataset)}
    assert reading - TWO_FILES == set(SAMPLES)


def test_loads_what_the_file_says(load: Load, sample: Sample, tmp_path: Path) -> None:
    path = _written(tmp_path, sample, sample.lines())
    ratings = load(path)
    assert (ratings.n_users, ratings.n_items, ratings.count) == (3, 3, 5)
    assert triples_of(ratings) == set(sample.triples)
    assert ratings.user_ids.tolist() == sorted(sample.users)
    assert ratings.item_ids.tolist() == [8, 50, 900]
    assert ratings.user_ids.dtype.kind == ("U" if isinstance(sample.users[0], str) else "i")
    assert (ratings.scale.low, ratings.scale.high) == (sample.low, sample.high)
    assert ratings.scale.levels == sample.levels
    assert ratings.scale.continuous == sample.continuous


def test_a_folder_stands_for_the_file_in_it(
    load: Load, refused: Refused, sample: Sample, tmp_path: Path
) -> None:
    path = _written(tmp_path, sample, sample.lines())
    if sample.found_in_folder:
        assert load(tmp_path).count == load(path).count == 5
    else:
        assert "a folder" in refused(tmp_path)


@pytest.mark.parametrize("style", ["windows", "byte order mark", "no last line end", "empty last lines"])
def test_styles_of_text_make_no_difference(load: Load, sample: Sample, style: str, tmp_path: Path) -> None:
    text = "\n".join(sample.lines())
    path = tmp_path / sample.file
    path.write_bytes(
        {
            "windows": text.replace("\n", "\r\n") + "\r\n",
            "byte order mark": "\ufeff" + text + "\n",
            "no last line end": text,
            "empty last lines": text + "\n\n \r\n\n",
        }[style].encode()
    )
    assert triples_of(load(path)) == set(sample.triples)


@pytest.mark.parametrize("rating", ["99.5", "-99", "nan", "inf", "good", "1_0"])
def test_a_bad_rating_is_found_on_its_line(
    refused: Refused, sample: Sample, rating: str, tmp_path: Path
) -> None:
    lines = sample.lines()
    lines[-2] = sample.row(sample.users[2], 900, rating)
    message = refused(_written(tmp_path, sample, lines))
    assert f"{sample.file}, line {len(lines) - 1}:" in message
    assert rating in message


def test_a_rating_between_the_levels_needs_a_continuous_scale(
    load: Load, refused: Refused, sample: Sample, tmp_path: Path
) -> None:
    lines = [*sample.lines(), sample.row(sample.users[0], 900, "1.27")]
    path = _written(tmp_path, sample, lines)
    if sample.continuous:
        assert 1.27 in load(path).values
    else:
        assert f"line {len(lines)}: rating 1.27" in refused(path)


def test_a_second_rating_of_an_item(load: Load, refused: Refused, sample: Sample, tmp_path: Path) -> None:
    lines = [*sample.lines(), sample.row(sample.users[0], 50, f"{sample.low:g}")]
    path = _written(tmp_path, sample, lines)
    assert f"line {len(lines)}: user {sample.users[0]} rates item 50 a second time" in refused(path)
    last = load(path, duplicates="last")
    assert (sample.users[0], 50, sample.low) in triples_of(last)
    assert last.count == 5
    assert (sample.users[0], 50, sample.low) not in triples_of(load(path, duplicates="first"))
    with pytest.raises(InputError, match="duplicates: 'newest'"):
        load(path, duplicates="newest")


def test_a_line_of_another_width(refused: Refused, sample: Sample, tmp_path: Path) -> None:
    lines = sample.lines()
    for cut in ("", "5", "5 6"):
        torn = [*lines[:-2], cut, lines[-1]]
        message = refused(_written(tmp_path, sample, torn))
        assert f"{sample.file}, line {len(lines) - 1}:" in message
        assert "column" in message
    # Together with a shorter line, so that counting separators in the whole file shows no defect.
    separator = next(mark for mark in ("::", "\t\t", "\t", ";", ",") if mark in lines[-1])
    head, _, tail = lines[-1].rpartition(separator)
    lines[-2:] = [lines[-2] + separator + tail, head]
    assert f"{sample.file}, line {len(lines) - 1}:" in refused(_written(tmp_path, sample, lines))


def test_files_without_ratings(refused: Refused, sample: Sample, tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "absent" / sample.file)
    refused(tmp_path)
    path = tmp_path / sample.file
    path.mkdir()
    assert "a folder" in refused(path)
    path.rmdir()
    for content in (b"", b"\n\n", b"\xef\xbb\xbf"):
        path.write_bytes(content)
        assert "empty" in refused(path)


def test_a_header_without_the_column(refused: Refused, sample: Sample, tmp_path: Path) -> None:
    if sample.renamed_header is None:
        pytest.skip("has no header")
    lines = sample.lines()
    path = _written(tmp_path, sample, [sample.renamed_header, *lines[1:]])
    assert f"{sample.file}, line 1: no column" in refused(path)
    assert "nothing below" in refused(_written(tmp_path, sample, lines[:1]))
