"""What every data set is: settings that state where ratings come from, and a way to load them."""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.catalogue import Catalogue
from dprec.components import Options, option
from dprec.errors import InputError, SettingError, shown
from dprec.ratings import Ratings, RatingScale


@dataclass(frozen=True)
class Source:
    """Where a data set's distributor offers it."""

    url: str
    """A zip archive, over http or https."""
    holds: str
    """Name of a file in the archive; the data set's ``path`` is the folder that it is unpacked to."""
    md5: str | None = None
    """Checksum in hexadecimal, if the distributor publishes one."""


@dataclass(frozen=True, kw_only=True)
class Dataset(Options):
    """Base of the data sets.

    A data set that can be downloaded sets `distribution`; one that comes with its own splits names them
    in `folds` and defines `load_fold`. `own` says that the ratings are the user's, so that what is found in
    them, such as their scale, is stated with the results.
    """

    kind: str = ""
    distribution: ClassVar[Source | None] = None
    folds: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[bool] = False

    @abstractmethod
    def load(self) -> Ratings:
        """Return all ratings.

        Raises
        ------
        InputError
            When the data cannot be read; it names the file and the line.
        """

    def load_timed(self) -> Ratings:
        """Return all ratings with the times at which they were made, for a split that needs them.

        Raises
        ------
        InputError
            When there are no times, or as for `load`.
        """
        accepted = "data with times, or a split that needs none, such as holdout"
        raise SettingError("", f"{self.kind}, which comes without times", accepted)

    def known_size(self) -> tuple[int, int, int] | None:
        """Return the numbers of users, items and ratings if they are known without the ratings."""
        return None

    def known_scale(self) -> RatingScale | None:
        """Return the rating scale if it is known without the ratings."""
        return None

    def read_off(self) -> tuple[str, ...]:
        """Return the settings of the rating scale that nobody gave, so that the ratings themselves decide."""
        return ()

    def written(self, settings: Mapping[str, Any]) -> str:
        """Return settings of the data set as somebody types them."""
        return typed(settings)

    def hidden(self) -> NDArray[np.float64] | None:
        """Return the matrix from which the signs were drawn, shape (users, items), if it is known."""
        return None

    def catalogue(self, item_ids: NDArray[Any]) -> Catalogue | None:
        """Return the public data about the items; None without any.

        Parameters
        ----------
        item_ids : ndarray, shape (items,)
            The identifiers of the ratings' items, in their order.

        Raises
        ------
        InputError
            When the data cannot be read; it names the file and the line.
        """
        return None

    def item_names(self) -> dict[str, str]:
        """Return what items are called, by identifier; empty where the data set has no names."""
        return {}

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return the train and test ratings of a split that is distributed with the data.

        Parameters
        ----------
        fold : str
            The distributor's name for it.

        Returns
        -------
        tuple of Ratings
            Train and test, in one space of users and items: the union of both files.

        Raises
        ------
        InputError
            When the data set has no such fold, or as for `load`.
        """
        self.check_fold(fold)
        raise NotImplementedError(f"{type(self).__name__} names folds but does not load them")

    def fold_names(self) -> tuple[str, ...]:
        """Return the names of the splits that come with the data."""
        return self.folds

    def check_fold(self, fold: str) -> None:
        """Refuse a split that is not distributed with the data.

        Raises
        ------
        SettingError
            Under "fold".
        """
        names = self.fold_names()
        if not names:
            raise SettingError(
                "fold",
                f"{fold!r}, but {self.kind} comes without predefined folds",
                "a split of another kind, such as k-fold or holdout",
            )
        if fold not in names:
            raise SettingError("fold", repr(fold), ", ".join(names))


@dataclass(frozen=True, kw_only=True)
class FileDataset(Dataset):
    """Base of the data sets that are read from files."""

    path: str = option("The folder of the data set, or its file of ratings.")
    duplicates: Literal["error", "last"] = option(
        "What to do if a user rates an item twice: 'error' refuses, 'last' keeps the later line.", "error"
    )


def typed(settings: Mapping[str, Any]) -> str:
    """Return settings of a data set as they are typed on the command line."""
    return " ".join(
        f"--set {shlex.quote(f'dataset.{name}={_in_yaml(value)}')}" for name, value in settings.items()
    )


def _in_yaml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_in_yaml, value))}]"
    return str(value).lower() if isinstance(value, bool) else f"{value:.10g}"


def locate(path: str, *names: str) -> Path:
    """Return the file that a ``path`` setting means: itself, or the first of `names` in that folder."""
    if not path:
        raise SettingError("path", "an empty name", "the file of ratings, or the folder that holds it")
    try:
        place = Path(path).expanduser()
        folder_given, there = place.is_dir(), place.exists()
    except OSError as error:
        raise InputError(shown(path), str(error.strerror).lower(), "a path that can be opened") from None
    except RuntimeError:  # of expanduser
        raise InputError(shown(path), "a home directory of nobody", "a path that can be opened") from None
    if folder_given:
        candidates = [place / name for name in names]
        for candidate in candidates:
            if candidate.exists():
                return candidate
        folder = "a folder" if not names else f"a folder without {' or '.join(names)}"
        raise InputError(str(place), folder, f"a file{' or the folder that holds it' if names else ''}")
    if not there:
        accepted = f"the file {' or '.join(names)}, or its folder" if names else "a file"
        start = "" if place.is_absolute() else f", from {Path.cwd()}"
        raise InputError(str(place), f"no such file or folder{start}", f"{accepted}, as the data set's path")
    return place
