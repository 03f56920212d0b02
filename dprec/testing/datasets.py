"""What every data set must do, and what those that read a file of ratings must do."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from dprec.components import kind_of, summary_of
from dprec.datasets import Dataset
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


class DatasetContract:
    """Tests of a data set's class, given by the fixture `dataset`, with `settings` as in a configuration."""

    @pytest.fixture
    def dataset(self) -> type[Dataset]:
        """Return the class that is tested."""
        raise NotImplementedError("a subclass gives the class of the data set")

    def settings(self, dataset: type[Dataset]) -> dict[str, Any]:
        """Return the settings without which the data set cannot be created."""
        return {}

    def test_describes_itself(self, dataset: type[Dataset]) -> None:
        """In a sentence, and each setting has a description."""
        assert summary_of(dataset).endswith(".")
        assert dataclasses.fields(dataset)[0].name == "kind"
        for field in dataclasses.fields(dataset)[1:]:
            assert field.metadata["description"]

    def test_is_read_strictly_from_a_configuration(self, dataset: type[Dataset]) -> None:
        """By its kind, and with no settings that it does not have."""
        adapter: TypeAdapter[Dataset] = TypeAdapter(dataset)
        configured = {"kind": kind_of(dataset), **self.settings(dataset)}
        assert isinstance(adapter.validate_json(json.dumps(configured)), dataset)
        with pytest.raises(ValueError, match="nonsense"):
            adapter.validate_json(json.dumps({**configured, "nonsense": 1}))
        kind = adapter.json_schema()["properties"]["kind"]
        assert kind.get("const", kind_of(dataset)) == kind_of(dataset)

    def test_refuses_a_fold_it_does_not_have(self, dataset: type[Dataset]) -> None:
        """Whether or not it comes with folds."""
        with pytest.raises(InputError, match=r"fold: 'u9'.*accepted: "):
            dataset(**self.settings(dataset)).load_fold("u9")


class FileDatasetContract:
    """Tests of a data set that reads one file, given by the fixtures `dataset` and `sample`."""

    @pytest.fixture
    def dataset(self) -> type[Dataset]:
        """Return the class that is tested."""
        raise NotImplementedError("a subclass gives the class of the data set")

    @pytest.fixture
    def sample(self) -> Sample:
        """Return a file in the layout of the data set."""
        raise NotImplementedError("a subclass gives a sample of the data set")

    @pytest.fixture
    def load(self, dataset: type[Dataset], sample: Sample) -> Load:
        """Return the function that loads."""

        def load_from(path: Path, **settings: Any) -> Ratings:
            build: Callable[..., Dataset] = dataset
            return build(path=str(path), **{**sample.settings, **settings}).load()

        return load_from

    @pytest.fixture
    def refused(self, load: Load) -> Refused:
        """Return the function that checks that a path is refused."""

        def message(path: Path, **settings: Any) -> str:
            with pytest.raises(InputError) as caught:
                load(path, **settings)
            line = str(caught.value)
            assert "\n" not in line
            assert "; accepted: " in line
            assert str(path.name) in line
            return line

        return message

    def test_loads_what_the_file_says(self, load: Load, sample: Sample, tmp_path: Path) -> None:
        """Users, items and ratings, with their identifiers in order and on the right scale."""
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
        self, load: Load, refused: Refused, sample: Sample, tmp_path: Path
    ) -> None:
        """If the distributor gives the file a fixed name."""
        path = _written(tmp_path, sample, sample.lines())
        if sample.found_in_folder:
            assert load(tmp_path).count == load(path).count == 5
        else:
            assert "a folder" in refused(tmp_path)

    @pytest.mark.parametrize("style", ["windows", "byte order mark", "no last line end", "empty last lines"])
    def test_styles_of_text_make_no_difference(
        self, load: Load, sample: Sample, style: str, tmp_path: Path
    ) -> None:
        """Line ends, a byte order mark, empty lines at the end."""
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

    @pytest.mark.parametrize(
        ("rating", "quoted"),
        [("99.5", "99.5"), ("-99", "-99"), ("nan", "nan"), ("inf", "inf"), ("good", "good"), ("1_0", "1_0")],
    )
    def test_a_bad_rating_is_found_on_its_line(
        self, refused: Refused, sample: Sample, rating: str, quoted: str, tmp_path: Path
    ) -> None:
        """Off the scale, or not a number at all."""
        lines = sample.lines()
        lines[-2] = sample.row(sample.users[2], 900, rating)
        message = refused(_written(tmp_path, sample, lines))
        assert f"{sample.file}, line {len(lines) - 1}:" in message
        assert quoted in message

    def test_a_rating_between_the_levels_needs_a_continuous_scale(
        self, load: Load, refused: Refused, sample: Sample, tmp_path: Path
    ) -> None:
        """It is kept on such a scale, and refused on any other."""
        lines = [*sample.lines(), sample.row(sample.users[0], 900, "1.27")]
        path = _written(tmp_path, sample, lines)
        if sample.continuous:
            assert 1.27 in load(path).values
        else:
            assert f"line {len(lines)}: rating 1.27" in refused(path)

    def test_a_second_rating_of_an_item(
        self, load: Load, refused: Refused, sample: Sample, tmp_path: Path
    ) -> None:
        """Refused, or the last one kept."""
        lines = [*sample.lines(), sample.row(sample.users[0], 50, f"{sample.low:g}")]
        path = _written(tmp_path, sample, lines)
        assert f"line {len(lines)}: user {sample.users[0]} rates item 50 a second time" in refused(path)
        last = load(path, duplicates="last")
        assert (sample.users[0], 50, sample.low) in triples_of(last)
        assert last.count == 5
        with pytest.raises(InputError, match="duplicates: 'first'"):
            load(path, duplicates="first")

    def test_a_line_of_another_width(self, refused: Refused, sample: Sample, tmp_path: Path) -> None:
        """It is reported with its number, even if the next line lacks what it has too many."""
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

    def test_files_without_ratings(self, refused: Refused, sample: Sample, tmp_path: Path) -> None:
        """No file, a folder in its place, and nothing but line ends or a byte order mark."""
        assert "no such file" in refused(tmp_path / "absent" / sample.file)
        refused(tmp_path)
        path = tmp_path / sample.file
        path.mkdir()
        assert "a folder" in refused(path)
        path.rmdir()
        for content in (b"", b"\n\n", b"\xef\xbb\xbf"):
            path.write_bytes(content)
            assert "empty" in refused(path)

    def test_a_header_without_the_column(self, refused: Refused, sample: Sample, tmp_path: Path) -> None:
        """Or a header with nothing below it."""
        if sample.renamed_header is None:
            pytest.skip("has no header")
        lines = sample.lines()
        path = _written(tmp_path, sample, [sample.renamed_header, *lines[1:]])
        assert f"{sample.file}, line 1: no column" in refused(path)
        assert "nothing below" in refused(_written(tmp_path, sample, lines[:1]))


def triples_of(ratings: Ratings) -> set[tuple[Any, Any, float]]:
    """Return the ratings with the data set's own identifiers."""
    return set(
        zip(
            ratings.user_ids[ratings.users].tolist(),
            ratings.item_ids[ratings.items].tolist(),
            ratings.values.tolist(),
            strict=True,
        )
    )


def _written(folder: Path, sample: Sample, lines: list[str]) -> Path:
    path = folder / sample.file
    path.write_text("\n".join(lines) + "\n")
    return path
