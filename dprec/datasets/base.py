"""What every data set is: settings that state where ratings come from, and a way to load them."""

import json
import math
import re
import shlex
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dprec.arrays import AnyArray, Bools, Floats
from dprec.catalogue import Catalogue, UsersTable
from dprec.components import Options, option
from dprec.errors import InputError, SettingError, shown
from dprec.layout import DIVISION, LAYOUT, check_returned, division_defect, layout_defect
from dprec.rating_rows import Identifiers, RatingRows, Reading, in_one_space
from dprec.ratings import Ratings, RatingScale

OR_WITHOUT_TIMES = ", or a split that needs none, such as holdout"
"""What else is accepted of data without times, unless a schedule needs them."""


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
    positive: str | None = option(
        "Which ratings make an item one of the user's, such as '>= 4' or '> 0': what remains are sets of "
        "items, without ratings.",
        None,
    )
    min_items: int | None = option(
        "Items that a user has at least; those with fewer are left out, by default nobody.", None, ge=1
    )
    min_users: int | None = option(
        "Users that an item has at least; those with fewer are left out, by default none, and with min_items "
        "in turn with users, until all have enough.",
        None,
        ge=1,
    )
    copies: int | None = option(
        "Users of a population that is made of copies of them after the split; the test users stay those "
        "that there are.",
        None,
        ge=1,
        le=2**31 - 1,
    )
    simulated_up_to: int | None = option(
        "Largest population of copies that is simulated: a larger one is represented by the users that there "
        "are, whose sums get as much noise per user as sums of all (tau); by default all are simulated.",
        None,
        ge=1,
        le=2**31 - 1,
    )
    distribution: ClassVar[Source | None] = None
    folds: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[bool] = False
    documented: ClassVar[RatingScale | None] = None
    """The scale of every such data set, if it has one."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Have what a user-defined class loads checked, and the class named if it is otherwise laid out."""
        super().__init_subclass__(**options)
        for method in ("load", "load_timed"):
            check_returned(cls, method, layout_defect, LAYOUT)
        check_returned(cls, "load_fold", lambda parts, *_, **__: division_defect(parts), DIVISION)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positive is not None:
            threshold_of(self.positive)

    @property
    def as_it_is(self) -> bool:
        """Whether no rating and no user is left out or copied."""
        return not self.selects and self.copies is None

    @property
    def selects(self) -> bool:
        """Whether ratings, users or items are left out."""
        return not (self.positive is None and self.min_items is None and self.min_users is None)

    def represented(self, users: int) -> int | None:
        """Return the population of copies that so many users represent; None if it is simulated."""
        population, limit = self.copies or 0, self.simulated_up_to
        return None if limit is None or population <= max(limit, users) else population

    @abstractmethod
    def load(self) -> Ratings:
        """Return all ratings.

        Raises InputError when the data cannot be read; it names the file and the line.
        """

    def load_timed(self) -> Ratings:
        """Return all ratings with the times at which they were made, for a split that needs them.

        Raises InputError when there are no times, or as for `load`.
        """
        found = f"{self.kind}, which comes without times"
        raise SettingError("", found, f"data with times{OR_WITHOUT_TIMES}")

    def load_changes(self) -> Ratings | None:
        """Return what was rated once more, later: of the same users and items, with times; None if nothing.

        `load_timed` has the first ratings.
        """
        return None

    def known_size(self) -> tuple[int, int, int] | None:
        """Return the numbers of users, items and ratings if they are known without the ratings."""
        return None

    def known_scale(self) -> RatingScale | None:
        """Return the rating scale if it is known without the ratings."""
        return self.documented

    @property
    def holds_sets(self) -> bool:
        """Whether it holds sets of items, without ratings, as far as that is known before it is loaded."""
        scale = self.known_scale()
        return self.positive is not None or (scale is not None and scale.implicit)

    def read_off(self) -> tuple[str, ...]:
        """Return the settings of the rating scale that are not given, so that the ratings decide them."""
        return ()

    def written(self, settings: Mapping[str, Any]) -> str:
        """Return settings of the data set as they are typed on the command line."""
        return typed_settings(settings)

    def hidden(self) -> Floats | None:
        """Return the matrix from which the signs were drawn, shape (users, items), if it is known."""
        return None

    def catalogue(self, item_ids: AnyArray) -> Catalogue | None:
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

    @property
    def public_items(self) -> str:
        """The settings of what is read that is public about the items; empty where nothing is."""
        return "" if type(self).catalogue is Dataset.catalogue else "items"

    def users_table(self, user_ids: AnyArray) -> UsersTable | None:
        """Return the public data about the users; None without any.

        ``user_ids``, shape (users,): the identifiers of the ratings' users, in their order. Raises InputError
        when the data cannot be read; it names the file and the line.
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

        Raises SettingError under "fold".
        """
        names = self.fold_names()
        if not names:
            found = f"{fold!r}, but {self.kind} comes without predefined folds"
            raise SettingError("fold", found, "a split of another kind, such as k-fold or holdout")
        if fold not in names:
            raise SettingError("fold", repr(fold), ", ".join(names))


