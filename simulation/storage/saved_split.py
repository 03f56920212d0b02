"""A split on disk: the train and the test ratings as the two files of a folder, which any run can read again.

Beside them are the settings by which they read the same: the scale, of which the ratings may lack levels, and
users and items without a rating in either part.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dprec.components import Options, as_values, read
from dprec.crossdomain import CrossDomainRatings
from dprec.datasets import GIVEN, Dataset, DelimitedTable
from dprec.errors import InputError
from dprec.ratings import ColdRatings, Ratings
from simulation.configuration.loading import DATASET, dataset_at
from simulation.configuration.strict_yaml import dump_yaml
from simulation.storage.directories import check_unused
from simulation.storage.files import unusable, write_atomically, write_files

_TRAIN, _TEST, _UNRATED = "train.csv", "test.csv", "unrated.csv"

NEGATIVES = "test.negative"
"""Beside them: the items that relevant ones are ranked among, where these are drawn."""


def save_split(dataset: Dataset, folder: str | Path, train: Ratings, test: Ratings) -> None:
    """Write the parts of a data set, with absolute paths, so that ``--set dataset=FOLDER`` reads them.

    A folder that has them already, as when a run is resumed, stays as it is. Raises InputError when files
    cannot say what the split is, or the folder holds something else.
    """
    odd = "ratings of two domains" if isinstance(train, CrossDomainRatings) else ""
    if isinstance(test, ColdRatings):
        odd = "cold users, whose devices hold items that are in neither part"
    if odd:
        raise InputError("save_split", odd, "a split of one data set, whose test users take part")
    place = Path(folder)
    with suppress(InputError):
        if (place / DATASET).is_file() and _reads(place, train, test):
            return
    check_unused(place)
    write_files(place, {DATASET: dump_yaml(as_values(_settings(dataset, train)))})
    saved = False
    try:
        train.to_csv(place / _TRAIN)
        test.to_csv(place / _TEST)
        if (unrated := _unrated(train, test)) is not None:
            unrated.to_csv(place / _UNRATED)
        saved = _reads(place, train, test)
    except InputError as error:
        found = f"what files cannot be read as again: {error.found}"
        raise InputError("save_split", found, error.accepted) from None
    except OSError as error:
        raise unusable(place, error) from None
    finally:
        if not saved:
            for name in (DATASET, _TRAIN, _TEST, _UNRATED):
                (place / name).unlink(missing_ok=True)
    if not saved:
        found = "identifiers such as '7' as text, or a scale of uneven levels, which files do not keep"
        raise InputError("save_split", found, "integers or other text, and even levels")


def save_negatives(folder: str | Path, lines: Iterable[str]) -> None:
    """Write the lines of `NEGATIVES`.

    A file that has them already stays as it is. Raises InputError, RunError where it has others, or as
    `unusable`.
    """
    path = Path(folder) / NEGATIVES
    try:
        if not path.exists():
            write_atomically(path, lines)
            return
        with path.open("rb") as file:
            same = all(file.read(len(line)) == line for line in map(str.encode, lines)) and not file.read(1)
    except OSError as error:
        raise unusable(path, error) from None
    if not same:
        raise InputError(str(path), "other items than were drawn", "a folder of its own for every split")


def _settings(dataset: Dataset, train: Ratings) -> dict[str, Any]:
    """Return the settings of the files, and those of the data set that count after the split."""
    settings: dict[str, Any] = {"separator": ",", "has_header": True}
    scale = train.scale
    if not scale.implicit:
        step = (scale.high - scale.low) / (scale.levels - 1)
        settings |= {"low": scale.low, "high": scale.high, "step": step, "continuous": scale.continuous}
        settings |= {"scale_is_public": False} if dataset.read_off() else {}
    settings |= {"copies": dataset.copies, "simulated_up_to": dataset.simulated_up_to}
    tables = {name: getattr(dataset, name, None) for name in ("users", "items")}
    settings |= {name: table for name, table in tables.items() if isinstance(table, Options)}
    return {name: value for name, value in settings.items() if value is not None}


def _unrated(train: Ratings, test: Ratings) -> Ratings | None:
    """Return the users and items without a rating as pairs; None if there are none."""
    items = np.bincount(np.concatenate([train.items, test.items]), minlength=train.n_items)
    unrated = train.user_ids[train.counts + test.counts == 0], train.item_ids[items == 0]
    pairs = max(map(len, unrated))
    # The shorter column is filled with what it has already, or with any.
    spaces = zip(unrated, (train.user_ids, train.item_ids), strict=True)
    columns = [np.resize(identifiers if identifiers.size else space, pairs) for identifiers, space in spaces]
    return Ratings.from_pairs(*columns) if pairs else None


def _reads(folder: Path, *parts: Ratings) -> bool:
    """Return whether a folder is read as some parts."""
    again = read(DelimitedTable, dataset_at(str(folder))).load_fold(GIVEN)
    columns = ("user_ids", "item_ids", "indptr", "items", "levels", "exact")
    return all(
        np.array_equal(part.scale.values, reread.scale.values)
        and part.scale.continuous == reread.scale.continuous
        and all(np.array_equal(getattr(part, name), getattr(reread, name)) for name in columns)
        for part, reread in zip(parts, again, strict=True)
    )