def as_typed(value: Any, flag: Callable[[bool], str]) -> str:
    """Return a setting as it is typed, given how one that is true or false is."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(as_typed(element, flag) for element in value)}]"
    if isinstance(value, str):
        # Elsewhere than in Python, a plain word is as good without quotes.
        plain = re.fullmatch(r"[A-Za-z_][\w '%+=<>().*-]*", value) and value.lower() not in _NOT_TEXTS
        return value if plain and flag(True) == "true" else json.dumps(value, ensure_ascii=False)
    return flag(value) if isinstance(value, bool) else f"{value:.10g}"


def typed_settings(settings: Mapping[str, Any]) -> str:
    """Return settings of a data set as they are typed in a shell, whatever text from a file is in them."""
    entries = (f"dataset.{name}={as_typed(value, json.dumps)}" for name, value in settings.items())
    return " ".join(f"--set {_quoted(entry)}" for entry in entries)


def typed_condition(column: str, condition: str) -> str:
    """Return what is typed to read the rows alone that meet a condition on a column, named as in messages."""
    unnamed = re.fullmatch(r"column (\d+)", column)
    plain = re.fullmatch(r"\w[\w -]*", column)
    name = f"column_{unnamed[1]}" if unnamed else column if plain else '"' + column + '"'
    return typed_settings({"where": f"{name} {condition}"})


def _quoted(argument: str) -> str:
    """Return an argument as a shell takes it; single quotes stay within double ones."""
    double = "'" in argument and not set(argument) & set('"$`\\!')
    return f'"{argument}"' if double else shlex.quote(argument)


_NOT_TEXTS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
"""Words that YAML takes for something else."""


def locate(path: str, *names: str) -> Path:
    """Return the file that a ``path`` setting means: itself, or the first of `names` in that folder."""
    if not path:
        raise SettingError("path", "an empty name", "the file of ratings, or the folder that holds it")
    try:
        place = Path(path).expanduser()
        candidates = [place / name for name in names] if place.is_dir() else [place]
        file = next((candidate for candidate in candidates if candidate.exists()), None)
    except (OSError, RuntimeError) as error:  # of a name that is too long, and of expanduser
        raise InputError(shown(path), str(error).lower(), "a path that can be opened") from None
    wanted = " or ".join(names)
    if place.is_dir() and (file is None or not names):
        listed = not names and (place / "train.txt").is_file()
        accepted = f"a file; or --set 'dataset={{kind: lightgcn, path: {place}}}'" if listed else "a file"
        folder = f"a folder without {wanted}" if names else "a folder"
        raise InputError(str(place), folder, accepted + (" or the folder that holds it" if names else ""))
    if file is None:
        accepted = f"the file {wanted}, or its folder" if names else "a file"
        start = "" if place.is_absolute() else f", from {Path.cwd()}"
        raise InputError(
            str(place),
            f"no such file or folder{start}",
            f"{accepted}: --set dataset.path=PATH, or dprec fetch",
        )
    return file


def threshold_of(rule: str) -> tuple[float, bool]:
    """Return the threshold of a rule such as ">= 4", and whether it passes itself.

    Raises SettingError under "positive".
    """
    parsed = re.fullmatch(r"\s*(>=?)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*", rule)
    if parsed is None or not math.isfinite(float(parsed[2])):
        raise SettingError("positive", shown(repr(rule)), "such as '>= 4' or '> 0'")
    return float(parsed[2]), parsed[1] == ">="


def passing(rule: str | None) -> Callable[[Floats], Bools] | None:
    """Return what says which ratings pass a rule such as ">= 4"; None without one. Raises SettingError."""
    if rule is None:
        return None
    threshold, included = threshold_of(rule)
    return lambda values: values >= threshold if included else values > threshold


GIVEN, VALIDATION = "given", "validation"
"""Names of the divisions of data that come in parts: into train and test, and into train and validation."""


def read_fold(
    train: RatingRows,
    test: RatingRows,
    scale: RatingScale,
    spaces: Sequence[tuple[AnyArray, AnyArray]] = (),
) -> tuple[Ratings, Ratings]:
    """Put a train and a test part into one space of users and items; see `read_parts`."""
    learnt, tested = read_parts([train, test], scale, spaces)
    return learnt, tested


def read_parts(
    parts: Sequence[RatingRows], scale: RatingScale, spaces: Sequence[tuple[AnyArray, AnyArray]] = ()
) -> tuple[Ratings, ...]:
    """Put parts, that of training first, into one space of users and items, with those of further spaces.

    Every part has a pair once. Raises InputError when one has no user in common with the first, or a rating
    is in two of them.
    """
    user_ids = in_one_space([part.users for part in parts], [users for users, _ in spaces])
    item_ids = in_one_space([part.items for part in parts], [items for _, items in spaces])
    loaded = tuple(Ratings.from_rows(rows, scale, user_ids=user_ids, item_ids=item_ids) for rows in parts)
    for place, (rows, ratings) in enumerate(zip(parts, loaded, strict=True)):
        if not np.any((loaded[0].counts > 0) & (ratings.counts > 0)):
            found = f"none of the users of {parts[0].source}"
            raise InputError(rows.source, found, "ratings of the same users")
        for earlier_rows, earlier in zip(parts[:place], loaded[:place], strict=True):
            leaks = np.flatnonzero(np.isin(ratings.cells, earlier.cells))
            if leaks.size:
                user, item = ratings.users[leaks[0]], ratings.items[leaks[0]]
                users, items = rows.users.within(user_ids, "user"), rows.items.within(item_ids, "item")
                row = int(np.flatnonzero((users == user) & (items == item))[0])
                rating = f"the rating of item {item_ids[item]} by user {user_ids[user]}"
                found = f"{rating} is in {earlier_rows.source} too"
                raise rows.error(row, found, "each rating in one part")
    return loaded


def united(*parts: Ratings) -> Ratings:
    """Return the ratings of all parts, which are in one space of users and items."""
    first = parts[0]
    users, items = (
        Identifiers(
            getattr(first, f"{name}_ids"), np.concatenate([getattr(part, f"{name}s") for part in parts])
        )
        for name in ("user", "item")
    )
    values = np.concatenate([part.to_rows().values for part in parts])
    reading = Reading.joined(part.reading for part in parts)
    rows = RatingRows(users.occurring(), items.occurring(), values, reading=reading)
    return Ratings.from_rows(rows, first.scale, user_ids=first.user_ids, item_ids=first.item_ids)


def without_times(ratings: Ratings) -> Ratings:
    """Return ratings without the times that only some splits need."""
    return ratings if ratings.times is None else replace(ratings, times=None, lines=None)
